"""Rule-led groups on the real machine: the waves they take, and that nothing ever leaves them stuck."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioa.agent.rules.progress import next_utterance
from ioa.group.events import MemberLost, MemberReturned, TimerFired
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.ports.brain_types import TaskRecord
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import SyncTaskAssignment, TaskOutcome
from ioa.protocol.setup.charter import PlannedTask
from tests.unit.agent.model.machine_group import card
from tests.unit.agent.rules.group_play import OWNER, GroupPlay, charter_of, planned

SKIPPED = "- chart it (it uses a result that is missing)"


async def test_a_task_without_its_inputs_is_skipped() -> None:
    """A task with a missing input never begins and is not assigned again; the conclusion gives the reason."""
    play = GroupPlay(charter_of([planned("t1", "a"), planned("t0", "c"), planned("t2", "b", "chart it", uses=("t1", "t0"))]))
    await play.run(failing=("t1",))
    assert len([task for task in play.view(OWNER).tasks if task.spec.task_desc == "chart it" and not task.started]) == 1
    assert play.ended.reason is Reason.FAILED
    assert SKIPPED in play.ended.content


async def test_a_task_that_fails_goes_to_the_next_candidate() -> None:
    """In order; tasks that use it are assigned again."""
    play = GroupPlay(charter_of([planned("t1", "a", others=("b", "c")), planned("t2", "d", uses=("t1",))]))
    await play.run(failing=("a", "b"))
    assigned = play.assignees
    assert assigned == ["a", "d", "b", "d", "c", "d"]
    assert play.ended.reason is Reason.CONCLUDED


async def test_unreachable_candidate_is_skipped() -> None:
    """A candidate that was lost long ago is given nothing."""
    play = GroupPlay(charter_of([planned("t1", "a", others=("b", "c"))]))
    play.happen(MemberLost(at=play.at, agent_id=AgentId("b")))
    play.at += timedelta(minutes=2)
    await play.run(failing=("a",))
    assert play.assignees == ["a", "c"]


@pytest.mark.parametrize("away", [AgentId("b"), AgentId("a")], ids=["needed-next", "at-work"])
async def test_task_of_a_briefly_lost_member_is_done_by_it(away: AgentId) -> None:
    """A member that was lost a moment ago gets its task, and again after its lease expired."""
    play = GroupPlay(charter_of([planned("t1", "a"), planned("t2", "b", "chart it", uses=("t1",))]))
    await play.speak()
    play.happen(MemberLost(at=play.at, agent_id=away))
    if away == "a":
        play.at += timedelta(seconds=31)
        play.happen(TimerFired(at=play.at))
    else:
        play.finish(play.state.open_tasks[0])
    if play.state.floor_holder is not None:
        await play.speak()
    assert [task.assignee for task in play.state.open_tasks] == [away]
    play.happen(MemberReturned(at=play.at, agent_id=away))
    await play.run()
    assert (play.ended.reason, play.ended.content.count("result of")) == (Reason.CONCLUDED, 2)


async def test_a_group_without_a_plan_does_the_goal_itself() -> None:
    """A lone owner without a plan takes the goal as its one task."""
    play = GroupPlay(charter_of(goal="greet Ada"))
    await play.run(said={"t1": "Hello Ada"})
    assert play.ended.content == "Hello Ada"


async def test_forced_conclusion_names_missing_tasks() -> None:
    """When the turns are spent, the conclusion keeps what there is and names the rest."""
    plan = [planned("t1", "a"), planned("t2", "b"), planned("t3", "b", "chart it", uses=("t2",))]
    play = GroupPlay(charter_of(plan, max_turns=1))
    await play.run(said={"t1": "42"}, failing=("t2",))
    assert play.ended.reason is Reason.MAX_TURNS
    assert [words in play.ended.content for words in ("no turn was left", SKIPPED, "42")] == [True] * 3


_AGENTS = ("a", "b", "c", "owner")


@st.composite
def plans(draw: st.DrawFn) -> list[PlannedTask]:
    """Any plan of up to six tasks, even with uses that name nothing."""
    plan = []
    for number in range(draw(st.integers(0, 6))):
        uses = draw(st.lists(st.sampled_from([*(f"t{i + 1}" for i in range(number)), "t99"]), max_size=3, unique=True))
        assignee, *others = draw(st.lists(st.sampled_from(_AGENTS), min_size=1, max_size=3, unique=True))
        plan.append(planned(f"t{number + 1}", assignee, uses=uses, others=others))
    return plan


_MOVES = st.sampled_from(["speak"] * 6 + ["answer", "done", "done", "failed", "wait", "long wait", "lose", "return", "budget"])


@settings(max_examples=80, deadline=None)
@given(plans(), st.integers(1, 12), st.lists(st.tuples(_MOVES, st.integers(0, 99)), max_size=60))
async def test_every_group_ends_without_a_rejection(plan: list[PlannedTask], turns: int, moves: list[tuple[str, int]]) -> None:
    """Whatever happens to tasks, members and timers, all that the rules say is accepted, and the group reaches its end."""
    members = [card(agent, pool=agent if agent != "b" else "a") for agent in _AGENTS if agent != "owner"]
    play = GroupPlay(charter_of(plan, members=members, max_turns=turns))
    for move, number in [*moves, *([("speak", 0), ("wait", 0), ("long wait", 0)] * 90)]:
        if play.state.phase.is_terminal:
            break
        await _move(play, move, number)
    assert play.state.phase.is_terminal


async def _move(play: GroupPlay, move: str, number: int) -> None:
    open_tasks = play.state.open_tasks
    agent = AgentId(_AGENTS[number % len(_AGENTS)])
    if move == "speak":
        if play.state.floor_holder in play.state.living():
            await play.speak()
    elif move == "answer":
        play.acknowledge()
    elif move in ("done", "failed") and open_tasks:
        play.finish(open_tasks[number % len(open_tasks)], TaskOutcome.DONE if move == "done" else TaskOutcome.FAILED)
    elif move == "budget" and open_tasks and number < 5:
        play.spend(open_tasks[0])
    elif move in ("wait", "long wait"):
        play.at += timedelta(seconds=31) if move == "wait" else timedelta(minutes=11)
        _from_outside(play, TimerFired(at=play.at))
    elif move == "lose":
        _from_outside(play, MemberLost(at=play.at, agent_id=agent))
    elif move == "return":
        _from_outside(play, MemberReturned(at=play.at, agent_id=agent))


def _from_outside(play: GroupPlay, event: TimerFired | MemberLost | MemberReturned) -> None:
    """Apply what the control plane sees; that it changes nothing, or has no place now, is no fault of the members."""
    try:
        play.happen(event)
    except IllegalEventError as refusal:
        assert refusal.code in (RejectionCode.NO_CHANGE, RejectionCode.NOTHING_DUE, RejectionCode.WRONG_PHASE)


def test_assignment_holds_at_most_32_tasks() -> None:
    """The rest of a larger plan, which a client can send, follows in the next turn."""
    play = GroupPlay(charter_of([planned(f"p{number}", "a") for number in range(40)]))
    first = next_utterance(play.view(OWNER))
    assert isinstance(first, SyncTaskAssignment)
    records = [TaskRecord(task, TaskOutcome.DONE, "done", ()) for task in first.tasks]
    second = next_utterance(replace(play.view(OWNER), tasks=tuple(records)))
    assert isinstance(second, SyncTaskAssignment)
    assert [task.task_id for task in (*first.tasks, *second.tasks)] == [f"t1-p{number}" for number in range(40)]
