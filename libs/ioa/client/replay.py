"""Replaying logs: the same events through the same machine must give the states on record."""

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
    """A log does not follow from its own events: the machine has changed since, or the log was changed."""


ERRORS[ReplayError] = ErrorRow("replay_mismatch", Fault.SYSTEM, level="error")


def replayed(entries: Iterable[StoredEntry]) -> Iterator[StoredEntry]:
    """Yield each entry once the machine has come to the state that it carries. Entries of several groups may be mixed.

    Raises:
        ReplayError: At the first entry that is not legal or leads elsewhere.
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
            state, _, audience, noticed = step(states.get(recorded.comm_id), event, policies.get(recorded.comm_id))
        except IllegalEventError as refusal:
            raise ReplayError(f"{where} is not legal: {refusal.message}") from None
        if state != recorded:
            raise ReplayError(f"{where} leads to another state than the one on record: {_difference(state, recorded)}.")
        if stored.entry.chain and (audience, noticed) != (stored.entry.audience, stored.entry.noticed):
            raise ReplayError(f"{where} was told to {stored.entry.audience}, and by the machine it is told to {audience}.")
        states[recorded.comm_id] = state
        yield stored


def _difference(computed: GroupState, recorded: GroupState) -> str:
    name = next(name for name in GroupState.model_fields if getattr(computed, name) != getattr(recorded, name))
    return f"{name} is {getattr(computed, name)!r} by the machine and {getattr(recorded, name)!r} on record"
