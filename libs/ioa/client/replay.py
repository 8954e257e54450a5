"""Replay of logs: the state machine processes the recorded events again and must compute the recorded states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ioa.errors import ERRORS, ErrorRow, Fault, IoaError
from ioa.group.events import GroupLaunched
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.policy import Policy


class ReplayError(IoaError):
    """The computed state differs from the recorded one: the state machine or the log was changed."""


ERRORS[ReplayError] = ErrorRow("replay_mismatch", Fault.SYSTEM, level="error")


def replayed(entries: Iterable[StoredEntry]) -> Iterator[StoredEntry]:
    """Yield each entry whose recorded state was computed again. Entries of several groups may be mixed.

    Raises:
        ReplayError: An entry is not legal, or its recorded state differs.
    """
    states: dict[CommId, GroupState] = {}
    policies: dict[CommId, Policy | None] = {}
    for stored in entries:
        recorded = stored.entry.state
        where = f"Entry {stored.seq} of {recorded.comm_id} ({stored.entry.event.type})"
        try:
            event = stored.entry.event
            if isinstance(event, GroupLaunched):
                policies[recorded.comm_id] = event.charter.policy
            state, _, _, audience = step(states.get(recorded.comm_id), event, policies.get(recorded.comm_id))
        except IllegalEventError as refusal:
            raise ReplayError(f"{where} is not legal: {refusal.message}") from None
        if state != recorded:
            raise ReplayError(f"{where} leads to another state than the one on record: {_difference(state, recorded)}.")
        if policies.get(recorded.comm_id) is not None and audience != stored.entry.audience:
            raise ReplayError(f"{where} was sent to {stored.entry.audience}; the state machine sends it to {audience}.")
        states[recorded.comm_id] = state
        yield stored


def _difference(computed: GroupState, recorded: GroupState) -> str:
    name = next(name for name in GroupState.model_fields if getattr(computed, name) != getattr(recorded, name))
    return f"{name} is {getattr(computed, name)!r} by the machine and {getattr(recorded, name)!r} on record"
