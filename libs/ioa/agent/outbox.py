"""Send messages exactly once: store in the outbox, then repeat the request until the router replies."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ioa.adapters.sqlite_store import SqliteStore
from ioa.agent.asking import until_answered
from ioa.agent.history import GroupHistory
from ioa.errors import IoaError, SupersededError
from ioa.group.requests import Accepted, Entries, Rejected, Sync
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.clock import Clock, IdSource
from ioa.ports.meter import NOTHING_METERED, Metered
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId, MessageId, SessionId, TaskId
from ioa.protocol.messages import (
    Decision,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Payload,
    TaskQuestion,
    Thinking,
)
from ioa.protocol.trace import span_of_message
from ioa.protocol.usage import NOTHING
from ioa.telemetry.fault_points import fault_point

MAX_TEXT_BYTES = 160_000
"""Maximum bytes of one text of a message. A log entry contains a conclusion twice and must fit into one NATS message."""


_MAX_SYNCS = 4
"""Pages of logs that one agent requests at once; a page can have a megabyte."""


def duty_of(payload: Payload, turn: int) -> str:
    """Return the key of the duty a message fulfils: a turn, the result of a task, a question of a task, or the answer to one."""
    match payload:
        case InformTaskResult(task_id=task_id):
            return f"result:{task_id}"
        case TaskQuestion(task_id=task_id, number=number):
            return f"question:{task_id}:{number}"
        case Decision(task_id=str(task_id), number=number):
            return duty_of_answer(task_id, number)
        case _:
            return duty_of_turn(turn)


def duty_of_answer(task_id: TaskId, number: int) -> str:
    """Return the key of the duty to answer what a task asks."""
    return f"answer:{task_id}:{number}"


def duty_of_turn(turn: int) -> str:
    """Return the key of the duty to say something for a turn."""
    return f"turn:{turn}"


@dataclass(frozen=True)
class Outbox:
    """Sender of one agent's messages. Each message contains `session`, the session of this process."""

    me: AgentId
    network: AgentNetwork
    store: SqliteStore
    clock: Clock
    ids: IdSource
    session: SessionId
    _syncs: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_SYNCS))

    async def say(self, history: GroupHistory, payload: Payload, turn: int, by: DecidedBy | None = None) -> Accepted | Rejected:
        """Say something for a turn, or report a task's result, surviving crashes and outages on the way.

        Raises:
            IoaError: The message cannot be sent as it is; it is forgotten.
        """
        return await self.send(await self.prepare(history, payload, turn, by=by))

    async def prepare(
        self,
        history: GroupHistory,
        payload: Payload,
        turn: int,
        metered: Metered = NOTHING_METERED,
        *,
        by: DecidedBy | None = None,
    ) -> Message:
        """Store the message for a turn or a task in the outbox.

        If a message was prepared for the same duty earlier, it is returned instead, so that each duty has one message.

        Raises:
            IoaError: Nothing of the kind can be kept.
        """
        message, key = self._message(history, payload, turn, metered, by), duty_of(payload, turn)
        kept = await until_answered(lambda: self.store.put_outgoing(key, message), agent_id=self.me)
        fault_point("agent.message_kept")
        return kept

    async def pending(self, history: GroupHistory) -> dict[str, Message]:
        """Return a group's unanswered messages by the keys of their duties."""
        return dict(await until_answered(lambda: self.store.outgoing(history.comm_id), agent_id=self.me))

    async def send(self, message: Message) -> Accepted | Rejected:
        """Send a prepared message until the router replies, after `retry_after` where the router requires a pause.

        An earlier process of the agent may have prepared the message.

        Raises:
            SupersededError: Another process speaks for the agent now.
            IoaError: The message cannot be sent as it is; it is forgotten.
        """
        header = message.header.model_copy(update={"session": self.session})
        message = message.model_copy(update={"header": header})
        try:
            answer = await until_answered(lambda: self.network.say(message), comm_id=header.comm_id, agent_id=self.me)
            fault_point("agent.message_answered")
        except SupersededError:
            raise
        except IoaError:
            await until_answered(lambda: self.store.drop_outgoing(header.comm_id, header.message_id), agent_id=self.me)
            raise
        await until_answered(lambda: self.store.drop_outgoing(header.comm_id, header.message_id), agent_id=self.me)
        return answer

    async def report_progress(self, history: GroupHistory, progress: InformTaskProgress, turn: int) -> None:
        """Send a progress report, which renews the task's lease. It is sent once, because the next report replaces a lost one.

        Raises:
            SupersededError: Another process speaks for the agent now.
            IoaError: The report was rejected, or no reply came.
        """
        await self.network.say(self._message(history, progress, turn))

    async def keep_floor(self, history: GroupHistory, turn: int) -> Accepted | Rejected:
        """Request more time for a turn, once.

        Raises:
            IoaError: The request was rejected, or no reply came.
        """
        return await self.network.say(self._message(history, Thinking(), turn))

    async def sync(self, request: Sync) -> Entries:
        """Request one page of a group's log; at most `_MAX_SYNCS` requests run at once.

        Raises:
            IoaError: The request was rejected, or no reply came.
        """
        async with self._syncs:
            return await self.network.sync(request)

    def _message(
        self,
        history: GroupHistory,
        payload: Payload,
        turn: int,
        metered: Metered = NOTHING_METERED,
        by: DecidedBy | None = None,
    ) -> Message:
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
