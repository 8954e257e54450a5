"""Model calls of groups, from their log entries, and the usage of a goal by the purpose of its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from ioa.group.events import Entry, GroupLaunched, LaunchAbandoned, Said
from ioa.protocol.decisions import ModelCall
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.usage import NOTHING, Usage


class DecisionCall(ModelCall):
    """A model call and its decision.

    Attributes:
        comm_id: Group of the decision.
        turn: Turn of the decision's message; 0 before the first turn.
        agent_id: Agent whose model was called.
        decided: Kind of message, a task's id, or `team`.
    """

    comm_id: CommId
    turn: int
    agent_id: AgentId
    decided: str


def decision_calls(log: Iterable[Entry]) -> Iterator[DecisionCall]:
    """Yield the model calls in entries of groups, in the order of the decisions."""
    for entry in log:
        turn, decided = 0, "team"
        match entry.event:
            case GroupLaunched(charter=charter, calls=calls):
                agent_id = charter.owner
            case LaunchAbandoned(by=agent_id, calls=calls):
                pass
            case Said(message=message):
                header, payload = message.header, message.payload
                turn, agent_id, decided, calls = header.turn, header.sender, payload.type, header.calls
                if isinstance(payload, InformTaskResult):
                    decided, calls = payload.task_id, payload.calls
            case _:
                continue
        decision = {"comm_id": entry.state.comm_id, "turn": turn, "agent_id": agent_id, "decided": decided}
        yield from (DecisionCall.model_validate({**decision, **dict(call)}) for call in calls)


def costs_by_purpose(calls: Iterable[DecisionCall], total: Usage) -> Mapping[str, Usage]:
    """Divide the usage of a goal by the purpose of its model calls. `other` is the part that the log has no call for.

    Args:
        calls: The calls of the goal's group and its nested groups.
        total: The usage of the goal.
    """
    parts: dict[str, Usage] = {}
    for call in calls:
        parts[call.purpose] = parts.get(call.purpose, NOTHING).plus(call.usage)
    other = total.beyond(reduce(Usage.plus, parts.values(), NOTHING))
    return parts if other == NOTHING else parts | {"other": other}
