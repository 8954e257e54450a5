"""A2A request handler: reads and changes goals as A2A tasks. It stores nothing, so any replica serves any task."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

import structlog
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size

from ioa.cancellation import fail_after
from ioa.client.client import END
from ioa.client.seat import id_under
from ioa.client.waiting import people_in
from ioa.errors import (
    Fault,
    ForbiddenError,
    InvalidInputError,
    IoaError,
    NotFoundError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
    row_of,
)
from ioa.group.events import QuestionAnswered, Said
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.api_keys import Scope
from ioa.protocol.goals import Goal
from ioa.protocol.team import person_of
from ioa_gateway.a2a.configs import check_push, create_push, describe_push, find_push, list_pushes
from ioa_gateway.a2a.orders import (
    CONTEXT,
    create_order,
    derive_goal_id,
    message_data,
    message_text,
    parse_reply,
)
from ioa_gateway.a2a.requests import REQUEST, A2ARequest
from ioa_gateway.a2a.tasks import HISTORY, TERMINAL, TaskWriter, a2a_context, last_page, task_state
from ioa_gateway.api.goals import sequence_in
from ioa_gateway.context import WITHIN
from ioa_gateway.open_questions import as_asked, asked_of, documents_of, questions_to, settled
from ioa_gateway.pagination import LOOKED_THROUGH, MOST_BYTES, MOST_FOUND, MOST_LOOKED_THROUGH

_PAGE_TASKS = 50

_log = structlog.get_logger(__name__)


class Tasks(RequestHandler):
    """Tasks are goals."""

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Start a task or answer in one; by default, wait until the task ends or needs input."""
        async with _checked(context) as request:
            goal = await request.call.while_let_in(_accept(params, request))
            if not params.configuration.return_immediately:
                await request.call.while_let_in(settled(request.call, goal.name, request.call.left))
            return apply_history_length((await _read_task(request, goal))[0], params.configuration)

    async def on_message_send_stream(self, params: SendMessageRequest, context: ServerCallContext) -> AsyncGenerator[Event, None]:
        """Start a task or answer in one, and follow the task."""
        async with _checked(context) as request:
            goal = await request.call.while_let_in(_accept(params, request))
            async with aclosing(_follow(request, goal)) as events:
                async for event in events:
                    yield apply_history_length(event, params.configuration) if isinstance(event, Task) else event

    async def on_subscribe_to_task(self, params: SubscribeToTaskRequest, context: ServerCallContext) -> AsyncGenerator[Event, None]:
        """Return the task, then its events after that or after the header `Last-Event-ID`."""
        validate_proto_required_fields(params)
        async with _checked(context) as request:
            after = sequence_in(request.call.headers.get("last-event-id", ""))
            ended = UnsupportedOperationError("The task has ended; read it with GetTask.") if after is None else None
            async with aclosing(_follow(request, await _find_goal(request, params.id, ended), after)) as events:
                async for event in events:
                    yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Return a task."""
        validate_proto_required_fields(params)
        validate_history_length(params)
        async with _checked(context, timeout=WITHIN) as request:
            return apply_history_length((await _read_task(request, await _find_goal(request, params.id)))[0], params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List the tasks that were started by A2A, newest first."""
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        async with _checked(context, timeout=WITHIN) as request:
            return await _list_tasks(request, params)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel a task, and return it when it has ended."""
        validate_proto_required_fields(params)
        async with _checked(context, Scope.GOALS_WRITE) as request:
            goal = await _find_goal(request, params.id, TaskNotCancelableError("The task has ended already."))
            await request.call.client.cancel(goal.name, "by A2A")
            await request.call.while_let_in(request.call.client.result(goal.name, wait=True))
            return (await _read_task(request, goal))[0]

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Push a task to a URL until it ends; a configuration with the same id is replaced."""
        validate_proto_required_fields(params)
        async with _checked(context, Scope.WEBHOOKS_WRITE) as request:
            goal = await _find_goal(request, params.task_id)
            await check_push(request, goal.goal_id, params)
            return describe_push(request, await create_push(request, goal, params))

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Return a push configuration of a task."""
        async with _checked(context, Scope.WEBHOOKS_WRITE, timeout=WITHIN) as request:
            found = await find_push(request, await _find_goal(request, params.task_id), params.id)
            if found is None:
                raise NotFoundError(f"The task has no push configuration {params.id}.")
            return describe_push(request, found)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """List the push configurations of a task, in one page."""
        async with _checked(context, Scope.WEBHOOKS_WRITE, timeout=WITHIN) as request:
            found = await list_pushes(request, await _find_goal(request, params.task_id))
            return ListTaskPushNotificationConfigsResponse(configs=[describe_push(request, hook) for hook in found])

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Remove a push configuration of a task, if there is one."""
        async with _checked(context, Scope.WEBHOOKS_WRITE, timeout=WITHIN) as request:
            found = await find_push(request, await _find_goal(request, params.task_id), params.id)
            if found is not None:
                await request.call.hooks.store.erase(found.webhook_id)

    async def on_get_extended_agent_card(self, params: GetExtendedAgentCardRequest, context: ServerCallContext) -> AgentCard:
        """Reject the request: an authenticated client gets the same card."""
        raise UnsupportedOperationError("There is only the public card.")


@asynccontextmanager
async def _checked(context: ServerCallContext, *scopes: Scope, timeout: timedelta | None = None) -> AsyncIterator[A2ARequest]:
    """Yield the request if its key has these scopes, and convert errors of the system to errors of A2A."""
    request = context.state[REQUEST]
    assert isinstance(request, A2ARequest), "the application puts it there"
    try:
        request.call.caller.check(*scopes)
        try:
            async with fail_after(None if timeout is None else timeout.total_seconds()):
                yield request
        except TimeoutError:
            raise UnavailableError("The system did not answer in time.") from None
    except NotFoundError as error:
        raise TaskNotFoundError(str(error)) from error
    except (ForbiddenError, RateLimitedError, UnauthenticatedError) as error:
        raise InvalidRequestError(str(error)) from error
    except IoaError as error:
        kind = InvalidParamsError if row_of(error).fault is Fault.CALLER else InternalError
        raise kind(str(error)) from error
    except Exception as error:
        if not isinstance(error, A2AError):
            _log.exception("request_failed")
        raise


async def _accept(params: SendMessageRequest, request: A2ARequest) -> Goal:
    """Launch the goal of a message, or answer in the task that the message names. A repeated message has no further effect."""
    validate_proto_required_fields(params)
    validate_history_length(params.configuration)
    call, message = request.call, params.message
    has_push = params.configuration.HasField("task_push_notification_config")
    push = params.configuration.task_push_notification_config
    if message.task_id:
        goal = await _find_goal(request, message.task_id)
        if message.context_id and message.context_id != a2a_context(goal):
            raise InvalidParamsError("The task belongs to another context.")
        if has_push:  # an invalid push configuration is rejected before any effect
            await check_push(request, goal.goal_id, push)
        await _answer(request, goal, message)
    else:
        call.caller.check(Scope.GOALS_WRITE)
        if has_push:
            await check_push(request, derive_goal_id(message, request.pool, call), push)
        order = call.with_caller(await create_order(message, request))
        launched = await call.client.launch(order)
        goal = launched.record.goal if launched.record is not None else order.accepted(launched.name, ())
    if has_push:
        await create_push(request, goal, push)
    return goal


async def _answer(request: A2ARequest, goal: Goal, message: Message) -> None:
    """Send the answer of a person or of the goal's user, once per message id, whatever is asked when it is repeated.

    Raises:
        UnsupportedOperationError: The task asks the caller nothing.
        InvalidInputError: Several answers are missing, and the message does not name one of them.
    """
    call, caller, key = request.call, request.call.caller, f"{request.call.caller.key_id}|{message.message_id}"
    async with as_asked(call, goal.name) as status:
        members = () if status.standing is None else people_in(status.standing.state)
        turns, questions = asked_of(caller, status), questions_to(caller, status)
    if await _is_in_log(request, goal, {one: id_under(one, goal.comm_id, key) for one in (goal.name.owner, *members)}):
        return
    text, data = message_text(message), message_data(message)
    item, named = data.pop("item", None), data.pop("seat", None)
    turns = [one for one in turns if item in (None, one.item) and named in (None, person_of(one.me))]
    questions = tuple(one for one in questions if item in (None, one.item) and named is None)
    if turns:
        _check_single("seat", [person_of(one.me) for one in turns])
        async with call.seat(person_of(turns[0].me)) as seat:
            await seat.answer(turns[0].item, parse_reply(text, data, turns[0].offer.options), key=key)
    elif questions:
        _check_single("item", [one.item for one in questions])
        async with call.limits.pages.slot(caller.user):
            await call.client.answer(questions[0].item, text, key=id_under(goal.name.owner, goal.comm_id, key))
    else:
        raise UnsupportedOperationError("The task waits for no message of yours.")


async def _is_in_log(request: A2ARequest, goal: Goal, answer_ids: Mapping[str, str]) -> bool:
    """Return whether the log contains one of these answers, by author: a person, or the goal's user."""
    call = request.call
    async with call.limits.pages.slot(call.caller.user), aclosing(call.client.read(goal.name, before=END)) as entries:
        async for stored in entries:
            event = stored.entry.event
            if isinstance(event, Said) and answer_ids.get(event.message.header.sender) == event.message.header.message_id:
                return True
            if isinstance(event, QuestionAnswered) and event.key == answer_ids[goal.name.owner]:
                return True
    return False


def _check_single(field: str, values: Sequence[str]) -> None:
    """Reject a message that could answer several items.

    Raises:
        InvalidInputError: There are several values.
    """
    if len(values) > 1:
        names = ", ".join(values)
        raise InvalidInputError(f"Several things wait: say by a part of data with `{field}` which this answers: {names}.")


async def _find_goal(request: A2ARequest, task_id: str, ended_error: A2AError | None = None) -> Goal:
    """Return the goal of a task.

    Raises:
        A2AError: `ended_error`, if the task has ended.
    """
    found = await request.call.look(await request.call.goal(None, task_id))
    if ended_error is not None and found.result is not None:
        raise ended_error
    return found.record.goal


async def _read_task(
    request: A2ARequest, goal: Goal, writer: TaskWriter | None = None, max_entries: int = HISTORY
) -> tuple[Task, int]:
    """Return the task of a goal with its last entries, and the sequence of the last entry."""
    call, writer = request.call, writer or TaskWriter(goal, request.base_url, request.call.caller)
    try:
        async with as_asked(call, goal.name) as status:
            documents = (await last_page(call.client, goal.name, max_entries)).documents
            return writer.task(status, documents), int(documents[-1]["seq"]) if documents else 0
    except NotFoundError:  # the goal was rejected, or waits until other goals of its user end
        return writer.submitted(await call.client.result(goal.name)), 0


async def _follow(request: A2ARequest, goal: Goal, after: int | None = None) -> AsyncGenerator[Event, None]:
    """Yield the task, then its events after the task or after a sequence, until the task ends."""
    call, writer = request.call, TaskWriter(goal, request.base_url, request.call.caller)
    task, seq = await _read_task(request, goal, writer)
    yield task
    if task.status.state in TERMINAL and after is None:
        return
    del task  # it can be megabytes long, and streams last for hours
    async with aclosing(documents_of(call, goal.name, seq if after is None else after)) as documents:
        async for entry in documents:
            if entry is None:
                continue
            if writer.is_asked(entry):
                async with as_asked(call, goal.name) as status:
                    updates = [*writer.updates(entry, status)]
            else:
                updates = [*writer.updates(entry)]
            for update in updates:
                yield update
    if call.streams.may_go_on(call.caller):
        result = await call.while_let_in(call.client.result(goal.name, wait=True))
        for update in writer.end(result):
            yield update


async def _list_tasks(request: A2ARequest, params: ListTasksRequest) -> ListTasksResponse:
    """Return a page of tasks. The token of the next page is the id of the last task."""
    goals = [goal async for goal in _find_goals(request, params)]
    ids: list[str] = [goal.goal_id for goal in goals]
    if params.page_token and params.page_token not in ids:
        raise InvalidParamsError("The page token is none of this list.")
    start = ids.index(params.page_token) + 1 if params.page_token else 0
    shows_entries = params.include_artifacts or not params.HasField("history_length") or params.history_length > 0
    tasks, size = list[Task](), 0
    for goal in goals[start : start + (params.page_size or _PAGE_TASKS)]:
        task, _ = await _read_task(request, goal, max_entries=HISTORY if shows_entries else 1)
        if not params.include_artifacts:
            task.ClearField("artifacts")
        tasks.append(apply_history_length(task, params))
        size += tasks[-1].ByteSize()
        if size > MOST_BYTES:
            break
    token = tasks[-1].id if tasks and start + len(tasks) < len(goals) else ""
    return ListTasksResponse(tasks=tasks, next_page_token=token, page_size=len(tasks), total_size=len(goals))


async def _find_goals(request: A2ARequest, params: ListTasksRequest) -> AsyncIterator[Goal]:
    """Yield the goals that match a list request, newest first."""
    call, before, found, looked_at = request.call, None, 0, 0
    labels = {**({CONTEXT: params.context_id} if params.context_id else {}), **call.caller.labels}
    while found < MOST_FOUND and looked_at < MOST_LOOKED_THROUGH:
        async with call.limits.pages.slot(call.caller.user):
            page = await call.client.goals(limit=LOOKED_THROUGH, before=before, labels=labels, user=call.caller.owner)
        for status in page.goals:
            if _matches(status, request, params):
                yield status.record.goal
        before, found, looked_at = page.before, found + len(page.goals), looked_at + page.looked_at
        if before is None:
            return


def _matches(status: GoalStatus, request: A2ARequest, params: ListTasksRequest) -> bool:
    goal = status.record.goal
    changed_at = status.result.finished_at if status.result else status.record.accepted_at
    return (
        goal.name.owner == request.call.caller.user
        and CONTEXT in goal.labels
        and (goal.agent or "") == (request.pool or "")
        and params.status in (0, task_state(status, request.call.caller))
        and (
            not params.HasField("status_timestamp_after")
            or changed_at.timestamp() >= params.status_timestamp_after.ToNanoseconds() / 1e9
        )
    )
