"""What A2A asks for, done on goals and their log. It keeps nothing, so that any replica serves any task."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import NamedTuple, TypeVar

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
from ioa.client.questions import OpenQuestion
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
from ioa.group.events import QuestionAnswered
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.api_keys import Scope
from ioa.protocol.goals import Goal
from ioa.protocol.ids import GoalName
from ioa.protocol.team import person_of
from ioa_gateway.a2a.asking import ASKED, AdmittedRequest
from ioa_gateway.a2a.configs import check_push, config_of, push_of, pushed, pushes_of
from ioa_gateway.a2a.orders import (
    CONTEXT,
    check_media_types,
    data_of_message,
    goal_id_of,
    order_of_message,
    reply_of,
    text_of_message,
)
from ioa_gateway.a2a.tasks import MOST_FILES, TERMINAL, Document, Telling, context_of, last_page, state_of
from ioa_gateway.asked import as_asked, asked_of, documents_of, is_user, questions_to, settled
from ioa_gateway.calls import WITHIN
from ioa_gateway.entry_pages import MOST_BYTES, EntryPage, page_of
from ioa_gateway.goal_pages import LOOKED_THROUGH, MOST_FOUND, MOST_LOOKED_THROUGH

T = TypeVar("T")

_PAGE = 50


class _Turn(NamedTuple):
    """What waits for a person: by which it is answered, who the person is, and what may be chosen."""

    item: str
    person: str
    options: Collection[str]


class _UpToCaller(NamedTuple):
    """What of a goal is up to the caller: as whom he may answer in it, and what waits, for these people and for its user."""

    people: Sequence[str]
    waiting: Sequence[_Turn]
    questions: Sequence[OpenQuestion]


class Tasks(RequestHandler):
    """Tasks are goals."""

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Begin a task or answer in one, and unless it is asked otherwise, wait for its end, or until it asks something."""
        asked = _asked(context, Scope.GOALS_READ)
        with _told():
            goal = await asked.call.while_let_in(_begun(params, asked))
            if not params.configuration.return_immediately:
                await _end(asked, goal)
            return apply_history_length(await _task(asked, goal), params.configuration)

    async def on_message_send_stream(self, params: SendMessageRequest, context: ServerCallContext) -> AsyncGenerator[Event, None]:
        """Begin a task or answer in one, and follow it."""
        asked = _asked(context, Scope.GOALS_READ)
        with _told():
            goal = await asked.call.while_let_in(_begun(params, asked))
            async with aclosing(_followed(asked, goal)) as events:
                async for event in events:
                    yield apply_history_length(event, params.configuration) if isinstance(event, Task) else event

    async def on_subscribe_to_task(self, params: SubscribeToTaskRequest, context: ServerCallContext) -> AsyncGenerator[Event, None]:
        """Tell where a task stands, then all that comes behind that, or behind the sequence that is seen already."""
        asked = _asked(context, Scope.GOALS_READ)
        validate_proto_required_fields(params)
        seen = asked.call.headers.get("last-event-id")
        with _told():
            goal = await _goal(
                asked, params.id, UnsupportedOperationError("The task has ended; GetTask tells how.") if seen is None else None
            )
            after = int(seen[:18]) if seen is not None and seen.isascii() and seen.isdecimal() else None
            async with aclosing(_followed(asked, goal, after)) as events:
                async for event in events:
                    yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Tell where a task stands."""
        asked = _asked(context, Scope.GOALS_READ)
        validate_proto_required_fields(params)
        validate_history_length(params)
        async with _soon():
            return apply_history_length(await _task(asked, await _goal(asked, params.id)), params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List tasks that were begun by A2A, newest first."""
        asked = _asked(context, Scope.GOALS_READ)
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        async with _soon():
            return await _listed(asked, params)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel a task, and tell how it ended."""
        asked = _asked(context, Scope.GOALS_READ, Scope.GOALS_WRITE)
        validate_proto_required_fields(params)
        with _told():
            goal = await _goal(asked, params.id, TaskNotCancelableError("The task has ended already."))
            await asked.call.client.cancel(goal.name, "by A2A")
            await asked.call.while_let_in(asked.call.client.result(goal.name, wait=True))
            return await _task(asked, goal)

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Have a task pushed to a URL until it has ended; a configuration of the same id is replaced."""
        asked = _asked(context, Scope.GOALS_READ, Scope.WEBHOOKS_WRITE)
        validate_proto_required_fields(params)
        with _told():
            goal = await _goal(asked, params.task_id)
            await check_push(asked, goal.goal_id, params)
            return config_of(asked, await pushed(asked, goal, params))

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Show where a task is pushed to."""
        asked = _asked(context, Scope.GOALS_READ, Scope.WEBHOOKS_WRITE)
        async with _soon():
            goal = await _goal(asked, params.task_id)
            if (found := await push_of(asked, goal, params.id)) is None:
                raise NotFoundError(f"The task has no push configuration {params.id}.")
            return config_of(asked, found)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """List where a task is pushed to; there are so few that they are one page."""
        asked = _asked(context, Scope.GOALS_READ, Scope.WEBHOOKS_WRITE)
        async with _soon():
            found = await pushes_of(asked, await _goal(asked, params.task_id))
            return ListTaskPushNotificationConfigsResponse(configs=[config_of(asked, one) for one in found])

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Push a task to a URL no more; where it was not, nothing happens."""
        asked = _asked(context, Scope.GOALS_READ, Scope.WEBHOOKS_WRITE)
        async with _soon():
            found = await push_of(asked, await _goal(asked, params.task_id), params.id)
            if found is not None:
                await asked.call.hooks.store.erase(found.webhook_id)

    async def on_get_extended_agent_card(self, params: GetExtendedAgentCardRequest, context: ServerCallContext) -> AgentCard:
        """Refuse: who has a key is told no more than the card says."""
        raise UnsupportedOperationError("There is no other card than the public one.")


def _asked(context: ServerCallContext, *scopes: Scope) -> AdmittedRequest:
    asked = context.state[ASKED]
    assert isinstance(asked, AdmittedRequest), "the application puts it there"
    with _told():
        asked.call.caller.check(*scopes)
    return asked


@contextmanager
def _told() -> Iterator[None]:
    """Tell errors of the system by those of A2A."""
    try:
        yield
    except NotFoundError as error:
        raise TaskNotFoundError(str(error)) from error
    except (ForbiddenError, RateLimitedError, UnauthenticatedError) as error:
        raise InvalidRequestError(str(error)) from error
    except IoaError as error:
        kind = InvalidParamsError if row_of(error).fault is Fault.CALLER else InternalError
        raise kind(str(error)) from error


@asynccontextmanager
async def _soon() -> AsyncIterator[None]:
    """Tell errors as well, and that the system did not answer in the time in which routes are answered."""
    with _told():
        try:
            async with fail_after(WITHIN.total_seconds()):
                yield
        except TimeoutError:
            raise UnavailableError("The system did not answer in time.") from None


async def _begun(params: SendMessageRequest, asked: AdmittedRequest) -> Goal:
    """Launch the goal of a message, or answer in the one that it names, once however often it is sent."""
    validate_proto_required_fields(params)
    validate_history_length(params.configuration)
    check_media_types(params.message)
    call = asked.call
    wanted = params.configuration.HasField("task_push_notification_config")
    push = params.configuration.task_push_notification_config
    if params.message.task_id:
        goal = await _goal(asked, params.message.task_id)
        if params.message.context_id and params.message.context_id != context_of(goal):
            raise InvalidParamsError("The task belongs to another context.")
        if wanted:  # what cannot be pushed is refused before anything is begun
            await check_push(asked, goal.goal_id, push)
        await _answered(asked, goal, params.message)
    else:
        call.caller.check(Scope.GOALS_WRITE)
        if wanted:
            await check_push(asked, goal_id_of(params.message, asked.pool, call), push)
        order = call.with_caller(await order_of_message(params.message, asked))
        launched = await call.client.launch(order)
        goal = launched.record.goal if launched.record is not None else order.accepted(launched.name, ())
    if wanted:
        await pushed(asked, goal, push)
    return goal


async def _answered(asked: AdmittedRequest, goal: Goal, message: Message) -> None:
    """Say what a person, or the user of the goal, answers.

    It is said once however often it is sent: the id of the message names it, in whichever turn, or to whichever question, it comes
    again. That is looked for when it is known what waits: if it was sent elsewhere since, it has answered that.

    Raises:
        UnsupportedOperationError: Nothing in the task waits for its sender.
        InvalidInputError: Several things do, and it does not say which it answers.
    """
    call, key = asked.call, f"{asked.call.caller.key_id}|{message.message_id}"
    up_to = await _up_to_caller(asked, goal.name)
    for person in up_to.people:
        with suppress(ForbiddenError):  # nobody is this person at this gateway, so that he has said nothing here
            async with call.seat(person) as seat:
                if await seat.has_said(goal.comm_id, key):
                    return
    named = id_under(goal.name.owner, goal.comm_id, key)
    if is_user(call.caller, goal.name) and await _was_taken(asked, goal, named):
        return
    text, given = text_of_message(message), data_of_message(message)
    item, named_person = given.pop("item", None), given.pop("seat", None)
    waiting = [one for one in up_to.waiting if item in (None, one.item) and named_person in (None, one.person)]
    questions = [one for one in up_to.questions if item in (None, one.item) and named_person is None]
    if waiting:
        waits = _only(waiting, "seat", [one.person for one in waiting])
        async with call.seat(waits.person) as seat:
            await seat.answer(waits.item, reply_of(text, given, waits.options), key=key)
    elif questions:
        item = _only(questions, "item", [one.item for one in questions]).item
        async with call.limits.pages.slot(call.caller.user):
            await call.client.answer(item, text, key=named)
    else:
        raise UnsupportedOperationError("The task waits for no message of yours.")


async def _up_to_caller(asked: AdmittedRequest, name: GoalName) -> _UpToCaller:
    """Tell what of a goal is up to the caller, and keep nothing else of how it stands."""
    caller = asked.call.caller
    async with as_asked(asked.call, name) as status:
        seats = () if status.standing is None else people_in(status.standing.state)
        return _UpToCaller(
            [person_of(one) for one in seats if caller.answers_for(person_of(one))],
            [_Turn(one.item, person_of(one.me), one.offer.options) for one in asked_of(caller, status)],
            questions_to(caller, status),
        )


async def _was_taken(asked: AdmittedRequest, goal: Goal, named: str) -> bool:
    """Whether an answer of the goal's user stands in what a task tells of its log."""
    async with asked.call.limits.pages.slot(asked.call.caller.user):
        entries = (await last_page(asked.call.client, goal.name)).entries
    events = (stored.entry.event for stored in entries)
    return any(isinstance(event, QuestionAnswered) and event.key == named for event in events)


def _only(found: Sequence[T], name: str, named: Sequence[str]) -> T:
    """Return the only one of what waits.

    Raises:
        InvalidInputError: There are several.
    """
    if len(found) > 1:
        raise InvalidInputError(f"Several things wait: say by a part of data with `{name}` which this answers: {', '.join(named)}.")
    return found[0]


async def _end(asked: AdmittedRequest, goal: Goal) -> None:
    """Wait until a goal has ended or asks something, or whoever asked has given up.

    Raises:
        UnauthenticatedError: His key lets nobody in any more.
    """
    await asked.call.while_let_in(settled(asked.call, goal.name, asked.left))


async def _goal(asked: AdmittedRequest, task_id: str, ended: A2AError | None = None) -> Goal:
    """Return the goal of a task, without its team, and keep nothing of how it stands: some calls last for hours.

    Raises:
        A2AError: That one, if there is one and the task has ended.
    """
    looked_at = await asked.call.look(await asked.call.goal(None, task_id))
    if ended is not None and looked_at.has_ended:
        raise ended
    return looked_at.record.goal


async def _task(asked: AdmittedRequest, goal: Goal) -> Task:
    return (await _standing(asked, Telling(goal, asked.base_url, asked.call.caller)))[0]


async def _standing(asked: AdmittedRequest, telling: Telling) -> tuple[Task, int]:
    """Tell where a goal stands, and up to which sequence."""
    try:
        async with as_asked(asked.call, telling.goal.name) as status:
            entries = (await last_page(asked.call.client, telling.goal.name)).documents
            return telling.task(status, entries), int(entries[-1]["seq"]) if entries else 0
    except NotFoundError:
        # others of its user have to end first, or it was refused
        return telling.submitted(await asked.call.client.result(telling.goal.name)), 0


async def _row(asked: AdmittedRequest, one: GoalStatus, params: ListTasksRequest) -> tuple[Task, int]:
    """Tell of a task in a list, and how many bytes of its log were read: of entries that are not shown the last one at most."""
    call, name = asked.call, one.record.goal.name
    shows_entries = params.include_artifacts or not params.HasField("history_length") or params.history_length > 0
    async with _looked_at(asked, one) as status:
        if shows_entries:
            page = await last_page(call.client, name)
        elif status.standing is None:
            page = EntryPage([], [], None)
        else:
            page = await page_of(call.client, name, after=status.standing.seq - 1, limit=1)
        telling = Telling(one.record.goal, asked.base_url, call.caller)
        task = apply_history_length(telling.task(status, page.documents, with_artifacts=params.include_artifacts), params)
    if not shows_entries and not page.documents:
        del task.metadata["ioa.seq"]
    return task, sum(stored.size_bytes for stored in page.entries)


@asynccontextmanager
async def _looked_at(asked: AdmittedRequest, one: GoalStatus) -> AsyncIterator[GoalStatus]:
    """Look anew at a goal of a list, unless it has ended, in a turn of the caller's user that lasts as long as the block."""
    if one.result is None:
        async with as_asked(asked.call, one.record.goal.name) as status:
            yield status
    else:
        async with asked.call.limits.pages.slot(asked.call.caller.user):
            yield one


async def _followed(asked: AdmittedRequest, goal: Goal, after: int | None = None) -> AsyncGenerator[Event, None]:
    """Yield the task as it stands, then what comes behind that, to its end."""
    call, telling = asked.call, Telling(goal, asked.base_url, asked.call.caller)
    task, seq = await _standing(asked, telling)
    has_ended = task.status.state in TERMINAL
    yield task
    del task  # it may take megabytes, and a stream goes on for hours
    if has_ended and after is None:
        return
    async with aclosing(documents_of(call, goal.name, seq if after is None else after)) as documents:
        async for entry in documents:
            if entry is None:
                continue
            for update in await _updates(asked, telling, entry):
                yield update
    if call.rooms.may_go_on(call.caller):
        result = await call.while_let_in(call.client.result(goal.name, wait=True))
        for update in telling.end(result):
            yield update


async def _updates(asked: AdmittedRequest, telling: Telling, entry: Document) -> Sequence[Event]:
    """Tell of an entry, and of what it asks the caller. How the goal stands for that is not kept while it is read."""
    if not telling.is_asked(entry):
        return [*telling.updates(entry)]
    async with as_asked(asked.call, telling.goal.name) as now:
        return [*telling.updates(entry, now)]


async def _listed(asked: AdmittedRequest, params: ListTasksRequest) -> ListTasksResponse:
    """Tell of a page of tasks, how many there are, and what asks for the next page: the last task of this one.

    A goal is told of when it is come upon, and no more of it is kept than that.
    """
    labels = {**({CONTEXT: params.context_id} if params.context_id else {}), **asked.call.caller.labels}
    tasks, size, files, most = list[Task](), 0, 0, params.page_size or _PAGE
    first, total, before = None if params.page_token else 0, 0, None
    found = looked_at = 0
    while found < MOST_FOUND and looked_at < MOST_LOOKED_THROUGH:
        async with asked.call.limits.pages.slot(asked.call.caller.user):
            caller = asked.call.caller
            page = await asked.call.client.goals(limit=LOOKED_THROUGH, before=before, labels=labels, user=caller.owner)
        for one in page.goals:
            if not _is_wanted(one, asked, params):
                continue
            total += 1
            if first is None:
                first = total if one.record.goal.goal_id == params.page_token else None
            elif len(tasks) < most:
                task, read = await _row(asked, one, params)
                size, files = size + max(task.ByteSize(), read), files + len(task.artifacts)
                if tasks and (size > MOST_BYTES or files > MOST_FILES):
                    most = len(tasks)
                else:
                    tasks.append(task)
        before, found, looked_at = page.before, found + len(page.goals), looked_at + page.looked_at
        if before is None:
            break
    if first is None:
        raise InvalidParamsError("The page token is none of this list.")
    token = tasks[-1].id if first + len(tasks) < total else ""
    return ListTasksResponse(tasks=tasks, next_page_token=token, page_size=len(tasks), total_size=total)


def _is_wanted(one: GoalStatus, asked: AdmittedRequest, params: ListTasksRequest) -> bool:
    goal = one.record.goal
    return (
        goal.name.owner == asked.call.caller.user
        and CONTEXT in goal.labels
        and (goal.agent or "") == (asked.pool or "")
        and params.status in (0, state_of(one, asked.call.caller))
        and (
            not params.HasField("status_timestamp_after")
            or (one.result.finished_at if one.result else one.record.accepted_at).timestamp()
            >= params.status_timestamp_after.ToNanoseconds() / 1e9
        )
    )
