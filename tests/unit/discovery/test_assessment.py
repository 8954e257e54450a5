"""Outcomes of tasks, read from the logs of ended groups."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ioa.errors import ConflictError, ForbiddenError, NotFoundError
from ioa.group.events import Entry, encode_entry
from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.group.tasks import KEPT
from ioa.protocol.agents.outcomes import Outcome, ReportOutcomes
from ioa.protocol.ids import AgentId, CommId, PoolId, TaskId
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.registry import CardRecord
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_discovery.assessment import Assessor
from ioa_discovery.experience import Experience
from tests.rig.memory_log import MemoryGroupLog
from tests.rig.memory_outcomes import MemoryOutcomes
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from tests.unit.group.scenario import COMM, START, Scenario, card, launched
from tests.unit.group.test_tasks_under_policy import scoped

ADA, BOB = AgentId("ada"), AgentId("bob")
AT_WORK: Scenario = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob", "t1-2:ada")
ENDED: Scenario = AT_WORK.finishes("t1-1").finishes("t1-2").announces("ada").concludes("ada")


class Office:
    """A log with one group, and an assessor."""

    def __init__(self) -> None:
        self.outcomes, self.clock = MemoryOutcomes(), ManualClock()
        self.cards, self.log = MemoryCards(), MemoryGroupLog()
        view = MemoryRegistryView(self.cards, MemoryLeases(self.clock, timedelta(seconds=10)))
        self.experience = Experience(self.clock)
        self._assessor = Assessor(self.log, view, self.outcomes, MemorySessions(), self.experience)

    async def file(self, story: Scenario, pool: str = "") -> None:
        """Write a group's story into its log, and register its members, each in a pool of its own or all in one."""
        state: GroupState | None = None
        seq = 0
        for event in story.log:
            state = step(state, event, story.policy).state
            entry = Entry(event=event, state=state, audience=())
            seq = await self.log.append(COMM, encode_entry(entry), expected_seq=seq)
        for agent_id in ("ada", "bob"):
            known = card(agent_id).model_copy(update={"pool": PoolId(pool or f"{agent_id}-pool")})
            await self.cards.put(agent_id, CardRecord(card=known, registered_at=NEW_YEAR))

    async def report(self, *, by: AgentId = ADA, comm_id: CommId = COMM) -> list[tuple[str, Outcome]]:
        """Report that a group has ended, and return the outcomes that are kept."""
        await self._assessor.report(ReportOutcomes(agent_id=by, comm_id=comm_id))
        return list(self.outcomes.kept.items())


async def test_how_a_task_went_is_read_off_the_log() -> None:
    """Assignee, text, time and success come from the log, not from the owner."""
    office = Office()
    story = replace(AT_WORK, now=START + timedelta(seconds=2.5)).finishes("t1-1", tokens=7).finishes("t1-2")
    await office.file(story.announces("ada").concludes("ada"))
    [(key, kept)] = await office.report()
    expected = Outcome(
        pool=PoolId("bob-pool"),
        need="do t1-1",
        done=True,
        at=START + timedelta(seconds=2.5),
        task=f"{COMM}.t1-1",
    )
    assert (key, kept) == (f"{COMM}.t1-1", expected)


async def test_a_rejected_task_is_kept_as_not_done() -> None:
    """While it is in the group's state, and when only its number is left."""
    rejected = launched("ada", "bob", max_turns=100).assigns_and_waits("ada", "t1-1:bob").finishes("t1-1")
    rejected = rejected.rejects("ada", "t1-1", to="bob").says("bob", to="ada")
    gone = rejected
    for _ in range(KEPT + 2):
        task_id = f"t{gone.state.turn}-x"
        gone = gone.assigns_and_waits("ada", f"{task_id}:ada").finishes(task_id)
    assert gone.state.task(TaskId("t1-1")) is None
    for story in (rejected, gone):
        office = Office()
        await office.file(story.announces("ada").concludes("ada"))
        [(_, kept)] = await office.report()
        assert not kept.done


async def test_nobody_praises_himself_and_nothing_is_invented() -> None:
    """What the owner did itself, and tasks that the group never had, are left out."""
    office = Office()
    await office.file(
        launched("ada", "bob").assigns_and_waits("ada", "t1-2:ada").finishes("t1-2").announces("ada").concludes("ada")
    )
    assert await office.report() == []


async def test_what_not_all_were_told_of_says_nothing() -> None:
    """Else a member would read off records who did what it was not to hear of."""
    office = Office()
    await office.file(scoped().assigns_and_waits("ada", "t1-1:bob").finishes("t1-1").cancelled())
    assert await office.report() == []


async def test_nobody_praises_its_own_pool() -> None:
    """What a replica did for another one is left out: both are run by the same people."""
    office = Office()
    await office.file(ENDED, pool="desk")
    assert await office.report() == []


async def test_an_assignee_that_is_gone_is_left_out() -> None:
    """Without a card there is no pool to remember it for."""
    office = Office()
    await office.file(ENDED)
    del office.cards.records[BOB]
    assert await office.report() == []


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
        await office.report(by=by, comm_id=comm_id)
    assert office.outcomes.kept == {}


async def test_a_stranger_learns_of_no_group_by_reporting_it() -> None:
    """Who was no member is told the same of a group that is there as of none."""
    office = Office()
    await office.file(ENDED)
    told = list[str]()
    for comm_id in (COMM, CommId("c-none")):
        with pytest.raises(NotFoundError) as caught:
            await office.report(by=AgentId("mallory"), comm_id=comm_id)
        told.append(str(caught.value).replace(comm_id, "C"))
    assert told[0] == told[1]


async def test_each_task_is_one_outcome_and_is_stored_once() -> None:
    """A repeated report stores nothing, also in another process that has read the stream of outcomes."""
    office = Office()
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob", "t1-2:bob", "t1-3:ada").finishes("t1-1").fails("t1-2")
    await office.file(story.finishes("t1-3").announces("ada").concludes("ada"))
    stored = await office.report()
    for _, outcome in stored:
        office.experience.add(outcome)
    assert await office.report() == stored
    assert [(outcome.task, outcome.done) for _, outcome in stored] == [(f"{COMM}.t1-1", True), (f"{COMM}.t1-2", False)]


@pytest.mark.parametrize(
    ("report", "counts"),
    [({"declined": True}, False), ({}, True)],
    ids=["declined", "failed"],
)
async def test_task_that_did_not_fit_is_no_failure(report: dict[str, object], counts: bool) -> None:
    """A declined task does not lower the record of the assignee; a failed task does."""
    office = Office()
    failed = InformTaskResult.model_validate({"task_id": "t1-1", "outcome": "failed", "task_conclusion": "No.", **report})
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").speaks("bob", failed, turn=1)
    await office.file(story.announces("ada").concludes("ada"))
    assert [outcome.done for _, outcome in await office.report()] == [False] * counts
