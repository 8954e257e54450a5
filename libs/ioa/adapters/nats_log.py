"""The groups' logs in the JetStream stream `IOA_LOG`, one subject each."""

from __future__ import annotations

from collections.abc import Sequence

from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import APIError, NotFoundError

from ioa.adapters.nats_acks import AcknowledgedWrites
from ioa.adapters.nats_failures import lost_race, unavailable_unless_answered, unavailable_unless_stored
from ioa.adapters.nats_topology import LOG
from ioa.group.events import EncodedEntry, Entry
from ioa.ports.group_log import AppendConflictError, StoredEntry
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.ids import CommId

_EXPECTED_SEQUENCE = Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value


class NatsGroupLog:
    """Group logs in JetStream. Optimistic concurrency by expected last sequence of the subject."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream()
        self._writes = AcknowledgedWrites(client)

    async def last(self, comm_id: CommId) -> StoredEntry | None:
        """Read the head by `STREAM.MSG.GET`, which only the stream's leader answers; a direct get may lag behind."""
        return await self._get(subjects.log(comm_id))

    async def append(self, comm_id: CommId, entry: EncodedEntry, *, expected_seq: int) -> int:
        """Append if nobody else has; see the port."""
        headers = {_EXPECTED_SEQUENCE: str(expected_seq)}
        with unavailable_unless_stored(f"The log of {comm_id}"):
            try:
                return await self._writes.publish(subjects.log(comm_id), entry.data, headers)
            except APIError as error:
                if lost_race(error):
                    raise AppendConflictError(f"The log of {comm_id} has moved on from {expected_seq}.") from None
                raise

    async def read(self, comm_id: CommId, *, after: int, limit: int) -> Sequence[StoredEntry]:
        """Read a page, entry by entry, from the stream's leader."""
        page: list[StoredEntry] = []
        while len(page) < limit:
            stored = await self._get(subjects.log(comm_id), from_seq=after + 1)
            if stored is None:
                break
            page.append(stored)
            after = stored.seq
        return page

    async def newest(self) -> int:
        """Ask the stream, which its leader answers for."""
        with unavailable_unless_answered("The stream of group logs"):
            return (await self._js.stream_info(LOG)).state.last_seq

    async def comm_ids(self) -> Sequence[CommId]:
        """List the subjects the stream holds."""
        with unavailable_unless_answered("The list of group logs"):
            info = await self._js.stream_info(LOG, subjects_filter=subjects.ANY_LOG)
        return [subjects.parse_comm(subject) for subject in info.state.subjects or {}]

    async def _get(self, subject: str, from_seq: int | None = None) -> StoredEntry | None:
        with unavailable_unless_answered(f"The log {subject}"):
            try:
                message = await self._js.get_msg(LOG, seq=from_seq, subject=subject, next=from_seq is not None)
            except NotFoundError:
                return None
        assert message.seq is not None
        return StoredEntry(message.seq, decode(Entry, message.data or b""))
