"""The tools: always the same few, whoever is there, so that a client loads them once. No call takes longer than clients wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, MutableMapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Annotated, Any, cast

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import AnyUrl, BaseModel, Field, ValidationError

from ioa.cancellation import fail_after
from ioa.client.seat import PersonReply
from ioa.distribution import installed_version
from ioa.errors import Fault, InvalidInputError, IoaError, NotFoundError, PayloadTooLargeError, row_of
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.api_keys import Scope
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import GoalId, GoalName
from ioa.protocol.texts import check_texts, shortened
from ioa.protocol.validation_errors import in_words
from ioa_gateway.asked import as_asked, asked_documents, asked_of, questions_to, settled
from ioa_gateway.calls import ApiCall
from ioa_gateway.entry_pages import page_of
from ioa_gateway.mcp.told import MOST_ENTRIES, Asks, FoundAgent, FoundAgents, GoalProgress, Started, Status
from ioa_gateway.routes.goals import MAX_SEQUENCE, sequence_in
from ioa_gateway.routes.seats import ReplyOrder

CALL = "ioa.call"
"""The key of the `ApiCall` in a request's scope."""

_MAX_ERROR_BYTES = 4_000
_LONGEST_SECONDS = 50
_MOST_BYTES = 2_000_000
_SHOWN_CHARS, _MOST_TOLD = 100, 20
_MEDIA_TYPE = "ioa.media_type"
"""Where that of the file that is read lies in the request's scope."""

GoalIdArgument = Annotated[str, Field(description="as start_group or ask_agent told it")]
Key = Annotated[str | None, Field(max_length=255, description="with the same key the same goal is meant, however often it is sent")]
Seconds = Annotated[float, Field(ge=0, le=_LONGEST_SECONDS, description="how long to wait at the most")]


class TextFile(BaseModel):
    """A file that goes with a goal."""

    name: str
    text: str


class _Server(MCPServer):
    """The SDK's server with the media type of each file, short errors, and no prompts.

    The SDK uses one media type for all files of a resource template, lists all errors of arguments, and logs a request for an
    unknown prompt as an error of the server.
    """

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            self._check_arguments(name, arguments)
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            raise ToolError(shortened(str(error), _MAX_ERROR_BYTES)) from None

    def _check_arguments(self, name: str, arguments: dict[str, Any]) -> None:
        tool = self._tool_manager.get_tool(name)
        try:
            if tool is not None:
                tool.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            raise ToolError(f"The arguments of {name} are wrong: {in_words(error, 'arguments', most=_MOST_TOLD)}.") from None

    async def read_resource(
        self, uri: AnyUrl | str, context: Context | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        found = await super().read_resource(uri, context)
        if isinstance(found, InputRequiredResult) or context is None:
            return found
        return [replace(one, mime_type=_scope(context)[_MEDIA_TYPE]) for one in found]

    async def get_prompt(
        self, name: str, _arguments: dict[str, Any] | None = None, _context: Context | None = None
    ) -> GetPromptResult | InputRequiredResult:
        raise MCPError(INVALID_PARAMS, f"There is no prompt {name[:_SHOWN_CHARS]!r}.")


def create_server() -> MCPServer:
    """Make the server with its tools."""
    server = _Server(
        "internet-of-agents",
        title="Internet of Agents",
        version=installed_version(),
        instructions=(
            "Agents find each other, form a team for a goal and answer with a conclusion. Goals take seconds to hours and outlive"
            " this connection: start_group returns at once, and wait is called until it tells a result."
        ),
        subscriptions=False,
    )
    looks = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    starts = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
    answers = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
    ends = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)
    server.add_tool(find_agents, annotations=looks)
    server.add_tool(start_group, annotations=starts)
    server.add_tool(wait, annotations=looks)
    server.add_tool(ask_agent, annotations=starts)
    server.add_tool(get_status, annotations=looks)
    server.add_tool(post, annotations=answers)
    server.add_tool(cancel, annotations=ends)
    server.resource("ioa://goal/{goal_id}/{number}/{name}", description="A file of a goal's result")(read_file)
    return server


async def find_agents(
    context: Context,
    need: Annotated[str, Field(description="what has to be done, in a sentence")],
    count: Annotated[int, Field(ge=1, le=20)] = 5,
) -> FoundAgents:
    """Find the agents that fit a need best."""
    with _told():
        found = await _call(context, Scope.AGENTS_READ).client.search(need)
    return FoundAgents(agents=tuple(FoundAgent.of(hit) for hit in found.merged[:count]))


async def start_group(
    context: Context,
    goal: Annotated[str, Field(description="what is to be reached, with all that agents need to know")],
    files: Annotated[Sequence[TextFile], Field(description="texts that go with it")] = (),
    agent: Annotated[str | None, Field(description="who leads, as find_agents says; whoever fits if null")] = None,
    max_turns: Annotated[int, Field(ge=1, le=10_000)] = 40,
    key: Key = None,
) -> Started:
    """Have agents form a team for a goal. Returns at once; call wait for what comes of it."""
    with _told():
        call = _call(context, Scope.GOALS_WRITE)
        goal_id = None if key is None else call.caller.goal_id("m", "start", key)
        return Started(goal_id=(await _launched(call, goal, files, agent, max_turns, goal_id)).goal_id)


async def wait(
    context: Context,
    goal_id: GoalIdArgument,
    seconds: Seconds = 20,
    after: Annotated[int, Field(ge=0, le=MAX_SEQUENCE, description="`after` of the last wait; 0 tells all")] = 0,
) -> GoalProgress:
    """Wait until a goal has ended or the time is over, and tell what agents said meanwhile. Call it again as often as needed."""
    with _told():
        call = _call(context, Scope.GOALS_READ)
        return await _progress(call, await call.goal(None, goal_id), seconds, after)


async def ask_agent(
    context: Context,
    agent: Annotated[str, Field(description="as find_agents says")],
    task: Annotated[str, Field(description="what it is to do, with all that it needs to know")],
    seconds: Seconds = _LONGEST_SECONDS,
    key: Key = None,
) -> GoalProgress:
    """Have one agent do something, and wait for it. Asked again with the same words within half an hour, it goes on waiting.

    If there is no result yet, call wait with the goal_id.
    """
    with _told():
        call = _call(context, Scope.GOALS_READ, Scope.GOALS_WRITE)
        goal_id = await call.goal_id_of_words("m", "ask", agent, task) if key is None else call.caller.goal_id("m", "ask", key)
        name = await _launched(call, task, (), agent, 40, goal_id)
        return await _progress(call, name, seconds, 0)


async def get_status(context: Context, goal_id: GoalIdArgument) -> Status:
    """Tell where a goal stands: who works at it, at what, and its result."""
    with _told():
        call = _call(context, Scope.GOALS_READ)
        async with _looking(call, await call.goal(None, goal_id)) as status:
            return Status.of(status)


async def post(
    context: Context,
    goal_id: GoalIdArgument,
    item: Annotated[str, Field(description="what is answered, as wait says")],
    seat: Annotated[str | None, Field(description="whose answer it is, as wait says; null is the user of the goal")] = None,
    text: Annotated[str, Field(description="the words of that person, as they are")] = "",
    choose: Annotated[str | None, Field(description="one of the options")] = None,
    fields: Annotated[dict[str, str] | None, Field(description="what is filled in")] = None,
    passes: Annotated[bool, Field(description="nothing is said in this turn")] = False,
) -> GoalProgress:
    """Answer in a group in the name of a person who was asked and has told you what. Sent again, it is the same answer."""
    with _told():
        call = _call(context, Scope.GOALS_READ, Scope.GOALS_WRITE if seat is None else Scope.SEATS)
        name = await call.goal(None, goal_id)
        if item.partition(".")[0] != name.comm_id:
            raise InvalidInputError(f"{item!r} is nothing that this goal asks.", hint="Call wait, and hand on `item`.")
        if seat is None:
            async with call.limits.pages.slot(call.caller.user):
                await call.client.answer(item, choose or text)
            return await _progress(call, name, 0, 0)
        reply = validate(ReplyOrder, {"text": text, "choose": choose, "fields": fields or {}, "passes": passes})
        async with call.seat(seat) as taken:
            await taken.answer(item, PersonReply(**dict(reply)))
        return await _progress(call, name, 0, 0)


async def cancel(context: Context, goal_id: GoalIdArgument, why: Annotated[str, Field(max_length=4_000)] = "") -> GoalProgress:
    """Cancel a goal; one that has ended stays as it ended."""
    with _told():
        call = _call(context, Scope.GOALS_READ, Scope.GOALS_WRITE)  # it tells how the goal stands
        name = await call.goal(None, goal_id)
        await call.client.cancel(name, why)
        return await _progress(call, name, 10, 0)


async def read_file(context: Context, goal_id: str, number: str, name: str) -> str | bytes:
    """Read a file of a goal's result."""
    try:
        call = _call(context, Scope.GOALS_READ)
        goal = await call.goal(None, goal_id)
        result = await call.client.result(goal)
        files = () if result is None else result.artifacts
        place = sequence_in(number)
        file = files[place] if place is not None and place < len(files) else None
        if file is None or file.name != name:
            raise NotFoundError(f"The goal {goal_id} has no file {number} that is called {name!r}.")
        if file.size_bytes > _MOST_BYTES:
            raise PayloadTooLargeError(f"{name!r} has more than {_MOST_BYTES:,} bytes; fetch it by HTTP.")
        data = await call.client.fetch(file)
        _scope(context)[_MEDIA_TYPE] = file.media_type
    except IoaError as error:
        code = INVALID_PARAMS if row_of(error).fault is Fault.CALLER else INTERNAL_ERROR
        raise MCPError(code, str(error)) from error
    return data.decode("utf-8", "replace") if file.media_type.startswith("text/") else data


def _call(context: Context, *scopes: Scope) -> ApiCall:
    call = _scope(context)[CALL]
    assert isinstance(call, ApiCall), "the application puts it there"
    call.caller.check(*scopes)
    return call


def _scope(context: Context) -> MutableMapping[str, Any]:
    request = context.request_context.request
    assert request is not None, "it comes by HTTP"
    return cast("MutableMapping[str, Any]", request.scope)


@contextmanager
def _told() -> Iterator[None]:
    """Tell errors of the system as such of a tool, which models read."""
    try:
        yield
    except IoaError as error:
        raise ToolError(str(error)) from error


async def _launched(
    call: ApiCall, goal: str, files: Sequence[TextFile], agent: str | None, max_turns: int, goal_id: GoalId | None
) -> GoalName:
    inputs = [file.model_dump() for file in files]
    said = {"goal": goal, "goal_id": goal_id, "agent": agent, "max_turns": max_turns, "inputs": inputs}
    check_texts(said, "arguments")
    order = call.with_caller(GoalOrder.model_validate(said))
    return (await call.while_let_in(call.client.launch(order))).name


@asynccontextmanager
async def _looking(call: ApiCall, name: GoalName) -> AsyncIterator[GoalStatus]:
    """Look at a goal, see `ApiCall.looking`; whoever waits for one that is none, or was refused, is told so.

    Raises:
        NotFoundError: There is no such goal.
        InvalidInputError: It was refused, for this reason.
    """
    try:
        async with call.looking(name, with_team=False) as status:
            yield status
    except NotFoundError:
        refused = await call.client.result(name)
        if refused is None:
            raise
        raise InvalidInputError(refused.content) from None


async def _progress(call: ApiCall, name: GoalName, seconds: float, after: int) -> GoalProgress:
    async with _looking(call, name):
        pass
    try:
        async with fail_after(seconds):
            await call.while_let_in(settled(call, name))
    except TimeoutError:
        pass
    async with as_asked(call, name) as status:
        page = await page_of(call.client, name, after=after, limit=MOST_ENTRIES)
        before = await call.client.state(name, at=after) if after and page.entries else {}
        asks = [
            *map(Asks.of, asked_documents(asked_of(call.caller, status))),
            *map(Asks.of_user, questions_to(call.caller, status)),
        ]
        progress = GoalProgress.of(status, page, after, before, asks)
    call.keyring.check(call.caller)
    return progress
