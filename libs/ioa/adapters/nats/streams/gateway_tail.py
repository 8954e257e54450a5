"""What has ended and what was said, in the order of the streams, for the one replica of the gateway that tells others of it.

Which one that is says one record, written on top of the one expected. It holds how far its writer has come, too, so that whoever
writes the next one goes on there; two that both take themselves for the one are told apart by their next write.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from nats.aio.client import Client

from ioa.adapters.nats.streams.compare_and_set import last_message, publish_onto, stream_of, subject_of
from ioa.adapters.nats.streams.group_log import decoded_entry
from ioa.adapters.nats.streams.stream_reader import latest_messages, next_messages
from ioa.adapters.nats.streams.topology import GATEWAY, GOAL_RECORDS, LOG, RESULTS, TAIL
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.ports.group_log import StoredEntry, UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import GoalRecord, GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.labels import Labels
from ioa.protocol.model import Model
from ioa.protocol.results import decode_result

_SUBJECT = subject_of(GATEWAY, TAIL)
_PAGE, _PAGE_BYTES = 256, 2_000_000


class TailRecord(Model):
    """Who tells others, and how far it has come.

    Attributes:
        holder: Which replica; empty when it has stopped.
        results: The last result of which everybody was told.
        log: The same of entries; None where nobody has asked for these yet.
    """

    holder: str
    results: int
    log: int | None = None


@dataclass(frozen=True)
class TailHeld:
    """A record, and what the next one is to be written on top of."""

    revision: int
    record: TailRecord


@dataclass(frozen=True)
class TailPage:
    """What is next in a stream, without what cannot be read, and how far that goes."""

    results: Sequence[tuple[int, GoalResult]]
    entries: Sequence[StoredEntry]
    upto: int


class NatsTail:
    """The record in the bucket `IOA_GATEWAY`, and the streams behind it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()

    async def read(self) -> TailHeld | None:
        """Read the record.

        Raises:
            UnavailableError: The bucket does not answer.
        """
        with unavailable_unless_answered("The bucket of gateways"):
            kept = await last_message(self._js, stream_of(GATEWAY), _SUBJECT)
        return None if kept is None else TailHeld(kept.seq or 0, decode(TailRecord, kept.data or b""))

    async def write(self, record: TailRecord, onto: int) -> int | None:
        """Write the record on top of one, and return what the next is written onto; None if that is not the last one any more.

        Raises:
            UnavailableError: The bucket does not answer.
        """
        with unavailable_unless_answered("The bucket of gateways"):
            return await publish_onto(self._js, stream_of(GATEWAY), _SUBJECT, encode(record), last=onto)

    async def labels(self, goal: GoalName) -> Labels:
        """Read the labels of a goal off its record alone, whatever its log holds; none of one that was removed.

        Raises:
            UnavailableError: The goals on record cannot be read now.
            InvalidInputError: Nobody can read this one.
        """
        subject = subject_of(GOAL_RECORDS, goal.comm_id)
        found = (await latest_messages(self._client, stream_of(GOAL_RECORDS), [subject])).get(subject)
        return {} if found is None else decode(GoalRecord, found.data).goal.labels

    async def results(self, after: int) -> TailPage:
        """Read the next results after a sequence.

        Raises:
            UnavailableError: The stream does not answer.
        """
        page = await next_messages(self._client, RESULTS, ">", after=after, limit=_PAGE, max_bytes=_PAGE_BYTES)
        found, upto = [], after
        for message in page.messages:
            with suppress(InvalidInputError, PayloadTooLargeError):
                found.append((message.seq, decode_result(message.data)))
            upto = message.seq
        return TailPage(found, (), upto)

    async def entries(self, after: int) -> TailPage:
        """Read the next entries of all groups after a sequence.

        Raises:
            UnavailableError: The stream does not answer.
        """
        page = await next_messages(self._client, LOG, ">", after=after, limit=_PAGE, max_bytes=_PAGE_BYTES)
        found, upto = [], after
        for message in page.messages:
            with suppress(UnreadableEntryError):  # the router writes a dead letter
                found.append(decoded_entry(subjects.parse_comm(message.subject), message.seq, message.data))
            upto = message.seq
        return TailPage((), found, upto)
