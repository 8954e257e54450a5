"""The service that answers read requests: goals, groups, logs, dead letters and the audit log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate

from pydantic import ValidationError

from ioa.adapters.nats.requests.service import ServiceEndpoint, answer, answer_caller
from ioa.adapters.nats.streams.stream import Stream, StreamMessage
from ioa.adapters.nats.streams.topology import AUDIT, DEAD, LOG
from ioa.adapters.nats.wire.connection import Connection
from ioa.errors import InvalidInputError
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_ANSWER_BYTES
from ioa.protocol.ids import UserId
from ioa.protocol.operation.audit import AuditLine
from ioa.protocol.operation.dead_letters import DeadLetter
from ioa.protocol.setup import reads
from ioa_groups.goal_listing import GoalListing, GroupOwners

_LETTERS_EXAMINED, _MAX_LETTERS = 64, 300
"""Letters that are examined for a page of a user's letters, and letters of a page, each of at most 2 kB without its message."""


def read_endpoints(client: Connection) -> list[ServiceEndpoint]:
    """Return the endpoints of read requests, as users and as readers of all goals, and of the audit log."""
    owners = GroupOwners(client)
    listing, logs, letters = GoalListing(client, owners), UserLogReader(client, owners), DeadLetterReader(client, owners)
    answer_reader = partial(answer_caller, parse_caller=_parse_reader, max_reply_bytes=MAX_ANSWER_BYTES)
    handlers = {
        subjects.GOALS_LIST: answer_reader(reads.ListGoals, listing.goals),
        subjects.GOALS_GET: answer_reader(reads.GetGoal, listing.goal),
        subjects.GROUPS_LIST: answer_reader(reads.ListGroups, listing.groups),
        subjects.LOG_PAGE: answer_reader(reads.ReadLog, logs.page),
        subjects.DEAD_PAGE: answer_reader(reads.ReadDeadLetters, letters.page),
    }
    audit = answer(reads.ReadAudit, partial(read_audit_page, client))
    return [
        *(
            ServiceEndpoint(request.replace(".", "_"), (subjects.any_user(request), subjects.reader("*", request)), handler)
            for request, handler in handlers.items()
        ),
        ServiceEndpoint("audit_page", subjects.auditor("*", subjects.AUDIT_PAGE), audit),
    ]


def _parse_reader(subject: str) -> reads.GoalReader:
    return reads.GoalReader(*subjects.parse_reader(subject))


class UserLogReader:
    """Answers `log.page` from any replica of the stream. At the end of a log, the stream's leader adds entries that it lacks."""

    def __init__(self, client: Connection, owners: GroupOwners) -> None:
        self._logs = Stream(client, LOG)
        self._owners = owners

    async def page(self, reader: reads.GoalReader, request: reads.ReadLog) -> reads.LogPage:
        """Read a page. A group that works for another user than the reader has no entries, as a group that does not exist."""
        if not await self._owners.may_read(reader.owner, request.comm_id):
            return reads.LogPage(entries=(), data=b"")
        read = self._read_after(request) if request.before is None else self._read_before(request, request.before)
        found, has_more = await read
        sizes = accumulate(len(one.data) for one in found)
        count = max(1, sum(size <= request.max_bytes for size in sizes))
        page = found[:count] if request.before is None else found[:count][::-1]
        entries = tuple((one.seq, len(one.data)) for one in page)
        return reads.LogPage(entries=entries, more=has_more or count < len(found), data=b"".join([one.data for one in page]))

    async def _read_after(self, request: reads.ReadLog) -> tuple[list[StreamMessage], bool]:
        """Read the first entries after a sequence, and return whether more follow."""
        log, most = subjects.log(request.comm_id), request.limit
        page = await self._logs.page(log, after=request.after, limit=most, max_bytes=request.max_bytes)
        found, has_more = [*page.messages], not page.complete
        while not has_more and (one := await self._logs.next(log, after=found[-1].seq if found else request.after)) is not None:
            has_more = len(found) == most
            found += [] if has_more else [one]
        return found, has_more

    async def _read_before(self, request: reads.ReadLog, before: int) -> tuple[list[StreamMessage], bool]:
        """Read the last entries before a sequence, newest first, and return whether there are earlier entries."""
        log = subjects.log(request.comm_id)
        page = await self._logs.page_back(log, before=before, limit=request.limit, max_bytes=request.max_bytes)
        return [*page.messages], page.before is not None


class DeadLetterReader:
    """Answers `dead.page`. A user reads the letters of its own goals and groups."""

    def __init__(self, client: Connection, owners: GroupOwners) -> None:
        self._letters = Stream(client, DEAD)
        self._owners = owners

    async def page(self, reader: reads.GoalReader, request: reads.ReadDeadLetters) -> reads.DeadPage:
        """Read letters. A letter that does not exist, or that the reader may not read, is missing."""
        if request.seq is not None:
            found = await self._letters.at(request.seq)
            if found is None or not await self._may_read(reader, found):
                return reads.DeadPage(letters=(), data=b"")
            return reads.DeadPage(letters=(_letter(found),), data=found.data)
        limit = min(request.limit, _MAX_LETTERS)
        examined = limit if reader.reads_all else max(limit, _LETTERS_EXAMINED)
        page = await self._letters.page_back(before=request.before, limit=examined, max_bytes=reads.MAX_PAGE_BYTES)
        readable = [one for one in page.messages if await self._may_read(reader, one)]
        before = readable[limit - 1].seq if len(readable) > limit else page.before
        return reads.DeadPage(letters=tuple(map(_letter, readable[:limit])), before=before, data=b"")

    async def _may_read(self, reader: reads.GoalReader, message: StreamMessage) -> bool:
        return reader.reads_all or await self._owner(message) == reader.user

    async def _owner(self, message: StreamMessage) -> UserId | None:
        """Return the user whose goal or group a letter is about; None if its subject names neither."""
        subject = message.headers.get("Ioa-Subject", "")
        with suppress(InvalidInputError):
            return subjects.parse_goal_subject(subject)[0]
        with suppress(InvalidInputError):
            return await self._owners.owner(subjects.parse_comm(subject))
        return None


def _letter(message: StreamMessage) -> DeadLetter:
    size = message.headers.get("Ioa-Bytes", "")
    return DeadLetter(
        seq=message.seq,
        reason=message.subject.rpartition(".")[2],
        why=message.headers.get("Ioa-Reason", ""),
        subject=message.headers.get("Ioa-Subject", ""),
        at=message.stored_at,
        size_bytes=int(size) if size.isdecimal() else len(message.data),
    )


async def read_audit_page(client: Connection, request: reads.ReadAudit) -> reads.AuditPage:
    """Answer `audit.page`. Lines that cannot be read are left out."""
    page = await Stream(client, AUDIT).page_back(before=request.before, limit=request.limit)
    return reads.AuditPage(lines=tuple(_lines(page.messages)), before=page.before)


def _lines(messages: Sequence[StreamMessage]) -> Iterator[tuple[int, AuditLine]]:
    for message in messages:
        with suppress(ValidationError):
            yield message.seq, AuditLine.model_validate_json(message.data)
