"""Pushes, results, timers and dead letters over NATS."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header

from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import DEAD, RESULTS, TIMERS
from ioa.adapters.nats.wire.subscriptions import at_renewal, taking
from ioa.errors import IoaError, reason_of
from ioa.group.events import EncodedEntry, Said
from ioa.group.requests import encode_sequenced
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, encode
from ioa.protocol.goals import GoalResult, decode_result, encode_result
from ioa.protocol.ids import AgentId, CommId, GoalName
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.telemetry.fault_points import fault_point, is_armed

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_log = structlog.get_logger(__name__)


class NatsInboxes:
    """Push entries over core NATS.

    Args:
        client: The connection.
        find_inbox: Returns the nonce of an agent's inbox; None if the agent has no inbox.
        router: Reply subject of pushes. Members send their next message to the router that pushed last.
    """

    def __init__(self, client: Client, find_inbox: Callable[[AgentId], str | None], router: str = "") -> None:
        self._client = client
        self._find_inbox = find_inbox
        self._router = router

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Publish the entry to each inbox. A member that misses a push reads the entry from the log."""
        data = encode_sequenced(entry, seq=seq, previous_seq=previous_seq)
        inboxes = {agent_id: nonce for agent_id in audience if (nonce := self._find_inbox(agent_id)) is not None}
        try:
            for agent_id, nonce in inboxes.items():
                await self._client.publish(subjects.inbox(agent_id, nonce), data, reply=self._router)
                if is_armed("router.between_pushes"):
                    await self._client.flush()
                    fault_point("router.between_pushes")
        except (nats.errors.Error, OSError) as error:
            _log.warning("push_lost", comm_id=entry.entry.state.comm_id, seq=seq, error=reason_of(error))


def read_progress(message: Msg) -> Said | None:
    """Read a progress report; None if the message is no report: users may direct a reply to any subject of their account."""
    try:
        return decode(Said, message.data)
    except IoaError as error:
        _log.warning("progress_unreadable", subject=message.subject, error=str(error))
        return None


class NatsProgress:
    """Progress reports on core NATS, one subject for each goal."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def publish(self, said: Said, goal: GoalName) -> None:
        """Publish a report; a report that cannot be sent is lost."""
        try:
            await self._client.publish(subjects.live_progress(goal.user, goal.comm_id), encode(said))
        except (nats.errors.Error, OSError) as error:
            _log.warning("progress_lost", goal=str(goal), error=reason_of(error))

    async def follow(self, hear: Callable[[Said], None], restart: Callable[[], None]) -> None:
        """Pass every report of all goals to `hear`, until cancelled.

        `restart` is called when the subscription starts, and after each reconnect, because reports may have been lost.
        """

        def receive(message: Msg) -> None:
            if (said := read_progress(message)) is not None:
                hear(said)

        async with taking(self._client, subjects.ANY_LIVE_PROGRESS, receive):
            with at_renewal(self._client, restart):
                restart()
                await asyncio.Event().wait()


class NatsResults:
    """Results in the stream `IOA_RESULTS`, which stores the first result of each goal and rejects others.

    Subscribers without JetStream also receive a message that the stream rejects. A result that is stored is not published again.
    """

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, RESULTS)

    async def publish(self, result: GoalResult) -> bool:
        """Publish a result, unless the goal has one."""
        subject = subjects.result_of(result.name)
        if await self._stream.last(subject) is not None:
            return False
        return await self._stream.publish_onto(subject, encode_result(result)) is not None

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Read a goal's result."""
        message = await self._stream.last(subjects.result_of(goal))
        return None if message is None else decode_result(message.data)

    async def remove(self, goal: GoalName) -> None:
        """Remove a goal's result."""
        await self._stream.purge(subjects.result_of(goal))


class NatsTimers:
    """Deadlines as scheduled messages (NATS ADR-51) in the stream `IOA_TIMERS`."""

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, TIMERS)

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        """Schedule a message to the group's timer subject."""
        time = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        headers = {Header.SCHEDULE.value: f"@at {time}", Header.SCHEDULE_TARGET.value: subjects.timer(comm_id)}
        await self._stream.publish(subjects.timer_schedule(comm_id, int(at.timestamp() * 1000)), b"", headers)

    async def remove(self, comm_id: CommId) -> None:
        """Remove a group's timers, including expired ones."""
        timer = subjects.timer(comm_id)
        await self._stream.purge(f"{timer}.>")
        await self._stream.purge(timer)


class NatsDeadLetters:
    """The stream `IOA_DEAD`: the messages, with the reasons in their headers."""

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, DEAD)

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Store a message, or the beginning of a message that is too large, once for each key."""
        headers = {"Ioa-Reason": _header(why), "Ioa-Subject": _header(subject), "Ioa-Bytes": str(len(data))}
        if key:
            headers[Header.MSG_ID.value] = f"{reason}/{key}"
        await self._stream.publish(subjects.dead(reason), data[:MAX_PAYLOAD_BYTES], headers)
        _log.warning("dead_letter", reason=reason, why=why, subject=subject)


def _header(text: str) -> str:
    """Return a text, which may contain foreign content, as the value of a header."""
    return " ".join(_CONTROL.sub(" ", text.encode("utf-8", "replace").decode()).split())[:1_000]
