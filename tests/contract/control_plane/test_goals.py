"""What goals on record and the queues of goals promise."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.work_queue import Delivery, consume
from ioa.adapters.nats.stores.goal_records import DEADLINE, TICKET, NatsGoalRecords, NatsTickets, NatsWorkQueue
from ioa.adapters.nats.streams.topology import ANY_AGENT, WORK, pool_consumer
from ioa.concurrency import beside
from ioa.protocol.codec import decode
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import LOCAL, GoalId, GoalName, PoolId, comm_id_of_goal
from tests.contract.control_plane.conftest import nothing_is_poison
from tests.rig.deadline import eventually
from tests.unit.group.scenario import START


@pytest.fixture
def records(client: Client) -> NatsGoalRecords:
    """No goals yet."""
    return NatsGoalRecords(client)


@pytest.fixture
def work(client: Client) -> NatsWorkQueue:
    """Nothing waits yet."""
    return NatsWorkQueue(client)


def goal(goal_id: str = "goal-1", text: str = "Count to ten.") -> Goal:
    """A goal."""
    return Goal(goal_id=GoalId(goal_id), goal=text)


def record(goal_id: str = "goal-1", text: str = "Count to ten.", after: float = 0) -> GoalRecord:
    """A goal on record."""
    return GoalRecord(goal=goal(goal_id, text), accepted_at=START + timedelta(seconds=after), ticket_digest="0" * 64)


async def test_the_first_record_of_an_id_stands(records: NatsGoalRecords) -> None:
    """Recording another goal under a taken id changes nothing and returns the one on record."""
    assert await records.find(comm_id_of_goal(GoalId("goal-1"))) is None
    for given in (record(), record(text="Count to eleven.", after=5)):
        assert await records.create(given) == record()
    assert await records.find(comm_id_of_goal(GoalId("goal-1"))) == record()


async def test_records_that_race_agree(records: NatsGoalRecords) -> None:
    """Everybody who records a goal under one id at once is told the same one."""
    returned = await asyncio.gather(*(records.create(record(text=str(number))) for number in range(12)))
    assert {answer.goal.goal for answer in returned} == {_text(await records.find(comm_id_of_goal(GoalId("goal-1"))))}


def _text(record: GoalRecord | None) -> str:
    assert record is not None
    return record.goal.goal


async def test_a_goal_waits_for_its_pool(work: NatsWorkQueue, client: Client) -> None:
    """A goal for a pool is given to that pool alone, also when the pool has no agent yet or its queue is made again."""
    await work.ensure_pool(PoolId("sums"))
    await work.put(record("for-sums"), PoolId("sums"))
    for goal_id in ("goal-1", "goal-2"):
        await work.put(record(goal_id), None)
    await work.ensure_pool(PoolId("sums"))
    assert await taken(client, PoolId("sums"), 1) == [goal("for-sums")]
    assert await taken(client, None, 2) == [goal("goal-1"), goal("goal-2")]


async def test_a_ticket_is_the_same_for_everybody(client: Client) -> None:
    """Replicas that start at once on a new store make the same tickets, each goal has its own, and a restart changes none."""
    makers: list[NatsTickets] = [NatsTickets(client) for _ in range(4)]
    made = await asyncio.gather(*(maker.of(GoalName(LOCAL, GoalId("goal-1"))) for maker in makers))
    other = await makers[0].of(GoalName(LOCAL, GoalId("goal-2")))
    again = NatsTickets(client)
    assert ({*made, await again.of(GoalName(LOCAL, GoalId("goal-1")))}, other == made[0], len(other)) == ({made[0]}, False, 32)


async def test_the_ticket_comes_with_the_goal_and_not_in_it(client: Client) -> None:
    """Whoever is given a goal can show its ticket; what is kept of the goal elsewhere, such as a dead letter, does not hold it."""
    ticket = await NatsTickets(client).of(GoalName(LOCAL, GoalId("goal-1")))
    await NatsWorkQueue(client).put(record(), None, ticket)
    queued = await client.jetstream().get_msg(WORK, seq=1)
    assert ((queued.headers or {})[TICKET], ticket.encode() in (queued.data or b"")) == (ticket, False)


@pytest.mark.parametrize("pool", [PoolId("sums"), None])
async def test_goal_given_to_an_agent_counts_as_taken(work: NatsWorkQueue, client: Client, pool: PoolId | None) -> None:
    """A goal for a pool or for any agent; a goal that waits for another pool does not count."""
    other = PoolId("words")
    if pool is not None:
        await work.ensure_pool(pool)
    await work.ensure_pool(other)
    first, second = await work.put(record("goal-1"), pool), await work.put(record("goal-2"), other)
    assert not await work.was_taken(pool, first)
    await taken(client, pool, 1)
    assert (await work.was_taken(pool, first), await work.was_taken(other, second)) == (True, False)


async def test_an_offer_can_be_taken_back(work: NatsWorkQueue, client: Client) -> None:
    """What was withdrawn is given to nobody; doing it again, or when it is gone, changes nothing."""
    pool = PoolId("sums")
    await work.ensure_pool(pool)
    first, _ = [await work.put(record(goal_id), pool) for goal_id in ("goal-1", "goal-2")]
    for _ in range(2):
        await work.withdraw(first)
    assert await taken(client, pool, 1) == [goal("goal-2")]


async def test_a_goal_leaves_the_queue_at_its_deadline(client: Client) -> None:
    """Sixty goals whose time ran out before anybody came are offered to nobody; one that has time left is, with its deadline."""
    work = NatsWorkQueue(client)
    short = record().model_copy(update={"goal": goal().model_copy(update={"timeout": timedelta(seconds=1)})})
    for _ in range(60):
        await work.put(short, None)
    await work.put(record("goal-2"), None)

    async def waiting() -> int:
        return (await client.jetstream().stream_info(WORK)).state.messages

    await eventually(waiting, lambda count: count == 1)
    arrived: asyncio.Queue[Delivery] = asyncio.Queue()

    async def take(delivery: Delivery) -> None:
        arrived.put_nowait(delivery)

    async with beside(consume(client, WORK, ANY_AGENT, take, set_aside=nothing_is_poison)):
        only = await asyncio.wait_for(arrived.get(), 10)
    assert (decode(Goal, only.data), only.headers[DEADLINE]) == (goal("goal-2"), record("goal-2").deadline.isoformat())


async def taken(client: Client, pool: PoolId | None, count: int) -> list[Goal]:
    """Take goals as an agent does."""
    arrived: asyncio.Queue[Goal] = asyncio.Queue()

    async def take(delivery: Delivery) -> None:
        arrived.put_nowait(decode(Goal, delivery.data))

    async with beside(consume(client, WORK, pool_consumer(pool) if pool else ANY_AGENT, take, set_aside=nothing_is_poison)):
        return [await asyncio.wait_for(arrived.get(), 10) for _ in range(count)]
