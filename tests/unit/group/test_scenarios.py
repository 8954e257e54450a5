"""Whole discussions under a policy, as their authors would write them: counts, orders, audiences and ends, on the pure machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ioa.group.events import Said, TimerFired, encode_entry
from ioa.group.policy.audience import view_for
from ioa.group.rejection import RejectionCode
from ioa.group.state import Ended, Gathering
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import ConcludeGroupDiscussion, Decision, Discussion
from ioa.protocol.policy import Policy
from ioa.protocol.team import team_of
from tests.rig.cases import cases
from tests.unit.group.scenario import Scenario, launched_under, said
from tests.unit.group.test_policy import Told, floors
from tests.unit.group.test_visibility import entries

RED, BLUE, JUDGE = ("ada", "bob"), ("eve", "joe"), "zoe"
CAST: Mapping[str, Sequence[str]] = {"red": RED, "blue": BLUE, "judge": [JUDGE]}


def policy_of(**document: Any) -> Policy:
    """A policy of the roles red, blue and judge."""
    given = {name: document.get("roles", {}).get(name, {}) for name in CAST}
    roles = {name: role if "human" in role else {"agent": "any", **role} for name, role in given.items()}
    return team_of({"team": "t", **document, "roles": roles}).policy


def play(policy: Policy, words: str, **more: Any) -> Scenario:
    """Tell a story of two teams and a judge; Zoe, the judge, opened the group."""
    told = Told(launched_under(policy, CAST, JUDGE, *RED, *BLUE, **more))
    for word in words.split():
        told = told.word(word)
    return told.story


def told_to(story: Scenario) -> list[tuple[str, str]]:
    """Who said something, and who was told it, in order."""
    assert story.policy is not None
    return [
        (entry.event.message.header.sender, " ".join(entry.audience))
        for entry in entries(story.log, story.policy)
        if isinstance(entry.event, Said)
    ]


BOTH = ["red", "blue"]
TWO_TEAMS: Sequence[Mapping[str, Any]] = (
    {"name": "red-plans", "roles": ["red"], "heard_by": "node", "then": "blue-plans"},
    {"name": "blue-plans", "roles": ["blue"], "heard_by": "node", "then": "debate"},
    {"name": "debate", "roles": BOTH, "max": 4, "then": "ruled"},
    {"name": "ruled", "roles": BOTH, "turns": {"mode": "ask", "by": "judge"}, "max": 3, "asked": "turn",
     "exits": [{"to": "verdict", "by": "judge"}]},
    {"name": "verdict", "roles": ["judge"]},
)  # fmt: skip
PLANS = "says says says says"


def test_the_last_speaker_is_no_choice() -> None:
    """Who chooses it is told whom there is."""
    policy = policy_of(nodes=TWO_TEAMS, leader="judge")
    story = play(policy, f"{PLANS} says says says says decides:ada says decides:stay")
    refused = story.refusal(said(JUDGE, Decision(choice="ada"), story.state.turn))
    assert (refused.code, "bob, eve, joe" in refused.message) == (RejectionCode.BAD_DECISION, True)


@pytest.mark.parametrize(
    ("heard_by", "apart"),
    [("node", True), (["red", "blue"], False), (None, False)],
    ids=["the team alone", "both teams", "all"],
)
def test_plans_are_told_to_whom_the_file_says(heard_by: object, apart: bool) -> None:
    """No member of a team is shown the other's planning, or each is; a judge from outside hears it only if it is told."""
    nodes = [{**one, "heard_by": heard_by} if heard_by and "plans" in one["name"] else one for one in TWO_TEAMS]
    if heard_by is None:
        nodes = [{name: it for name, it in one.items() if name != "heard_by"} for one in TWO_TEAMS]
    story = play(policy_of(nodes=nodes, leader="judge"), f"{PLANS} says")
    teams, everybody = " ".join((*RED, *BLUE)), " ".join((JUDGE, *RED, *BLUE))
    planning = [" ".join(RED)] * 2 + [" ".join(BLUE)] * 2 if apart else [everybody if heard_by is None else teams] * 4
    assert told_to(story) == list(zip((*RED, *BLUE, "ada"), (*planning, everybody), strict=True))
    assert story.policy is not None
    for agent in map(AgentId, (JUDGE, *RED, *BLUE)):
        shown = b"".join(
            encode_entry(view_for(story.policy, one, agent)).data
            for one in entries(story.log, story.policy)
            if one.is_shown_to(agent)
        )
        for number, audience in enumerate(planning, 1):
            assert (f"Point {number}.".encode() in shown) is (agent in audience.split())


CLINIC = (
    {"name": "history", "roles": ["blue", "red"], "max": 6, "asked": "turn", "exits": [{"to": "advice", "by": "judge"}]},
    {"name": "advice", "roles": ["blue", "red"], "max": 4, "form": {"clear": "yes/no?"},
     "exits": [{"to": "end", "when": {"field": "clear", "of": "red", "equals": True}}]},
)  # fmt: skip


PAPER = (
    {"name": "outline", "roles": ["red"], "max": 1, "exits": [{"to": "write", "by": "speaker"}, {"to": "edit", "by": "speaker"}]},
    {"name": "write", "roles": ["red", "blue"], "max": 2, "visits": 3, "then": ["outline", "edit"]},
    {"name": "edit", "roles": ["judge"], "max": 3, "exits": [{"to": "end", "by": "speaker"}]},
)


def test_a_paper_by_two_who_alternate_is_ended_by_the_last_role_alone() -> None:
    """Who is not offered the end is refused it in each turn before, and nothing has changed by that."""
    policy = policy_of(nodes=PAPER, leader="judge")
    told = Told(launched_under(policy, {**CAST, "red": ["ada"], "blue": ["eve"]}, JUDGE, "ada", "eve"))
    where = [told.where()]
    for word in "goes:write says says goes:write says says goes:edit".split():
        state, holder = told.story.state, told.story.state.floor[0]
        for payload in (ConcludeGroupDiscussion(), Discussion(content="Enough.", go="end")):
            refused = told.story.refusal(said(holder, payload, state.turn, told.story.now))
            assert refused.code in (RejectionCode.OFF_COURSE, RejectionCode.BAD_EXIT)
        told = told.word(word)
        where.append(told.where())
    assert " ".join(where) == "outline:ada write:ada write:eve outline:ada write:ada write:eve outline:ada edit:zoe"
    assert told.word("ends").where() == "concluding:zoe"


SIDE_BY_SIDE = ({"name": "votes", "roles": ["red", "blue"], "turns": "together", "max": 8},)


@pytest.mark.parametrize("how", ["deadline", "cancelled"])
def test_an_end_while_others_still_owe_an_answer_is_the_end(how: str) -> None:
    """Two have voted, two have not: what comes later is refused, and what was said stands in the log."""
    story = play(policy_of(nodes=SIDE_BY_SIDE, leader="judge"), "says says")
    assert isinstance(story.state.stage, Gathering) and len(story.state.stage.seats) == 2
    owing, turn = story.state.floor, story.state.turn
    ended = story.happens(TimerFired(at=story.state.limits.deadline)) if how == "deadline" else story.cancelled()
    assert isinstance(ended.state.stage, Ended)
    for agent in owing:
        assert ended.refusal(said(agent, Discussion(content="Late."), turn)).code is RejectionCode.GROUP_ENDED
    assert len([one for one in ended.log if isinstance(one, Said)]) == ended.state.turns_taken == 2


def test_an_answer_behind_its_time_is_refused_and_changes_nothing() -> None:
    """Of a person as well: whose turn it is then is told, and nothing of what it had filled in counts."""
    policy = policy_of(nodes=CLINIC, leader="blue", roles={"red": {"human": True, "timeout": 60}})
    cast = {"red": ["human-red"], "blue": ["eve"], "judge": [JUDGE]}
    told = Told(launched_under(policy, cast, "eve", "human-red", JUDGE))
    for word in "says decides:advice says".split():
        told = told.word(word)
    assert told.where() == "advice:human-red"
    late = said("human-red", Discussion(content="Yes!", fields={"clear": True}), told.story.state.turn)
    told = told.word("silent")
    assert told.story.refusal(late).code is RejectionCode.STALE_TURN
    assert told.where() == "advice:eve"


PLAYED = cases("stories")


@pytest.mark.parametrize(("document", "words", "expected", "turns"), [row[1:] for row in PLAYED], ids=[row[0] for row in PLAYED])
def test_a_team_goes_as_its_page_says(document: Mapping[str, Any], words: str, expected: str, turns: int) -> None:
    """What the documentation says was written down first: who has the floor after each event, and how many turns were used up."""
    policy = policy_of(**document)
    assert floors(launched_under(policy, CAST, JUDGE, *RED, *BLUE), words) == expected
    assert play(policy, words).state.turns_taken == turns


def test_parallel_round_starts_only_with_enough_turns() -> None:
    """With 7 turns left, a group of four members runs one round and not two."""
    story = play(policy_of(nodes=SIDE_BY_SIDE, leader="judge"), "says " * 4, max_turns=7)
    assert (story.state.turns_taken, story.state.phase, story.state.forced) == (4, "concluding", Reason.MAX_TURNS)
    assert play(policy_of(nodes=SIDE_BY_SIDE, leader="judge"), "says " * 4, max_turns=8).state.phase == "gathering"
