"""What models were asked in groups, call by call, as their logs tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ioa.group.events import Entry, GroupLaunched, LaunchAbandoned, Said
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.model import Model
from ioa.protocol.model_calls import ModelCall


class _Decision(Model):
    comm_id: CommId
    turn: int
    agent_id: AgentId
    decided: str


class DecisionCall(ModelCall, _Decision):
    """A call of a model, and the decision that it was made for.

    Attributes:
        comm_id: Group of the decision.
        turn: Turn of the decision's message; 0 before the first turn.
        agent_id: Agent whose model was called.
        decided: Kind of message, a task's id, or `team`.
    """


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
        decision = {"comm_id": entry.state.comm_id, "turn": turn, "agent_id": agent_id, "decided": decided}
        yield from (DecisionCall.model_validate({**decision, **dict(call)}) for call in calls)
