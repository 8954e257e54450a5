"""Publish to JetStream with one subscription for all acknowledgements.

nats-py's `publish` creates a unique inbox, a waiter and an object for each acknowledgement, which takes twice the CPU time. This is
for the append to a group's log, the one write on the path of every message.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from datetime import timedelta

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header
from nats.js.errors import APIError
from pydantic_core import from_json

from ioa.adapters.nats.wire.connection import until_connected
from ioa.adapters.nats.wire.publishing import publish_to_each
from ioa.adapters.nats.wire.sinks import MessageSink
from ioa.cancellation import fail_after

_NO_RESPONDERS = "503"
_TIMEOUT = timedelta(seconds=5)


class AcknowledgedWrites:
    """Publish to streams over one connection, and wait for each acknowledgement.

    While disconnected, a write waits for the connection, so that no message is stored after its caller has given up.

    Args:
        client: The connection.
        timeout: How long to wait for the connection, and then for an acknowledgement.
    """

    def __init__(self, client: Client, *, timeout: timedelta = _TIMEOUT) -> None:
        self._client = client
        self._seconds = timeout.total_seconds()
        self._inbox = ""
        self._loop: asyncio.AbstractEventLoop
        self._numbers = itertools.count()
        self._waiting: dict[str, tuple[asyncio.Future[Msg], float]] = {}
        """Writes without an acknowledgement, the oldest first, with their deadlines."""
        self._expiry: asyncio.TimerHandle | None = None

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str]) -> int:
        """Store a message and return its sequence.

        Raises:
            APIError: JetStream rejected the message.
            NoRespondersError: No stream stores the subject, or the stream has no leader now.
            TimeoutError: No acknowledgement arrived in time; the message may be stored.
        """
        if not self._inbox:  # the server processes the subscription before the messages that follow
            self._loop = asyncio.get_running_loop()
            self._inbox = self._client.new_inbox()
            await self._client.subscribe(f"{self._inbox}.*", future=MessageSink(self._acknowledge))
        if not self._client.is_connected:
            async with fail_after(self._seconds):
                await until_connected(self._client)
        number, answer, deadline = str(next(self._numbers)), self._loop.create_future(), self._loop.time() + self._seconds
        self._waiting[number] = answer, deadline
        if self._expiry is None:
            self._expiry = self._loop.call_at(deadline, self._expire)
        try:
            await publish_to_each(self._client, [subject], data, reply=f"{self._inbox}.{number}", headers=headers)
            return _sequence(await answer)
        finally:
            del self._waiting[number]

    def _acknowledge(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject.rpartition(".")[2])
        if waiting is not None and not waiting[0].done():
            waiting[0].set_result(message)

    def _expire(self) -> None:
        """End overdue writes. One timer serves all writes, because most are acknowledged in time."""
        self._expiry = None
        now = self._loop.time()
        for answer, deadline in self._waiting.values():
            if deadline > now:
                self._expiry = self._loop.call_at(deadline, self._expire)
                return
            if not answer.done():
                answer.set_exception(TimeoutError())


def _sequence(message: Msg) -> int:
    if message.headers and message.headers.get(Header.STATUS) == _NO_RESPONDERS:
        raise nats.errors.NoRespondersError
    answer = from_json(message.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    return int(answer["seq"])
