"""Sends an agent's messages: a request is repeated until it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import structlog

from ioa.agent.groups.group_history import GroupHistory
from ioa.agent.metrics import retries
from ioa.errors import IoaError, NotPermittedError, UnavailableError
from ioa.group.requests import Accepted, Entries, Rejected, Sync
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.clock import Clock, IdSource
from ioa.ports.meter import NOTHING_METERED, Metered
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId, MessageId, SessionId
from ioa.protocol.messages import Header, Message, Payload
from ioa.protocol.trace import span_of_message
from ioa.protocol.usage import NOTHING
from ioa.retry import until_available
from ioa.telemetry.fault_points import fault_point

MAX_TEXT_BYTES = 160_000
"""Maximum bytes of one text of a message. A log entry contains a conclusion twice and must fit into one NATS message."""
_MAX_SYNCS = 4
"""Pages of logs that one agent requests at once; a page can have a megabyte."""

P = ParamSpec("P")
T = TypeVar("T")

_log = structlog.get_logger(__name__)


async def until_answered(ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Repeat an idempotent request until it is answered, after `retry_after` where the error contains it."""

    def count(error: UnavailableError) -> None:
        retries.inc()
        hint = {"hint": error.hint} if isinstance(error, NotPermittedError) else {}
        _log.warning("request_repeated", error=error.message, **hint)

    return await until_available(lambda: ask(*args, **kwargs), count)


def seconds_to_wait(error: IoaError) -> float:
    """Return the error's `retry_after` in seconds; 0 without one."""
    after = error.retry_after if isinstance(error, UnavailableError) else None
    return 0.0 if after is None else after.total_seconds()


@dataclass(frozen=True)
class MessageSender:
    """Sender of one agent's messages. Each message contains `session`, the session of this process."""

    me: AgentId
    network: AgentNetwork
    clock: Clock
    ids: IdSource
    session: SessionId
    _syncs: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_SYNCS))

    async def say(self, history: GroupHistory, payload: Payload, turn: int, by: DecidedBy | None = None) -> Accepted | Rejected:
        """Make a message and send it; see `send`."""
        return await self.send(self.message(history, payload, turn, by=by))

    async def send(self, message: Message) -> Accepted | Rejected:
        """Send a message until the router replies.

        Raises:
            SupersededError: Another process speaks for the agent now.
            IoaError: The message cannot be sent as it is.
        """
        answer = await until_answered(self.network.say, message)
        fault_point("agent.message_answered")
        return answer

    async def send_once(self, history: GroupHistory, payload: Payload, turn: int) -> Accepted | Rejected:
        """Send a message that the next one of its kind replaces, without repetition.

        Raises:
            SupersededError: Another process speaks for the agent now.
            IoaError: The message cannot be sent as it is, or no reply came.
        """
        return await self.network.say(self.message(history, payload, turn))

    async def sync(self, request: Sync) -> Entries:
        """Request one page of a group's log.

        Raises:
            IoaError: The request was rejected, or no reply came.
        """
        async with self._syncs:
            return await self.network.sync(request)

    def message(
        self,
        history: GroupHistory,
        payload: Payload,
        turn: int,
        metered: Metered = NOTHING_METERED,
        *,
        by: DecidedBy | None = None,
    ) -> Message:
        """Make a message for a turn or a task."""
        assert history.state is not None
        message_id = MessageId(self.ids.new("m"))
        header = Header(
            message_id=message_id,
            comm_id=history.comm_id,
            sender=self.me,
            state=history.state.phase,
            turn=turn,
            after=history.cursor,
            traceparent=span_of_message(charter.traceparent, self.me, message_id) if (charter := history.charter) else "",
            sent_at=self.clock.now(),
            usage=None if metered.usage == NOTHING else metered.usage,
            overhead=metered.overhead,
            calls=metered.calls,
            decided_by=by,
            session=self.session,
        )
        return Message(header=header, payload=payload)
