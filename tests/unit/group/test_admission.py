"""What routers let pass under a policy, besides what the machine judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from ioa.group.events import MemberJoined, Said
from ioa.group.legality import admit, offer
from ioa.group.rejection import IllegalEventError
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    Decision,
    Discussion,
    Payload,
    Thinking,
)
from tests.unit.group.scenario import Scenario, card, launched_under, said
from tests.unit.group.test_policy import policy_of
from tests.unit.runtime.plane import ADA, BOB, EVE

SALE = "Buy it all."
GUARDED: Mapping[str, Any] = {"guards": [{"without": ["buy"]}]}
REVIEWED: Mapping[str, Any] = {"review": "c"}
TASK = TaskId("t1-1")


def _passed(story: Scenario, payload: Payload, sender: AgentId = ADA) -> Payload:
    event = admit(story.policy, story.state, said(sender, payload, story.state.turn))
    assert isinstance(event, Said)
    return event.message.payload


@pytest.mark.parametrize("node", [GUARDED, REVIEWED])
def test_note_in_a_node_with_guards_or_a_review_loses_its_words(node: Mapping[str, Any]) -> None:
    """All members hear a note at once, and neither guards nor a review check it."""
    policy = policy_of({"name": "x", "roles": ["a"], "max": 9, "then": "y", **node}, {"name": "y", "roles": ["b", "c"]})
    story = launched_under(policy, {"a": [ADA], "b": [BOB], "c": [EVE]}, ADA, BOB, EVE)
    assert _passed(story, Thinking(note=SALE)) == Thinking()
    plain = policy_of({"name": "x", "roles": ["a", "b", "c"], "max": 9})
    free = launched_under(plain, {"a": [ADA], "b": [BOB], "c": [EVE]}, ADA, BOB, EVE)
    assert _passed(free, Thinking(note=SALE)) == Thinking(note=SALE)


HEARD: Mapping[str, Mapping[str, Any]] = {
    "hears all": {"roles": {"b": {"hears_all": True}}, "nodes": [{"name": "y", "roles": ["c"], "heard_by": ["c"], "max": 2}]},
    "hears a node": {"nodes": [{"name": "y", "roles": ["c"], "heard_by": ["b"], "max": 2}]},
    "leads": {"leader": "b", "nodes": [{"name": "y", "roles": ["c"], "heard_by": "leader", "max": 2}]},
    "reviews": {"nodes": [{"name": "y", "roles": ["c"], "review": "b", "max": 2}]},
    "asks who sit apart": {
        "nodes": [{"name": "y", "roles": ["a", "b"], "turns": {"mode": "hub", "by": "b", "peers": "never"}, "max": 2}]
    },
}


@pytest.mark.parametrize("how", ["invites", "add"])
@pytest.mark.parametrize("hears", list(HEARD))
def test_nobody_has_an_agent_join_that_hears_more(hears: str, how: str) -> None:
    """It may be the same one's: it is not offered, and refused; who hears as much may, and in its own role everybody does."""
    top = {**HEARD[hears]}
    talk: dict[str, Any] = {"name": "x", "roles": ["a", "b"], "max": 9, "then": "y"}
    if how == "invites":
        talk["invites"] = True
    else:
        top["watchers"] = [{"role": "a", "node": "x", "may": ["add"]}, {"role": "b", "node": "x", "may": ["add"]}]
    story = launched_under(policy_of(talk, *top.pop("nodes"), **top), {"a": [ADA], "b": [BOB], "c": [EVE]}, ADA, BOB, EVE)
    assert story.policy is not None
    if how == "add":
        story = story.speaks(ADA, Discussion(content="Well."))
    assert _offered_and_taken(story, ADA) == (["a"], ["a"])
    story = story.speaks(ADA, Discussion(content="Well.") if how == "invites" else Decision(choice="nothing"))
    assert _offered_and_taken(story, BOB) == (["a", "b"], ["a", "b"])


def _offered_and_taken(story: Scenario, who: AgentId) -> tuple[Sequence[str], Sequence[str]]:
    """Return in which of two roles it may have others join, and in which it can."""
    assert story.policy is not None
    offered, taken = offer(story.policy, story.state, who), list[str]()
    assert offered is not None
    for role in "ab":
        joined = MemberJoined(at=story.now, card=card("fay"), by=who, turn=story.state.turn, role=role)
        with suppress(IllegalEventError):
            story.happens(admit(story.policy, story.state, joined))
            taken.append(role)
    return [role for role in offered.invites if role in "ab"], taken


def test_who_was_removed_answers_nothing_that_tasks_ask() -> None:
    """They are others' now: what they ask waits for the goal's user, or has its default."""
    story = launched_under(policy_of({"name": "x", "roles": ["a", "b"], "max": 9}), {"a": [ADA], "b": [BOB]}, ADA, BOB)
    members = tuple([one.model_copy(update={"removed": one.agent_id == ADA}) for one in story.state.members])
    removed = replace(story, state=story.state.model_copy(update={"members": members}))
    answer = Decision(task_id=TASK, choice="yes")
    assert story.refusal(said(ADA, answer, 1, story.now)).code == "unknown_task"
    assert "ada was removed" in removed.refusal(said(ADA, answer, 1, story.now)).message
