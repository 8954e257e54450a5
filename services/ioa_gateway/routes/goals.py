"""Goals: launching, listing, looking at and cancelling them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from ioa.cancellation import fail_after
from ioa.client.client import Launched
from ioa.client.documents import GoalDocument, GoalRow, ResultDocument, told
from ioa.client.forking import Changes
from ioa.errors import InvalidInputError, NotFoundError
from ioa.ports.goal_client import PAGE_GOALS, PHASES_OF_GOALS, GoalPhase
from ioa.protocol.api_keys import Scope
from ioa.protocol.codec import check_size
from ioa.protocol.goal_order import MAX_GOAL_BYTES, GoalOrder, parsed_order
from ioa.protocol.goals import MAX_CHANGED_CHARS, MAX_REPLACED, GoalResult
from ioa.protocol.ids import AgentIdField, CommId, GoalId, GoalName, UserId, UserIdField
from ioa.protocol.labels import read_labels, refuse_reserved
from ioa.protocol.model import Instruction, Model
from ioa.protocol.usage import MAX_COUNT, MICROS
from ioa_gateway.calls import WITHIN, ApiCall, Nothing, document, read_object
from ioa_gateway.given import check_inputs
from ioa_gateway.goal_pages import page_of_goals

IDEMPOTENCY_KEY = "Idempotency-Key"
LONGEST_WAIT_SECONDS = 50
MAX_SEQUENCE = 2**53
_MAX_KEY_CHARS = 255
_DIGITS = re.compile(r"[0-9]{1,16}")
"""As many as `MAX_SEQUENCE` has: Python refuses to read very many, also where all are zeros."""


def _check_phase(said: object) -> object:
    """Name all that it may be in one error: a union has one for each of its parts."""
    if said not in PHASES_OF_GOALS:
        raise ValueError(f"Input should be {', '.join(PHASES_OF_GOALS[:-1])} or {PHASES_OF_GOALS[-1]}")
    return said


def sequence_in(said: str) -> int | None:
    """Read a number of an entry or a file; None of what can be none."""
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


class ForkOrder(Instruction):
    """What is another in a fork than in the goal that it comes from; what is left out is the same.

    Turns, tokens and cost count what is copied; the time, in seconds, is the fork's own.
    """

    at: Annotated[int, Field(ge=1, le=MAX_SEQUENCE, description="the sequence of the entry; the last one by default")] | None = None
    say: (
        Annotated[str, Field(min_length=1, max_length=MAX_CHANGED_CHARS, description="what the message of the entry says")] | None
    ) = None
    replace: Annotated[
        dict[AgentIdField, AgentIdField | None],
        Field(max_length=MAX_REPLACED, description="who stands in whose place; null: whoever discovery finds"),
    ] = Field(default_factory=dict)
    max_turns: Annotated[int, Field(ge=1, le=10_000)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    max_cost: Annotated[float, Field(ge=1 / MICROS, le=MAX_COUNT / MICROS)] | None = None
    timeout: Annotated[float, Field(ge=0.001, le=30 * 86_400)] | None = None


@asynccontextmanager
async def read_order(_call: ApiCall, data: bytes) -> AsyncIterator[GoalOrder]:
    """Parse the goal that is launched.

    Raises:
        InvalidInputError: The body is no goal.
    """
    check_size(data, MAX_GOAL_BYTES, "The goal")
    yield parsed_order(read_object(data))


async def launch(call: ApiCall, _query: Nothing, order: GoalOrder) -> Response:
    """Launch a goal. The id follows from the idempotency key and the caller's own, so that callers never meet."""
    if order.goal_id is not None:
        raise InvalidInputError(
            "A goal that comes by HTTP has no `goal_id`.", hint=f"Send {IDEMPOTENCY_KEY} to be able to repeat it."
        )
    if order.forked_from is not None:  # of a goal that the caller may not see
        raise InvalidInputError("A goal that is launched comes from no other one.", hint="POST /v1/goals/{goal_id}/fork forks one.")
    refuse_reserved(order.labels)
    await check_inputs(call, order)
    order = call.labelled(order)
    key = idempotency_key(call)
    known = None
    if key is not None:
        goal_id = call.caller.goal_id("k", key)
        order = order.model_copy(update={"goal_id": goal_id})
        known = await _found(call, GoalName(call.caller.user, goal_id))
    return _launched(await call.client.launch(order), known)


async def fork(call: ApiCall, _query: Nothing, order: ForkOrder) -> Response:
    """Have a new goal go on from one of the caller's, which shows what was said to whomever `replace` names.

    Its id follows from the idempotency key, as that of any goal.
    """
    name, key = await call.goal(None), idempotency_key(call)
    goal_id = None if key is None else call.caller.goal_id("k", key)
    known = None if goal_id is None else await _found(call, GoalName(call.caller.user, goal_id))
    changes = Changes(
        **{field: getattr(order, field) for field in ForkOrder.model_fields if field != "at"}, labels=call.caller.labels
    )
    launched = await call.client.fork(name, at=order.at, changes=changes, goal_id=goal_id)
    return _launched(launched, known)


def _launched(launched: Launched, known: GoalName | None) -> Response:
    status = 202 if launched.record is None else 201 if known is None else 200
    accepted = LaunchedDocument(
        goal_id=launched.goal_id, user=launched.name.owner, comm_id=launched.comm_id, accepted=status != 202
    )
    return document(told(accepted), status, {"Location": f"/v1/goals/{launched.goal_id}"})


def idempotency_key(call: ApiCall) -> str | None:
    """Read by what the caller repeats a launch.

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


async def list_goals(call: ApiCall, query: GoalsQuery, _body: Nothing) -> Response:
    """List goals of all users."""
    wanted, own = read_labels([] if query.label is None else [query.label]), call.caller.labels
    if any(own.get(name, value) != value for name, value in wanted.items()):
        return document(told(GoalsDocument(goals=(), next=None)))
    labels = {**wanted, **own}
    async with call.limits.pages.slot(call.caller.user):
        goals, following = await page_of_goals(
            call.client, limit=query.limit, before=query.cursor, open_only=query.open, labels=labels, phase=query.phase
        )
    return document({"goals": goals, "next": following})


async def show(call: ApiCall, query: WhoseQuery, _body: Nothing) -> Response:
    """Show one goal."""
    async with call.looking(await call.goal(query.user), with_team=True) as status:
        return document(told(GoalDocument.of(status)))


async def result(call: ApiCall, query: ResultQuery, _body: Nothing) -> Response:
    """Show how a goal ended, and wait for it if that is asked."""
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
    """Tell a result, if there is one. What is not on record was refused, or may be one of those goals of its user that wait.

    Raises:
        NotFoundError: There is no such goal.
    """
    try:
        return await _end(call, name)
    except NotFoundError:
        refused = await call.client.result(name)
        if refused is not None:
            return _shown(refused)
        if await call.client.system.waiting(name):
            return None
        return await _end(call, name)  # which may have been put on record meanwhile


async def _end(call: ApiCall, name: GoalName) -> Response | None:
    """Tell how a goal on record ended, in the turn in which that is read; None if it has not.

    Raises:
        NotFoundError: There is no such goal on record.
    """
    async with call.looking(name, with_team=False) as status:
        return None if status.result is None else _shown(status.result)


def _shown(result: GoalResult) -> Response:
    return document(told(ResultDocument.of(result)))


async def cancel(call: ApiCall, query: WhoseQuery, order: CancelOrder) -> Response:
    """Cancel a goal of the caller's; one that has ended stays as it ended, which is told to a key that may read it."""
    name = await call.goal(query.user)
    may_read = name.owner == call.caller.user and Scope.GOALS_READ in call.caller.scopes
    is_told = may_read and (await call.look(name)).has_ended
    await call.client.cancel(name, order.why)
    if is_told and (ended := await _end(call, name)) is not None:  # read anew: no result is held while group setup is asked
        return ended
    return document(told(CancellingDocument(goal_id=name.goal_id, user=name.owner)), 202)
