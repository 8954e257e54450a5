"""OpenAI's chat protocol: `/v1/chat/completions` and `/v1/models`.

The user's last message is the goal, the other messages are an input of it, and the conclusion is the answer. A failed goal is an
error that clients do not retry.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response, StreamingResponse

from ioa.adapters.nats.system_client import pages_of_agents
from ioa.cancellation import fail_after
from ioa.client.client import Launched
from ioa.client.documents import told
from ioa.errors import InvalidInputError, IoaError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.model import Model
from ioa_gateway.api.goals import IdempotencyKey
from ioa_gateway.context import AgentsCall, ApiCall, ReadLaunchCall
from ioa_gateway.conversation import NETWORK, goal_of
from ioa_gateway.event_streams import SILENCE
from ioa_gateway.problems import chat_error, problem, problem_of
from ioa_gateway.request_body import JsonRoute
from ioa_gateway.sse import EVENTS, HEARTBEAT, encode_event

router = APIRouter(route_class=JsonRoute)


class ChatPart(Model):
    """A part of a message."""

    type: str
    text: str = ""


class PromptMessage(Model):
    """What somebody said."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | tuple[ChatPart, ...] | None = None

    @property
    def text(self) -> str:
        """Its words.

        Raises:
            InvalidInputError: It has a part that is no text.
        """
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        if other := next((part.type for part in self.content if part.type != "text"), None):
            raise InvalidInputError(
                f"A message has a part of type {other!r:.40}.", hint="Only text is taken; POST /v1/goals takes files."
            )
        return "\n".join(part.text for part in self.content)


class ChatOrder(Model):
    """What is asked of a model. Whatever else clients send, such as a temperature, says nothing to agents."""

    model: Annotated[str, Field(min_length=1, max_length=200, description="`ioa`, or the pool that is to lead")]
    messages: Annotated[tuple[PromptMessage, ...], Field(min_length=1, max_length=1_000)]
    stream: bool = False
    n: Annotated[int, Field(ge=1, le=1)] = 1


class ReplyDocument(Model):
    """What the model says."""

    role: str = "assistant"
    content: str


class ChoiceDocument(Model):
    """The one answer."""

    index: int = 0
    message: ReplyDocument
    logprobs: None = None
    finish_reason: str = "stop"


class TokensDocument(Model):
    """What models of the team have read and written for the goal."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionDocument(Model):
    """A goal that was reached."""

    id: str
    object: str
    created: int
    model: str
    choices: tuple[ChoiceDocument, ...]
    usage: TokensDocument


class ModelsDocument(Model):
    """The models that there are: all agents together, and each pool."""

    object: str = "list"
    data: tuple[dict[str, Any], ...]


@router.get("/models")
async def models(call: AgentsCall) -> ModelsDocument:
    """List the models."""
    named = (NETWORK, *sorted(await _pools(call)))
    data = tuple({"id": one, "object": "model", "created": 0, "owned_by": NETWORK} for one in named)
    return ModelsDocument(data=data)


async def _pools(call: ApiCall) -> set[str]:
    """Return the pools of the registered agents."""
    pools, pages = set[str](), pages_of_agents(call.client.list_agents, online_only=True)
    async with call.page_read(), aclosing(pages):
        async for page in pages:
            pools.update(one.card.pool for one in page.agents)
    return pools


@router.post("/chat/completions", response_model=CompletionDocument)
async def complete(call: ReadLaunchCall, order: ChatOrder, idempotency_key: IdempotencyKey = None) -> CompletionDocument | Response:
    """Launch the goal of a conversation, and answer with its conclusion."""
    launched = await call.client.launch(call.with_caller(await _order(call, order, idempotency_key)))
    if order.stream:
        return StreamingResponse(_streamed(call, order.model, launched), 200, {"X-Accel-Buffering": "no"}, EVENTS)
    result = await call.while_asked(call.client.result(launched.name, wait=True))
    if not result.succeeded:
        return _failure(result)
    choice = ChoiceDocument(message=ReplyDocument(content=result.content))
    head = _head("chat.completion", order.model, launched, result)
    return CompletionDocument(**head, choices=(choice,), usage=_tokens(result))


async def _order(call: ApiCall, order: ChatOrder, key: str | None) -> GoalOrder:
    """Return the goal of a conversation. A repeated conversation is the same goal for at least 30 minutes.

    Raises:
        InvalidInputError: The user's last message has no text, or is missing.
        NotFoundError: The model has no valid name.
    """
    goal = goal_of([(one.role, one.text) for one in order.messages], order.model)
    goal_id = (
        await call.goal_id_of_words("c", "words", order.model_dump_json(exclude={"stream"}))
        if key is None
        else call.caller.goal_id("c", "key", key)
    )
    return goal.model_copy(update={"goal_id": goal_id})


async def _streamed(call: ApiCall, model: str, launched: Launched) -> AsyncGenerator[bytes, None]:
    """Yield heartbeats until the goal has ended, then its conclusion."""
    yield HEARTBEAT
    try:
        while (result := await _ended(call, launched)) is None:
            yield HEARTBEAT
        for event in _conclusion(model, launched, result):
            yield event
    except IoaError as error:
        yield encode_event({"error": chat_error(problem_of(error))})


async def _ended(call: ApiCall, launched: Launched) -> GoalResult | None:
    """Wait for the result of a goal until the next heartbeat; return None if the goal has not ended."""
    try:
        async with fail_after(SILENCE.total_seconds()):
            return await call.while_let_in(call.client.result(launched.name, wait=True))
    except TimeoutError:
        return None


def _conclusion(model: str, launched: Launched, result: GoalResult) -> Sequence[bytes]:
    """Return the result of a goal as events."""
    if not result.succeeded:
        return [encode_event({"error": _failed(result)})]
    head = _head("chat.completion.chunk", model, launched, result)
    choice = {"index": 0, "delta": {"role": "assistant", "content": result.content}, "logprobs": None, "finish_reason": None}
    last = {**choice, "delta": {}, "finish_reason": "stop"}
    chunks = ({"choices": [choice]}, {"choices": [last]}, {"choices": [], "usage": told(_tokens(result))})
    return [*(encode_event({**head, **chunk}) for chunk in chunks), b"data: [DONE]\n\n"]


def _failure(result: GoalResult) -> Response:
    described = problem(422, str(result.reason), _told(result)).model_dump(mode="json", exclude_none=True)
    return JSONResponse({**described, "error": _failed(result)}, 422)


def _failed(result: GoalResult) -> dict[str, Any]:
    return {"message": _told(result), "type": "goal_failed", "param": None, "code": str(result.reason)}


def _told(result: GoalResult) -> str:
    return f"The goal {result.goal_id} was not reached ({result.reason}): {result.content}"


def _head(kind: str, model: str, launched: Launched, result: GoalResult) -> Mapping[str, Any]:
    created = int(result.finished_at.timestamp())
    return {"id": f"chatcmpl-{launched.goal_id}", "object": kind, "created": created, "model": model}


def _tokens(result: GoalResult) -> TokensDocument:
    usage = result.usage
    return TokensDocument(prompt_tokens=usage.tokens_in, completion_tokens=usage.tokens_out, total_tokens=usage.tokens)
