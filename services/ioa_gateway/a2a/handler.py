"""A2A request handler: reads and changes goals as A2A tasks. It stores nothing, so any replica serves any task."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC

from a2a import types
from a2a.helpers import get_message_text
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.utils import errors
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from google.protobuf.message import Message as ProtoMessage

from ioa.client.client import END
from ioa.errors import InvalidInputError, NotFoundError, UnavailableError
from ioa.group.requests import GoalStatus
from ioa.protocol.goals import Goal, GoalResult
from ioa.protocol.ids import PoolId
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.teams.team_file import person_of
from ioa_gateway.a2a.a2a_messages import (
    CONTEXT,
    create_order,
    derive_answer_id,
    derive_goal_id,
    logged_id,
    message_data,
    parse_reply,
)
from ioa_gateway.a2a.a2a_tasks import ASKING, TERMINAL, TaskWriter, a2a_context, last_page, task_state
from ioa_gateway.a2a.pushes import describe_push, prepare_push, push_id
from ioa_gateway.api.webhook_routes import is_made_by, store_webhook
from ioa_gateway.context import ApiCall
from ioa_gateway.open_questions import CallerStatus, follow_goal, read_status, status_for
from ioa_gateway.pagination import MOST_BYTES
from ioa_gateway.problems import problem_of

_ERRORS = {404: errors.TaskNotFoundError, 409: errors.InvalidParamsError, 422: errors.InvalidParamsError}
"""Errors of A2A by HTTP status."""
_PAGE_TASKS, _PAGE_GOALS, _MAX_GOALS = 50, 200, 5_000
"""Default tasks in a page, goals in a read, and maximum goals that a list looks at."""


@dataclass
class Tasks(RequestHandler):
    """The goals of a caller as tasks, for one authenticated request.

    Attributes:
        call: The request.
        pool: The pool of the URL; None for all agents.
        base_url: The gateway's URL, as the client knows it.
        error: The error that decides the status of the response, instead of an error of A2A.
    """

    call: ApiCall
    pool: PoolId | None
    base_url: str
    error: Exception | None = None

    async def on_message_send(self, params: types.SendMessageRequest, context: ServerCallContext) -> types.Task:
        """Start a task or answer in one; by default, wait until the task ends or needs input."""
        async with self._checked(params):
            goal = await self._accept(params)
            if not params.configuration.return_immediately:
                await self.call.while_connected(self._wait(goal))
            return apply_history_length(await self._read_task(goal), params.configuration)

    async def on_message_send_stream(
        self, params: types.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Start a task or answer in one, and follow the task."""
        async with self._checked(params):
            goal = await self._accept(params)
            async with aclosing(self._follow(goal, {*TERMINAL, ASKING})) as events:
                async for event in events:
                    yield apply_history_length(event, params.configuration) if isinstance(event, types.Task) else event

    async def on_subscribe_to_task(
        self, params: types.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Return the task, then its events after that."""
        async with self._checked(params):
            ended_error = errors.UnsupportedOperationError("The task has ended; read it with GetTask.")
            async with aclosing(self._follow(await self._find_goal(params.id, ended_error), TERMINAL)) as events:
                async for event in events:
                    yield event

    async def on_get_task(self, params: types.GetTaskRequest, context: ServerCallContext) -> types.Task:
        """Return a task."""
        validate_history_length(params)
        async with self._checked(params):
            return apply_history_length(await self._read_task(await self._find_goal(params.id)), params)

    async def on_list_tasks(self, params: types.ListTasksRequest, context: ServerCallContext) -> types.ListTasksResponse:
        """List the tasks that were started by A2A, newest first. The token of the next page is the id of the last task."""
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        async with self._checked(params):
            goals = await self._find_goals(params)
            ids = ["", *(goal.goal_id for goal in goals)]
            if params.page_token not in ids:
                raise errors.InvalidParamsError("The page token is none of this list.")
            start, tasks, size = ids.index(params.page_token), list[types.Task](), 0
            for goal in goals[start : start + (params.page_size or _PAGE_TASKS)]:
                task = apply_history_length(await self._read_task(goal), params)
                if not params.include_artifacts:
                    task.ClearField("artifacts")
                tasks.append(task)
                size += task.ByteSize()
                if size > MOST_BYTES:
                    break
            token = tasks[-1].id if tasks and start + len(tasks) < len(goals) else ""
            return types.ListTasksResponse(tasks=tasks, next_page_token=token, page_size=len(tasks), total_size=len(goals))

    async def on_cancel_task(self, params: types.CancelTaskRequest, context: ServerCallContext) -> types.Task:
        """Cancel a task, and return it when it has ended."""
        async with self._checked(params, Scope.GOALS_WRITE):
            goal = await self._find_goal(params.id, errors.TaskNotCancelableError("The task has ended already."))
            await self.call.client.cancel(goal.name, "by A2A")
            await self.call.client.wait_for_result(goal.name)
            return await self._read_task(goal)

    async def on_create_task_push_notification_config(
        self, params: types.TaskPushNotificationConfig, context: ServerCallContext
    ) -> types.TaskPushNotificationConfig:
        """Push a task to a URL until it ends; a configuration with the same id is replaced."""
        async with self._checked(params, Scope.WEBHOOKS_WRITE):
            goal = await self._find_goal(params.task_id)
            hook = await prepare_push(self.call, self.base_url, goal.goal_id, params)
            await store_webhook(self.call, hook)
            return describe_push(hook)

    async def on_get_task_push_notification_config(
        self, params: types.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> types.TaskPushNotificationConfig:
        """Return a push configuration of a task."""
        async with self._checked(params, Scope.WEBHOOKS_WRITE):
            found = await self.call.hooks.find(push_id(self.call, params.task_id, params.id))
            if found is None:
                raise NotFoundError(f"The task has no push configuration {params.id}.")
            return describe_push(found)

    async def on_list_task_push_notification_configs(
        self, params: types.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> types.ListTaskPushNotificationConfigsResponse:
        """List the push configurations of a task that the caller's key created, in one page."""
        async with self._checked(params, Scope.WEBHOOKS_WRITE):
            goal_id = (await self._find_goal(params.task_id)).goal_id
            hooks = [one async for one in self.call.hooks.all() if one.goal_id == goal_id and is_made_by(self.call, one)]
            configs = [describe_push(hook) for hook in hooks if hook.push is not None]
            return types.ListTaskPushNotificationConfigsResponse(configs=configs)

    async def on_delete_task_push_notification_config(
        self, params: types.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Remove a push configuration of a task, if there is one."""
        async with self._checked(params, Scope.WEBHOOKS_WRITE):
            await self.call.hooks.erase(push_id(self.call, params.task_id, params.id))

    async def on_get_extended_agent_card(
        self, params: types.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> types.AgentCard:
        """Reject the request: an authenticated client gets the same card."""
        raise errors.UnsupportedOperationError("There is only the public card.")

    @asynccontextmanager
    async def _checked(self, params: ProtoMessage, *scopes: Scope) -> AsyncIterator[None]:
        """Check that the request is complete and its key has these scopes, and convert errors to errors of A2A."""
        validate_proto_required_fields(params)
        try:
            self.call.caller.check(*scopes)
            yield
        except errors.A2AError:
            raise
        except Exception as error:
            kind = _ERRORS.get(problem_of(error).status)
            if kind is None:  # A2A has no equal error
                self.error = error
                raise errors.InternalError from error
            raise kind(str(error)) from error

    async def _accept(self, params: types.SendMessageRequest) -> Goal:
        """Launch the goal of a message, or answer in the task that the message names. A repeated message has no further effect."""
        validate_history_length(params.configuration)
        call, message, push = self.call, params.message, None
        goal = await self._find_goal(message.task_id) if message.task_id else None
        if goal is None:
            call.caller.check(Scope.GOALS_WRITE)
        elif message.context_id not in ("", a2a_context(goal)):
            raise errors.InvalidParamsError("The task belongs to another context.")
        if params.configuration.HasField("task_push_notification_config"):  # rejected before any effect if it is invalid
            goal_id = derive_goal_id(message, self.pool, call) if goal is None else goal.goal_id
            push = await prepare_push(call, self.base_url, goal_id, params.configuration.task_push_notification_config)
        if goal is not None:
            await self._answer(goal, message)
        else:
            order = call.with_caller(await create_order(message, self.pool, call))
            launched = await call.client.launch(order)
            goal = launched.record.goal if launched.record is not None else order.accepted(launched.name, ())
        if push is not None:
            await store_webhook(call, push)
        return goal

    async def _answer(self, goal: Goal, message: types.Message) -> None:
        """Send the answer of a person or of the goal's user, once per message id, whatever is asked when it is repeated.

        Raises:
            UnsupportedOperationError: The task asks the caller nothing.
            InvalidInputError: Several answers are missing, and the message does not name one of them.
        """
        client, answer_id = self.call.client, derive_answer_id(message, goal, self.call)
        found = await read_status(client, self.call.caller, goal.name)
        async with aclosing(client.read(goal.name, before=END)) as entries:
            async for stored in entries:
                if logged_id(stored.entry.event) == answer_id:
                    return
        text, data = get_message_text(message, "\n\n"), message_data(message)
        item, named = data.pop("item", None), data.pop("seat", None)
        turns = [one for one in found.turns if item in (None, one.item) and named in (None, person_of(one.me))]
        questions = [one for one in found.questions if item in (None, one.item) and named is None]
        names = [person_of(one.me) for one in turns] or [one.item for one in questions]
        if len(names) > 1:
            field = "seat" if turns else "item"
            raise InvalidInputError(f"Several questions are open; name one by `{field}` in a data part: {', '.join(names)}.")
        if turns:
            async with self.call.seat(names[0]) as person:
                await person.answer(turns[0].item, parse_reply(text, data, turns[0].offer.options), message_id=answer_id)
        elif questions:
            await client.answer(names[0], text, key=answer_id)
        else:
            raise errors.UnsupportedOperationError("The task waits for no message of yours.")

    async def _wait(self, goal: Goal) -> None:
        """Wait until a task ends or needs input."""
        async with aclosing(follow_goal(self.call, goal.name)) as news:
            async for one in news:
                if isinstance(one, CallerStatus | GoalResult):
                    return
        raise UnavailableError("The gateway is closing.", hint="Try again soon.")

    async def _find_goal(self, task_id: str, ended_error: errors.A2AError | None = None) -> Goal:
        """Return the goal of a task.

        Raises:
            A2AError: `ended_error`, if the task has ended.
        """
        found = await self.call.look(await self.call.goal(None, task_id))
        if ended_error is not None and found.result is not None:
            raise ended_error
        return found.record.goal

    async def _read_task(self, goal: Goal, writer: TaskWriter | None = None) -> types.Task:
        """Return the task of a goal with its last entries."""
        client, caller = self.call.client, self.call.caller
        writer = writer or TaskWriter(goal, self.base_url, caller)
        try:
            return writer.task(await read_status(client, caller, goal.name), await last_page(client, goal.name))
        except NotFoundError:  # the goal was rejected, or waits until other goals of its user end
            return writer.submitted(await client.result(goal.name))

    async def _follow(self, goal: Goal, closed: frozenset[types.TaskState] | set[types.TaskState]) -> AsyncGenerator[Event, None]:
        """Yield the task, then its events until it ends or needs input again; none after a task in one of the closed states."""
        writer = TaskWriter(goal, self.base_url, self.call.caller)
        task = await self._read_task(goal, writer)
        yield task
        if task.status.state in closed:
            return
        seq, was_asked = int(task.metadata["ioa.seq"]) if "ioa.seq" in task.metadata else 0, task.status.state == ASKING
        del task  # it can be megabytes long, and streams last for hours
        async with aclosing(follow_goal(self.call, goal.name, seq, was_asked=was_asked)) as news:
            async for one in news:
                if isinstance(one, CallerStatus):
                    yield writer.asking(one)
                    return
                if one is not None:
                    for update in writer.end(one) if isinstance(one, GoalResult) else writer.updates(one):
                        yield update

    async def _find_goals(self, params: types.ListTasksRequest) -> list[Goal]:
        """Return the goals of a list, newest first."""
        call, before, looked_at, found = self.call, None, 0, list[Goal]()
        labels = {**({CONTEXT: params.context_id} if params.context_id else {}), **call.caller.labels}
        while looked_at < _MAX_GOALS:
            async with call.page_read():
                page = await call.client.goals(limit=_PAGE_GOALS, before=before, labels=labels, user=call.caller.user)
            found += [status.record.goal for status in page.goals if self._is_listed(status, params)]
            before, looked_at = page.before, looked_at + page.looked_at
            if before is None:
                break
        return found

    def _is_listed(self, status: GoalStatus, params: types.ListTasksRequest) -> bool:
        goal, changed_at = status.record.goal, status.result.finished_at if status.result else status.record.accepted_at
        return (
            CONTEXT in goal.labels
            and str(goal.agent) == str(self.pool)
            and params.status in (0, task_state(status_for(self.call.caller, status)))
            and changed_at >= params.status_timestamp_after.ToDatetime(UTC)
        )
