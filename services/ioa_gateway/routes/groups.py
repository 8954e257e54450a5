"""Routes of groups: status, pages of entries, earlier states, traces, and server-sent events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

from pydantic import Field
from starlette.responses import Response, StreamingResponse

from ioa.client.client import PAGE_ENTRIES
from ioa.client.documents import EntryDocument, GroupDocument, Instant, StateDocument
from ioa.client.spans import GoalTrace, read_spans
from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.group.requests import GroupSnapshot
from ioa.protocol.ids import CommId, GoalIdField, GoalName
from ioa.protocol.model import Instruction, Model
from ioa.protocol.trace import Span
from ioa_gateway.calls import ApiCall, document, document_of_many
from ioa_gateway.pagination import page_of
from ioa_gateway.routes.goals import MAX_SEQUENCE, WhoseQuery, sequence_in
from ioa_gateway.sse import EVENTS
from ioa_gateway.trace_export import MOST_SPANS

LAST_EVENT_ID = "Last-Event-ID"
MAX_ENTRIES = 500


class EventsQuery(Instruction):
    """From where on a group is followed."""

    after: Annotated[int, Field(ge=0, le=MAX_SEQUENCE, description="the sequence behind which to begin")] = 0


class EntriesQuery(WhoseQuery):
    """Whose goal, and which entries: the first ones behind a sequence, or the last ones before one."""

    after: Annotated[int, Field(ge=0, le=MAX_SEQUENCE, description="only entries behind this sequence")] = 0
    before: Annotated[int, Field(ge=1, le=MAX_SEQUENCE, description="the last ones before this sequence")] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_ENTRIES, description="how many at the most")] = PAGE_ENTRIES


class StateQuery(WhoseQuery):
    """Whose goal, and as of when."""

    at: (
        Annotated[int, Field(ge=0, le=MAX_SEQUENCE, description="as of the entry with this sequence; now if there is none")] | None
    ) = None


class GoalEventsQuery(EventsQuery, WhoseQuery):
    """Whose goal, and from where on it is followed."""


class EntriesDocument(Model):
    """Entries, by rising sequence, and the `after` of the page behind, or the `before` of that before; null if there is no more.

    A page may be shorter than it was asked for: it ends by its bytes, too.
    """

    entries: tuple[EntryDocument, ...]
    next: int | None


class StatesDocument(Model):
    """How the groups of a goal stood."""

    groups: tuple[StateDocument, ...]


class SpanDocument(Model):
    """Something that took its time.

    Attributes:
        parent_id: Of what it is a part; that is no span yet while it goes on.
        attributes: Ids, counts, usage; never what was said.
        failure: Why it failed; empty if it did not.
    """

    name: str
    span_id: str
    parent_id: str
    start: Instant
    end: Instant
    attributes: dict[str, str | int | float]
    failure: str


class TraceDocument(Model):
    """What of a goal has ended, each as soon as it has."""

    trace_id: str
    ended: bool
    spans: tuple[SpanDocument, ...]


class PageQuery(GoalEventsQuery):
    """What a page follows by one stream: the list of goals, one goal, or both."""

    list: Annotated[bool, Field(description="the rows of the newest goals, and each that changes")] = False
    goal: Annotated[GoalIdField, Field(description="a goal, with its nested teams")] | None = None


async def show(call: ApiCall) -> Response:
    """Show the status of a group."""
    return document(GroupDocument.of_group(await call.client.group(await call.group())))


async def entries(call: ApiCall, query: EntriesQuery) -> Response:
    """Show a page of entries of a goal's group and its nested groups."""
    name = await call.goal(query.user)
    async with call.page_read():
        page = await page_of(call.client, name, after=query.after, before=query.before, limit=query.limit)
        return document({"entries": page.documents, "next": page.next})


async def state(call: ApiCall, query: StateQuery) -> Response:
    """Show the states of a goal's group and its nested groups, now or as of an entry."""
    name = await call.goal(query.user)
    async with call.page_read():
        found = await call.client.state(name, at=query.at)
        return await document_of_many({}, "groups", map(StateDocument.of, found.values()))


async def trace(call: ApiCall, query: WhoseQuery) -> Response:
    """Show the trace of a goal, derived from its log."""
    name = await call.goal(query.user)
    ended = (await call.look(name)).result is not None
    made, spans = GoalTrace(), list[Span]()
    async for span in read_spans(call.client, name.comm_id, made):
        spans.append(span)
        if len(spans) > MOST_SPANS:
            raise PayloadTooLargeError(f"The trace has more than {MOST_SPANS:,} spans.", hint="`ioa trace export` exports it.")
    shown = (SpanDocument(**{field: getattr(span, field) for field in SpanDocument.model_fields}) for span in spans)
    return await document_of_many({"trace_id": made.trace_id, "ended": ended}, "spans", shown)


async def follow_goal(call: ApiCall, query: GoalEventsQuery) -> Response:
    """Follow a goal's group and its nested groups."""
    return await _follow_goal(call, await call.goal(query.user), query)


async def follow_group(call: ApiCall, query: EventsQuery) -> Response:
    """Follow a group and its nested groups."""
    comm_id = await call.group()
    return await _follow(call, comm_id, query, lambda: call.client.group(comm_id))


async def follow_page(call: ApiCall, query: PageQuery) -> Response:
    """Follow the list of goals, a goal, or both by one stream."""
    name = None if query.goal is None else await call.goal(query.user, query.goal)
    if query.list:
        if name is not None and not call.streams.is_followed(name.comm_id):
            await call.look(name)
        return _events(call, None if name is None else name.comm_id, _after(call, query), listed=call.caller.labels)
    if name is None:
        raise InvalidInputError("It is not said what to follow.", hint="Ask for ?list=true, for ?goal=ID, or for both.")
    return await _follow_goal(call, name, query)


async def _follow_goal(call: ApiCall, name: GoalName, query: EventsQuery) -> Response:
    async def look() -> GroupSnapshot | None:
        return (await call.look(name)).standing

    return await _follow(call, name.comm_id, query, look)


async def _follow(
    call: ApiCall, comm_id: CommId, query: EventsQuery, look: Callable[[], Awaitable[GroupSnapshot | None]]
) -> Response:
    """Return events, or 204 after the end: only this status stops a browser from connecting again.

    Args:
        call: The request.
        comm_id: The group.
        query: Contains the sequence to continue after.
        look: Reads the state of the group. Not called if the group has followers.

    Raises:
        NotFoundError: There is no such group.
    """
    after = _after(call, query)
    if not call.streams.is_followed(comm_id):
        standing = await look()
        if standing is not None and standing.state.phase.is_terminal and after >= standing.seq:
            return Response(status_code=204)
    elif call.streams.is_over(comm_id, after):
        return Response(status_code=204)
    return _events(call, comm_id, after)


def _events(call: ApiCall, comm_id: CommId | None, after: int, listed: Mapping[str, str] | None = None) -> Response:
    events = call.streams.follow(call.caller, comm_id, after, listed)
    return StreamingResponse(events, 200, {"X-Accel-Buffering": "no"}, EVENTS)


def _after(call: ApiCall, query: EventsQuery) -> int:
    last = last_event_id(call)
    return query.after if last is None else last


def last_event_id(call: ApiCall) -> int | None:
    """Return the sequence after which a stream continues; None without the header.

    Raises:
        InvalidInputError: It is not the `id` of an event.
    """
    last = call.headers.get(LAST_EVENT_ID)
    if last is None:
        return None
    seq = sequence_in(last)
    if seq is None:
        raise InvalidInputError(f"{LAST_EVENT_ID} is the `id` of an event, a number.")
    return seq
