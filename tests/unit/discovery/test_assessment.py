"""What owners of groups say of tasks counts as far as the log confirms it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from ioa.errors import ConflictError, ForbiddenError, NotFoundError
from ioa.group.events import Entry, encode_entry
from ioa.group.folding import KEPT
from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, PoolId, TaskId
from ioa.protocol.messages import InformTaskResult, SyncTaskAssignment, TaskOutcome, TaskSpec
from ioa.protocol.outcomes import Outcome, ReportOutcomes
from ioa.protocol.registry_records import CardRecord
from ioa.protocol.usage import Usage
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_discovery.assessment import Assessor
from ioa_discovery.ended_tasks import EndedTasks
from ioa_discovery.experience import Experience
from tests.rig.memory_log import MemoryGroupLog
from tests.rig.memory_outcomes import MemoryOutcomes
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from tests.unit.group.scenario import COMM, START, Scenario, card, launched, specs
from tests.unit.group.test_tasks_under_policy import scoped

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
        self.cards, self.log = MemoryCards(), MemoryGroupLog()
        view = MemoryRegistryView(self.cards, MemoryLeases(self.clock, timedelta(seconds=10)))
        self.experience = Experience(self.clock)
        self._assessor = Assessor(self.log, view, self.outcomes, self.clock, MemorySessions(), self.experience)

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
            await self.cards.put(CardRecord(card=known, registered_at=NEW_YEAR))

    async def report(self, *, by: AgentId = ADA, comm_id: CommId = COMM) -> list[tuple[str, Outcome]]:
        """Report that a group has ended, and return the outcomes that are kept."""
        await self._assessor.report(ReportOutcomes(agent_id=by, comm_id=comm_id))
        return list(self.outcomes.kept.items())


async def test_how_a_task_went_is_read_off_the_log() -> None:
    """What was asked of whom, when it was done, how long that took and what it cost: none of it is the owner's word."""
    office = Office()
    story = replace(AT_WORK, now=START + timedelta(seconds=2.5)).finishes("t1-1", tokens=7).finishes("t1-2")
    await office.file(story.announces("ada").concludes("ada"))
    [(key, kept)] = await office.report()
    expected = Outcome(
        pool=PoolId("bob-pool"),
        agent_id=BOB,
        need="do t1-1",
        done=True,
        at=NEW_YEAR,
        seconds=2.5,
        usage=Usage(tokens_out=7),
        task=f"{COMM}.bob-pool",
        owner=PoolId("ada-pool"),
    )
    assert (key, kept) == (f"{COMM}.bob-pool", expected)


def with_time(seconds: float) -> Scenario:
    """A group in which a task failed that had so much time."""
    task = specs(("t1-1:bob",))[0].model_copy(update={"timeout": timedelta(seconds=seconds)})
    story = launched("ada", "bob").speaks("ada", SyncTaskAssignment(tasks=(task,))).fails("t1-1")
    return story.announces("ada").concludes("ada")


@pytest.mark.parametrize(("seconds", "times"), [(0.5, 0), (1.5, 1)])
async def test_a_task_that_nobody_could_do_in_time_says_nothing(seconds: float, times: int) -> None:
    """A rival cannot talk a pool down by deadlines of less than a second."""
    office = Office()
    await office.file(with_time(seconds))
    assert len(await office.report()) == times


@pytest.mark.parametrize(("seconds", "times"), [(20.0, 0), (40.0, 1)])
async def test_a_task_with_less_time_than_its_pool_takes_says_nothing(seconds: float, times: int) -> None:
    """What a pool takes is the median of what its owners saw, whatever one of them saw how often."""
    office = Office()
    for owner, took in [("a", 10.0), ("b", 30.0), *[("rival", 900.0)] * 9]:
        office.experience.add(Outcome(pool="bob-pool", agent_id=BOB, need="", done=True, at=NEW_YEAR, seconds=took, owner=owner))
    await office.file(with_time(seconds))
    assert len(await office.report()) == times


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
    [(_, kept)] = await office.report()
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


def _file(name: str) -> Artifact:
    return Artifact(name=name, object_name=f"nowhere/{name}", size_bytes=1, sha256="0" * 64)


@pytest.mark.parametrize(
    ("lacks", "rejects", "expected"),
    [
        (("nowhere/a",), False, {}),
        (("nowhere/a",), True, {"bob": False}),
        (("nowhere/other",), False, {"bob": True, "eve": False}),
        ((), False, {"bob": True, "eve": False}),
    ],
    ids=["named by another", "and rejected", "named by nobody", "not said"],
)
async def test_what_lacks_the_files_of_others_says_nothing(
    lacks: tuple[str, ...], rejects: bool, expected: dict[str, bool]
) -> None:
    """Of who failed for them, nor of who named them, unless its group rejected that; and what nobody named is no excuse."""
    given = [TaskSpec(task_id=TaskId(one), assignee=AgentId(who), task_desc=one) for one, who in (("t1-1", "bob"), ("t1-2", "eve"))]
    given[1] = given[1].model_copy(update={"uses": (TaskId("t1-1"),)})
    story = launched("ada", "bob", "eve").speaks("ada", SyncTaskAssignment(tasks=(*given,)))
    story = story.speaks("bob", InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="done", artifacts=(_file("a"),)), turn=1)
    failed = InformTaskResult(task_id=TaskId("t1-2"), outcome=TaskOutcome.FAILED, task_conclusion="No file.", lacks=lacks)
    story = story.speaks("eve", failed, turn=1)
    story = story.rejects("ada", "t1-1", to="bob").says("bob", to="ada") if rejects else story
    ended = EndedTasks()
    state: GroupState | None = None
    for event in story.announces("ada").concludes("ada").log:
        state = step(state, event, story.policy).state
        ended.apply([Entry(event=event, state=state, audience=())])
    assert {one.assignee: one.done for one in ended} == expected
