"""Agents that join a group which is under way."""

from __future__ import annotations

import pytest

from ioa.group.events import MemberJoined
from ioa.group.machine import step
from ioa.group.policy.offer import offer
from ioa.group.rejection import RejectionCode
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision
from tests.unit.group.scenario import Scenario, card, launched, said
from tests.unit.group.test_policy import Told, X, Y, group


def joining(story: Scenario, **about: object) -> MemberJoined:
    """What group setup records when Ada invites Zoe in her turn."""
    told = {"at": story.now, "card": card("zoe"), "by": "ada", "turn": story.state.turn, **about}
    return MemberJoined.model_validate(told)


def test_who_joins_hears_and_speaks() -> None:
    """Who has invited it keeps the floor, and no turn is used up; then it may be named, and be given tasks."""
    story = launched("ada", "bob").says("ada", to="bob").says("bob", to="ada")
    transition = step(story.state, joining(story))
    assert transition.audience == ("ada", "bob", "zoe")
    assert (transition.state.turn, transition.state.turns_taken, transition.state.floor_holder) == (3, 2, "ada")
    told = story.invites("ada", "zoe").says("ada", to="zoe")
    assert (told.holder, told.state.hearing) == ("zoe", ("ada", "bob", "zoe"))
    assert told.says("zoe", to="ada").assigns("ada", "t5-1:zoe").state.open_tasks[0].assignee == "zoe"


@pytest.mark.parametrize(
    ("about", "code"),
    [
        ({"by": "bob"}, RejectionCode.NOT_YOUR_FLOOR),
        ({"turn": 7}, RejectionCode.STALE_TURN),
        ({"card": card("bob")}, RejectionCode.NO_CHANGE),
    ],
    ids=["no floor", "another turn", "a member"],
)
def test_only_who_has_the_floor_invites(about: dict[str, object], code: RejectionCode) -> None:
    """For the turn that it has, and nobody twice."""
    story = launched("ada", "bob")
    assert story.refusal(joining(story, **about)).code is code


@pytest.mark.parametrize(
    ("node", "role"),
    [
        ({}, "a"),
        ({"invites": True}, None),
        ({"invites": True}, "z"),
        ({"invites": True, "opens": {"role": "a", "say": "Go."}}, "a"),
    ],
    ids=["the node does not invite", "no role", "another role", "before the opening"],
)
def test_a_policy_says_where_and_as_what(node: dict[str, object], role: str | None) -> None:
    """All else is off course."""
    story = group({**X, **node})
    assert story.refusal(joining(story, role=role)).code is RejectionCode.OFF_COURSE


def test_who_hears_nothing_learns_nothing_by_inviting() -> None:
    """Neither the turn, nor who has the floor, nor whether the node invites: all that it tries is answered alike."""
    story = group({**X, "heard_by": ["a"], "max": 1, "then": "y"}, Y)
    refusals = [story.refusal(joining(story, by="eve", **about)) for about in ({}, {"turn": 7}, {"role": "a"})]
    assert {(one.code, one.message) for one in refusals} == {(RejectionCode.NOT_YOUR_FLOOR, "Others hold the floor, not eve.")}


def test_who_joins_under_a_policy_plays_a_role() -> None:
    """The state knows it by its number, as of all others."""
    story = group({**X, "invites": True}, roles={"a": {"at_most": 2}}).invites("ada", "joe", "a")
    assert story.state.members[-1].roles == (0,) and story.state.members[-1].agent_id == AgentId("joe")
    assert story.state.course is not None
    assert (len(story.state.course.taken), len(story.state.course.total)) == (4, 4)


def test_a_watcher_adds_by_having_somebody_join() -> None:
    """In any role that is open to all; to choose it without anybody is a wrong choice, and so is a role that is secret."""
    watcher = {"role": "c", "may": ["add"]}
    story = group({**X, "roles": ["a", "b"], "then": "y"}, Y, roles={"b": {"secret": True}}, watchers=[watcher])
    asked = Told(story).word("says").story
    assert asked.policy is not None
    offered = offer(asked.policy, asked.state, AgentId("eve"))
    assert offered is not None and (offered.options, offered.invites) == (("nothing", "add"), ("a", "c"))
    chosen = asked.refusal(said("eve", Decision(choice="add"), asked.state.turn))
    assert (chosen.code, chosen.message) == (RejectionCode.BAD_DECISION, "To add somebody, have it join: who does is your answer.")
    assert asked.refusal(joining(asked, by="eve", role="b")).code is RejectionCode.OFF_COURSE
    assert asked.refusal(joining(asked, by="ada", role="a")).code is RejectionCode.NOT_YOUR_FLOOR
    joined = asked.happens(joining(asked, by="eve", role="a"))
    assert (joined.state.floor, joined.state.turn, joined.state.turns_taken) == (("zoe",), asked.state.turn + 1, 1)


def test_a_watcher_that_only_ends_adds_nobody() -> None:
    """Nor does a judge."""
    asked = Told(group(X, watchers=[{"role": "c", "may": ["end"]}])).word("says").story
    assert asked.refusal(joining(asked, by="eve", role="a")).code is RejectionCode.OFF_COURSE


def test_why_somebody_is_invited_is_guarded() -> None:
    """All hear it, as they hear what is said."""
    guarded = group({**X, "max": 3, "invites": True, "then": "end", "guards": [{"without": ["apple"]}]})
    assert guarded.refusal(joining(guarded, role="a", why="Bring the Apple.")).code is RejectionCode.GUARDED
    assert guarded.happens(joining(guarded, role="a")).state.is_member(AgentId("zoe"))
