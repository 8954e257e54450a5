"""What models were asked in groups, call by call, as their logs tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ioa.group.events import Entry, GroupLaunched, LaunchAbandoned, Said
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.model_calls import ModelCall


@dataclass(frozen=True)
class DecisionCall:
    """A call of a model, and what was decided with it.

    Attributes:
        comm_id: The group that it was decided in.
        turn: In which the decision was said; 0 before the first one.
        agent_id: Whose model was asked.
        decided: The kind of message, a task's id, or `team`.
    """

    comm_id: CommId
    turn: int
    agent_id: AgentId
    decided: str
    call: ModelCall


def calls_of(log: Iterable[Entry]) -> Iterator[DecisionCall]:
    """Tell the calls of entries, of one group or of several, in the order of what was decided."""
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
        yield from (DecisionCall(entry.state.comm_id, turn, agent_id, decided, call) for call in calls)
