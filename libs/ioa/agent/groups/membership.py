"""Membership of an agent in a group: its view of the group, its files, and its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from ioa.agent.agent_ports import AgentPorts
from ioa.agent.definition import AgentDefinition
from ioa.agent.groups.group_history import GroupHistory
from ioa.agent.send import until_answered
from ioa.agent.tasks.task_files import GroupFiles
from ioa.agent.turn_view import TurnView
from ioa.errors import reason_of
from ioa.group.requests import Accepted, Entries, Rejected, Sync
from ioa.group.state import GroupState
from ioa.ports.meter import NOTHING_METERED, Meter, Metered
from ioa.protocol.cards import AgentCard
from ioa.protocol.decisions import REJECTED, DecidedBy, ModelCall
from ioa.protocol.ids import AgentId, CommId, MessageId, SessionId
from ioa.protocol.messages import Message, Payload
from ioa.protocol.setup.charter import Charter
from ioa.protocol.usage import NOTHING
from ioa.telemetry.fault_points import fault_point

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Membership:
    """One agent in one group.

    Attributes:
        agent: The agent, and its `card`.
        ports: Its network, memory, clock, brain and model.
        session: The session of this process, which each message and request contains.
        history: The group as the member knows it.
        files: The group's files.
    """

    agent: AgentDefinition
    card: AgentCard
    ports: AgentPorts
    session: SessionId
    history: GroupHistory
    files: GroupFiles

    @property
    def me(self) -> AgentId:
        """The agent's id."""
        return self.card.agent_id

    @property
    def comm_id(self) -> CommId:
        """The group's id."""
        return self.history.comm_id

    @property
    def charter(self) -> Charter:
        """The group's charter; only after the launch."""
        return self.history.charter

    @property
    def state(self) -> GroupState:
        """The group's state; only after the launch."""
        return self.history.state

    def view(self, meter: Meter, refusals: tuple[str, ...] = ()) -> TurnView:
        """Return the view of the group now."""
        return self.history.view(self.me, self.ports.clock.now(), meter, refusals, self.files)

    def report(self, kind: str, /, **data: Any) -> None:
        """Report an event of the group to the author's `on_event` function, and log its error."""
        if self.agent.on_event is None:
            return
        group = {"agent_id": self.me, "goal_id": self.charter.goal_id, "comm_id": self.comm_id}
        try:
            self.agent.on_event(kind, {**group, **data})
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything
            _log.warning("event_function_failed", event_kind=kind, error=reason_of(error))

    def call_listener(self, **where: Any) -> Callable[[ModelCall], None]:
        """Return a function that reports calls of the agent's model, for a task or a turn."""

        def hear(call: ModelCall) -> None:
            if call.came_to != REJECTED:  # it was reported when it was made
                self.report("model_called", call=call, **where)

        return hear

    def message(self, payload: Payload, turn: int, metered: Metered = NOTHING_METERED, by: DecidedBy | None = None) -> Message:
        """Make a message for a turn or a task."""
        return self.history.message(
            self.me,
            payload,
            turn,
            MessageId(self.ports.ids.new("m")),
            self.ports.clock.now(),
            usage=None if metered.usage == NOTHING else metered.usage,
            calls=metered.calls,
            decided_by=by,
            session=self.session,
        )

    async def send(self, message: Message) -> Accepted | Rejected:
        """Send a message until the router replies.

        Raises:
            SupersededError: Another process speaks for the agent now.
            IoaError: The message cannot be sent as it is.
        """
        answer = await until_answered(self.ports.network.say, message)
        fault_point("agent.message_answered")
        return answer

    async def say(self, payload: Payload, turn: int, by: DecidedBy) -> Accepted | Rejected:
        """Make a message and send it; see `send`."""
        return await self.send(self.message(payload, turn, by=by))

    async def say_once(self, payload: Payload, turn: int) -> Accepted | Rejected:
        """Send a message that the next one of its kind replaces, without repetition.

        Raises:
            SupersededError: Another process speaks for the agent now.
            IoaError: The message cannot be sent as it is, or no reply came.
        """
        return await self.ports.network.say(self.message(payload, turn))

    async def read_log(self, after: int) -> Entries:
        """Request one page of the group's log.

        Raises:
            IoaError: The request was rejected, or no reply came.
        """
        return await self.ports.network.sync(Sync(comm_id=self.comm_id, agent_id=self.me, after=after, session=self.session))
