"""Pages of group logs for users: entries after or before a sequence, and the last entries of several logs, as they are stored.

Pages come from any replica of the stream, by direct gets. The stream's leader adds entries that the replica lacks.
"""

from __future__ import annotations

from collections.abc import Sequence

from nats.aio.client import Client

from ioa.adapters.nats.stores.group_owners import GroupOwners
from ioa.adapters.nats.streams.compare_and_set import next_message
from ioa.adapters.nats.streams.stream_reader import StreamMessage, last_messages, latest_messages, next_messages, previous_messages
from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.protocol import subjects
from ioa.protocol.ids import CommId
from ioa.protocol.reads import GoalReader, LogPage, LogRow, ReadLog


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
        places = {subjects.log(comm_id): place for place, comm_id in enumerate(request.comm_ids)}
        if not comm_ids:
            found, more = list[StreamMessage](), False
        elif request.before is None:
            found, more = await self._after(comm_ids[0], request)
        elif len(places) == 1:
            found, more = await self._before(comm_ids[0], request.before, request)
        else:
            heads = await self._heads([*map(subjects.log, comm_ids)], request.before)
            found, more = sorted(heads, key=lambda one: places[one.subject]), False
        count = size = 0
        for one in found:
            size += len(one.data)
            if count and size > request.max_bytes:
                break
            count += 1
        page = sorted(found[:count], key=lambda one: (places[one.subject], one.seq))
        rows = tuple([LogRow(group=places[one.subject], seq=one.seq, size=len(one.data)) for one in page])
        return LogPage(entries=rows, more=more or count < len(found), data=b"".join([one.data for one in page]))

    async def _after(self, comm_id: CommId, request: ReadLog) -> tuple[list[StreamMessage], bool]:
        """Read the first entries after a sequence, and return whether more follow."""
        log, most = subjects.log(comm_id), request.limit
        page = await next_messages(self._client, LOG, log, after=request.after, limit=most, max_bytes=request.max_bytes)
        found, more = list(page.messages), not page.complete
        if not more:
            found += await self._missing(comm_id, found[-1].seq if found else request.after, None, most + 1 - len(found))
        return found[:most], more or len(found) > most

    async def _before(self, comm_id: CommId, before: int, request: ReadLog) -> tuple[list[StreamMessage], bool]:
        """Read the last entries before a sequence, newest first, and return whether there are earlier entries."""
        log, most = subjects.log(comm_id), request.limit
        page = await previous_messages(self._client, LOG, log, before=before, limit=most, max_bytes=request.max_bytes)
        newer = await self._missing(comm_id, page.messages[0].seq if page.messages else 0, before, most)
        found = [*reversed(newer), *page.messages]
        return found[:most], page.before is not None or len(found) > most

    async def _heads(self, logs: Sequence[str], before: int) -> list[StreamMessage]:
        """Read the last entry of each log before a sequence."""
        latest = await latest_messages(self._client, LOG, logs)
        earlier, later = [one for one in latest if one.seq < before], [one.subject for one in latest if one.seq >= before]
        return [*earlier, *(await last_messages(self._client, LOG, later, up_to=before - 1) if before > 1 else ())]

    async def _missing(self, comm_id: CommId, after: int, before: int | None, limit: int) -> list[StreamMessage]:
        """Read entries from the leader, which a replica lacked."""
        found, log = list[StreamMessage](), subjects.log(comm_id)
        with unavailable_unless_answered(f"The log of {comm_id}"):
            while len(found) < limit and (one := await next_message(self._js, LOG, log, after=after)) is not None:
                after = one.seq or 0
                if before is not None and after >= before:
                    break
                found.append(StreamMessage(after, log, one.data or b""))
        return found
