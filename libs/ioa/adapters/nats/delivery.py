"""Pushes, results, timers and dead letters over NATS."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NoReturn

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import Header

from ioa.adapters.nats.connection import at_renewal
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.keys import last_message, publish_onto
from ioa.adapters.nats.publishing import publish_to_each
from ioa.adapters.nats.topology import DEAD, RESULTS, TIMERS
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError
from ioa.group.events import EncodedEntry, Said
from ioa.group.requests import encode_sequenced
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, encode
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalName
from ioa.protocol.results import decode_result, encode_result
from ioa.telemetry.fault_points import fault_point, is_armed

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_BY_ROUTER = "Ioa-By-Router"
"""The header that reports of progress bear."""
_STORED_AT = "Nats-Sequence"
"""The header of what the server answers to who reads a stream (NATS ADR-31)."""

_log = structlog.get_logger(__name__)


class NatsInboxes:
    """Push entries over core NATS.

    Args:
        client: The connection.
        inbox_of: Returns the nonce of an agent's inbox, and None of who is not pushed to.
        router: The name that a router is spoken to by. A push bears it as its reply subject: who appended the last entry of a
            group knows its head, and is asked first when somebody speaks next.
    """

    def __init__(self, client: Client, inbox_of: Callable[[AgentId], str | None], router: str = "") -> None:
        self._client = client
        self._inbox_of = inbox_of
        self._router = router

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Publish the entry to each inbox; members that are away repair themselves from the log, and so does a lost push."""
        data = encode_sequenced(entry, seq=seq, previous_seq=previous_seq)
        try:
            inboxes = [subjects.inbox(one, nonce) for one in audience if (nonce := self._inbox_of(one)) is not None]
            if not is_armed("router.between_pushes"):
                await publish_to_each(self._client, inboxes, data, reply=self._router)
                return
            for inbox in inboxes:
                await publish_to_each(self._client, [inbox], data, reply=self._router)
                await self._client.flush()  # what was pushed has left the process
                fault_point("router.between_pushes")
        except (nats.errors.Error, OSError) as error:
            _log.warning("push_lost", comm_id=entry.entry.state.comm_id, seq=seq, error=str(error) or type(error).__name__)


def _is_of_router(message: Msg) -> bool:
    """Whether a router has published a report.

    Where users are, one of them may have the server's answer to a read sent to any subject, with what she has stored herself. Such
    an answer says where in a stream it was stored, or, if she asked for no headers, bears none.
    """
    headers = message.headers or {}
    return _BY_ROUTER in headers and _STORED_AT not in headers


class NatsProgress:
    """Reports of progress on core NATS, one subject for each group."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def publish(self, said: Said) -> None:
        """Publish the report; one that cannot be sent is lost."""
        comm_id = said.message.header.comm_id
        try:
            await self._client.publish(subjects.progress(comm_id), encode(said), headers={_BY_ROUTER: "1"})
        except (nats.errors.Error, OSError) as error:
            _log.warning("progress_lost", comm_id=comm_id, error=str(error) or type(error).__name__)

    async def follow(self, hear: Callable[[Said], None], listen_anew: Callable[[], None], subject: str) -> NoReturn:
        """Give every report on a subject to `hear`, for ever; see `listening`."""
        async with self.listening(hear, listen_anew, subject):
            await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    @asynccontextmanager
    async def listening(
        self, hear: Callable[[Said], None], listen_anew: Callable[[], None], subject: str, *, only_routers: bool = False
    ) -> AsyncIterator[None]:
        """Give every report on a subject, which may be a pattern, to `hear` while the block runs.

        `listen_anew` is called when the subscription starts, and after each time reports may have been lost. With `only_routers`
        ignore messages that no router has published.
        """

        async def receive(message: Msg) -> None:
            if only_routers and not _is_of_router(message):
                _log.warning("progress_not_of_router", subject=message.subject)
                return
            try:
                hear(decode(Said, message.data))
            except IoaError as error:
                _log.warning("progress_unreadable", subject=message.subject, error=str(error))

        subscription = await self._client.subscribe(subject, cb=receive)
        try:
            with at_renewal(self._client, listen_anew):
                listen_anew()
                yield
        finally:
            if not self._client.is_closed:
                await subscription.unsubscribe()


class NatsResults:
    """Results in the stream `IOA_RESULTS`, which stores the first result of each goal and rejects others.

    Subscribers without JetStream also receive a message that the stream rejects. A result that is stored is not published again.
    """

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
        self._goals = NatsGoalRecords(js)

    async def publish(self, result: GoalResult) -> bool:
        """Publish a result in the format that the goal asks for, unless the goal has one."""
        subject = subjects.result_of(result.name)
        with unavailable_unless_answered("The stream of results"):
            if await last_message(self._js, RESULTS, subject) is not None:
                return False
        record = await self._goals.find(result.name.comm_id)
        data = encode_result(result) if record is None else encode_result(result, record.goal.result_format)
        with unavailable_unless_answered("The stream of results"):
            return await publish_onto(self._js, RESULTS, subject, data) is not None

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Read a goal's result."""
        with unavailable_unless_answered("The stream of results"):
            message = await last_message(self._js, RESULTS, subjects.result_of(goal))
        return None if message is None else decode_result(message.data or b"")


class NatsTimers:
    """Deadlines as scheduled messages (NATS ADR-51) in the stream `IOA_TIMERS`."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        """Have JetStream send a message to the group's timer subject at `at`."""
        at = at.astimezone(UTC)
        headers = {
            Header.SCHEDULE.value: f"@at {at.strftime('%Y-%m-%dT%H:%M:%S.%f')}Z",
            Header.SCHEDULE_TARGET.value: subjects.timer(comm_id),
        }
        subject = subjects.timer_schedule(comm_id, int(at.timestamp() * 1000))
        with unavailable_unless_answered("The stream of timers"):
            await self._js.publish(subject, b"", stream=TIMERS, headers=headers)


class NatsDeadLetters:
    """The stream `IOA_DEAD`: the message as it came, with the reason in its headers."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep a refused message; of one too large to be kept whole, the beginning."""
        headers = {"Ioa-Reason": _header(why), "Ioa-Subject": _header(subject), "Ioa-Bytes": str(len(data))}
        if key:
            headers[Header.MSG_ID.value] = f"{reason}/{key}"
        with unavailable_unless_answered("The dead-letter stream"):
            await self._js.publish(subjects.dead(reason), data[:MAX_PAYLOAD_BYTES], stream=DEAD, headers=headers)
        _log.warning("dead_letter", reason=reason, why=why, subject=subject)


def _header(text: str) -> str:
    """Fit a text, which may hold what a stranger wrote, into one header."""
    return " ".join(_CONTROL.sub(" ", text.encode("utf-8", "replace").decode()).split())[:1_000]
