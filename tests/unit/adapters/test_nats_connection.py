"""What goes on beside a connection ends with it, whatever nats-py makes of being cancelled, and refusals end no connection."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress

import nats.errors
import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats import connection
from ioa.adapters.nats.connection import NatsSettings, _LastingClient, _Shown, open_connection
from tests.rig.deadline import eventually

_MOST = 3


class _Answering(_LastingClient):
    """Waits for an answer that comes together with the cancellation, which `asyncio.wait_for` of Python 3.11 drops then."""

    def __init__(self) -> None:
        super().__init__(NatsSettings("", "tried"), _Shown())
        self._server_info = {"server_id": "S1"}
        self.asked = asyncio.Event()

    async def _answer(self) -> None:
        is_first = not self.asked.is_set()
        self.asked.set()
        with suppress(asyncio.CancelledError) if is_first else nullcontext():
            await asyncio.sleep(3_600)

    async def flush(self, timeout: int = 10) -> None:
        """Wait for the server."""
        await self._answer()

    async def request(self, *_args: object, **_options: object) -> Msg:
        """Ask the server."""
        await self._answer()
        return Msg(self, data=b"{}")


async def _ask_again_and_again(client: _Answering) -> None:
    client._deaf_to.add("refused")
    client._is_deaf.set()
    await client.subscribe_again()


async def test_an_answer_that_comes_with_the_end_does_not_hold_it_up() -> None:
    """A connection to a server with keys, which had refused a subscription, was not closed: what asks for it again went on."""
    client = _Answering()
    going = asyncio.ensure_future(_ask_again_and_again(client))
    await client.asked.wait()
    going.cancel()
    ended, _ = await asyncio.wait({going}, timeout=1)
    going.cancel()
    assert ended == {going}


async def test_a_refusal_while_requests_end_by_another_ends_no_connection() -> None:
    """Of two requests at once each is refused, and the second refusal may come while both are ending by the first."""
    client = _LastingClient(NatsSettings("", "tried"), _Shown())
    refusal = 'permissions violation for publish to "ioa.v1.say"'

    async def ask() -> None:
        async with client._until_not_permitted("ioa.v1.say"):
            await asyncio.wait_for(asyncio.Event().wait(), 3_600)

    asking = [asyncio.create_task(ask()) for _ in range(2)]
    await asyncio.sleep(0)
    while not all(one.done() for one in asking):
        await client._process_err(refusal)  # what it raises ends nats-py's reading, and the connection stays open, deaf
        await asyncio.sleep(0)
    for one in asking:
        with pytest.raises(nats.errors.TimeoutError):
            await one


class _FullServer:
    """Has so many subscriptions of a connection, and leaves out what is beyond without a word which, as nats-server 2.15 does."""

    def __init__(self) -> None:
        self.connections = self.asked = self.refused = 0
        self.limits: dict[bytes, int | None] = {}
        """For how many messages each subscription is that it has."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        self.connections += 1
        writer.write(b'INFO {"server_id":"S1","version":"2.15.1","headers":true,"max_payload":1048576,"proto":1}\r\n')
        while line := await reader.readline():
            command, *words = line.split()
            if command == b"PING":
                writer.write(b"PONG\r\n")
            elif command == b"SUB":
                self._subscribe(writer, words[-1])
            elif command == b"UNSUB" and words[0] in self.limits:
                if len(words) > 1:
                    self.limits[words[0]] = int(words[1])
                else:
                    del self.limits[words[0]]
        writer.close()

    def _subscribe(self, writer: asyncio.StreamWriter, sid: bytes) -> None:
        self.asked += 1
        if len(self.limits) >= _MOST:
            self.refused += 1
            writer.write(b"-ERR 'maximum subscriptions exceeded'\r\n")
        else:
            self.limits.setdefault(sid, None)


async def test_what_is_left_out_as_too_much_is_asked_for_one_by_one_and_ends_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that ended was made again with the same subscriptions, refused again, for ever: nobody was heard."""
    monkeypatch.setattr(connection, "_FIRST_DEAF_PAUSE", 0.01)
    full = _FullServer()
    async with await asyncio.start_server(full.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_connection(NatsSettings(f"nats://127.0.0.1:{port}", "test")) as client:
            first, *_, last = [await client.subscribe(f"a.{number}") for number in range(_MOST + 3)]
            await last.unsubscribe(limit=5)
            await eventually(lambda: full.refused, lambda refused: refused >= 3 + 2)
            beyond = full.asked - (_MOST + 3), full.refused - 3  # what is asked for again
            await first.unsubscribe()
            await eventually(lambda: full.limits.get(b"%d" % last._id), lambda limit: limit == 5)
            assert (full.connections, beyond[0]) == (1, beyond[1])
            assert b"%d" % first._id not in full.limits
