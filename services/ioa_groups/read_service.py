"""The service that answers read requests: goals, groups, logs, dead letters and the audit log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from pydantic import ValidationError

from ioa.adapters.nats.requests.service import Handler, ServiceEndpoint, answer, answer_caller
from ioa.adapters.nats.streams.stream import Stream, StreamMessage
from ioa.adapters.nats.streams.topology import AUDIT, DEAD, LOG
from ioa.adapters.nats.wire.connection import Connection
from ioa.errors import InvalidInputError
from ioa.protocol import reads, subjects
from ioa.protocol.audit import AuditLine
from ioa.protocol.codec import MAX_ANSWER_BYTES
from ioa.protocol.dead_letters import DeadLetter
from ioa.protocol.ids import UserId
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
    return [
        *(_endpoint("", subjects.any_user(request), handler) for request, handler in handlers.items()),
        *(_endpoint("all_", subjects.reader("*", request), handler) for request, handler in handlers.items()),
        _endpoint("", subjects.auditor("*", subjects.AUDIT_PAGE), answer(reads.ReadAudit, partial(read_audit_page, client))),
    ]


def _parse_reader(subject: str) -> reads.GoalReader:
    return reads.GoalReader(*subjects.parse_reader(subject))


def _endpoint(prefix: str, subject: str, handler: Handler) -> ServiceEndpoint:
    name = prefix + subjects.kind_of(subject).replace(".", "_")
    return ServiceEndpoint(name, subject, handler, exempt_callers=(subjects.GATEWAY,))


class UserLogReader:
    """Answers `log.page` from any replica of the stream. The stream's leader adds entries that the replica lacks."""

    def __init__(self, client: Connection, owners: GroupOwners) -> None:
        self._logs = Stream(client, LOG)
        self._owners = owners

    async def page(self, reader: reads.GoalReader, request: reads.ReadLog) -> reads.LogPage:
        """Read a page. A group that works for another user than the reader has no entries, as a group that does not exist."""
        if not await self._owners.may_read(reader.owner, request.comm_id):
            return reads.LogPage(entries=(), data=b"")
        read = self._read_after(request) if request.before is None else self._read_before(request, request.before)
        found, has_more = await read
        count = size = 0
        for one in found:
            size += len(one.data)
            if count and size > request.max_bytes:
                break
            count += 1
        page = found[:count] if request.before is None else found[:count][::-1]
        entries = tuple((one.seq, len(one.data)) for one in page)
        return reads.LogPage(entries=entries, more=has_more or count < len(found), data=b"".join([one.data for one in page]))

    async def _read_after(self, request: reads.ReadLog) -> tuple[list[StreamMessage], bool]:
        """Read the first entries after a sequence, and return whether more follow."""
        log, most = subjects.log(request.comm_id), request.limit
        page = await self._logs.page(log, after=request.after, limit=most, max_bytes=request.max_bytes)
        found = [*page.messages]
        if page.complete:
            found += await self._read_missing(log, found[-1].seq if found else request.after, None, most + 1 - len(found))
        return found[:most], not page.complete or len(found) > most

    async def _read_before(self, request: reads.ReadLog, before: int) -> tuple[list[StreamMessage], bool]:
        """Read the last entries before a sequence, newest first, and return whether there are earlier entries."""
        log, most = subjects.log(request.comm_id), request.limit
        page = await self._logs.page_back(log, before=before, limit=most, max_bytes=request.max_bytes)
        missing = await self._read_missing(log, page.messages[0].seq if page.messages else 0, before, most)
        found = [*reversed(missing), *page.messages]
        return found[:most], page.before is not None or len(found) > most

    async def _read_missing(self, log: str, after: int, before: int | None, limit: int) -> list[StreamMessage]:
        """Read entries from the leader, which a replica lacked."""
        found = list[StreamMessage]()
        while len(found) < limit and (one := await self._logs.next(log, after=after)) is not None:
            if before is not None and one.seq >= before:
                break
            found.append(one)
            after = one.seq
        return found


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
    stream = Stream(client, AUDIT)
    if request.after is not None:
        following = (await stream.page(subjects.ANY_AUDIT, after=request.after, limit=request.limit)).messages
        return reads.AuditPage(lines=tuple(_lines(following)), upto=following[-1].seq if following else 0)
    page = await stream.page_back(before=request.before, limit=request.limit)
    newest = page.messages[0].seq if page.messages else 0
    return reads.AuditPage(lines=tuple(_lines(page.messages)), before=page.before, upto=newest)


def _lines(messages: Sequence[StreamMessage]) -> Iterator[tuple[int, AuditLine]]:
    for message in messages:
        with suppress(ValidationError):
            yield message.seq, AuditLine.model_validate_json(message.data)
