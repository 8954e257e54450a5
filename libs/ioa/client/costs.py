"""Usage of a group by purpose, and its model calls, from its log entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from ioa.group.events import Entry, GroupLaunched, LaunchAbandoned, Said, SubgroupClosed
from ioa.protocol.decisions import ModelCall
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import TASK_REPORTS, InformTaskResult
from ioa.protocol.usage import NOTHING, Usage


class Purpose(StrEnum):
    """What tokens and money were spent for."""

    FORM = "form"
    """Team formation."""
    SPEAK = "speak"
    """Messages of the discussion."""
    READ = "read"
    """Answers of a model that requested omitted text before the decision."""
    REPAIR = "repair"
    """Invalid answers of a model: truncated, no JSON, or not legal."""
    REFUSED = "refused"
    """Messages that the group rejected."""
    APPROACH = "approach"
    """Decisions how to do a task: alone or with a nested group."""
    TASK = "task"
    """Work on tasks."""
    NESTED = "nested"
    """Nested groups, for all purposes."""
    CONCLUDE = "conclude"
    """The conclusion."""


COMMUNICATION = frozenset(Purpose) - {Purpose.TASK, Purpose.NESTED}
"""Purposes that are coordination, not work on tasks."""


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


def costs_by_purpose(log: Iterable[Entry]) -> Mapping[Purpose, Usage]:
    """Divide the usage that a group was charged by purpose; the parts add up exactly, and purposes without usage are omitted.

    Args:
        log: The group's entries from the first one on, in order.
    """
    parts: dict[Purpose, Usage] = {}
    before = NOTHING

    def add(purpose: Purpose, usage: Usage) -> None:
        if usage != NOTHING:
            parts[purpose] = parts.get(purpose, NOTHING).plus(usage)

    for entry in log:
        event, charged, before = entry.event, entry.state.spent.beyond(before), entry.state.spent
        payload = event.message.payload if isinstance(event, Said) else None
        if isinstance(payload, TASK_REPORTS):  # the result reports the usage of the whole task, charged by earlier reports too
            tasks = parts.pop(Purpose.TASK, NOTHING).plus(charged)
            approach = payload.approach_usage if isinstance(payload, InformTaskResult) else None
            work = tasks.beyond(approach or NOTHING)
            add(Purpose.TASK, work)
            add(Purpose.APPROACH, tasks.beyond(work))
            continue
        overhead = event.message.header.overhead if isinstance(event, Said) else getattr(event, "overhead", None)
        for part in (Purpose.READ, Purpose.REPAIR, Purpose.REFUSED) if overhead else ():
            rest = charged.beyond(getattr(overhead, part))
            add(part, charged.beyond(rest))
            charged = rest
        add(_purpose_of(entry), charged)
    return parts


def _purpose_of(entry: Entry) -> Purpose:
    match entry.event:
        case GroupLaunched() | LaunchAbandoned():
            return Purpose.FORM
        case SubgroupClosed():
            return Purpose.NESTED
        case _:
            return Purpose.CONCLUDE if entry.state.phase.is_terminal else Purpose.SPEAK
