"""Routes of groups: status, pages of entries, earlier states, traces, and server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import JSONResponse, Response, StreamingResponse

from ioa.client.client import PAGE_ENTRIES
from ioa.client.documents import StateDocument
from ioa.client.spans import GoalTrace
from ioa.errors import InvalidInputError
from ioa.protocol.ids import GoalIdField
from ioa.protocol.model import Model
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.operation.trace import Span
from ioa_gateway.api.goal_routes import MAX_SEQUENCE, GoalPath, UserQuery
from ioa_gateway.context import KeyCall, ReadCall
from ioa_gateway.pagination import TranscriptEntry, page_of
from ioa_gateway.sse_encoding import EVENTS
from ioa_gateway.trace_export import read_trace

MAX_ENTRIES = 500

router = APIRouter()

LastEventId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=0, le=MAX_SEQUENCE, description="the `id` of the last event; overrides `after`")
]
FOLLOWED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `entry` with the sequence as `id`, `progress` of tasks, and at last `end`.",
        "content": {EVENTS: {"schema": {"type": "string"}}},
    },
    204: {"description": "The goal has ended, and there are no further entries."},
}


async def _sequence_after(
    after: Annotated[int, Query(ge=0, le=MAX_SEQUENCE, description="sequence after which the stream begins")] = 0,
    last_event_id: LastEventId = None,
) -> int:
    return after if last_event_id is None else last_event_id


SequenceAfter = Annotated[int, Depends(_sequence_after)]


class EntriesDocument(Model):
    """Entries by rising sequence; `next` is the `after` or `before` of the next page, null on the last. Bytes limit pages too."""

    entries: tuple[TranscriptEntry, ...]
    next: int | None


class StatesDocument(Model):
    """States of the groups of a goal."""

    groups: tuple[StateDocument, ...]


class TraceDocument(Model):
    """The spans of a goal that have ended. A parent is not listed before its end."""

    trace_id: str
    ended: bool
    spans: tuple[Span, ...]


@router.get("/goals/{goal_id}/entries", response_model=EntriesDocument)
async def entries(
    call: ReadCall,
    name: GoalPath,
    after: Annotated[int, Query(ge=0, le=MAX_SEQUENCE, description="only entries after this sequence")] = 0,
    before: Annotated[int | None, Query(ge=1, le=MAX_SEQUENCE, description="the last entries before this sequence")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_ENTRIES, description="maximum number")] = PAGE_ENTRIES,
) -> Response:
    """Show a page of entries of a goal's group and its nested groups, by rising sequence."""
    async with call.page_read():
        page = await page_of(call.client, name, after=after, before=before, limit=limit)
    return JSONResponse({"entries": page.documents, "next": page.next})


@router.get("/goals/{goal_id}/state")
async def state(
    call: ReadCall,
    name: GoalPath,
    at: Annotated[int | None, Query(ge=0, le=MAX_SEQUENCE, description="the sequence of an entry; default: now")] = None,
) -> StatesDocument:
    """Show the states of a goal's group and its nested groups, now or as of an entry."""
    async with call.page_read():
        found = await call.client.state(name, at=at)
        return StatesDocument(groups=tuple(map(StateDocument.of, found.values())))


@router.get("/goals/{goal_id}/trace")
async def trace(call: ReadCall, name: GoalPath) -> TraceDocument:
    """Show the trace of a goal, derived from its log: spans that have ended."""
    ended = (await call.look(name)).result is not None
    made = GoalTrace()
    spans = await read_trace(call.client, name.comm_id, made)
    return TraceDocument(trace_id=made.trace_id, ended=ended, spans=tuple(spans))


@router.get("/goals/{goal_id}/events", response_class=StreamingResponse, responses=FOLLOWED)
async def follow_goal(call: ReadCall, name: GoalPath, after: SequenceAfter) -> Response:
    """Follow a goal's group and its nested groups by server-sent events; status 204 if all entries were sent before."""
    standing = (await call.look(name)).standing
    if standing is not None and standing.state.phase.is_terminal and after >= standing.seq:
        return Response(status_code=204)  # only this status stops a browser from connecting again
    return _stream(call.streams.follow(call.caller, name, after))


@router.get("/events", response_class=StreamingResponse, responses=FOLLOWED)
async def follow_page(
    call: KeyCall,
    after: SequenceAfter,
    user: UserQuery = None,
    listed: Annotated[bool, Query(alias="list", description="the rows of the newest goals, and each that changes")] = False,
    goal: Annotated[GoalIdField | None, Query(description="a goal, with its nested teams")] = None,
    waiting: Annotated[bool, Query(description="an event when your open turns and questions may have changed")] = False,
) -> Response:
    """Follow the list of goals (`goal`), a goal, the caller's open items (`waiting`), or several of them by one stream.

    The event `waiting` is sent at first, and when `/seats` or `/questions` may have changed.
    """
    if listed or goal:
        call.caller.check(Scope.GOALS_READ)
    if not (listed or goal or waiting):
        raise InvalidInputError("The request names nothing to follow.", hint="Ask for ?list=true, ?goal=ID, or ?waiting=true.")
    name = None if goal is None else await call.goal(user, goal)
    if name is not None and not (listed or waiting):
        return await follow_goal(call, name, after)
    if name is not None:
        await call.look(name)
    return _stream(call.streams.follow(call.caller, name, after, call.caller.labels if listed else None, waiting=waiting))


def _stream(events: AsyncGenerator[bytes, None]) -> Response:
    return StreamingResponse(events, 200, {"X-Accel-Buffering": "no"}, EVENTS)
