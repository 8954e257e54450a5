"""What owners of groups say of tasks counts as far as the log confirms it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import pytest
from prometheus_client import REGISTRY

from ioa.errors import ConflictError, ForbiddenError, NotFoundError
from ioa.group.events import Entry, encode_entry
from ioa.group.folding import KEPT
from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.ports.registry_store import CardRecord
from ioa.protocol.ids import AgentId, CommId, PoolId, TaskId
from ioa.protocol.messages import TaskOutcome
from ioa.protocol.outcomes import Outcome, ReportOutcomes, TaskReport
from ioa.protocol.usage import Usage
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa.testing.memory_log import MemoryGroupLog
from ioa.testing.memory_outcomes import MemoryOutcomes
from ioa.testing.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from ioa_discovery.assessment import Assessor
from tests.unit.group.scenario import COMM, Scenario, card, launched

ADA, BOB = AgentId("ada"), AgentId("bob")
AT_WORK: Scenario = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob", "t1-2:ada")
ENDED: Scenario = AT_WORK.finishes("t1-1").finishes("t1-2").announces("ada").concludes("ada")


def counted() -> list[float]:
    """Read how many tasks were done, and how many failed, by what this process counted."""
    return [REGISTRY.get_sample_value("ioa_discovery_outcomes_total", {"outcome": one}) or 0.0 for one in ("done", "failed")]


class Office:
    """A log with one group, and an assessor."""

    def __init__(self) -> None:
        self.outcomes, self.clock = MemoryOutcomes(), ManualClock()
        self.cards, self._log = MemoryCards(), MemoryGroupLog()
        view = MemoryRegistryView(self.cards, MemoryLeases(self.clock, timedelta(seconds=10)))
        self._assessor = Assessor(self._log, view, self.outcomes, self.clock, MemorySessions())

    async def file(self, story: Scenario, pool: str = "") -> None:
        """Write a group's story into its log, and register its members, each in a pool of its own or all in one."""
        state: GroupState | None = None
        seq = 0
        for event in story.log:
            state = step(state, event).state
            entry = Entry(event=event, state=state, audience=())
            seq = await self._log.append(COMM, encode_entry(entry), expected_seq=seq)
        for agent_id in ("ada", "bob"):
            known = card(agent_id).model_copy(update={"pool": PoolId(pool or f"{agent_id}-pool")})
            await self.cards.put(CardRecord(card=known, registered_at=NEW_YEAR))

    async def report(
        self,
        *task_ids: str,
        by: AgentId = ADA,
        comm_id: CommId = COMM,
        outcome: Literal[TaskOutcome.DONE, TaskOutcome.FAILED] | None = None,
    ) -> list[tuple[str, Outcome]]:
        """Report tasks, and return what is kept."""
        at = self.clock.now() + timedelta(days=9)
        tasks = tuple(
            TaskReport(
                task_id=TaskId(one),
                assignee=BOB,
                outcome=outcome,
                need="sums",
                at=at,
                seconds=2.5,
                usage=Usage(cost_micros=7),
            )
            for one in task_ids
        )
        await self._assessor.report(ReportOutcomes(agent_id=by, comm_id=comm_id, tasks=tasks))
        return list(self.outcomes.kept.items())


async def test_a_task_that_the_log_confirms_is_kept_for_its_pool() -> None:
    """Who did it and whether it was done is read off the log, and no time lies ahead of the clock."""
    office = Office()
    await office.file(ENDED)
    [(key, kept)] = await office.report("t1-1")
    expected = Outcome(
        pool=PoolId("bob-pool"),
        agent_id=BOB,
        need="sums",
        done=True,
        at=NEW_YEAR,
        seconds=2.5,
        usage=Usage(cost_micros=7),
        task=f"{COMM}.bob-pool",
        owner=PoolId("ada-pool"),
    )
    assert (key, kept) == (f"{COMM}.bob-pool", expected)


async def test_a_rejected_task_is_kept_as_not_done() -> None:
    """While it is in the group's state, and when only its number is left."""
    rejected = launched("ada", "bob", max_turns=100).assigns_and_waits("ada", "t1-1:bob").finishes("t1-1")
    rejected = rejected.rejects("ada", "t1-1", to="bob").says("bob", to="ada")
    gone = rejected
    for _ in range(KEPT + 2):
        task_id = f"t{gone.state.turn}-x"
        gone = gone.assigns_and_waits("ada", f"{task_id}:bob").finishes(task_id)
    for story in (rejected, gone):
        office = Office()
        await office.file(story.announces("ada").concludes("ada"))
        [(_, kept)] = await office.report("t1-1", outcome=TaskOutcome.FAILED)
        assert not kept.done


async def test_nobody_praises_himself_and_nothing_is_invented() -> None:
    """What the owner did itself, and tasks that the group never had, are left out."""
    office = Office()
    await office.file(ENDED)
    assert await office.report("t1-2", "t1-9") == []


async def test_nobody_praises_its_own_pool() -> None:
    """What a replica did for another one is left out: both are run by the same people."""
    office = Office()
    await office.file(ENDED, pool="desk")
    assert await office.report("t1-1") == []


async def test_reporting_again_is_reporting_once() -> None:
    """The same task has the same key."""
    office = Office()
    await office.file(ENDED)
    assert len([*await office.report("t1-1"), *await office.report("t1-1")]) == 2
    assert len(office.outcomes.kept) == 1


async def test_an_assignee_that_is_gone_is_left_out() -> None:
    """Without a card there is no pool to remember it for."""
    office = Office()
    await office.file(ENDED)
    del office.cards.records[BOB]
    assert await office.report("t1-1") == []


@pytest.mark.parametrize(("failed", "counts"), [(("t1-1",), [1, 0]), (("t1-1", "t1-2"), [0, 1])])
async def test_all_that_one_group_says_of_a_pool_is_one_outcome(failed: tuple[str, ...], counts: list[int]) -> None:
    """As most of its tasks went, failed if as many failed; the counter of that rises by one, whatever the owner did itself."""
    office = Office()
    names = ("t1-1", "t1-2", "t1-3")
    story = launched("ada", "bob").assigns_and_waits("ada", *(f"{name}:bob" for name in names), "t1-4:ada")
    for name in names:
        story = story.fails(name) if name in failed else story.finishes(name)
    await office.file(story.finishes("t1-4").announces("ada").concludes("ada"))
    before = counted()
    [(_, kept)] = await office.report(*names, "t1-4")
    assert kept.done == (counts == [1, 0])
    assert [now - then for now, then in zip(counted(), before, strict=True)] == counts


@pytest.mark.parametrize(
    ("story", "by", "comm_id", "error"),
    [
        (ENDED, BOB, COMM, ForbiddenError),
        (AT_WORK, ADA, COMM, ConflictError),
        (ENDED, ADA, CommId("another"), NotFoundError),
    ],
    ids=["not the owner", "not ended", "no such group"],
)
async def test_what_may_not_be_reported_is_refused(story: Scenario, by: AgentId, comm_id: CommId, error: type[Exception]) -> None:
    """Only the owner of a group that has ended tells how it went, and nothing is kept otherwise."""
    office = Office()
    await office.file(story)
    with pytest.raises(error):
        await office.report("t1-1", by=by, comm_id=comm_id)
    assert office.outcomes.kept == {}


async def test_of_tasks_that_have_left_the_state_so_many_are_believed_as_there_were() -> None:
    """The log holds their numbers. Who names more, or another outcome, is not believed."""
    story = launched("ada", "bob", max_turns=100)
    for number in range(KEPT + 4):
        task_id = f"t{story.state.turn}-x"
        story = story.assigns_and_waits("ada", f"{task_id}:bob")
        story = story.fails(task_id) if number == 0 else story.finishes(task_id)
    ended = story.announces("ada").concludes("ada")
    gone = ("t1-x", "t1-y", "t1-z")
    assert [ended.state.task(TaskId(name)) for name in gone] == [None] * 3
    kept = {}
    for names in (gone, (*gone, f"t{KEPT + 3}-x", f"t{KEPT + 4}-x")):
        office = Office()
        await office.file(ended)
        [(_, kept[names])] = await office.report(*names, outcome=TaskOutcome.FAILED)
    assert [one.done for one in kept.values()] == [False, True]  # one failure is believed, against two that the log shows as done
