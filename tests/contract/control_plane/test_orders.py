"""What taking goals in promises: each user's are given out apart, so many at a time, and nothing that was published is lost."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from itertools import count

import pytest
from nats.aio.client import Client

from ioa.adapters.nats import orders
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.orders import OrderLines
from ioa.adapters.nats.queues import Delivery
from ioa.adapters.nats.server import NatsServer
from ioa.adapters.nats.store_room import NatsSharedStore, NatsWaitingGoals
from ioa.adapters.nats.streams import next_messages
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import GOAL_RECORDS, GOALS, Parts, Topology
from ioa.beside import beside
from ioa.errors import NotFoundError, NotYetError, RateLimitedError
from ioa.ports.store_room import GOAL_SUBJECTS, SUBJECT_BYTES, StoreRoom
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import MAX_ID_CHARS, AgentId, CommId, GoalId, GoalName, UserId
from tests.contract.control_plane.conftest import nothing_is_poison
from tests.rig.deadline import eventually

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


async def test_what_one_user_has_open_keeps_nobody_else_waiting(nats_client: Client) -> None:
    """So many of a user's goals are given out at a time, in order, and the next when one has ended; another's go beside them."""
    taken = _Taken()
    mine = [b"anna %d" % number for number in range(20)]
    taken.open.update(mine)
    await _publish(nats_client, subjects.goal_of(ANNA), *mine[:10])
    await _publish(nats_client, subjects.goal_to(ANNA, AgentId("ada")), *mine[10:])
    async with beside(OrderLines(nats_client, taken.work, nothing_is_poison, 3, 2).follow()):
        await eventually(lambda: taken.seen[mine[0]] > 1, within=_SOON)
        await _publish(nats_client, subjects.goal_of(BEN), b"ben")
        await eventually(lambda: taken.seen[b"ben"] == 1, within=_SOON)
        assert {order for order in mine if taken.seen[order]} == set(mine[:3])
        with pytest.raises(NotFoundError, match="yet: 17 of anna wait"):
            await NatsSystemClient(nats_client).goal(GoalName(ANNA, GoalId("last")))
        taken.open.discard(mine[1])
        await eventually(lambda: taken.seen[mine[3]] > 0, within=_SOON)
        taken.open.clear()
        await eventually(lambda: all(taken.seen[order] for order in mine), within=_SOON)


@pytest.mark.parametrize(
    "headers",
    [b"NATS/1.0 404\r\n\r\n", b"NATS/1.0 503 Gone\r\n\r\n", *(b"NATS/1.0\r\nStatus: %d\r\n\r\n" % one for one in (100, 404, 409))],
)
async def test_an_order_that_looks_like_a_word_of_the_server_is_taken(nats_client: Client, headers: bytes) -> None:
    """It was taken for "there is none" each time that it was given out, and stayed, whatever room others had."""
    taken = _Taken()
    one = b"HPUB %s %d %d\r\n%sanna\r\n" % (subjects.goal_of(ANNA).encode(), len(headers), len(headers) + 4, headers)
    await nats_client._send_command(one, priority=False)
    await _publish(nats_client, subjects.goal_of(ANNA), b"behind it")
    async with beside(OrderLines(nats_client, taken.work, nothing_is_poison, 3, 1).follow()):
        await eventually(lambda: (taken.seen[b"anna"], taken.seen[b"behind it"]) == (1, 1), within=_SOON)
        info = nats_client.jetstream().stream_info
        await eventually(lambda: info(GOALS), lambda found: found.state.messages == 0, within=_SOON)


async def test_no_addressees_of_one_user_disconnect_who_takes_orders(nats_client: Client) -> None:
    """The stream would list each, all in one message: of some hundred long ones, of 4 kB as JSON has it 24, that was 9 MB.

    Who has goals that are not given out keeps his line.
    """
    taken, begins = _Taken(), f"{subjects.goal_of(ANNA)}.{'<' * 3_900}"
    for number in range(400):
        await nats_client.publish(f"{begins}{number}", b"anna")
    async with beside(OrderLines(nats_client, taken.work, nothing_is_poison, 3, 1).follow()):
        await eventually(lambda: taken.seen[b"anna"] > 0, within=_SOON)
        await _publish(nats_client, subjects.goal_of(BEN), b"ben")
        await eventually(lambda: taken.seen[b"ben"] == 1, within=_SOON)
    assert nats_client.stats["reconnects"] == 0


async def test_of_an_addressee_no_more_is_stored_than_tells_that_it_is_none(nats_client: Client) -> None:
    """nats-server keeps subjects in its memory, of which each may have had 4 kB: by goals of one byte 20 kB of it for each."""
    js, addressees = nats_client.jetstream(), ["bob", "b" * MAX_ID_CHARS, "b" * (MAX_ID_CHARS + 1), "c" * 3_900]
    for addressee in addressees:
        await js.publish(f"{subjects.goal_of(ANNA)}.{addressee}", b"x")
    await js.publish(subjects.goal_of(ANNA), b"x")
    page = await next_messages(nats_client, GOALS, ">", after=0, limit=10)
    stored = [subjects.parse_goal_subject(message.subject) for message in page.messages]
    assert stored == [*((ANNA, addressee[: MAX_ID_CHARS + 1]) for addressee in addressees), (ANNA, None)]


async def test_a_goal_behind_many_is_found_at_once(nats_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were published while nobody took any: what is not read yet waited two seconds for each page."""
    monkeypatch.setattr(orders, "_PAGE", 1)
    monkeypatch.setattr(orders, "_PAGES_AT_ONCE", 1)
    taken = _Taken()
    taken.open.add(b"anna")
    for _ in range(20):
        await nats_client.publish(subjects.goal_of(ANNA), b"anna")
    await _publish(nats_client, subjects.goal_of(BEN), b"ben")
    async with beside(OrderLines(nats_client, taken.work, nothing_is_poison, 3, 1).follow()):
        await eventually(lambda: taken.seen[b"ben"] == 1, within=_SOON)


async def test_goals_of_who_has_filled_the_stream_do_not_wait_for_an_end(nats_client: Client) -> None:
    """They are given out beside those of his that are open, to be refused; then so many are open at a time as before."""
    taken, over = _Taken(), set[UserId]()
    mine = [b"anna %d" % number for number in range(20)]
    taken.open.update(mine[:3])
    await _publish(nats_client, subjects.goal_of(ANNA), *mine)
    async with beside(OrderLines(nats_client, taken.work, nothing_is_poison, 3, 2, over.__contains__).follow()):
        await eventually(lambda: taken.seen[mine[2]] > 1, within=_SOON)
        assert set(taken.seen) == set(mine[:3])
        over.add(ANNA)
        await eventually(lambda: all(taken.seen[order] == 1 for order in mine[3:]), within=_SOON)
        over.clear()
        info = nats_client.jetstream().consumer_info
        await eventually(lambda: info(GOALS, "intake-anna"), lambda found: found.config.max_ack_pending == 3, within=_SOON)


async def test_goals_that_nobody_is_given_are_removed(nats_client: Client) -> None:
    """nats-server stores them and finds none by its subject, nor by any pattern: they stayed."""
    js = nats_client.jetstream()
    await js.publish(subjects.goal_of(BEN), b"x" * 1_000)
    for number in range(9):
        await js.publish(f"{subjects.goal_of(ANNA)}.a\x7f{number}", b"x" * 100_000)
    walk = count()
    waiting = NatsWaitingGoals(nats_client, chosen=lambda first, last: first + next(walk) % (last - first + 1))
    held = await waiting.held()
    assert held[ANNA] > held[BEN]
    assert (await js.stream_info(GOALS)).state.messages == 1
    assert set(await waiting.held()) == {BEN}


async def test_whose_the_goals_are_that_fill_the_stream_is_told_by_some(nats_client: Client) -> None:
    """By their bytes, headers too, and subjects, wherever they lie among those that are gone; so is what the store has left."""
    js = nats_client.jetstream()
    info = await js.stream_info(GOALS)
    await js.update_stream(info.config.evolve(max_bytes=2_000_000))
    for number in range(20):
        await js.publish(subjects.goal_to(BEN, AgentId("ada")), b"x" * 100)
        await js.publish(subjects.goal_to(ANNA, AgentId(f"bob-{number % 3}")), b"x" * 30_000)
    await js.purge_stream(GOALS, subject=subjects.goal_to(ANNA, AgentId("bob-0")))
    walk = count(0, 7)
    waiting = NatsWaitingGoals(nats_client, chosen=lambda first, last: first + next(walk) % (last - first + 1))
    room, held = await waiting.room(), await waiting.held()
    stored = (await js.stream_info(GOALS)).state.bytes
    store = await NatsSharedStore(nats_client, 10_000_000, 1).room()
    assert room == StoreRoom(2_000_000 - stored - 3 * SUBJECT_BYTES, 2_000_000, 3 * SUBJECT_BYTES)
    assert store is not None
    assert (set(held), held[ANNA] > 0.95 * stored, store.free_bytes <= 10_000_000 - stored) == ({ANNA, BEN}, True, True)
    assert await NatsSharedStore(nats_client, None, 1).room() is None


async def test_who_waits_behind_what_is_gone_is_not_taken_to_have_filled_it(nats_client: Client) -> None:
    """Numbers of goals that are gone led to the one behind them: its user was refused in the place of who had filled all."""
    js, cy = nats_client.jetstream(), UserId("cy")
    await js.publish(subjects.goal_to(ANNA, AgentId("ada")), b"x" * 100)
    for _ in range(1_000):
        await nats_client.publish(subjects.goal_to(cy, AgentId("ada")), b"x")
    await js.publish(subjects.goal_to(BEN, AgentId("ada")), b"x" * 1_000)
    await js.purge_stream(GOALS, subject=subjects.goal_to(cy, AgentId("ada")))
    for number in range(100):
        await js.publish(subjects.goal_to(ANNA, AgentId(f"bob-{number}")), b"x" * 10_000)
    held = await NatsWaitingGoals(nats_client, chosen=random.Random(1).randint).held()
    stored = (await js.stream_info(GOALS)).state.bytes + 102 * SUBJECT_BYTES
    assert (held[ANNA] > 0.9 * stored, held.get(BEN, 0) < 0.1 * stored) == (True, True)


async def test_gaps_that_somebody_has_chosen_hide_no_goals_of_his(nats_client: Client) -> None:
    """Each twice as wide as the one before, so that no goal lies where it would be reckoned to; and no more is read for that."""
    js, cy = nats_client.jetstream(), UserId("cy")
    for number in range(11):
        await js.publish(subjects.goal_to(ANNA, AgentId(f"ada-{number}")), b"x" * 10_000)
        for _ in range(2**number):
            await nats_client.publish(subjects.goal_to(cy, AgentId("ada")), b"x")
    await js.publish(subjects.goal_to(BEN, AgentId("ada")), b"x" * 100)
    await js.purge_stream(GOALS, subject=subjects.goal_to(cy, AgentId("ada")))
    before = nats_client.stats["in_bytes"]
    held = await NatsWaitingGoals(nats_client, chosen=random.Random(1).randint).held()
    stored = (await js.stream_info(GOALS)).state.bytes + 12 * SUBJECT_BYTES
    assert (held[ANNA] > 0.8 * stored, held.get(BEN, 0) < 0.2 * stored) == (True, True)
    assert nats_client.stats["in_bytes"] - before < (96 + 4 * 32) * 11_000


async def test_goals_of_no_bytes_on_long_subjects_fill_the_stream_by_those(nats_client: Client) -> None:
    """Where they did not count, all that such goals filled was told of whoever else waited."""
    js = nats_client.jetstream()
    for number in range(60):
        await js.publish(f"{subjects.goal_of(ANNA)}.{'a' * 60}{number}", b"")  # as short as an id: many of them are no bytes, too
        if number % 10 == 0:
            await js.publish(subjects.goal_of(BEN), b"x")
    walk = count(0, 7)
    waiting = NatsWaitingGoals(nats_client, chosen=lambda first, last: first + next(walk) % (last - first + 1))
    held, stored = await waiting.held(), (await js.stream_info(GOALS)).state.bytes
    assert (set(held), held[ANNA] > 0.95 * (stored + 61 * SUBJECT_BYTES)) == ({ANNA, BEN}, True)


async def test_what_is_on_record_counts_by_its_subjects(nats_client: Client) -> None:
    """The server keeps each in its memory: those of a goal, by its record, and those of logs in their share."""
    js = nats_client.jetstream()
    await Topology(store_bytes=10_000_000, parts=Parts(log=50, files=20, artifacts=20)).ensure(js)

    async def left() -> tuple[int, int]:
        store, log = await NatsSharedStore(nats_client, 10_000_000, 1).room(), await NatsGroupLog(nats_client).room()
        assert store is not None
        assert log is not None
        return store.free_bytes, log.free_bytes

    before, records = await left(), await js.key_value(GOAL_RECORDS)
    for number in range(10):
        await records.put(f"g{number}", b"x")
    shared, of_logs = await left()
    assert (0 < before[0] - shared - 10 * GOAL_SUBJECTS * SUBJECT_BYTES < 2_000, before[1] - of_logs) == (True, 0)
    for number in range(10):
        await js.publish(subjects.log(CommId(f"g{number}")), b"x")
    assert (await left())[0] == shared
    assert 0 < of_logs - (await left())[1] - 10 * SUBJECT_BYTES < 2_000


async def test_a_goal_beyond_what_may_wait_is_refused_and_says_so(nats_server: NatsServer) -> None:
    """Who launches it is told when to come back; it is not taken, and what waits already is."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        await Topology(goals_waiting=2).ensure(client.jetstream())
        system = NatsSystemClient(client)
        for number in range(2):
            await system.launch(GoalOrder(goal=f"Count to {number}."))
        with pytest.raises(RateLimitedError) as refused:
            await system.launch(GoalOrder(goal="Count to three."))
        with pytest.raises(NotFoundError, match=r"yet: 2 of local wait"):
            await system.goal(GoalId("goal-3"))
    assert refused.value.retry_after is not None
