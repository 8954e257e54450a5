"""What models were asked in a group, call by call, as its log tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ioa.group.events import Entry, GroupLaunched, LaunchAbandoned, Said
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.model_calls import ModelCall


@dataclass(frozen=True)
class DecisionCall:
    """A call of a model, and what was decided with it.

    Attributes:
        turn: In which the decision was said; 0 before the first one.
        agent_id: Whose model was asked.
        decided: The kind of message, a task's id, or `team`.
    """

    turn: int
    agent_id: AgentId
    decided: str
    call: ModelCall


def calls_of(log: Iterable[Entry]) -> Iterator[DecisionCall]:
    """Tell the calls of a group's entries, in the order of what was decided; those of nested teams stand in their own logs."""
    for entry in log:
        match entry.event:
            case GroupLaunched(charter=charter, calls=calls):
                turn, agent_id, decided = 0, charter.owner, "team"
            case LaunchAbandoned(by=by, calls=calls):
                turn, agent_id, decided = 0, by, "team"
            case Said(message=message) if isinstance(message.payload, InformTaskResult):
                turn, agent_id, decided = message.header.turn, message.header.sender, message.payload.task_id
                calls = message.payload.calls
            case Said(message=message):
                turn, agent_id, decided = message.header.turn, message.header.sender, message.payload.type
                calls = message.header.calls
            case _:
                continue
        yield from (DecisionCall(turn, agent_id, decided, call) for call in calls)
