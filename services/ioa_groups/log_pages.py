"""Pages of logs for members: the entries after a cursor, as the policy shows them to the member."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.errors import ConflictError, ForbiddenError, IoaError
from ioa.group.policy.hearing import is_withheld
from ioa.group.policy.visibility import view_for
from ioa.group.requests import Entries, SequencedEntry, Sync, no_group
from ioa.ports.group_log import StoredEntry
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.setup.tickets import is_ticket
from ioa_groups.group_ports import GroupServicePorts

_PAGE_ENTRIES = 128
_PAGE_BYTES = MAX_PAYLOAD_BYTES * 3 // 4
_FIRST_PAGE_BYTES = 128 * 1024
"""Maximum bytes of the first page of a log: a new agent process reads the first pages of all its groups."""


class LogPages:
    """Answer members from the logs of their groups.

    Args:
        ports: Stores and services.
    """

    def __init__(self, ports: GroupServicePorts) -> None:
        self._ports = ports

    async def sync(self, request: Sync) -> Entries:
        """Return a page of the log after a member's cursor.

        The membership ends when the cursor of a member is at the end of an ended group, or at the removal of the member.

        Raises:
            NotFoundError: There is no such group, or the caller is no member.
            ForbiddenError: The caller is no member, but has the ticket of the goal; another agent leads it.
            ConflictError: The cursor is no entry of the log: it belongs to a lost log.
            SupersededError: Another process has taken the asker's id over.
        """
        comm_id, agent_id = request.comm_id, request.agent_id
        await self._ports.sessions.check(agent_id, request.session)
        head = await self._ports.ledger.head(comm_id)
        if head is None:
            await self._ports.memberships.remove(agent_id, comm_id)  # of a log that was lost
            raise no_group(comm_id)
        if not head.entry.state.is_member(agent_id):
            await self._ports.memberships.remove(agent_id, comm_id)
            raise await self._not_a_member(request)
        if request.after >= head.seq:
            is_over = head.entry.state.phase.is_terminal or agent_id not in head.entry.state.hearing
            if is_over and request.after == head.seq:
                await self._ports.memberships.remove(agent_id, comm_id)
            return Entries(entries=(), complete=True, head=head.seq)
        return await self._page(request, head)

    async def _page(self, request: Sync, head: StoredEntry) -> Entries:
        """Return the entries after the cursor as the policy shows them, at most up to the removal of the caller."""
        agent_id = request.agent_id
        policy = await self._ports.ledger.policy(head)
        number = head.entry.state.number_of(agent_id)
        roles = head.entry.state.members[number].roles
        before, found = await self._read_after(request)
        entries, size, up_to = list[SequencedEntry](), 0, request.after
        for stored in found:
            if before is not None and before.entry.state.is_member(agent_id) and before.entry.state.members[number].removed:
                if not entries:
                    await self._ports.memberships.remove(agent_id, request.comm_id)
                return Entries(entries=tuple(entries), complete=True, head=up_to)
            if policy is not None and is_withheld(policy, head.entry.state, stored.entry.event, agent_id):
                return Entries(entries=tuple(entries), complete=True, head=head.seq)
            entry = SequencedEntry(seq=stored.seq, previous_seq=up_to, entry=view_for(policy, stored.entry, agent_id, roles))
            size += len(encode(entry))
            if entries and size > _page_bytes(request):
                break
            entries.append(entry)
            before, up_to = stored, stored.seq
        return Entries(entries=tuple(entries), complete=up_to >= head.seq, head=head.seq)

    async def _read_after(self, request: Sync) -> tuple[StoredEntry | None, Sequence[StoredEntry]]:
        """Read the entry of the cursor, which must exist, and the following page."""
        after, most = max(0, request.after - 1), (MAX_PAYLOAD_BYTES if request.after else 0) + _page_bytes(request)
        found = await self._ports.log.read(request.comm_id, after=after, limit=_PAGE_ENTRIES + 1, max_bytes=most)
        if not request.after:
            return None, found
        if not found or found[0].seq != request.after:
            why = f"{request.after} is no entry of {request.comm_id}."
            raise ConflictError(why, hint="Discard the local copy and read from 0.")
        return found[0], found[1:]

    async def _not_a_member(self, request: Sync) -> IoaError:
        """Return the error for a caller that is no member; only a caller with the ticket learns that the group exists."""
        record = None if request.ticket is None else await self._ports.goals.find(request.comm_id)
        if record is not None and is_ticket(request.ticket, record.ticket_digest):
            return ForbiddenError(f"{request.agent_id} is no member of {request.comm_id}: another agent has opened it.")
        return no_group(request.comm_id)


def _page_bytes(request: Sync) -> int:
    return _PAGE_BYTES if request.after else _FIRST_PAGE_BYTES
