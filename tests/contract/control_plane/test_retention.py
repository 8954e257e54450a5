"""What retention relies on: pages of goals in the order of acceptance, what stays of a goal, and removals that remove one thing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.nats_delivery import NatsResults, NatsTimers
from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import NatsEndedGoals, NatsGoalRecords, NatsWorkQueue
from ioa.adapters.nats.stores.open_group_store import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import (
    CARDS,
    FILES,
    GOAL_RECORDS,
    LEASES,
    LOG,
    MEMBERS,
    OPEN,
    TIMERS,
    WORK,
    pool_consumer,
    stream_of,
)
from ioa.adapters.system_clock import SystemClock
from ioa.errors import NotFoundError
from ioa.group.events import Entry, Event, encode_entry
from ioa.ports.delivery import Results, Timers
from ioa.ports.group_log import GroupLog
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import Artifact, EndedGoal, Goal, GoalRecord, GoalResult, Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, PoolId, comm_id_of_goal
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.registry import EMPTY_RENEWAL, CardRecord, Renewal
from ioa.protocol.setup.open_groups import OpenGroup
from tests.rig.stored_files import fetch_file, store_file
from tests.unit.group.scenario import START, card, launched

ADA, BOB = AgentId("ada"), AgentId("bob")
ROOM, OTHER = CommId("room"), CommId("other")
SUMS = PoolId("sums")
_RECORDS = stream_of(GOAL_RECORDS)


@dataclass(frozen=True)
class Stores:
    """All that belongs to goals, and what removes it."""

    records: NatsGoalRecords
    ended: NatsEndedGoals
    log: GroupLog
    timers: Timers
    files: NatsFileStore
    memberships: NatsMemberships
    results: Results
    open_groups: NatsOpenGroups


@pytest.fixture
def stores(client: Client) -> Stores:
    """Nothing yet."""
    return Stores(
        records=NatsGoalRecords(client),
        ended=NatsEndedGoals(client),
        log=NatsGroupLog(client),
        timers=NatsTimers(client),
        files=NatsFileStore(client),
        memberships=NatsMemberships(client),
        results=NatsResults(client),
        open_groups=NatsOpenGroups(client),
    )


def record(number: int) -> GoalRecord:
    """A goal on record."""
    return GoalRecord(
        goal=Goal(goal_id=GoalId(f"goal-{number}"), goal="Count."),
        accepted_at=START + timedelta(seconds=number),
        ticket_digest="0" * 64,
    )


async def filled(stores: Stores, count: int, *, without: range = range(0)) -> None:
    """Put goals on record and remove some of them."""
    for number in range(count):
        await stores.records.create(record(number))
    for number in without:
        await stores.records.remove(record(number).goal.name)


async def newest(client: Client, limit: int, max_bytes: int = 1_000_000) -> list[list[int]]:
    """Every page, newest first, as the goals' numbers."""
    pages, before = [], None
    while True:
        page = await Stream(client, _RECORDS).page_back(before=before, limit=limit, max_bytes=max_bytes)
        pages.append([int(decode(GoalRecord, one.data).goal.goal_id.removeprefix("goal-")) for one in page.messages])
        if page.before is None:
            return pages
        before = page.before


async def oldest(stores: Stores, limit: int) -> list[list[int]]:
    """Every page, oldest first, as the goals' numbers."""
    pages, after = [], 0
    while True:
        records, following = await stores.records.oldest(after=after, limit=limit)
        pages.append([int(one.goal.goal_id.removeprefix("goal-")) for one in records])
        if following is None:
            return pages
        after = following


async def test_pages_follow_the_order_of_acceptance(stores: Stores, client: Client) -> None:
    """Both ways every goal comes once, in order, in pages of the size that was asked for."""
    assert (await newest(client, 5), await oldest(stores, 5)) == ([[]], [[]])
    await filled(stores, 12)
    assert await newest(client, 5) == [[11, 10, 9, 8, 7], [6, 5, 4, 3, 2], [1, 0]]
    assert await oldest(stores, 5) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


async def test_what_stays_of_a_goal_is_said_once(stores: Stores) -> None:
    """The first word stands, and of other goals nothing is known."""
    first = EndedGoal(goal_id=GoalId("goal-1"), reason=Reason.CONCLUDED, ended_at=START)
    await stores.ended.put(first)
    await stores.ended.put(first.model_copy(update={"reason": Reason.FAILED}))
    assert (
        await stores.ended.find(GoalName(LOCAL, GoalId("goal-1"))),
        await stores.ended.find(GoalName(LOCAL, GoalId("goal-2"))),
    ) == (first, None)


async def test_a_log_names_what_belongs_to_its_group(stores: Stores) -> None:
    """Nested groups and files are read from the events, not from labels with equal names; an empty log contains none."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob")
    made, noted = (
        Artifact(name=name, object_name=f"room/t1-1/{name}", size_bytes=1, sha256="0" * 64) for name in ("a.txt", "trace.jsonl")
    )
    task = story.open("t1-1")
    reported = InformTaskResult(task_id=task.task_id, task_conclusion="done", artifacts=(made,), traces=(noted,))
    story = story.speaks("bob", reported, turn=task.turn)
    launched_with_label = story.log[0].model_copy(
        update={"charter": story.log[0].charter.model_copy(update={"labels": {"task_id": "t9", "subgroup": OTHER}})}  # type: ignore[union-attr]
    )
    await append(stores.log, ROOM, (launched_with_label, *story.log[1:]))
    found = await stores.log.belongings(ROOM)
    assert found == ([], {made.object_name, noted.object_name})
    assert await stores.log.belongings(OTHER) == ([], set())


async def test_removals_remove_one_thing(stores: Stores, client: Client) -> None:
    """Each removes what it names, again and again, and leaves what belongs to others."""
    goals = [GoalId("goal-0"), GoalId("goal-1")]
    await filled(stores, 2)
    files = [await store_file(stores.files, f"{goal_id}/in/0-a", "a", b"x" * 300_000) for goal_id in goals]
    for goal_id, comm_id in zip(goals, (ROOM, OTHER), strict=True):
        await append(stores.log, comm_id, launched("ada", "bob").log)
        await stores.memberships.add([ADA, BOB, AgentId("named-by-no-log")], comm_id)
        await stores.timers.schedule(comm_id, SystemClock().now() + timedelta(hours=1))
        await stores.results.publish(result(goal_id))
        await stores.open_groups.put(LOCAL, comm_id, OpenGroup(goal_id=goal_id, deadline=START))
        await client.jetstream().publish(f"{subjects.timer(comm_id)}", b"")
    for _ in range(2):
        await stores.files.remove("goal-0/in/0-a")
        await stores.timers.remove(ROOM)
        await stores.memberships.remove_group(ROOM)
        await stores.open_groups.remove(ROOM)
        await stores.log.remove(ROOM)
        await stores.results.remove(GoalName(LOCAL, goals[0]))
        await stores.records.remove(GoalName(LOCAL, goals[0]))
    assert ([await stores.results.get(GoalName(LOCAL, goal_id)) for goal_id in goals]) == [None, result(goals[1])]
    assert [await stores.records.find(comm_id_of_goal(goal_id)) for goal_id in goals] == [None, record(1)]
    assert [await stores.open_groups.find(comm_id) is None for comm_id in (ROOM, OTHER)] == [True, False]
    assert (await stores.log.last(ROOM), await stores.log.last(OTHER) is None) == (None, False)
    assert await fetch_file(stores.files, files[1]) == b"x" * 300_000
    with pytest.raises(NotFoundError):
        await fetch_file(stores.files, files[0])
    streams = {name: await subjects_of(client, name) for name in (TIMERS, f"KV_{OPEN}", f"KV_{MEMBERS}", LOG)}
    assert [[one for one in found if "room" in one] for found in streams.values()] == [[], [], [], []]
    assert [len(found) for found in streams.values()] == [2, 1, 3, 1]
    assert len(await subjects_of(client, f"OBJ_{FILES}")) == 2


async def test_an_agent_is_forgotten(client: Client) -> None:
    """Its card and lease go, as often as it is asked, and another's stay."""
    cards, leases = Records(client, CARDS, CardRecord), Records(client, LEASES, Renewal)
    for name in ("ada", "bob"):
        await cards.put(name, CardRecord(card=card(name), registered_at=START))
        await leases.put(name, EMPTY_RENEWAL)
    assert await leases.written_at(ADA) is not None
    for _ in range(2):
        await cards.remove(ADA)
        await leases.remove(ADA)
    assert (await cards.find(ADA), await cards.find(BOB) is None) == (None, False)
    assert await leases.written_at("nobody") is None


async def test_a_queue_goes_unless_something_waits(client: Client) -> None:
    """A pool's queue with a goal in it stays; an empty one goes, and so does one that is gone."""
    work = NatsWorkQueue(client)
    await work.ensure_pool(SUMS)
    await work.ensure_pool(PoolId("words"))
    await work.put(record(1), SUMS)
    removed = [await work.remove_pool(PoolId(pool)) for pool in ("sums", "words", "words")]
    assert removed == [False, True, True]
    names = {consumer.name for consumer in await client.jetstream().consumers_info(WORK)}
    assert names == {"any", pool_consumer(SUMS)}


async def append(log: GroupLog, comm_id: CommId, events: tuple[Event, ...]) -> None:
    """Put events into a log, as they come."""
    state, seq = launched("ada", "bob").state, 0
    for event in events:
        seq = await log.append(comm_id, encode_entry(Entry(event=event, state=state, audience=())), expected_seq=seq)


def result(goal_id: GoalId) -> GoalResult:
    """How a goal ended."""
    return GoalResult(
        goal_id=goal_id,
        user=LOCAL,
        reason=Reason.CONCLUDED,
        content="Ten.",
        comm_id=comm_id_of_goal(goal_id),
        turns=3,
        finished_at=START,
    )


async def subjects_of(client: Client, stream: str) -> list[str]:
    """Every subject of a stream."""
    info = await client.jetstream().stream_info(stream, subjects_filter=">")
    return list(info.state.subjects or {})
