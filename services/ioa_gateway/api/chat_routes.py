"""OpenAI's chat protocol: `/v1/chat/completions` and `/v1/models`.

The user's last message is the goal, the other messages are an input of it, and the conclusion is the answer. If the goal asks its
user a question, the question is the answer, and the next message answers it. A failed goal is an error that clients do not retry.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field, model_validator
from starlette.responses import Response, StreamingResponse

from ioa.adapters.nats.system_client import pages_of_agents
from ioa.client.shown_questions import parse_item, question_in_words
from ioa.errors import IoaError, UnavailableError
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.model import Model
from ioa.protocol.usage import NOTHING, Usage
from ioa_gateway.api.goal_routes import IdempotencyKey
from ioa_gateway.context import AgentsCall, ApiCall, ReadLaunchCall
from ioa_gateway.goal_conversation import NETWORK, ConversationMessage, build_goal_order
from ioa_gateway.open_questions import CallerStatus, follow_goal
from ioa_gateway.problems import GoalFailedError, chat_error, problem_of
from ioa_gateway.sse_encoding import EVENTS, HEARTBEAT, encode_event

_QUESTION = re.compile(r"\(question ([\w.-]+)\)\s*$")
"""The end of an answer that is a question of a goal, with the item of the question."""
_UNSUPPORTED = ("audio", "functions", "logprobs", "max_completion_tokens", "max_tokens", "stop", "top_logprobs")
_CHOICE = {"index": 0, "logprobs": None}

router = APIRouter()


class ChatOrder(Model):
    """A request. Parameters that the gateway cannot obey are rejected; sampling parameters such as a temperature have no effect."""

    model: Annotated[str, Field(min_length=1, max_length=200, description="`ioa`, or the pool that does the goal as its task")]
    messages: Annotated[tuple[ConversationMessage, ...], Field(min_length=1, max_length=1_000)]
    stream: bool = False
    n: Literal[1] = 1
    tool_choice: Literal["auto", "none"] | None = None
    modalities: tuple[Literal["text"], ...] | None = None
    response_format: dict[Literal["type"], Literal["text"]] | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_supported(cls, data: Any) -> Any:
        if isinstance(data, dict) and (names := [name for name in _UNSUPPORTED if data.get(name)]):
            raise ValueError(f"{', '.join(names)} not supported here: leave it out")
        return data


@router.get("/models")
async def models(call: AgentsCall) -> dict[str, Any]:
    """List the models: all agents together, and each pool."""
    pools = set[str]()
    async with aclosing(pages_of_agents(call.client.list_agents, online_only=True)) as pages:
        async for page in pages:
            pools.update(one.card.pool for one in page.agents)
    data = [{"id": one, "object": "model", "created": 0, "owned_by": NETWORK} for one in (NETWORK, *sorted(pools))]
    return {"object": "list", "data": data}


@router.post("/chat/completions", response_model=dict[str, Any])
async def complete(call: ReadLaunchCall, order: ChatOrder, idempotency_key: IdempotencyKey = None) -> dict[str, Any] | Response:
    """Launch the goal of a conversation, or answer a question of this goal, and return the conclusion or the next question.

    `usage` has the tokens that models of the team have read and written.
    """
    name = await _answer_question(call, order) or await _launch(call, order, idempotency_key)
    head = {"id": f"chatcmpl-{name.goal_id}", "created": int(call.keyring.now().timestamp()), "model": order.model}
    if order.stream:
        return StreamingResponse(_stream(call, name, head), 200, {"X-Accel-Buffering": "no"}, EVENTS)
    async with aclosing(_answers(call, name)) as answers:
        text, usage = await call.while_connected(anext(one async for one in answers if one is not None))
    choice = {**_CHOICE, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": _tokens(usage)}


async def _answer_question(call: ApiCall, order: ChatOrder) -> GoalName | None:
    """Answer the question with which the last reply ended; return its goal, or None if the last reply was no question."""
    reply, last = order.messages[-2:] if len(order.messages) > 1 else (order.messages[0], order.messages[0])
    found = _QUESTION.search(reply.text) if reply.role == "assistant" else None
    if found is None:
        return None
    group = await call.group(parse_item(found[1])[0])
    await call.client.answer(found[1], last.text.strip())
    return group.state.name


async def _launch(call: ApiCall, order: ChatOrder, key: str | None) -> GoalName:
    """Launch the goal of a conversation. The same conversation means the same goal until it has ended."""
    if key is None:
        goal_id = await call.goal_id_of_words("c", "words", order.model_dump_json(exclude={"stream"}))
    else:
        goal_id = call.caller.goal_id("c", "key", key)
    goal = build_goal_order(order.messages, order.model, goal_id=goal_id)
    return (await call.client.launch(call.with_caller(goal))).name


async def _answers(call: ApiCall, name: GoalName) -> AsyncGenerator[tuple[str, Usage] | None, None]:
    """Yield None instead of a heartbeat until a goal ends or asks its user, then the answer with the usage of the goal.

    Raises:
        GoalFailedError: The goal was not reached.
        UnavailableError: The gateway stops.
    """
    async with aclosing(follow_goal(call, name)) as news:
        async for one in news:
            if one is None:
                yield None
            elif isinstance(one, CallerStatus) and one.questions:
                asked = one.questions[0]
                yield f"{question_in_words(asked)}\n\nAnswer with your next message. (question {asked.item})", NOTHING
                return
            elif isinstance(one, GoalResult):
                if not one.succeeded:
                    raise GoalFailedError(f"The goal {name.goal_id} was not reached ({one.reason}): {one.content}", one.reason)
                yield one.content, one.usage
                return
    raise UnavailableError("The gateway is closing.", hint="Try again soon.")


async def _stream(call: ApiCall, name: GoalName, head: Mapping[str, Any]) -> AsyncGenerator[bytes, None]:
    """Yield heartbeats until there is an answer, then the answer."""
    yield HEARTBEAT
    try:
        async with aclosing(_answers(call, name)) as answers:
            async for answer in answers:
                if answer is None:
                    yield HEARTBEAT
                    continue
                text, usage = answer
                choice = {**_CHOICE, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
                last = {**_CHOICE, "delta": dict[str, str](), "finish_reason": "stop"}
                for chunk in ({"choices": [choice]}, {"choices": [last]}, {"choices": [], "usage": _tokens(usage)}):
                    yield encode_event({**head, "object": "chat.completion.chunk", **chunk})
                yield b"data: [DONE]\n\n"
    except IoaError as error:
        yield encode_event({"error": chat_error(problem_of(error))})


def _tokens(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out, "total_tokens": usage.tokens}
