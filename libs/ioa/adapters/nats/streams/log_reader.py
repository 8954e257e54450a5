"""Pages of group logs for users: entries after or before a sequence, and the last entries of several logs, as they are stored.

Pages come from any replica of the stream, by direct gets. The stream's leader adds entries that the replica lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nats.aio.client import Client

from ioa.adapters.nats.stores.group_owners import GroupOwners
from ioa.adapters.nats.streams.compare_and_set import next_message
from ioa.adapters.nats.streams.stream_reader import last_messages, latest_messages, next_messages, previous_messages
from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.page_size import count_page
from ioa.protocol import subjects
from ioa.protocol.ids import CommId
from ioa.protocol.reads import MAX_LOG_PAGE_BYTES, MAX_PAGE_ENTRIES, GoalReader, LogPage, LogRow, ReadLog


@dataclass(frozen=True)
class _Stored:
    """A stored entry, and the index of its group in the request."""

    seq: int
    data: bytes
    group: int = 0


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

        Raises:
            UnavailableError: The log cannot be read now.
        """
        comm_ids = [one for one in request.comm_ids if await self._owners.may_read(reader.owner, one)]
        if not comm_ids:
            return LogPage(entries=(), data=b"")
        if request.before is None:
            found, more = await self._after(comm_ids[0], request)
        elif request.limit == 1:
            found, more = await self._heads(request.comm_ids, comm_ids, request.before)
        else:
            found, more = await self._before(comm_ids[0], request.before, request)
            fitting = _fitting(reversed(found))
            return _page(found[len(found) - fitting :], more=more or fitting < len(found))
        fitting = _fitting(found)
        return _page(found[:fitting], more=more or fitting < len(found))

    async def _after(self, comm_id: CommId, request: ReadLog) -> tuple[Sequence[_Stored], bool]:
        page = await next_messages(
            self._client, LOG, subjects.log(comm_id), after=request.after, limit=request.limit, max_bytes=request.max_bytes
        )
        found = [_Stored(one.seq, one.data) for one in page.messages]
        if not page.complete:
            return found, True
        newer = await self._newer(comm_id, found[-1].seq if found else request.after, None, 1)
        return [*found, *newer], bool(newer)

    async def _before(self, comm_id: CommId, before: int, request: ReadLog) -> tuple[Sequence[_Stored], bool]:
        page = await previous_messages(
            self._client, LOG, subjects.log(comm_id), before=before, limit=request.limit, max_bytes=request.max_bytes
        )
        found = [_Stored(one.seq, one.data) for one in reversed(page.messages)]
        found += await self._newer(comm_id, found[-1].seq if found else 0, before, request.limit)
        found = found[-request.limit :]
        count = count_page((len(one.data) for one in reversed(found)), request.max_bytes, request.limit)
        return found[len(found) - count :], page.before is not None or count < len(found)

    async def _heads(self, requested: Sequence[CommId], comm_ids: Sequence[CommId], before: int) -> tuple[Sequence[_Stored], bool]:
        """Read the last entry of each log before a sequence."""
        named = {subjects.log(comm_id): requested.index(comm_id) for comm_id in comm_ids}
        latest = (await latest_messages(self._client, LOG, named)).values()
        earlier, later = [one for one in latest if one.seq < before], [one.subject for one in latest if one.seq >= before]
        if later and before > 1:
            earlier += await last_messages(self._client, LOG, later, up_to=before - 1)
        found = sorted((_Stored(one.seq, one.data, named[one.subject]) for one in earlier), key=lambda one: one.group)
        if len(requested) == 1:
            found += await self._newer(requested[0], found[0].seq if found else 0, before, MAX_PAGE_ENTRIES)
            found = found[-1:]
        return found, False

    async def _newer(self, comm_id: CommId, after: int, before: int | None, limit: int) -> list[_Stored]:
        """Read entries after a sequence from the leader, which a replica lacked."""
        found = list[_Stored]()
        with unavailable_unless_answered(f"The log of {comm_id}"):
            while len(found) < limit and (one := await next_message(self._js, LOG, subjects.log(comm_id), after=after)) is not None:
                after = one.seq or 0
                if before is not None and after >= before:
                    break
                found.append(_Stored(after, one.data or b""))
        return found


def _page(found: Sequence[_Stored], *, more: bool) -> LogPage:
    rows = tuple([LogRow(group=one.group, seq=one.seq, size=len(one.data)) for one in found])
    return LogPage(entries=rows, more=more, data=b"".join([one.data for one in found]))


def _fitting(found: Iterable[_Stored]) -> int:
    """Return how many of the first entries fit into a reply; at least one."""
    number = size = 0
    for one in found:
        size += len(one.data)
        if number and size > MAX_LOG_PAGE_BYTES:
            break
        number += 1
    return number
