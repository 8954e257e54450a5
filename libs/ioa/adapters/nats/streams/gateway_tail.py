"""Results and log entries in the order of the streams, for the replica of the gateway that sends webhooks.

A record names that replica and its position. It is replaced only if it has not changed, so a new replica continues at the last
position. If two replicas send webhooks, the next write of the earlier replica fails. All methods raise `UnavailableError` if a
stream does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.group_log import read_entry
from ioa.adapters.nats.streams.stream import ALL, Stream, StreamMessage
from ioa.adapters.nats.streams.topology import GATEWAY, GOAL_RECORDS, LOG, RESULTS, TAIL, stream_of, subject_of
from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.ports.group_log import StoredEntry, UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import GoalRecord, GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.labels import Labels
from ioa.protocol.model import Model
from ioa.protocol.results import decode_result

T = TypeVar("T")

_PAGE = 256


class TailRecord(Model):
    """The replica that sends webhooks, and its position.

    Attributes:
        holder: The replica; empty after it stopped.
        results: Sequence of the last result of which all webhooks were informed.
        log: The same of entries; None while no webhook is about entries.
    """

    holder: str
    results: int
    log: int | None = None


class NatsTail:
    """The record in the bucket `IOA_GATEWAY`, and the streams of results and logs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._record = Records(client, GATEWAY, TailRecord)

    async def read(self) -> tuple[TailRecord | None, int]:
        """Return the record, None if there is none, and its revision."""
        return await self._record.read(TAIL)

    async def write(self, record: TailRecord, onto: int) -> int | None:
        """Replace the record with the revision `onto`, and return the new revision; None if another record replaced it."""
        return await self._record.put_onto(TAIL, record, last=onto)

    async def labels(self, goal: GoalName) -> Labels:
        """Read the labels of a goal from its record; none of a goal that was removed.

        Raises:
            InvalidInputError: It is no record.
        """
        subject = subject_of(GOAL_RECORDS, record_key(goal.comm_id, goal.user))
        found = await Stream(self._client, stream_of(GOAL_RECORDS)).latest(subject)
        return {} if found is None else decode(GoalRecord, found.data).goal.labels

    async def results(self, after: int) -> tuple[Sequence[tuple[int, GoalResult]], int]:
        """Read the next results after a sequence, without unreadable ones, and the sequence of the last message that was read."""
        return await self._read(RESULTS, after, lambda message: (message.seq, decode_result(message.data)))

    async def entries(self, after: int) -> tuple[Sequence[StoredEntry], int]:
        """Read the next entries of all groups after a sequence; see `results`."""
        return await self._read(LOG, after, lambda one: read_entry(subjects.parse_comm(one.subject), one))

    async def _read(self, stream: str, after: int, decoder: Callable[[StreamMessage], T]) -> tuple[Sequence[T], int]:
        messages, found = (await Stream(self._client, stream).page(ALL, after=after, limit=_PAGE)).messages, list[T]()
        for message in messages:
            with suppress(InvalidInputError, PayloadTooLargeError, UnreadableEntryError):  # the router reports unreadable entries
                found.append(decoder(message))
        return found, messages[-1].seq if messages else after
