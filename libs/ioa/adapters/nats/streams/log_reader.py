"""Pages of group logs for users: entries after or before a sequence, and the last entries of several logs, as they are stored.

Pages come from any replica of the stream, by direct gets. The stream's leader confirms where a page ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js.api import RawStreamMsg

from ioa.adapters.nats.stores.group_owners import GroupOwners
from ioa.adapters.nats.streams.compare_and_set import last_message, next_message
from ioa.adapters.nats.streams.stream_reader import StreamMessage, last_messages, messages_before, next_messages
from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.page_size import count_page
from ioa.protocol import subjects
from ioa.protocol.ids import CommId
from ioa.protocol.reads import MAX_PAGE_BYTES, GoalReader, LogPage, LogRow, ReadLog


@dataclass(frozen=True)
class _Stored:
    seq: int
    data: bytes


class LogReader:
    """Answers `log.page`.

    Args:
        client: The connection.
        owners: Finds the user of each group.
    """

    def __init__(self, client: Client, owners: GroupOwners) -> None:
        self._client = client
        self._js = client.jetstream()
        self._owners = owners

    async def page(self, reader: GoalReader, request: ReadLog) -> LogPage:
        """Read a page. A group that works for another user than the reader has no entries, as a group that does not exist.

        Args:
            reader: The caller.
            request: The groups and the entries.

        Raises:
            UnavailableError: The log cannot be read now.
        """
        comm_ids = [one for one in request.comm_ids if await self._owners.may_read(reader.owner, one)]
        if request.before is not None and request.limit == 1:
            return await self._heads(request, comm_ids)
        if not comm_ids:
            return LogPage(entries=(), data=b"")
        [comm_id] = comm_ids
        if request.before is None:
            found, more = await self._after(comm_id, request)
            fitting = found[: _fitting(found)]
        else:
            found, more = await self._before(comm_id, request.before, request)
            fitting = found[len(found) - _fitting(reversed(found)) :]
        return _page([(0, one) for one in fitting], more=more or len(fitting) < len(found))

    async def _after(self, comm_id: CommId, request: ReadLog) -> tuple[Sequence[_Stored], bool]:
        page = await next_messages(
            self._client, LOG, subjects.log(comm_id), after=request.after, limit=request.limit, max_bytes=request.max_bytes
        )
        found = [*map(_of_page, page.messages)]
        found = found[: count_page((len(one.data) for one in found), request.max_bytes, request.limit)]
        complete = page.complete and len(found) == len(page.messages)
        while complete and len(found) < request.limit and sum(len(one.data) for one in found) < request.max_bytes:
            newer = await self._next(comm_id, found[-1].seq if found else request.after)
            if newer is None:
                return found, False
            found.append(newer)
        return found, True

    async def _before(self, comm_id: CommId, before: int, request: ReadLog) -> tuple[Sequence[_Stored], bool]:
        messages = await messages_before(self._client, LOG, subjects.log(comm_id), before=before, limit=request.limit)
        count = count_page((len(one.data) for one in reversed(messages)), request.max_bytes, request.limit)
        found = [*map(_of_page, messages[len(messages) - count :])]
        newer = await self._next(comm_id, found[-1].seq if found else 0, before)
        if newer is not None and (head := await self._last(comm_id)) is not None:
            before = min(before, head.seq + 1)  # entries that are stored from now on are not waited for
        while newer is not None and newer.seq < before:
            found.append(newer)
            newer = await self._next(comm_id, newer.seq, before)
        found = found[-request.limit :]
        return found, len(found) == request.limit or sum(len(one.data) for one in found) >= request.max_bytes

    async def _heads(self, request: ReadLog, comm_ids: Sequence[CommId]) -> LogPage:
        """Read the last entry of each log before a sequence."""
        assert request.before is not None
        at = request.before - 1
        named = {subjects.log(comm_id): comm_id for comm_id in comm_ids}
        last = await last_messages(self._client, LOG, [*named], up_to=at) if named and at > 0 else ()
        found = {named[one.subject]: _of_page(one) for one in last}
        if all(one.seq != at for one in found.values()):  # no proof that the replica has reached the sequence
            for comm_id in comm_ids:
                confirmed = await self._confirmed(comm_id, found.get(comm_id), request.before)
                if confirmed is not None:
                    found[comm_id] = confirmed
        rows, size = list[tuple[int, _Stored]](), 0
        for index, comm_id in enumerate(request.comm_ids):
            head = found.get(comm_id)
            if head is None:
                continue
            size += len(head.data)
            if rows and size > MAX_PAGE_BYTES:
                return _page(rows, more=True)
            rows.append((index, head))
        return _page(rows)

    async def _confirmed(self, comm_id: CommId, found: _Stored | None, before: int) -> _Stored | None:
        """Return the last entry before a sequence, by the leader, where a replica returned `found`."""
        if found is None:
            head = await self._last(comm_id)
            if head is None or head.seq < before:
                return head
        newer = await self._next(comm_id, 0 if found is None else found.seq, before)
        if newer is not None and (head := await self._last(comm_id)) is not None and head.seq < before:
            return head  # entries may be stored as fast as they are read
        while newer is not None:
            found, newer = newer, await self._next(comm_id, newer.seq, before)
        return found

    async def _last(self, comm_id: CommId) -> _Stored | None:
        with unavailable_unless_answered(f"The log of {comm_id}"):
            return _of_leader(await last_message(self._js, LOG, subjects.log(comm_id)))

    async def _next(self, comm_id: CommId, after: int, before: int | None = None) -> _Stored | None:
        """Read the first entry between `after` and `before` from the leader."""
        with unavailable_unless_answered(f"The log of {comm_id}"):
            found = _of_leader(await next_message(self._js, LOG, subjects.log(comm_id), after=after))
        return None if found is None or (before is not None and found.seq >= before) else found


def _of_page(message: StreamMessage) -> _Stored:
    return _Stored(message.seq, message.data)


def _of_leader(message: RawStreamMsg | None) -> _Stored | None:
    return None if message is None else _Stored(message.seq or 0, message.data or b"")


def _page(found: Sequence[tuple[int, _Stored]], *, more: bool = False) -> LogPage:
    rows = tuple([LogRow(group=group, seq=one.seq, size=len(one.data)) for group, one in found])
    return LogPage(entries=rows, more=more, data=b"".join([one.data for _, one in found]))


def _fitting(found: Iterable[_Stored]) -> int:
    """Return how many of the first entries fit into a reply; at least one."""
    number = size = 0
    for one in found:
        size += len(one.data)
        if number and size > MAX_PAGE_BYTES:
            break
        number += 1
    return number
