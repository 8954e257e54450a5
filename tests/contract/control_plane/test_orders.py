"""What taking goals in promises: each user's are given out apart, so many at a time, and nothing that was published is lost."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.work_queue import Delivery
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.concurrency import beside
from ioa.errors import NotFoundError, NotYetError, RateLimitedError
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId, GoalId, GoalName, UserId
from ioa_groups.goal_orders import OrderLines, UnreadGoals
from tests.contract.control_plane.conftest import nothing_is_poison
from tests.rig.deadline import eventually
from tests.rig.reads import open_read_service

ANNA, BEN = UserId("anna"), UserId("ben")
_SOON = timedelta(seconds=10)


class _Taken:
    """Orders that were taken, by what they say; those of `open` have not ended yet."""

    def __init__(self) -> None:
        self.seen: Counter[bytes] = Counter()
        self.open: set[bytes] = set()

    async def work(self, delivery: Delivery) -> None:
        """Take an order."""
        self.seen[delivery.data] += 1
        if delivery.data in self.open:
            raise NotYetError("It is open.", retry_after=timedelta(milliseconds=100))


async def _publish(client: Client, subject: str, *some: bytes) -> None:
    for order in some:
        await client.jetstream().publish(subject, order)


async def test_unread_goal_is_found_by_its_id_among_those_of_its_user(client: Client) -> None:
    """Addressed or not, on any page; another user's goal of the same id is not the user's."""
    await _publish(
        client, subjects.goal_of(ANNA), *(b'{"goal": "x", "goal_id": "g-%d"}' % number for number in range(300)), b"plain"
    )
    await _publish(client, subjects.goal_to(ANNA, AgentId("ada")), b'{"goal": "x", "goal_id": "to-ada"}')
    unread = UnreadGoals(client)
    names = [
        GoalName(ANNA, GoalId("g-299")),
        GoalName(ANNA, GoalId("to-ada")),
        GoalName(BEN, GoalId("g-1")),
        GoalName(ANNA, GoalId("g")),
    ]
    assert [await unread.contains(name) for name in names] == [True, True, False, False]


async def test_open_goals_of_one_user_do_not_delay_other_users(client: Client) -> None:
    """So many of a user's goals are given out at a time, in order, and the next when one has ended; another's go beside them."""
    taken = _Taken()
    mine = [b"anna %d" % number for number in range(20)]
    taken.open.update(mine)
    await _publish(client, subjects.goal_of(ANNA), *mine[:10])
    await _publish(client, subjects.goal_to(ANNA, AgentId("ada")), *mine[10:])
    async with open_read_service(client), beside(OrderLines(client, taken.work, nothing_is_poison, 3, 2).follow()):
        await eventually(lambda: taken.seen[mine[0]] > 1, within=_SOON)
        await _publish(client, subjects.goal_of(BEN), b"ben")
        await eventually(lambda: taken.seen[b"ben"] == 1, within=_SOON)
        assert {order for order in mine if taken.seen[order]} == set(mine[:3])
        assert await NatsSystemClient(client).count_waiting(GoalName(ANNA, GoalId("last"))) == 17
        taken.open.discard(mine[1])
        await eventually(lambda: taken.seen[mine[3]] > 0, within=_SOON)
        taken.open.clear()
        await eventually(lambda: all(taken.seen[order] for order in mine), within=_SOON)


async def test_a_goal_beyond_what_may_wait_is_refused_and_says_so(nats_url: str) -> None:
    """Who launches it is told when to come back; it is not taken, and what waits already is."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await Topology(goals_waiting=2).ensure(client.jetstream())
        system = NatsSystemClient(client)
        for number in range(2):
            await system.submit(GoalOrder(goal=f"Count to {number}."))
        with pytest.raises(RateLimitedError) as refused:
            await system.submit(GoalOrder(goal="Count to three."))
        async with open_read_service(client):
            with pytest.raises(NotFoundError, match="except goals that wait"):
                await system.goal(GoalId("goal-3"))
            assert await system.count_waiting(GoalId("goal-3")) == 2
    assert refused.value.retry_after is not None
