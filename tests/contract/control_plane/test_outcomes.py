"""What the stream of outcomes promises to whoever learns from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.client import Client

from ioa.adapters.nats.stores.outcome_store import NatsOutcomes
from ioa.adapters.nats.streams.topology import OUTCOMES
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.concurrency import beside
from ioa.protocol import subjects
from ioa.protocol.agents.outcomes import REMEMBERED, Outcome
from ioa.protocol.ids import PoolId
from ioa.testing.manual_clock import NEW_YEAR
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash


def outcome(number: int, pool: str = "a") -> Outcome:
    """An outcome told apart by its need."""
    return Outcome(pool=PoolId(pool), need=f"task {number}", done=True, at=NEW_YEAR)


class Notebook:
    """A follower that keeps all outcomes."""

    def __init__(self) -> None:
        self.heard: list[Outcome] = []

    def add(self, told: Outcome) -> None:
        """Write it down."""
        self.heard.append(told)

    def forget(self) -> None:
        """Begin anew."""
        self.heard.clear()


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[Notebook]:
    """Follow the stream."""
    notebook = Notebook()
    async with beside(NatsOutcomes(client).follow(notebook.add, notebook.forget)):
        yield notebook


async def test_replicas_and_restarts_hear_the_same(client: Client) -> None:
    """Who follows from the beginning, who comes later and who comes again all hear the same outcomes in the same order."""
    told = [outcome(number, pool) for number in range(5) for pool in "ab"]
    async with following(client) as early:
        for number, one in enumerate(told):
            await NatsOutcomes(client).put(one, key=f"k{number}")
        await eventually(lambda: len(early.heard) == len(told))
        async with following(client) as late:
            await eventually(lambda: len(late.heard) == len(told))
    assert early.heard == late.heard == told


async def test_the_same_outcome_is_kept_once(client: Client) -> None:
    """An outcome that is told again under its key changes nothing."""
    for number in (1, 1, 2):
        await NatsOutcomes(client).put(outcome(number), key=f"k{number}")
    assert (await client.jetstream().stream_info(OUTCOMES)).state.messages == 2


async def test_the_newest_of_each_pool_are_kept(client: Client) -> None:
    """One pool with many tasks pushes out its own oldest, and nobody else's."""
    await NatsOutcomes(client).put(outcome(0, "b"), key="b")
    for number in range(REMEMBERED + 3):
        await NatsOutcomes(client).put(outcome(number), key=f"k{number}")
    async with following(client) as notebook:
        await eventually(lambda: len(notebook.heard) == REMEMBERED + 1)
    assert notebook.heard == [outcome(0, "b"), *(outcome(number) for number in range(3, REMEMBERED + 3))]


async def test_what_cannot_be_read_is_passed_over(client: Client) -> None:
    """A message that is no outcome keeps nobody from the next one."""
    async with following(client) as notebook:
        await client.jetstream().publish(subjects.outcome(PoolId("a")), b"\xc1", stream=OUTCOMES)
        await NatsOutcomes(client).put(outcome(1), key="k1")
        await eventually(lambda: notebook.heard)
    assert notebook.heard == [outcome(1)]


async def test_following_goes_on_after_a_crash_of_the_server(client: Client, nats_server: NatsServer) -> None:
    """After nats-server was killed, the listener starts again from the first outcome."""
    outcomes = NatsOutcomes(client)
    async with following(client) as notebook:
        await outcomes.put(outcome(1), key="k1")
        await eventually(lambda: notebook.heard)
        await crash(nats_server)
        await nats_server.start()
        await eventually(lambda: client.is_connected)
        await outcomes.put(outcome(2), key="k2")
        await eventually(lambda: len(notebook.heard) == 2)
    assert notebook.heard == [outcome(1), outcome(2)]
