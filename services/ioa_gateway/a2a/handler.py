"""A2A request handler: reads and changes goals as A2A tasks. It stores nothing, so any replica serves any task."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC

from a2a.helpers import get_message_text
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
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from google.protobuf.message import Message as ProtoMessage

from ioa.client.client import END
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.goals import Goal, GoalResult
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.team import person_of
from ioa_gateway.a2a.messages import (
    CONTEXT,
    REQUEST,
    A2ARequest,
    create_order,
    derive_answer_id,
    derive_goal_id,
    logged_id,
    message_data,
    parse_reply,
)
from ioa_gateway.a2a.pushes import check_push, create_push, describe_push, list_pushes, push_id
from ioa_gateway.a2a.tasks import ASKING, TERMINAL, TaskWriter, a2a_context, last_page, task_state
from ioa_gateway.context import ApiCall
from ioa_gateway.open_questions import awaited_turns, follow_goal, questions_to, read_status, wait_for_goal
from ioa_gateway.pagination import MOST_BYTES
from ioa_gateway.problems import problem_of

_ERRORS = {404: TaskNotFoundError, 409: InvalidParamsError, 422: InvalidParamsError}
"""Errors of A2A by HTTP status."""
_PAGE_TASKS, _PAGE_GOALS, _MAX_GOALS = 50, 200, 5_000
"""Default tasks in a page, goals in a read, and maximum goals that a list looks at."""


class Tasks(RequestHandler):
    """Tasks are goals."""

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Start a task or answer in one; by default, wait until the task ends or needs input."""
        async with _checked(params, context) as request:
            goal = await _accept(params, request)
            if not params.configuration.return_immediately:
                await request.call.while_connected(wait_for_goal(request.call, goal.name))
            return apply_history_length(await _read_task(request, goal), params.configuration)

    async def on_message_send_stream(self, params: SendMessageRequest, context: ServerCallContext) -> AsyncGenerator[Event, None]:
        """Start a task or answer in one, and follow the task."""
        async with _checked(params, context) as request:
            goal = await _accept(params, request)
            async with aclosing(_follow(request, goal, TERMINAL | {ASKING})) as events:
                async for event in events:
                    yield apply_history_length(event, params.configuration) if isinstance(event, Task) else event

    async def on_subscribe_to_task(self, params: SubscribeToTaskRequest, context: ServerCallContext) -> AsyncGenerator[Event, None]:
        """Return the task, then its events after that."""
        async with _checked(params, context) as request:
            goal = await _find_goal(request, params.id, UnsupportedOperationError("The task has ended; read it with GetTask."))
            async with aclosing(_follow(request, goal, TERMINAL)) as events:
                async for event in events:
                    yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Return a task."""
        validate_history_length(params)
        async with _checked(params, context) as request:
            return apply_history_length(await _read_task(request, await _find_goal(request, params.id)), params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List the tasks that were started by A2A, newest first."""
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        async with _checked(params, context) as request:
            return await _list_tasks(request, params)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel a task, and return it when it has ended."""
        async with _checked(params, context, Scope.GOALS_WRITE) as request:
            goal = await _find_goal(request, params.id, TaskNotCancelableError("The task has ended already."))
            await request.call.client.cancel(goal.name, "by A2A")
            await request.call.client.wait_for_result(goal.name)
            return await _read_task(request, goal)

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Push a task to a URL until it ends; a configuration with the same id is replaced."""
        async with _checked(params, context, Scope.WEBHOOKS_WRITE) as request:
            goal_id = (await _find_goal(request, params.task_id)).goal_id
            await check_push(request, goal_id, params)
            return describe_push(await create_push(request, goal_id, params))

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Return a push configuration of a task."""
        async with _checked(params, context, Scope.WEBHOOKS_WRITE) as request:
            found = await request.call.hooks.find(push_id(request, params.task_id, params.id))
            if found is None:
                raise NotFoundError(f"The task has no push configuration {params.id}.")
            return describe_push(found)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """List the push configurations of a task, in one page."""
        async with _checked(params, context, Scope.WEBHOOKS_WRITE) as request:
            found = await list_pushes(request, (await _find_goal(request, params.task_id)).goal_id)
            return ListTaskPushNotificationConfigsResponse(configs=[describe_push(hook) for hook in found])

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Remove a push configuration of a task, if there is one."""
        async with _checked(params, context, Scope.WEBHOOKS_WRITE) as request:
            await request.call.hooks.erase(push_id(request, params.task_id, params.id))

    async def on_get_extended_agent_card(self, params: GetExtendedAgentCardRequest, context: ServerCallContext) -> AgentCard:
        """Reject the request: an authenticated client gets the same card."""
        raise UnsupportedOperationError("There is only the public card.")


@asynccontextmanager
async def _checked(params: ProtoMessage, context: ServerCallContext, *scopes: Scope) -> AsyncIterator[A2ARequest]:
    """Yield the request if it is complete and its key has these scopes, and convert errors to errors of A2A.

    An error without an equal in A2A decides the HTTP status of the response, see `A2ARequest`.
    """
    request: A2ARequest = context.state[REQUEST]
    validate_proto_required_fields(params)
    try:
        request.call.caller.check(*scopes)
        yield request
    except A2AError:
        raise
    except Exception as error:
        kind = _ERRORS.get(problem_of(error).status)
        if kind is None:
            request.error = error
            raise InternalError from error
        raise kind(str(error)) from error


async def _accept(params: SendMessageRequest, request: A2ARequest) -> Goal:
    """Launch the goal of a message, or answer in the task that the message names. A repeated message has no further effect."""
    validate_history_length(params.configuration)
    call, message = request.call, params.message
    has_push = params.configuration.HasField("task_push_notification_config")
    push = params.configuration.task_push_notification_config
    goal = await _find_goal(request, message.task_id) if message.task_id else None
    if goal is None:
        call.caller.check(Scope.GOALS_WRITE)
    elif message.context_id not in ("", a2a_context(goal)):
        raise InvalidParamsError("The task belongs to another context.")
    if has_push:  # an invalid push configuration is rejected before any effect
        await check_push(request, goal.goal_id if goal else derive_goal_id(message, request.pool, call), push)
    if goal is not None:
        await _answer(call, goal, message)
    else:
        order = call.with_caller(await create_order(message, request))
        launched = await call.client.launch(order)
        goal = launched.record.goal if launched.record is not None else order.accepted(launched.name, ())
    if has_push:
        await create_push(request, goal.goal_id, push)
    return goal


async def _answer(call: ApiCall, goal: Goal, message: Message) -> None:
    """Send the answer of a person or of the goal's user, once per message id, whatever is asked when it is repeated.

    Raises:
        UnsupportedOperationError: The task asks the caller nothing.
        InvalidInputError: Several answers are missing, and the message does not name one of them.
    """
    caller, answer_id = call.caller, derive_answer_id(message, goal, call)
    status = await read_status(call, goal.name)
    turns, questions = awaited_turns(caller, status), questions_to(caller, status)
    async with aclosing(call.client.read(goal.name, before=END)) as entries:
        async for stored in entries:
            if logged_id(stored.entry.event) == answer_id:
                return
    text, data = get_message_text(message, "\n\n"), message_data(message)
    item, named = data.pop("item", None), data.pop("seat", None)
    turns = [one for one in turns if item in (None, one.item) and named in (None, person_of(one.me))]
    questions = tuple(one for one in questions if item in (None, one.item) and named is None)
    names = [person_of(one.me) for one in turns] or [one.item for one in questions]
    if len(names) > 1:
        field = "seat" if turns else "item"
        raise InvalidInputError(f"Several questions are open; name one by `{field}` in a data part: {', '.join(names)}.")
    if turns:
        seat = await call.seat(person_of(turns[0].me))
        await seat.answer(turns[0].item, parse_reply(text, data, turns[0].offer.options), message_id=answer_id)
    elif questions:
        await call.client.answer(questions[0].item, text, key=answer_id)
    else:
        raise UnsupportedOperationError("The task waits for no message of yours.")


async def _find_goal(request: A2ARequest, task_id: str, ended_error: A2AError | None = None) -> Goal:
    """Return the goal of a task.

    Raises:
        A2AError: `ended_error`, if the task has ended.
    """
    found = await request.call.look(await request.call.goal(None, task_id))
    if ended_error is not None and found.result is not None:
        raise ended_error
    return found.record.goal


async def _read_task(request: A2ARequest, goal: Goal, writer: TaskWriter | None = None) -> Task:
    """Return the task of a goal with its last entries."""
    call, writer = request.call, writer or TaskWriter(goal, request.base_url, request.call.caller)
    try:
        return writer.task(await read_status(call, goal.name), await last_page(call.client, goal.name))
    except NotFoundError:  # the goal was rejected, or waits until other goals of its user end
        return writer.submitted(await call.client.result(goal.name))


async def _follow(request: A2ARequest, goal: Goal, closed: frozenset[TaskState]) -> AsyncGenerator[Event, None]:
    """Yield the task, then its events until it ends or needs input again; none after a task in one of the closed states."""
    call, writer = request.call, TaskWriter(goal, request.base_url, request.call.caller)
    task = await _read_task(request, goal, writer)
    yield task
    if task.status.state in closed:
        return
    seq, was_asked = int(task.metadata["ioa.seq"]) if "ioa.seq" in task.metadata else 0, task.status.state == ASKING
    del task  # it can be megabytes long, and streams last for hours
    async with aclosing(follow_goal(call, goal.name, seq, was_asked=was_asked)) as news:
        async for one in news:
            if isinstance(one, GoalStatus):
                yield writer.asking(one)
                return
            if one is not None:
                for update in writer.end(one) if isinstance(one, GoalResult) else writer.updates(one):
                    yield update


async def _list_tasks(request: A2ARequest, params: ListTasksRequest) -> ListTasksResponse:
    """Return a page of tasks, newest first. The token of the next page is the id of the last task."""
    goals = await _find_goals(request, params)
    ids = ["", *(goal.goal_id for goal in goals)]
    if params.page_token not in ids:
        raise InvalidParamsError("The page token is none of this list.")
    start, tasks, size = ids.index(params.page_token), list[Task](), 0
    for goal in goals[start : start + (params.page_size or _PAGE_TASKS)]:
        task = await _read_task(request, goal)
        if not params.include_artifacts:
            task.ClearField("artifacts")
        tasks.append(apply_history_length(task, params))
        size += tasks[-1].ByteSize()
        if size > MOST_BYTES:
            break
    token = tasks[-1].id if tasks and start + len(tasks) < len(goals) else ""
    return ListTasksResponse(tasks=tasks, next_page_token=token, page_size=len(tasks), total_size=len(goals))


async def _find_goals(request: A2ARequest, params: ListTasksRequest) -> Sequence[Goal]:
    call, before, looked_at, found = request.call, None, 0, list[Goal]()
    labels = {**({CONTEXT: params.context_id} if params.context_id else {}), **call.caller.labels}
    while looked_at < _MAX_GOALS:
        async with call.page_read():
            page = await call.client.goals(limit=_PAGE_GOALS, before=before, labels=labels, user=call.caller.user)
        found += [status.record.goal for status in page.goals if _matches(status, request, params)]
        before, looked_at = page.before, looked_at + page.looked_at
        if before is None:
            break
    return found


def _matches(status: GoalStatus, request: A2ARequest, params: ListTasksRequest) -> bool:
    goal, changed_at = status.record.goal, status.result.finished_at if status.result else status.record.accepted_at
    return (
        CONTEXT in goal.labels
        and str(goal.agent) == str(request.pool)
        and params.status in (0, task_state(status, request.call.caller))
        and changed_at >= params.status_timestamp_after.ToDatetime(UTC)
    )
