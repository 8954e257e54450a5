"""Goals: launching, listing, looking at and cancelling them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from ioa.cancellation import fail_after
from ioa.client.documents import GoalDocument, GoalRow, ResultDocument
from ioa.client.rerun import order_rerun
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.goal_lists import PAGE_GOALS, PHASES_OF_GOALS, GoalPhase
from ioa.protocol.api_keys import Scope
from ioa.protocol.codec import check_size
from ioa.protocol.goal_order import MAX_GOAL_BYTES, GoalOrder, parsed_order
from ioa.protocol.goals import MAX_GOAL_CHARS, GoalResult
from ioa.protocol.ids import CommId, GoalId, GoalName, UserId, UserIdField
from ioa.protocol.labels import read_labels, refuse_reserved
from ioa.protocol.model import Instruction, Model
from ioa_gateway.calls import WITHIN, ApiCall, document, read_object
from ioa_gateway.pagination import page_of_goals

IDEMPOTENCY_KEY = "Idempotency-Key"
LONGEST_WAIT_SECONDS = 50
MAX_SEQUENCE = 2**53
_MAX_KEY_CHARS = 255
_DIGITS = re.compile(r"[0-9]{1,16}")
"""As many digits as `MAX_SEQUENCE` has. Python rejects very long numbers."""


def _check_phase(said: object) -> object:
    """Name all phases in one error. A union has one error for each of its parts."""
    if said not in PHASES_OF_GOALS:
        raise ValueError(f"Input should be {', '.join(PHASES_OF_GOALS[:-1])} or {PHASES_OF_GOALS[-1]}")
    return said


def sequence_in(said: str) -> int | None:
    """Parse the number of an entry or a file; return None if it is not valid."""
    number = int(said) if _DIGITS.fullmatch(said) else None
    return None if number is None or number > MAX_SEQUENCE else number


class GoalsQuery(Instruction):
    """Which goals are listed, newest first."""

    limit: Annotated[int, Field(ge=1, le=200, description="how many at the most")] = PAGE_GOALS
    cursor: Annotated[int, Field(ge=1, le=MAX_SEQUENCE, description="`next` of the page before")] | None = None
    open: Annotated[bool, Field(description="leave out those that have ended; a page may then be short")] = False
    phase: Annotated[GoalPhase, BeforeValidator(_check_phase), Field(description="only those that stand there")] | None = None
    label: Annotated[str, Field(max_length=300, description="only those that bear this label, such as `team=x`")] | None = None


class WhoseQuery(Instruction):
    """Whose goal it is."""

    user: Annotated[UserIdField, Field(description="whose goal it is, if it is somebody else's")] | None = None


class ResultQuery(WhoseQuery):
    """Whose result, and how long it is waited for."""

    wait: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS, description="how many seconds to wait for it")] = 0


class LaunchedDocument(Model):
    """A goal that is stored: `accepted` unless that takes longer."""

    goal_id: GoalId
    user: UserId
    comm_id: CommId
    accepted: bool


class GoalsDocument(Model):
    """A page of goals, and the `cursor` of the one behind; null if there is none."""

    goals: tuple[GoalRow, ...]
    next: int | None


class CancellingDocument(Model):
    """A goal that is about to end."""

    goal_id: GoalId
    user: UserId


class CancelOrder(Instruction):
    """Why a goal is cancelled."""

    why: Annotated[str, Field(max_length=4_000)] = ""


class RerunOrder(Instruction):
    """Which message of a goal a rerun replaces."""

    at: Annotated[int, Field(ge=1, le=MAX_SEQUENCE, description="the sequence of the message's entry")]
    message: Annotated[str, Field(min_length=1, max_length=MAX_GOAL_CHARS, description="the new text of the message")]


def read_order(data: bytes) -> GoalOrder:
    """Parse the goal that is launched.

    Raises:
        InvalidInputError: The body is not a goal.
    """
    check_size(data, MAX_GOAL_BYTES, "The goal")
    return parsed_order(read_object(data))


async def launch(call: ApiCall, order: GoalOrder) -> Response:
    """Launch a goal. Its id is derived from the idempotency key and the caller's key."""
    if order.goal_id is not None:
        raise InvalidInputError(
            "A goal that comes by HTTP has no `goal_id`.", hint=f"Send {IDEMPOTENCY_KEY} to be able to repeat it."
        )
    refuse_reserved(order.labels)
    return await _launched(call, order)


async def rerun(call: ApiCall, query: WhoseQuery, wanted: RerunOrder) -> Response:
    """Launch a rerun of a goal that the caller may read."""
    name = await call.goal(query.user)
    async with call.page_read():
        order = await order_rerun(call.client, name, wanted.at, wanted.message)
    return await _launched(call, order)


async def _launched(call: ApiCall, order: GoalOrder) -> Response:
    """Launch an order with the caller's labels and the id that follows from its idempotency key."""
    order, key, known = call.with_caller(order), idempotency_key(call), None
    if key is not None:
        goal_id = call.caller.goal_id("k", key)
        order = order.model_copy(update={"goal_id": goal_id})
        known = await _found(call, GoalName(call.caller.user, goal_id))
    launched = await call.client.launch(order)
    status = 202 if launched.record is None else 201 if known is None else 200
    accepted = LaunchedDocument(
        goal_id=launched.goal_id, user=launched.name.owner, comm_id=launched.comm_id, accepted=status != 202
    )
    return document(accepted, status, {"Location": f"/v1/goals/{launched.goal_id}"})


def idempotency_key(call: ApiCall) -> str | None:
    """Return the idempotency key of a request; None without one.

    Raises:
        InvalidInputError: It is too long, or empty.
    """
    key = call.headers.get(IDEMPOTENCY_KEY)
    if key is not None and not 1 <= len(key) <= _MAX_KEY_CHARS:
        raise InvalidInputError(f"{IDEMPOTENCY_KEY} has 1 to {_MAX_KEY_CHARS} characters.")
    return key


async def _found(call: ApiCall, name: GoalName) -> GoalName | None:
    try:
        return (await call.look(name)).record.goal.name
    except NotFoundError:
        return None


async def list_goals(call: ApiCall, query: GoalsQuery) -> Response:
    """List goals of all users."""
    wanted, own = read_labels([] if query.label is None else [query.label]), call.caller.labels
    if any(own.get(name, value) != value for name, value in wanted.items()):
        return document(GoalsDocument(goals=(), next=None))
    labels = {**wanted, **own}
    async with call.page_read():
        goals, following = await page_of_goals(
            call.client,
            limit=query.limit,
            before=query.cursor,
            open_only=query.open,
            labels=labels,
            phase=query.phase,
            user=call.caller.owner,
        )
    return document({"goals": goals, "next": following})


async def show(call: ApiCall, query: WhoseQuery) -> Response:
    """Show one goal."""
    async with call.looking(await call.goal(query.user), with_team=True) as status:
        return document(GoalDocument.of(status))


async def result(call: ApiCall, query: ResultQuery) -> Response:
    """Show the result of a goal, and wait for it if `wait` is set."""
    name = await call.goal(query.user)
    async with fail_after(WITHIN.total_seconds()):
        found = await _result(call, name)
    if found is None and query.wait:
        try:
            async with fail_after(query.wait):
                found = _shown(await call.client.result(name, wait=True))
        except TimeoutError:
            found = None
    return Response(status_code=204) if found is None else found


async def _result(call: ApiCall, name: GoalName) -> Response | None:
    """Return the result of a goal, if there is one. A goal without a record was rejected, or waits to be accepted.

    Raises:
        NotFoundError: There is no such goal.
    """
    try:
        return await _end(call, name)
    except NotFoundError:
        refused = await call.client.result(name)
        if refused is not None:
            return _shown(refused)
        if await call.client.count_waiting(name):
            return None
        return await _end(call, name)  # its record may have been written meanwhile


async def _end(call: ApiCall, name: GoalName) -> Response | None:
    """Return the result of a goal with a record; None if the goal has not ended.

    Raises:
        NotFoundError: The goal has no record.
    """
    async with call.looking(name, with_team=False) as status:
        return None if status.result is None else _shown(status.result)


def _shown(result: GoalResult) -> Response:
    return document(ResultDocument.of(result))


async def cancel(call: ApiCall, query: WhoseQuery, order: CancelOrder) -> Response:
    """Cancel a goal. If it has ended, its result stays, and is returned to a key that may read it."""
    name = await call.goal(query.user)
    may_read = name.owner == call.caller.user and Scope.GOALS_READ in call.caller.scopes
    is_told = may_read and (await call.look(name)).result is not None
    await call.client.cancel(name, order.why)
    if is_told and (ended := await _end(call, name)) is not None:
        return ended
    return document(CancellingDocument(goal_id=name.goal_id, user=name.owner), 202)
