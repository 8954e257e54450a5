"""MCP over streamable HTTP without sessions: any replica authenticates and serves each request.

The tools are the same seven for every client. No call lasts longer than the timeouts of usual clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Annotated, Any

import mcp_types
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least
from pydantic import AnyUrl, BaseModel, Field
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ioa.client.seat import PersonReply
from ioa.client.shown_questions import parse_item, question_in_words
from ioa.concurrency import fail_after
from ioa.distribution import installed_version
from ioa.errors import Fault, InvalidInputError, IoaError, NotFoundError, PayloadTooLargeError, row_of
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.api_keys import Scope as KeyScope
from ioa_gateway.api.goal_routes import MAX_SEQUENCE
from ioa_gateway.api.seat_routes import ReplyOrder
from ioa_gateway.context import ApiCall
from ioa_gateway.mcp.tool_answers import FoundAgent, FoundAgents, GoalProgress, Started
from ioa_gateway.open_questions import CallerStatus, answer_schema, follow_goal, read_status
from ioa_gateway.pagination import EntryPage, page_of
from ioa_gateway.sse_encoding import text_of

_MAX_WAIT_SECONDS, _MAX_TURNS = 50, 40
_MAX_FILE_BYTES = 2_000_000
_MAX_ENTRIES, _MAX_PAGE_BYTES = 60, 250_000
"""Maximum entries of an answer, and their maximum stored size, unless a single entry is larger."""
_FIRST_WITH_INPUT = "2026-07-28"
"""The first version of MCP in which a tool's result can ask the client for input."""

GoalIdArgument = Annotated[str, Field(description="from start_group or ask_agent")]
Key = Annotated[str | None, Field(max_length=255, description="idempotency key: calls with the same key are the same goal")]
Seconds = Annotated[float, Field(ge=0, le=_MAX_WAIT_SECONDS, description="timeout in seconds")]


class TextFile(BaseModel):
    """An input file of a goal."""

    name: str
    text: str


class _Server(MCPServer):
    """The SDK's server, with errors of the system as errors of tools, and with the media type of each file."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            if isinstance(error.__cause__, IoaError):
                raise ToolError(f"{error}: {error.__cause__}") from error.__cause__
            raise

    async def read_resource(
        self, uri: AnyUrl | str, context: Context | None = None
    ) -> Iterable[ReadResourceContents] | mcp_types.InputRequiredResult:
        found = await super().read_resource(uri, context)
        if isinstance(found, mcp_types.InputRequiredResult) or context is None:
            return found
        return [replace(one, mime_type=_request(context).state.media_type) for one in found]


def _create_application() -> ASGIApp:
    """Return the ASGI application at `/mcp`."""
    server = _Server(
        "internet-of-agents",
        title="Internet of Agents",
        version=installed_version(),
        instructions=(
            "Agents find each other, form a team for a goal and answer with a conclusion. Goals take seconds to hours and outlive"
            " this connection: start_group returns at once; call wait until it returns a result."
        ),
        subscriptions=False,
    )
    looks = mcp_types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    starts = mcp_types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
    answers = mcp_types.ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
    ends = mcp_types.ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)
    server.add_tool(find_agents, annotations=looks)
    server.add_tool(start_group, annotations=starts)
    server.add_tool(wait, annotations=looks)
    server.add_tool(ask_agent, annotations=starts)
    server.add_tool(get_status, annotations=looks)
    server.add_tool(post, annotations=answers)
    server.add_tool(cancel, annotations=ends)
    server.resource("ioa://goal/{goal_id}/{number}/{name}", description="A file of a goal's result")(read_file)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(server._lowlevel_server, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return answer


async def find_agents(
    context: Context,
    need: Annotated[str, Field(description="the need, in a sentence")],
    count: Annotated[int, Field(ge=1, le=20)] = 5,
) -> FoundAgents:
    """Find the agents that fit a need best."""
    found = await _call(context, KeyScope.AGENTS_READ).client.search(need)
    agents = [
        FoundAgent(agent=hit.card.pool, description=hit.card.description, online=hit.online, score=hit.score)
        for hit in found.merged[:count]
    ]
    return FoundAgents(agents=tuple(agents))


async def start_group(
    context: Context,
    goal: Annotated[str, Field(description="the goal, with all information that agents need")],
    files: Annotated[Sequence[TextFile], Field(description="input files")] = (),
    agent: Annotated[str | None, Field(description="the leading agent, from find_agents; null for the best one")] = None,
    max_turns: Annotated[int, Field(ge=1, le=10_000)] = _MAX_TURNS,
    key: Key = None,
) -> Started:
    """Start a goal, for which agents form a team. Returns at once; call wait for the result."""
    call = _call(context, KeyScope.GOALS_WRITE)
    goal_id = None if key is None else call.caller.goal_id("m", "start", key)
    inputs = [file.model_dump() for file in files]
    name = await _launch(call, goal=goal, goal_id=goal_id, agent=agent, max_turns=max_turns, inputs=inputs)
    return Started(goal_id=name.goal_id)


async def wait(
    context: Context,
    goal_id: GoalIdArgument,
    seconds: Seconds = 20,
    after: Annotated[int, Field(ge=0, le=MAX_SEQUENCE, description="`after` of the last wait; 0 for all lines")] = 0,
) -> GoalProgress | mcp_types.InputRequiredResult:
    """Wait until a goal ends, asks something or the timeout expires, and return the new lines. Call it again as often as needed."""
    call = _call(context, KeyScope.GOALS_READ)
    return await _wait_or_elicit(context, call, await call.goal(None, goal_id), seconds, after)


async def ask_agent(
    context: Context,
    agent: Annotated[str, Field(description="from find_agents")],
    task: Annotated[str, Field(description="the task, with all information that the agent needs")],
    seconds: Seconds = _MAX_WAIT_SECONDS,
    key: Key = None,
) -> GoalProgress | mcp_types.InputRequiredResult:
    """Give one agent a task, and wait for the result. The same words mean the same task until it has ended.

    If there is no result yet, call wait with the goal_id.
    """
    call = _call(context, KeyScope.GOALS_READ, KeyScope.GOALS_WRITE)
    goal_id = await call.goal_id_of_words("m", "ask", agent, task) if key is None else call.caller.goal_id("m", "ask", key)
    name = await _launch(call, goal=task, goal_id=goal_id, agent=agent, as_task=True, max_turns=_MAX_TURNS)
    return await _wait_or_elicit(context, call, name, seconds, 0)


async def get_status(context: Context, goal_id: GoalIdArgument) -> GoalProgress:
    """Return the status of a goal: members, open tasks and result, without lines."""
    call = _call(context, KeyScope.GOALS_READ)
    return GoalProgress.of(await _read_goal(call, await call.goal(None, goal_id)), 0, EntryPage([], [], None))


async def post(
    context: Context,
    goal_id: GoalIdArgument,
    item: Annotated[str, Field(description="`item` from wait")],
    seat: Annotated[str | None, Field(description="`seat` from wait; null for the user of the goal")] = None,
    text: Annotated[str, Field(description="the words of the person, unchanged")] = "",
    choose: Annotated[str | None, Field(description="one of the options")] = None,
    fields: Annotated[dict[str, str] | None, Field(description="the fields of the form")] = None,
    passes: Annotated[bool, Field(description="pass this turn without a message")] = False,
) -> GoalProgress:
    """Send the answer of a person whom you asked. The same answer again has no further effect."""
    call = _call(context, KeyScope.GOALS_READ, KeyScope.GOALS_WRITE if seat is None else KeyScope.SEATS)
    name = await call.goal(None, goal_id)
    await _check_item(call, name, item)
    if seat is None:
        await call.client.answer(item, choose or text)
    else:
        reply = validate(ReplyOrder, {"text": text, "choose": choose, "fields": fields or {}, "passes": passes})
        async with call.seat(seat) as person:
            await person.answer(item, PersonReply(**dict(reply)))
    return await _progress(call, await _read_goal(call, name))


async def cancel(context: Context, goal_id: GoalIdArgument, why: Annotated[str, Field(max_length=4_000)] = "") -> GoalProgress:
    """Cancel a goal. A goal that has ended does not change."""
    call = _call(context, KeyScope.GOALS_READ, KeyScope.GOALS_WRITE)  # the result contains the goal's status
    name = await call.goal(None, goal_id)
    await call.client.cancel(name, why)
    return await _progress(call, await _wait(context, call, name, 10, 0))


async def read_file(context: Context, goal_id: str, number: str, name: str) -> str | bytes:
    """Read a file of a goal's result."""
    try:
        call = _call(context, KeyScope.GOALS_READ)
        goal = await call.goal(None, goal_id)
        result = await call.client.result(goal)
        files = {} if result is None else {(str(place), one.name): one for place, one in enumerate(result.artifacts)}
        file = files.get((number, name))
        if file is None:
            raise NotFoundError(f"The goal {goal_id} has no file {number} named {name!r}.")
        if file.size_bytes > _MAX_FILE_BYTES:
            raise PayloadTooLargeError(f"{name!r} has more than {_MAX_FILE_BYTES:,} bytes; fetch it by HTTP.")
        data = await call.client.fetch(file)
        _request(context).state.media_type = file.media_type
    except IoaError as error:
        code = mcp_types.INVALID_PARAMS if row_of(error).fault is Fault.CALLER else mcp_types.INTERNAL_ERROR
        raise MCPError(code, str(error)) from error
    return data.decode("utf-8", "replace") if file.media_type.startswith("text/") else data


def _call(context: Context, *scopes: KeyScope) -> ApiCall:
    call: ApiCall = _request(context).state.call
    call.caller.check(*scopes)
    return call


def _request(context: Context) -> Request:
    request = context.request_context.request
    assert isinstance(request, Request), "it comes by HTTP"
    return request


async def _launch(call: ApiCall, **fields: object) -> GoalName:
    """Launch a goal with these fields of a `GoalOrder`."""
    return (await call.client.launch(call.with_caller(GoalOrder.model_validate(fields)))).name


async def _read_goal(call: ApiCall, name: GoalName) -> CallerStatus:
    """Read a goal.

    Raises:
        NotFoundError: There is no such goal.
        InvalidInputError: The goal was rejected; the error contains the reason.
    """
    try:
        return await read_status(call.client, call.caller, name)
    except NotFoundError:
        rejected = await call.client.result(name)
        if rejected is None:
            raise
        raise InvalidInputError(rejected.content) from None


async def _check_item(call: ApiCall, name: GoalName, item: str) -> None:
    """Raise `InvalidInputError` unless an item belongs to a group of a goal."""
    if (await call.group(parse_item(item)[0])).state.name != name:
        raise InvalidInputError(f"This goal has no item {item!r}.", hint="Pass the `item` that wait returned.")


async def _wait_or_elicit(
    context: Context, call: ApiCall, name: GoalName, seconds: float, after: int
) -> GoalProgress | mcp_types.InputRequiredResult:
    """Wait for a goal. A client that can ask its user is asked to do so (elicitation)."""
    has_declined = False
    for item, response in (context.input_responses or {}).items():
        if isinstance(response, mcp_types.ElicitResult) and response.action == "accept":
            call.caller.check(KeyScope.GOALS_WRITE)
            await _check_item(call, name, item)
            await call.client.answer(item, str((response.content or {}).get("answer", "")))
        else:
            has_declined = True
    found = await _wait(context, call, name, seconds, after)
    capabilities, version = context.client_capabilities, context.protocol_version or ""
    is_able = capabilities is not None and capabilities.elicitation is not None and is_version_at_least(version, _FIRST_WITH_INPUT)
    requests: mcp_types.InputRequests = {}
    for one in found.questions if is_able and not has_declined else ():
        form = mcp_types.ElicitRequestFormParams(message=question_in_words(one), requested_schema=answer_schema(one))
        requests[one.item] = mcp_types.ElicitRequest(params=form)
    return mcp_types.InputRequiredResult(input_requests=requests) if requests else await _progress(call, found, after)


async def _wait(context: Context, call: ApiCall, name: GoalName, seconds: float, after: int) -> CallerStatus:
    """Wait until a goal ends, asks something or the timeout expires, and report each message of its group as progress."""
    await _read_goal(call, name)  # a rejected goal is an error
    with suppress(TimeoutError):
        async with fail_after(seconds), aclosing(follow_goal(call, name, after)) as news:
            async for one in news:
                if isinstance(one, CallerStatus | GoalResult):
                    break
                if one is not None and "seq" in one and (text := text_of(one)):
                    await context.report_progress(one["seq"], message=f"{one['sender']}: {text}")
    return await _read_goal(call, name)


async def _progress(call: ApiCall, found: CallerStatus, after: int = 0) -> GoalProgress:
    """Describe a goal with its lines after a sequence."""
    page = await page_of(call.client, found.status.record.goal.name, after=after, limit=_MAX_ENTRIES, max_bytes=_MAX_PAGE_BYTES)
    return GoalProgress.of(found, after, page)


application = _create_application()
