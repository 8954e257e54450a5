"""What a group has spent, by what for. A fold over its log: the parts sum up to what the group was charged with, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from ioa.group.events import Entry, GroupLaunched, LaunchAbandoned, Said, SubgroupClosed
from ioa.protocol.messages import TASK_REPORTS, Header, InformTaskResult, Message
from ioa.protocol.usage import NOTHING, Overhead, Usage


class Purpose(StrEnum):
    """What tokens and money were spent for."""

    FORM = "form"
    """Finding the team."""
    SPEAK = "speak"
    """Turns: what was said."""
    READ = "read"
    """What a model asked for before it decided, since its prompt did not show it whole."""
    REPAIR = "repair"
    """Answers of a model that could not be used: cut, no JSON, not legal."""
    REFUSED = "refused"
    """Messages that the group refused."""
    APPROACH = "approach"
    """Deciding how to do a task: alone, or with a team."""
    TASK = "task"
    """The work of the agents themselves."""
    NESTED = "nested"
    """Nested teams, whatever they spent it for."""
    CONCLUDE = "conclude"
    """The conclusion."""


COMMUNICATION = frozenset(Purpose) - {Purpose.TASK, Purpose.NESTED}
"""What is spent on working together, and not on the work."""


def costs_of(log: Iterable[Entry]) -> Mapping[Purpose, Usage]:
    """Share out what a group was charged with; a purpose that cost nothing is left out.

    Args:
        log: The group's entries from the first one on, in order.
    """
    shared: dict[Purpose, Usage] = {}
    before = NOTHING

    def add(purpose: Purpose, usage: Usage) -> None:
        if usage != NOTHING:
            shared[purpose] = shared.get(purpose, NOTHING).plus(usage)

    for entry in log:
        charged, before = entry.state.spent.beyond(before), entry.state.spent
        purpose = _purpose_of(entry)
        if purpose is not Purpose.TASK:
            for part, said in _overhead_of(entry):
                rest = charged.beyond(said)
                add(part, charged.beyond(rest))
                charged = rest
            add(purpose, charged)
            continue
        tasks = shared.pop(Purpose.TASK, NOTHING).plus(charged)
        work = tasks.beyond(_approach_of(entry))
        add(Purpose.TASK, work)
        add(Purpose.APPROACH, tasks.beyond(work))
    return shared


def _purpose_of(entry: Entry) -> Purpose:
    match entry.event:
        case GroupLaunched() | LaunchAbandoned():
            return Purpose.FORM
        case SubgroupClosed():
            return Purpose.NESTED
        case Said(message=message) if isinstance(message.payload, TASK_REPORTS):
            return Purpose.TASK
        case _ if entry.state.phase.is_terminal:
            return Purpose.CONCLUDE
        case _:
            return Purpose.SPEAK


def _overhead_of(entry: Entry) -> Sequence[tuple[Purpose, Usage]]:
    """Return what a message, or a launch, says of its cost that came to nothing by itself."""
    match entry.event:
        case GroupLaunched(overhead=Overhead() as told):
            pass
        case Said(message=Message(header=Header(overhead=Overhead() as told))):
            pass
        case _:
            return ()
    return (Purpose.READ, told.read), (Purpose.REPAIR, told.repair), (Purpose.REFUSED, told.refused)


def _approach_of(entry: Entry) -> Usage:
    """Return what a task's result says of its whole cost, which its reports were charged for, was spent on deciding."""
    match entry.event:
        case Said(message=message) if isinstance(message.payload, InformTaskResult):
            return message.payload.approach_usage or NOTHING
        case _:
            return NOTHING
