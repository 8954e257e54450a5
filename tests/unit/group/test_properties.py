"""What holds for every group, whatever happens to it: random walks through the machine, legal and illegal events alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import get_args
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ioa.group import speaking, tasks
from ioa.group.budget import spent_budget
from ioa.group.deadlines import next_deadline
from ioa.group.events import (
    Entry,
    Event,
    GroupLaunched,
    Kind,
    MemberLost,
    MemberReturned,
    SubgroupClosed,
    TaskDecision,
    TimerFired,
    input_of,
    kind_of,
)
from ioa.group.floor import ROUNDS_OF_SILENCE
from ioa.group.legality import legal_kinds
from ioa.group.machine import CancelSubgroup, PublishResult, step
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import ClosedTask, Concluding, Discussing, Ended, Gathering, GroupState, OpenTask, Task, Waiting, WaitingTask
from ioa.group.table import STATE_RULES, TABLE
from ioa.group.tasks import KEPT
from ioa.protocol.codec import decode, encode
from ioa.protocol.messages import Payload, Phase, SyncTaskAssignment, TaskOutcome
from tests.unit.group.scenario import START
from tests.unit.group.walk import (
    any_event,
    any_launch,
    any_time,
    arbitrary_event,
    best_messages,
    is_legal,
    run_timers,
    talk_to_the_end,
)

SEEDS = st.integers(min_value=0, max_value=2**32)
MESSAGE_KINDS: tuple[Kind, ...] = (*get_args(get_args(Payload)[0]), TaskDecision)
_after_each_change = precondition(lambda walk: walk.has_changed)


class GroupWalk(RuleBasedStateMachine):
    """One group, any event at any time. After each step that changes the group everything that must hold is checked."""

    state: GroupState
    before: GroupState | None
    has_changed: bool

    def __init__(self) -> None:
        super().__init__()
        self.now: datetime = START
        self.log: list[Event] = []

    @initialize(seed=SEEDS)
    def launches(self, seed: int) -> None:
        """The group is opened."""
        event = any_launch(random.Random(seed).choice)
        self.before, self.state, self.has_changed = None, step(None, event).state, True
        self.log.append(event)

    @rule(seed=SEEDS)
    def anything_happens(self, seed: int) -> None:
        """An event arrives. It is taken, or it raises and nothing has changed."""
        choose = random.Random(seed).choice
        at = any_time(self.state, self.now, choose)
        event = any_event(self.state, at, choose)
        unchanged, self.has_changed = self.state.model_dump_json(), False
        try:
            transition = step(self.state, event)
        except IllegalEventError:
            assert self.state.model_dump_json() == unchanged
            return
        self.before, self.state, self.now, self.has_changed = self.state, transition.state, max(at, self.now), True
        self.log.append(event)
        self._check_arrow(event)
        self._check_history()
        self._check_effects(transition.effects, event)

    @rule(seed=SEEDS)
    def a_delivery_is_repeated(self, seed: int) -> None:
        """What is in the log is refused when it arrives again, however late: a lease alone may run out or return once more."""
        event = random.Random(seed).choice(self.log)
        if event is not self.log[-1] and isinstance(event, MemberLost | MemberReturned | TimerFired):
            return
        unchanged, self.has_changed = self.state.model_dump_json(), False
        try:
            step(self.state, event)
        except IllegalEventError:
            assert self.state.model_dump_json() == unchanged
        else:
            raise AssertionError(f"{input_of(event).type} was taken twice")

    def _check_arrow(self, event: Event) -> None:
        assert self.before is not None
        assert self.state.phase in TABLE[kind_of(event)].cells[self.before.phase].leads_to

    def _check_history(self) -> None:
        """Tasks are only added, closed ones are at most rejected and leave by number only, turns and grants only grow."""
        before, after = self.before, self.state
        assert before is not None
        for old in before.tasks:
            new = after.task(old.task_id)
            assert old == new or not isinstance(old, ClosedTask) or _left_or_rejected(old, new, after)
            assert new is not None or isinstance(old, ClosedTask)
            assert not (isinstance(old, OpenTask) and isinstance(new, WaitingTask))
        kept = [task.task_id for task in before.tasks if after.task(task.task_id)]
        assert [task.task_id for task in after.tasks][: len(kept)] == kept
        assert after.tasks_given >= before.tasks_given
        assert after.tasks_given > before.tasks_given or len(before.tasks) - len(kept) == after.folded - before.folded
        assert before.turns_taken <= after.turns_taken
        seats = len(after.floor) if after.phase is Phase.GATHERING else 0
        assert after.turns_taken + after.nested_turns + sum(loan.turns for loan in after.loans) + seats <= after.limits.max_turns
        assert before.spent.tokens <= after.spent.tokens and before.spent.cost_micros <= after.spent.cost_micros
        new_floor = bool(after.floor) and (before.phase is not after.phase or not set(after.floor) <= set(before.floor))
        assert after.turn == before.turn + new_floor or (after.turn == before.turn + 1 and after.floor)

    def _check_effects(self, effects: Sequence[object], event: Event) -> None:
        """An end publishes one result; a task that was closed over its nested team's head cancels the team."""
        assert self.before is not None
        results = [effect for effect in effects if isinstance(effect, PublishResult)]
        assert len(results) == self.state.phase.is_terminal
        cancelled = {effect.subgroup for effect in effects if isinstance(effect, CancelSubgroup)}
        for task in self.before.open_tasks:
            closed = isinstance(self.state.task(task.task_id), ClosedTask)
            if task.subgroup is not None and closed and kind_of(event) is not SubgroupClosed:
                assert task.subgroup in cancelled

    @_after_each_change
    @invariant()
    def the_floor_is_held_by_one_member_at_most(self) -> None:
        """Or each of several has one seat. Who waits holds nothing.

        A lost member holds it only while nobody lives, or if it was named just after it was lost.
        """
        holder, living, stage = self.state.floor_holder, self.state.living(), self.state.stage
        assert (holder is None) == isinstance(stage, Gathering | Waiting | Ended)
        assert len(set(self.state.floor)) == len(self.state.floor)
        if holder is not None and holder not in living and living:
            lost = next(member for member in self.state.members if member.agent_id == holder)
            assert isinstance(stage, Discussing) and lost.lost_at is not None
            assert stage.since - lost.lost_at < self.state.limits.floor_timeout

    @_after_each_change
    @invariant()
    def concluding_is_never_all_that_can_be_done(self) -> None:
        """Whoever has the floor of a discussion may also do something for the goal."""
        holder = self.state.floor_holder
        if holder is not None and isinstance(self.state.stage, Discussing):
            assert SyncTaskAssignment in legal_kinds(self.state, holder, self._in_time())

    @_after_each_change
    @invariant()
    def the_state_stays_small(self) -> None:
        """Closed tasks that nothing names have left it, a step after they were too many."""
        closed = sum(isinstance(task, ClosedTask) for task in self.state.tasks)
        assert closed <= KEPT + 64 or self.state.phase.is_terminal

    @_after_each_change
    @invariant()
    def there_is_something_to_wait_for(self) -> None:
        """Every phase waits for open tasks only, and the phases without tasks have none."""
        open_ids = {task.task_id for task in self.state.unfinished_tasks}
        match self.state.stage:
            case Waiting(tasks=waiting, question=None):
                assert open_ids & set(waiting)
            case Concluding() | Ended():
                assert not open_ids
            case Discussing():
                assert self.state.turns_left > 0 and spent_budget(self.state) is None

    @_after_each_change
    @invariant()
    def a_task_waits_only_for_what_may_be_done_yet(self) -> None:
        """It waits for something unfinished, and for nothing that came to nothing: so of unfinished tasks one at least is open."""
        unfinished = {task.task_id for task in self.state.unfinished_tasks}
        assert bool(unfinished) == bool(self.state.open_tasks)
        for task in self.state.tasks:
            if isinstance(task, WaitingTask):
                awaited = [self.state.task(used) for used in task.after]
                assert unfinished.intersection(task.after) and None not in awaited
                assert {one.outcome for one in awaited if isinstance(one, ClosedTask)} <= {TaskOutcome.DONE}

    @invariant()
    def no_state_rule_is_left_to_be_made(self) -> None:
        """A step goes on until the state calls for nothing more."""
        assert [rule.name for rule in STATE_RULES if self.state.phase in rule.phases and rule.when(self.state)] == []

    @_after_each_change
    @invariant()
    def a_timer_moves_every_open_group(self) -> None:
        """A deadline stands exactly while the group is open, and its timer is taken."""
        due = next_deadline(self.state)
        assert (due is None) == self.state.phase.is_terminal
        if due is not None:
            assert step(self.state, TimerFired(at=due)).state != self.state

    @_after_each_change
    @invariant()
    def the_kinds_called_legal_are_the_legal_ones(self) -> None:
        """Each kind that is named is taken with some content, and each other one is refused with any."""
        for member in self.state.members:
            named = set(legal_kinds(self.state, member.agent_id, self._in_time()))
            attempts = best_messages(self.state, member.agent_id, self._in_time())
            taken = {kind for kind in MESSAGE_KINDS if any(is_legal(self.state, message) for message in attempts[kind])}
            assert taken == named

    @_after_each_change
    @invariant()
    def the_end_is_always_in_reach(self) -> None:
        """By messages alone, and by timers alone within a number of firings that the group's size bounds."""
        assert talk_to_the_end(self.state, self._in_time()).phase.is_terminal
        ended, fired = run_timers(self.state)
        assert ended.phase.is_terminal
        assert fired <= 3 * len(self.state.unfinished_tasks) + 2 * ROUNDS_OF_SILENCE * len(self.state.members) + 3

    def _in_time(self) -> datetime:
        """Now, or the last moment in which somebody may speak."""
        return min(self.now, self.state.limits.deadline - timedelta(microseconds=1))

    def teardown(self) -> None:
        """Replaying the log, also from its encoding, gives the same state."""
        replayed: GroupState | None = None
        for event in self.log:
            entry = Entry(event=event, state=step(replayed, event).state, audience=())
            read = decode(Entry, encode(entry))
            assert read == entry
            replayed = read.state
        assert replayed is None or replayed == self.state


def _left_or_rejected(old: ClosedTask, new: Task | None, after: GroupState) -> bool:
    """Whether a closed task has left the state, or was done and is rejected."""
    if new is None:
        return after.may_be_folded(old.task_id)
    return isinstance(new, ClosedTask) and (old.outcome, new.outcome) == (TaskOutcome.DONE, TaskOutcome.REJECTED)


GroupWalk.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestGroupWalk = GroupWalk.TestCase


class FoldingWalk(GroupWalk):
    """The same in a group that keeps a single closed task and remembers few texts, so that a short walk folds many."""

    def __init__(self) -> None:
        super().__init__()
        self._few = ExitStack()
        for module, name in ((tasks, "KEPT"), (speaking, "MAX_REMARKS")):
            self._few.enter_context(patch.object(module, name, 1))

    def teardown(self) -> None:
        """Replay, by the same numbers."""
        with self._few:
            super().teardown()


FoldingWalk.TestCase.settings = GroupWalk.TestCase.settings
TestFoldingWalk = FoldingWalk.TestCase


def test_an_ended_group_refuses_whatever_comes() -> None:
    """A thousand arbitrary events leave each terminal phase as it is."""
    choose = random.Random(7).choice
    state, now = step(None, any_launch(choose)).state, START
    ended, _ = run_timers(state)
    codes = set()
    for _ in range(1_000):
        event = any_event(ended, any_time(ended, now, choose), choose)
        try:
            step(ended, event)
        except IllegalEventError as refused:
            codes.add(refused.code)
    assert codes == {RejectionCode.GROUP_ENDED}


def test_the_log_opens_with_a_launch() -> None:
    """Nothing else is taken while the log is empty."""
    choose = random.Random(11).choice
    launch = any_launch(choose)
    state = step(None, launch).state
    taken = {type(event) for _ in range(500) if is_legal(None, event := arbitrary_event(state, START, choose))}
    assert taken == {GroupLaunched}
