"""Group logs as users read them: the user of each group, and pages of entries after or before a sequence, as they are stored.

Pages come from any replica of the stream, by direct gets. The stream's leader adds entries that the replica lacks.
"""

from __future__ import annotations

from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.streams.compare_and_set import next_message, stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import StreamMessage, first_message, latest_message, next_messages, previous_messages
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import InvalidInputError
from ioa.protocol import subjects
from ioa.protocol.codec import read_field
from ioa.protocol.ids import LOCAL, CommId, UserId
from ioa.protocol.reads import GoalReader, LogPage, ReadLog


class GroupOwners:
    """Finds the user of a group: the user of its goal's record or, of a nested group, of the first entry of its log.

    Raises:
        UnavailableError: From every method.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def may_read(self, reader: UserId | None, comm_id: CommId) -> bool:
        """Return whether a reader may read a group; None reads the groups of all users."""
        return reader is None or await self.owner(comm_id) == reader

    async def owner(self, comm_id: CommId) -> UserId | None:
        """Return the user of a group; None if there is no such group yet, or its first entry cannot be read."""
        record, log = subject_of(GOAL_RECORDS, record_key(comm_id)), subjects.log(comm_id)
        goal = await latest_message(self._client, stream_of(GOAL_RECORDS), record)
        if goal is not None:
            return UserId(goal.subject.split(".")[-2])
        launch = await first_message(self._client, LOG, log)
        try:
            return None if launch is None else UserId(read_field(launch.data, "state").get("user", LOCAL))
        except (AttributeError, InvalidInputError):
            return None


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
        if not await self._owners.may_read(reader.owner, request.comm_id):
            return LogPage(entries=(), data=b"")
        found, more = await (self._after(request) if request.before is None else self._before(request, request.before))
        count = size = 0
        for one in found:
            size += len(one.data)
            if count and size > request.max_bytes:
                break
            count += 1
        page = found[:count] if request.before is None else found[:count][::-1]
        entries = tuple((one.seq, len(one.data)) for one in page)
        return LogPage(entries=entries, more=more or count < len(found), data=b"".join([one.data for one in page]))

    async def _after(self, request: ReadLog) -> tuple[list[StreamMessage], bool]:
        """Read the first entries after a sequence, and return whether more follow."""
        log, most = subjects.log(request.comm_id), request.limit
        page = await next_messages(self._client, LOG, log, after=request.after, limit=most, max_bytes=request.max_bytes)
        found, more = list(page.messages), not page.complete
        if not more:
            found += await self._missing(log, found[-1].seq if found else request.after, None, most + 1 - len(found))
        return found[:most], more or len(found) > most

    async def _before(self, request: ReadLog, before: int) -> tuple[list[StreamMessage], bool]:
        """Read the last entries before a sequence, newest first, and return whether there are earlier entries."""
        log, most = subjects.log(request.comm_id), request.limit
        page = await previous_messages(self._client, LOG, log, before=before, limit=most, max_bytes=request.max_bytes)
        missing = await self._missing(log, page.messages[0].seq if page.messages else 0, before, most)
        found = [*reversed(missing), *page.messages]
        return found[:most], page.before is not None or len(found) > most

    async def _missing(self, log: str, after: int, before: int | None, limit: int) -> list[StreamMessage]:
        """Read entries from the leader, which a replica lacked."""
        found = list[StreamMessage]()
        with unavailable_unless_answered("The stream of logs"):
            while len(found) < limit and (one := await next_message(self._js, LOG, log, after=after)) is not None:
                after = one.seq or 0
                if before is not None and after >= before:
                    break
                found.append(StreamMessage(after, log, one.data or b""))
        return found
