"""Dead letters on a real server: read page by page, shown, and put back once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

import ioa
from ioa.adapters.nats.delivery.nats_delivery import NatsDeadLetters, NatsResults
from ioa.adapters.nats.streams.topology import DEAD, GOALS, Topology
from ioa.adapters.nats.system_client import message_id
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.cli.operations import list_letters, put_back, show_letter
from ioa.cli.output.terminal import Terminal
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, CommId, GoalId
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.testing.manual_clock import NEW_YEAR
from tests.rig.reads import open_read_service

HOSTILE = "x\x1b]52;c;eA==\x07\u202e\n"


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    """A connection to a server with all streams, whose read requests are answered."""
    async with open_connection(NatsSettings(nats_url, "test"), patience=timedelta(seconds=5)) as client:
        await Topology().ensure(client.jetstream())
        async with open_read_service(client):
            yield client


async def _put(client: Client, number: int, *, data: bytes | None = None, reason: DeadReason = DeadReason.UNREADABLE) -> None:
    """Set a message aside as the services do, whose log lines are of no use here."""
    with capture_logs():
        dead = NatsDeadLetters(client)
        await dead.put(reason, f"number {number} {HOSTILE}", subject=subjects.goal_of(LOCAL), data=data or b"goal %d" % number)


async def _stored(client: Client, stream: str) -> int:
    return (await client.jetstream().stream_info(stream)).state.messages


async def test_letters_come_in_pages_newest_first(client: Client) -> None:
    """Each page contains the cursor of the next one; removed letters leave no gap in a page."""
    for number in range(1, 151):
        await _put(client, number)
    for number in range(20, 120):
        await client.jetstream().delete_msg(DEAD, number)
    system, before, pages = ioa.Client(client), None, []
    while True:
        page = await system.dead_letters(limit=20, before=before)
        pages.append([letter.seq for letter in page.letters])
        before = page.before
        if before is None:
            break
    assert pages == [list(range(150, 130, -1)), [*range(130, 119, -1), *range(19, 10, -1)], list(range(10, 0, -1))]


async def test_a_letter_is_put_back_once(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Its message is in its stream again as it came, and the letter is gone; a second try cut short before is no second message."""
    await _put(client, 1)
    js = client.jetstream()
    letter = await ioa.Client(client).dead_letter(1)
    await js.publish(letter.subject, letter.data, headers={"Nats-Msg-Id": message_id(letter)})  # of a call that was interrupted
    await put_back(ioa.Client(client), Terminal(as_json=True), 1)
    message = await js.get_msg(GOALS, 1)
    assert json.loads(capsys.readouterr().out) == {"put_back": 1, "subject": "ioa.v1.goal.local", "first": False}
    assert (message.subject, message.data, await _stored(client, GOALS), await _stored(client, DEAD)) == (
        "ioa.v1.goal.local",
        b"goal 1",
        1,
        0,
    )
    with pytest.raises(NotFoundError, match="There is no dead letter 1"):
        await put_back(ioa.Client(client), Terminal(as_json=True), 1)


async def test_what_cannot_be_put_back_is_refused(client: Client) -> None:
    """A copy of an entry, a message that was cut, and a goal that has ended stay where they are, with what to do."""
    ended = GoalResult(
        goal_id=GoalId("over"),
        user=LOCAL,
        reason=Reason.FAILED,
        content="no",
        comm_id=CommId("room"),
        turns=0,
        finished_at=NEW_YEAR,
    )
    await NatsResults(client).publish(ended)
    await _put(client, 1, reason=DeadReason.UNREADABLE_ENTRY)
    await _put(client, 2, data=b"x" * (MAX_PAYLOAD_BYTES + 1))
    await _put(client, 3, data=b'{"goal": "x", "goal_id": "over"}')
    for number, kind, words in (
        (1, InvalidInputError, "copy of an entry"),
        (2, InvalidInputError, "only 1,000,000 of 1,000,001 bytes"),
        (3, ConflictError, "The goal over of dead letter 3 has ended"),
    ):
        with pytest.raises(kind, match=words):
            await put_back(ioa.Client(client), Terminal(as_json=True), number)
    assert (await _stored(client, GOALS), await _stored(client, DEAD)) == (0, 3)


async def test_a_letter_is_shown_as_it_came(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """People see when, why, where and the message, fit for a terminal; programs get the bytes."""
    await _put(client, 1, data=HOSTILE.encode() + b"\xff")
    await show_letter(ioa.Client(client), Terminal(as_json=False), 1)
    await list_letters(ioa.Client(client), Terminal(as_json=False), 1)
    told = capsys.readouterr().out
    await show_letter(ioa.Client(client), Terminal(as_json=True), 1)
    document = json.loads(capsys.readouterr().out)
    assert not any(code in told for code in ("\x1b", "\x07", "\u202e"))
    assert ("number 1" in told, "ioa.v1.goal.local" in told, document["data_base64"]) == (True, True, "eBtdNTI7YztlQT09B+KArgr/")
