"""What pushes, results and dead letters promise."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.delivery.nats_delivery import NatsDeadLetters, NatsInboxes, NatsResults
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.streams.topology import DEAD
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.group.events import EncodedEntry, Entry, encode_entry
from ioa.group.requests import SequencedEntry
from ioa.ports.delivery import Results
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, UserId
from ioa.protocol.operation.dead_letters import DeadReason
from tests.contract.control_plane.conftest import heard
from tests.rig.deadline import eventually
from tests.unit.group.scenario import START, launched

GOAL = GoalId("goal-1")


@pytest.fixture
def results(client: Client) -> Results:
    """No results yet."""
    return NatsResults(client)


@pytest.fixture
def letters(client: Client) -> NatsDeadLetters:
    """No letters yet."""
    return NatsDeadLetters(client)


def result(content: str, goal_id: GoalId = GOAL, user: UserId | None = LOCAL) -> GoalResult:
    """A result that can be told from others by its text."""
    comm_id = CommId("room")
    return GoalResult(
        goal_id=goal_id, user=user, reason=Reason.CONCLUDED, content=content, comm_id=comm_id, turns=3, finished_at=START
    )


async def test_stored_result_is_not_sent_to_subscribers_again(client: Client) -> None:
    """A plain subscriber receives a result once, although several parts of the system publish it to be sure."""
    received: list[bytes] = []

    async def receive(message: Msg) -> None:
        received.append(message.data)

    await client.subscribe("ioa.v1.result.local.*", cb=receive)
    results = NatsResults(client)
    assert await results.get(GoalName(LOCAL, GOAL)) is None
    assert [await results.publish(result(content)) for content in ("right", "right", "late")] == [True, False, False]
    assert await results.get(GoalName(LOCAL, GOAL)) == result("right")
    await client.jetstream().publish("ioa.v1.result.local.last", b"end")
    await eventually(lambda: b"end" in received)

    assert [json.loads(data)["content"] for data in received if data != b"end"] == ["right"]


async def test_results_that_race_are_one(results: Results) -> None:
    """Of many parts that publish the result of one goal at once exactly one is first."""
    first = await asyncio.gather(*(results.publish(result(str(number))) for number in range(12)))
    found = await results.get(GoalName(LOCAL, GOAL))
    assert found is not None
    assert [number for number, won in enumerate(first) if won] == [int(found.content)]


async def test_goals_have_their_own_results(results: Results) -> None:
    """A result belongs to one goal of one user."""
    told = [
        result("one"),
        result("two", GoalId("goal-2")),
        result("hers", user=UserId("anna")),
    ]
    for one in told:
        await results.publish(one)
    assert [await results.get(one.name) for one in told] == told


@pytest.mark.parametrize("why", ["two\r\nlines\rand: a header ✂", ""])
async def test_a_dead_letter_is_kept_with_its_reason(letters: NatsDeadLetters, client: Client, why: str) -> None:
    """A refused message is kept as it came, with its subject and the reason on one line."""
    await letters.put(DeadReason.UNREADABLE, why, subject="ioa.v1.goal", data=b"\x00\xff")
    assert await _first_letter(client) == (DeadReason.UNREADABLE, " ".join(why.split()), "ioa.v1.goal", b"\x00\xff")


async def test_a_dead_letter_too_large_keeps_its_beginning(client: Client) -> None:
    """Of a message that fits into no letter the beginning is kept, and its size."""
    await NatsDeadLetters(client).put(DeadReason.TOO_LARGE, "large", subject="ioa.v1.goal", data=b"x" * 1_040_000)
    kept = await client.jetstream().get_last_msg(DEAD, "ioa.v1.dead.too_large")
    assert (len(kept.data or b""), (kept.headers or {}).get("Ioa-Bytes")) == (1_000_000, "1040000")


async def test_the_same_letter_is_kept_once(letters: NatsDeadLetters, client: Client) -> None:
    """What several processes set aside at once, each knowing the same key, is one letter; without a key each is its own."""
    for key in ("a", "a", "b", "", ""):
        await letters.put(DeadReason.UNREADABLE, "why", subject="ioa.v1.goal", data=b"x", key=key)
    assert (await client.jetstream().stream_info(DEAD)).state.messages == 4


async def test_a_reason_that_no_header_can_hold_is_kept(client: Client) -> None:
    """What a stranger wrote may stand in the reason, whatever it holds."""
    put = NatsDeadLetters(client).put
    await put(DeadReason.FAILED, "half a \ud800 pair,\0 zero,\ra line\x1b[2J" + "é" * 5_000, subject="a\r\nb", data=b"x")
    kept = await client.jetstream().get_last_msg(DEAD, "ioa.v1.dead.failed")
    assert str((kept.headers or {})["Ioa-Reason"]).startswith("half a ? pair, zero, a line [2J")


async def _first_letter(client: Client) -> tuple[DeadReason, str, str, bytes]:
    subscription = await client.jetstream().subscribe("ioa.v1.dead.*", stream=DEAD)
    kept = await subscription.next_msg(timeout=5)
    headers = kept.headers or {}
    why = " ".join(headers.get("Ioa-Reason", "").split())
    return DeadReason(kept.subject.rpartition(".")[2]), why, headers.get("Ioa-Subject", ""), kept.data


def pushed() -> EncodedEntry:
    """An entry for everybody."""
    story = launched("ada", "bob")
    return encode_entry(Entry(event=story.log[0], state=story.state, audience=story.state.living()))


async def test_a_push_reaches_each_member_that_listens(client: Client, nats_url: str) -> None:
    """An entry is seen, unchanged, by every member of its audience that is connected, and by nobody else."""
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(open_connection(NatsSettings(nats_url, "member")))
        network = NatsAgentNetwork(connection)
        arrived = {name: asyncio.Queue[SequencedEntry]() for name in ("ada", "bob", "eve")}
        for name, queue in arrived.items():
            await stack.enter_async_context(network.inbox(AgentId(name), queue.put_nowait))
            await network.listen(AgentId(name), f"of-{name}")
        await heard(connection)
        inboxes = NatsInboxes(client, "of-{}".format)
        await inboxes.push((AgentId("ada"), AgentId("bob")), pushed(), seq=7, previous_seq=3)
        await inboxes.push((AgentId("eve"),), pushed(), seq=8, previous_seq=7)
        async with asyncio.timeout(10):
            seen = [await inbox.get() for inbox in arrived.values()]
    assert [entry.seq for entry in seen] == [7, 7, 8]
    assert seen[0] == SequencedEntry(seq=7, previous_seq=3, entry=pushed().entry)
