"""Routes of goals: launch, list, show, cancel and rerun."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from ioa.client.documents import GoalDocument, GoalRow, ResultDocument
from ioa.client.rerun import order_rerun
from ioa.concurrency import fail_after
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.requests import PAGE_GOALS, PHASES_OF_GOALS, GoalPhase
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import MAX_GOAL_CHARS, GoalResult, bears, read_labels, refuse_reserved
from ioa.protocol.ids import CommId, GoalId, GoalIdField, GoalName, UserId, UserIdField
from ioa.protocol.model import Instruction, Model
from ioa_gateway.context import ApiCall, LaunchCall, ReadCall, ReadLaunchCall

MAX_SEQUENCE = 2**53
_MAX_WAIT_SECONDS = 50

router = APIRouter()

UserQuery = Annotated[UserIdField | None, Query(description="the user of the goal; default: the user of the key")]


async def _visible_goal(
    request: Request, goal_id: Annotated[GoalIdField, Path(description="the id of a goal")], user: UserQuery = None
) -> GoalName:
    call: ApiCall = request.state.call
    return await call.goal(user, goal_id)


GoalPath = Annotated[GoalName, Depends(_visible_goal)]
"""The goal that a request names, if the caller may see it."""
NumberPath = Annotated[int, Path(ge=0, le=MAX_SEQUENCE)]
IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=255, description="requests with the same key launch one goal")
]


def _check_phase(phase: object) -> object:
    """Name all phases in one error. A union has one error for each of its parts."""
    if phase not in PHASES_OF_GOALS:
        raise ValueError(f"Input should be {', '.join(PHASES_OF_GOALS[:-1])} or {PHASES_OF_GOALS[-1]}")
    return phase


class LaunchedDocument(Model):
    """A stored goal; `accepted` is false if the acceptance takes longer."""

    goal_id: GoalId
    user: UserId
    comm_id: CommId
    accepted: bool


class GoalsDocument(Model):
    """A page of goals, newest first; `next` is the `cursor` of the next page, null on the last page."""

    goals: tuple[GoalRow, ...]
    next: int | None


class CancellingDocument(Model):
    """A goal that is being cancelled."""

    goal_id: GoalId
    user: UserId


class CancelOrder(Instruction):
    """The reason of a cancellation."""

    why: Annotated[str, Field(max_length=4_000)] = ""


class RerunOrder(Instruction):
    """The message of a goal that a rerun replaces."""

    at: Annotated[int, Field(ge=1, le=MAX_SEQUENCE, description="the sequence of the message's entry")]
    message: Annotated[str, Field(min_length=1, max_length=MAX_GOAL_CHARS, description="the new text of the message")]


_LAUNCHED: dict[int | str, dict[str, Any]] = {
    200: {"model": LaunchedDocument, "description": "The goal was launched with this idempotency key before."},
    202: {"model": LaunchedDocument, "description": "The goal is stored and will not be lost, but is not accepted yet."},
}


@router.post("/goals", status_code=201, responses=_LAUNCHED)
async def launch(
    call: LaunchCall, order: GoalOrder, response: Response, idempotency_key: IdempotencyKey = None
) -> LaunchedDocument:
    """Launch a goal. The same idempotency key launches one goal."""
    if order.goal_id is not None:
        raise InvalidInputError(
            "A goal that comes by HTTP has no `goal_id`.", hint="Send Idempotency-Key to be able to repeat the request."
        )
    refuse_reserved(order.labels)
    return await _launch(call, order, idempotency_key, response)


@router.post("/goals/{goal_id}/rerun", status_code=201, responses=_LAUNCHED)
async def rerun(
    call: ReadLaunchCall, name: GoalPath, order: RerunOrder, response: Response, idempotency_key: IdempotencyKey = None
) -> LaunchedDocument:
    """Launch a new goal that continues a goal up to one message, with this message replaced."""
    return await _launch(call, await order_rerun(call.client, name, order.at, order.message), idempotency_key, response)


async def _launch(call: ApiCall, order: GoalOrder, idempotency_key: str | None, response: Response) -> LaunchedDocument:
    """Launch an order with the caller's labels and the id that is derived from its idempotency key."""
    order, is_known = call.with_caller(order), False
    if idempotency_key is not None:
        goal_id = call.caller.goal_id("k", idempotency_key)
        order = order.model_copy(update={"goal_id": goal_id})
        with suppress(NotFoundError):
            await call.look(GoalName(call.caller.user, goal_id))
            is_known = True
    launched = await call.client.launch(order)
    response.status_code = 202 if launched.record is None else 200 if is_known else 201
    response.headers["Location"] = f"/v1/goals/{launched.goal_id}"
    return LaunchedDocument(
        goal_id=launched.goal_id, user=launched.name.user, comm_id=launched.comm_id, accepted=launched.record is not None
    )


@router.get("/goals")
async def list_goals(
    call: ReadCall,
    limit: Annotated[int, Query(ge=1, le=200, description="maximum number of goals")] = PAGE_GOALS,
    cursor: Annotated[int | None, Query(ge=1, le=MAX_SEQUENCE, description="`next` of the previous page")] = None,
    open_only: Annotated[bool, Query(alias="open", description="only goals that have not ended; a page can be short")] = False,
    phase: Annotated[GoalPhase | None, BeforeValidator(_check_phase), Query(description="only goals in this phase")] = None,
    label: Annotated[str | None, Query(max_length=300, description="only goals with this label, such as `team=x`")] = None,
) -> GoalsDocument:
    """List goals, newest first."""
    wanted, user = read_labels([] if label is None else [label]), call.caller.owner
    labels = {**wanted, **call.caller.labels}
    if not bears(labels, wanted):
        return GoalsDocument(goals=(), next=None)
    async with call.page_read():
        page = await call.client.goals(limit=limit, before=cursor, open_only=open_only, labels=labels, phase=phase, user=user)
        return GoalsDocument(goals=tuple(map(GoalRow.of, page.goals)), next=page.before)


@router.get("/goals/{goal_id}")
async def show(call: ReadCall, name: GoalPath) -> GoalDocument:
    """Show a goal, its team and its tasks."""
    return GoalDocument.of(await call.look(name, with_team=True))


@router.get("/goals/{goal_id}/result", response_model=ResultDocument, responses={204: {"description": "The goal has not ended."}})
async def result(
    call: ReadCall,
    name: GoalPath,
    wait: Annotated[float, Query(ge=0, le=_MAX_WAIT_SECONDS, description="seconds to wait for the result")] = 0,
) -> ResultDocument | Response:
    """Show the result of a goal, and wait for it if `wait` is set."""
    found = await _result(call, name)
    if found is None and wait:
        with suppress(TimeoutError):
            async with fail_after(wait):
                found = await call.client.wait_for_result(name)
    return Response(status_code=204) if found is None else ResultDocument.of(found)


async def _result(call: ApiCall, name: GoalName) -> GoalResult | None:
    """Return the result of a goal, if there is one, or raise `NotFoundError`.

    A goal without a record was rejected, and has a result, or waits to be accepted.
    """
    if (found := await call.client.result(name)) is not None:
        return found
    with suppress(NotFoundError):
        return (await call.look(name)).result
    if await call.client.count_waiting(name):
        return None
    return (await call.look(name)).result  # its record may have been written in the meantime


@router.post("/goals/{goal_id}/cancel", status_code=202)
async def cancel(call: LaunchCall, name: GoalPath, order: CancelOrder | None = None) -> CancellingDocument:
    """Cancel a goal of the caller. If it has ended, its result stays."""
    await call.client.cancel(name, "" if order is None else order.why)
    return CancellingDocument(goal_id=name.goal_id, user=name.user)
