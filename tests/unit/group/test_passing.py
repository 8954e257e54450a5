"""Passing the floor on and keeping it: what fails in a member never keeps its group waiting, and is never taken for a decision."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from ioa.group.machine import legal_kinds
from ioa.group.rejection import RejectionCode
from ioa.group.state import Discussing, Ended
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import ConcludeGroupDiscussion, Discussion, InformTaskResult, Pass, PassCause, Phase, Thinking
from tests.unit.group.scenario import START, Scenario, launched, said

NOTHING, AWAY, USELESS = PassCause.NOTHING_TO_ADD, PassCause.MODEL_UNAVAILABLE, PassCause.NO_USABLE_ANSWER
MODEL, RULES = DecidedBy(kind="model", name="large"), DecidedBy(kind="rules", instead_of="large", cause="too_slow")


def talking(**options: object) -> Scenario:
    """Three members, the first of whom has the floor."""
    return launched("ada", "bob", "eve", **options)  # type: ignore[arg-type]


def reason(story: Scenario) -> Reason | None:
    """How the group ended."""
    return story.state.stage.reason if isinstance(story.state.stage, Ended) else None


ROUNDS: dict[str, tuple[Callable[[], Scenario], Phase, str | None, Reason | None]] = {
    "one pass hands on": (lambda: talking().passes("ada"), Phase.DISCUSSING, "bob", None),
    "nothing to add: the owner concludes": (lambda: talking().passes("ada", "bob", "eve"), Phase.CONCLUDING, "ada", None),
    "a word begins a new round": (
        lambda: talking().passes("ada").says("bob", to="eve").passes("eve", "ada"),
        Phase.DISCUSSING,
        "bob",
        None,
    ),
    "nothing to add while a task runs: wait for it": (
        lambda: talking().assigns("ada", "t1-1:bob").progresses("t1-1").passes("ada", "bob", "eve"),
        Phase.PAUSED,
        None,
        None,
    ),
    "no usable answers": (
        lambda: talking().passes("ada", cause=USELESS).passes("bob", "eve", cause=USELESS),
        Phase.FAILED,
        None,
        Reason.FAILED,
    ),
    "one of them has nothing to add": (
        lambda: talking().passes("ada", cause=USELESS).passes("bob").passes("eve", cause=USELESS),
        Phase.CONCLUDING,
        "ada",
        None,
    ),
    "models away for a moment": (lambda: talking().passes("ada", "bob", "eve", cause=AWAY), Phase.DISCUSSING, "ada", None),
    "models away for too long": (
        lambda: talking().passes("ada", "bob", "eve", cause=AWAY).after(301).passes("ada", cause=AWAY),
        Phase.FAILED,
        None,
        Reason.MODEL_UNAVAILABLE,
    ),
    "one model away and nothing to add: the owner concludes": (
        lambda: talking().passes("ada", cause=AWAY).passes("bob", "eve").after(301).passes("ada", cause=AWAY),
        Phase.CONCLUDING,
        "ada",
        None,
    ),
    "the lost are not waited for": (
        lambda: talking().loses("eve").passes("ada", "bob", cause=USELESS),
        Phase.FAILED,
        None,
        Reason.FAILED,
    ),
    "the next one concludes": (lambda: talking().announces("ada").passes("ada", cause=AWAY), Phase.CONCLUDING, "bob", None),
    "nobody concludes": (
        lambda: talking().announces("ada").passes("ada", "bob", "eve"),
        Phase.FAILED,
        None,
        Reason.FAILED,
    ),
    "nobody concludes what was forced": (
        lambda: launched("ada", "bob", max_turns=1).says("ada", to="bob").passes("ada", "bob", cause=USELESS),
        Phase.FAILED,
        None,
        Reason.MAX_TURNS,
    ),
    "rules do not go on for a model": (lambda: talking(ruled=["bob"]).passes("ada", cause=AWAY), Phase.DISCUSSING, "eve", None),
    "rules go on where the owner is lost": (
        lambda: talking(ruled=["bob"]).loses("ada"),
        Phase.DISCUSSING,
        "bob",
        None,
    ),
}


@pytest.mark.parametrize(("story", "phase", "holder", "why"), ROUNDS.values(), ids=ROUNDS)
def test_what_passes_lead_to(story: Callable[[], Scenario], phase: Phase, holder: str | None, why: Reason | None) -> None:
    """The floor goes on at once, and a full round says what the group lacks."""
    told = story()
    assert (told.phase, told.holder, reason(told)) == (phase, holder, why)


def test_a_pass_is_no_turn_and_no_silence() -> None:
    """Neither the turns of a goal nor the patience with the silent are used up by a model that is away."""
    state = talking().timer().passes("bob", "eve", cause=AWAY).state
    assert (state.turns_taken, state.silences, len(state.passes)) == (0, 1, 2)


def test_the_end_says_whose_model_is_away_and_since_when() -> None:
    """The time counts from the grant of the floor in which it was told first, and what was done before is told."""
    story = talking().assigns_and_waits("ada", "t1-1:bob").finishes("t1-1").after(5).passes("ada", "bob", "eve", cause=AWAY)
    ended = story.after(300).speaks("ada", Pass(cause=AWAY, content="large at host: 503.")).state.stage
    assert isinstance(ended, Ended)
    assert ended.content == (
        "No language model of the members answers: that of ada, bob, eve, since 2026-01-01 00:00:00 UTC."
        " The last said: large at host: 503. Tasks done: 1 of 1."
    )


def test_thinking_keeps_the_floor_in_the_second_half_of_its_time() -> None:
    """A patient member may think as long as it says so; the start of its floor stays what it was, and no turn is used up."""
    story = talking(patient=["ada"])
    early = story.after(29)
    kept = story.after(30).thinks("ada").state
    assert early.refusal(said("ada", Thinking(), 1, early.now)).code is RejectionCode.NO_CHANGE
    assert kept.stage == Discussing(holder=AgentId("ada"), until=START + timedelta(seconds=90), since=START)
    assert (kept.turn, kept.turns_taken) == (1, 0)


def test_thinking_is_for_members_with_patience() -> None:
    """Who has none on its card has the time that its group gives, and is not offered more."""
    story = talking().after(59)
    assert story.refusal(said("ada", Thinking(), 1, story.now)).code is RejectionCode.NO_CHANGE
    assert Thinking not in legal_kinds(story.state, AgentId("ada"), story.now)


def test_thinking_never_goes_beyond_the_deadline() -> None:
    """The group ends when its goal says, whoever thinks."""
    story = talking(patient=["ada"]).after(24 * 3600 - 45)
    kept = story.thinks("ada")
    stage = kept.state.stage
    assert isinstance(stage, Discussing) and stage.until == kept.state.limits.deadline
    late = kept.after(44)
    assert late.refusal(said("ada", Thinking(), 1, late.now)).code is RejectionCode.NO_CHANGE


def test_patience_is_the_time_of_floors_and_leases() -> None:
    """A member with patience on its card has that much for a turn, a conclusion and each report of a task."""
    story = launched("ada", "bob", patient=["ada", "bob"]).announces("ada")
    task = launched("ada", "bob", patient=["bob"]).assigns("ada", "t1-1:bob").state.open_tasks[0]
    assert story.state.next_deadline() == START + timedelta(seconds=60)
    assert task.lease_until == START + timedelta(seconds=60)


def test_patience_outlasts_a_loss() -> None:
    """A member that was away for a moment is waited for as before."""
    story = talking(patient=["bob"]).loses("bob").regains("bob")
    assert story.state.patience_of(AgentId("bob")) == timedelta(seconds=60)


def test_decisions_are_counted_by_who_took_them() -> None:
    """The state tells how often the model decided and how often rules did in its place; what functions report is no decision."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob")
    result = InformTaskResult(task_id=story.open("t1-1").task_id, task_conclusion="done")
    story = story.happens(said("bob", result, 1, by=DecidedBy(kind="function")))
    for sender, by in (("ada", MODEL), ("bob", RULES), ("ada", MODEL)):
        to = AgentId("bob" if sender == "ada" else "ada")
        story = story.happens(said(sender, Discussion(content=f"{story.state.turn}.", next_speaker=to), story.state.turn, by=by))
    story = story.happens(said("bob", ConcludeGroupDiscussion(), story.state.turn))
    assert story.state.decisions == (Decisions(by=MODEL, count=2), Decisions(by=RULES, count=1))
