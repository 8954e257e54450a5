"""Requests, retries and errors of the client for OpenAI-compatible endpoints, over HTTP."""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import formatdate

import httpx
import pytest
from pydantic import SecretStr

from ioa.adapters.openai.chat_request import strict_schema
from ioa.adapters.openai.openai_chat import ModelSettings, OpenAiChat, open_openai_chat
from ioa.agent.model import answers
from ioa.errors import IoaError, ModelError, UnavailableError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ModelAnswer, PromptTooLongError
from ioa.testing.chat_model_contract import ASKED, HISTORY, QUESTION, TOOL, Count
from tests.rig.http_script import HttpScript, Line, chunk, completion, refused, serving, streamed

KEY = "sk-very-secret"
LIMITS = AnswerLimits(max_tokens=50, timeout=timedelta(seconds=20), cache_key="same start")
SHAPE = answers.Speech
ASK = (ChatMessage("system", "be brief"), ChatMessage("user", "well?"))
CALL = completion('{"tool": "population", "arguments": {"city": "Tarn"}}')


@asynccontextmanager
async def chat(url: str, waits: list[float] | None = None) -> AsyncIterator[OpenAiChat]:
    """Open the client with a sleep that only records its seconds."""

    async def record(seconds: float) -> None:
        (waits if waits is not None else []).append(seconds)

    async with httpx.AsyncClient() as client:
        yield OpenAiChat(ModelSettings(url, "tiny", SecretStr(KEY)), client, sleep=record, jitter=random.Random(1).random)


@asynccontextmanager
async def served(*lines: Line, waits: list[float] | None = None) -> AsyncIterator[tuple[OpenAiChat, HttpScript]]:
    """Serve lines, and open a client of their server."""
    with serving(*lines) as (url, script):
        async with chat(url, waits) as model:
            yield model, script


async def failure(*lines: Line, limits: AnswerLimits = LIMITS) -> tuple[IoaError, list[float]]:
    """Return the error of a request, and the waits before its retries."""
    waits: list[float] = []
    async with served(*lines, waits=waits) as (model, _):
        with pytest.raises(IoaError) as caught:
            await model.answer(ASK, SHAPE, limits)
    return caught.value, waits


async def test_request_contains_schema_limits_cache_key_and_key() -> None:
    """Settings of `extra` override fields of the request."""
    with serving(completion("{}", "length")) as (url, script):
        async with open_openai_chat(ModelSettings(url, "tiny", SecretStr(KEY), extra={"temperature": 1, "seed": 3})) as model:
            answer = await model.answer(ASK, SHAPE, LIMITS)
    body, headers = script.bodies[0], script.headers[0]
    assert answer == ModelAnswer("{}", finish="length", prompt_tokens=7, answer_tokens=3)
    assert (body["model"], body["max_tokens"], body["messages"][1]) == ("tiny", 50, {"role": "user", "content": "well?"})
    assert (body["prompt_cache_key"], body["temperature"], body["seed"], "stream" in body) == ("same start", 1, 3, False)
    assert (body["response_format"]["type"], headers["authorization"]) == ("json_schema", f"Bearer {KEY}")


async def test_tools_are_offered_and_results_returned() -> None:
    """`may_call=False` keeps the tools in the prompt, and forbids calls."""
    async with served(completion("", tool_calls=[]), completion("431")) as (model, script):
        await model.answer(QUESTION, None, LIMITS, [TOOL])
        await model.answer(HISTORY, None, LIMITS, [TOOL], may_call=False)
    first, last = script.bodies
    offered = {"name": TOOL.name, "description": TOOL.description, "parameters": TOOL.parameters}
    assert first["tools"] == last["tools"] == [{"type": "function", "function": offered}]
    assert (first["tool_choice"], last["tool_choice"]) == ("auto", "none")
    function = {"name": ASKED.name, "arguments": ASKED.arguments}
    assert last["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "431"},
    ]


async def test_text_is_streamed_only_to_a_listener() -> None:
    """A JSON object is requested as a whole. Partial texts arrive while the answer is written."""
    heard: list[str] = []
    lines = (streamed(chunk(content="Zw\u00f6lf\u2028"), chunk("stop", content="\u00c4pfel")), completion("{}"), completion("a"))
    async with served(*lines) as (model, script):
        answer = await model.answer(ASK, None, LIMITS, hear=heard.append)
        await model.answer(ASK, SHAPE, LIMITS, hear=heard.append)
        await model.answer(ASK, None, LIMITS)
    assert (heard, answer.text) == (["Zw\u00f6lf\u2028", "Zw\u00f6lf\u2028\u00c4pfel"], "Zw\u00f6lf\u2028\u00c4pfel")
    assert [body.get("stream_options") for body in script.bodies] == [{"include_usage": True}, None, None]


@pytest.mark.parametrize(
    ("refusal", "field"),
    [
        ("response_format is not supported", "response_format"),
        ("temperature is not supported", "temperature"),
        ("Unknown field: prompt_cache_key", "prompt_cache_key"),
        ("Use max_completion_tokens instead of max_tokens", "max_tokens"),
        ("max_tokens is too large: at most 40", "max_tokens"),
    ],
)
async def test_rejected_field_is_omitted_from_then_on(refusal: str, field: str) -> None:
    """All other fields stay; without a schema, the system message contains it."""
    async with served(refused(refusal), completion("a"), completion("b")) as (model, script):
        texts = [(await model.answer(ASK, SHAPE, LIMITS)).text for _ in range(2)]
    first, second, third = script.bodies
    assert (texts, field in first, field in second, second) == (["a", "b"], True, False, third)
    assert first.keys() - {field} == second.keys() - {"max_completion_tokens"}
    assert ("goal_reached" in second["messages"][0]["content"]) == (field == "response_format")


async def test_rejection_without_a_field_omits_all_optional_fields() -> None:
    """A request that is rejected in every form is an error, and changes later requests in nothing."""
    async with served(refused("I will not"), refused("I will not"), completion("a")) as (model, script):
        with pytest.raises(ModelError, match="I will not"):
            await model.answer(ASK, SHAPE, LIMITS)
        await model.answer(ASK, SHAPE, LIMITS)
    assert set(script.bodies[1]) == {"model", "messages", "max_tokens"}
    assert script.bodies[2] == script.bodies[0]


async def test_server_without_tools_gets_them_as_text() -> None:
    """A call in the answer is a call; other text, and a truncated call, are not."""
    no = refused('"auto" tool choice requires --enable-auto-tool-choice')
    cut = completion('{"tool": "population", "arguments": {"city": "Tarn"}}', "length")
    async with served(no, CALL, completion("431 people"), cut) as (model, script):
        first = await model.answer(QUESTION, None, LIMITS, [TOOL])
        second = await model.answer(HISTORY, None, LIMITS, [TOOL])
        third = await model.answer(HISTORY, Count, LIMITS, [TOOL], may_call=False)
    assert [(call.name, json.loads(call.arguments)) for call in first.tool_calls] == [("population", {"city": "Tarn"})]
    assert (first.finish, second.text, second.tool_calls, third.tool_calls) == ("tools", "431 people", (), ())
    messages = script.bodies[2]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert "To call a tool" in messages[0]["content"] and "people" in script.bodies[3]["messages"][0]["content"]
    assert json.loads(messages[2]["content"]) == {"tool": "population", "arguments": {"city": "Tarn"}}
    assert messages[3]["content"] == "<result of population>\n431\n</result>"


@pytest.mark.parametrize(
    ("line", "context"),
    [
        (Line(400, '{"error": {"message": "request (5000 tokens) exceeds the context size (4096 tokens)", "n_ctx": 4096}}'), 4096),
        (Line(400, "This model's maximum context length is 8,192 tokens. However, you requested 20000 tokens"), 8192),
    ],
)
async def test_context_in_an_error_is_remembered(line: Line, context: int) -> None:
    """A second error of the same context applies to its request only."""
    async with served(line, completion("a"), line) as (model, script):
        assert await model.context_tokens() == 128_000
        with pytest.raises(PromptTooLongError) as first:
            await model.answer(ASK, SHAPE, LIMITS)
        await model.answer(ASK, SHAPE, LIMITS)
        with pytest.raises(PromptTooLongError) as second:
            await model.answer((ChatMessage("user", "x" * 60_000),), SHAPE, LIMITS)
        assert await model.context_tokens() == context
    assert (first.value.context, second.value.context) == (context, context // 2)
    assert script.bodies[1]["response_format"]["type"] == "json_schema"


async def test_retry_waits_as_the_server_requests() -> None:
    """In seconds, in milliseconds, or until a date of the server's clock; otherwise longer each time."""
    waits: list[float] = []
    date = {"Retry-After": formatdate(time.time() + 12, usegmt=True)}
    for headers in ({"Retry-After": "7"}, {"Retry-After-Ms": "4000"}, date):
        async with served(Line(429, headers=headers), completion("a"), waits=waits) as (model, _):
            assert (await model.answer(ASK, SHAPE, LIMITS)).text == "a"
    assert (waits[:2], 10 <= waits[2] <= 12) == ([7.0, 4.0], True)
    error, waits = await failure(*[Line(502)] * 4)
    assert (type(error), "502" in str(error)) == (UnavailableError, True)
    assert 0.25 <= waits[0] <= 0.75 <= waits[1] + 0.25 <= waits[2] + 0.5


@pytest.mark.parametrize(("headers", "waits"), [("3600", 0), ("inf", 3), ("nan", 3), ("soon", 3), ("-5", 3)])
async def test_long_or_malformed_retry_after(headers: str, waits: int) -> None:
    """A wait of more than 30 s is left to the caller; a malformed one counts as absent."""
    error, waited = await failure(*[Line(429, headers={"Retry-After": headers})] * 4)
    assert isinstance(error, UnavailableError)
    assert (len(waited), error.retry_after) == (waits, None if waits else timedelta(hours=1))


async def test_timeout_is_unavailable() -> None:
    """The timeout covers all attempts."""
    error, _ = await failure(Line(hang=True), limits=AnswerLimits(50, timedelta(milliseconds=100)))
    assert isinstance(error, UnavailableError)


async def test_interrupted_answer_is_retried() -> None:
    """Partial texts start again."""
    heard: list[str] = []
    broken = streamed(chunk(content="Half of "), last=None)
    async with served(broken, streamed(chunk("stop", content="All.")), *[broken] * 4) as (model, _):
        assert (await model.answer(ASK, None, LIMITS, hear=heard.append)).text == "All."
        with pytest.raises(UnavailableError, match="broke off"):
            await model.answer(ASK, None, LIMITS, hear=heard.append)
    assert heard[:2] == ["Half of ", "All."]


@pytest.mark.parametrize("body", ["", "<html>hello</html>", '{"choices": []}', '{"choices": [{}]}', "hello", "{"])
async def test_other_content_is_an_error_without_retry(body: str) -> None:
    """The error quotes its start."""
    error, waits = await failure(Line(body=body))
    assert (type(error), waits, body in str(error)) == (ModelError, [], True)


@pytest.mark.parametrize("start", ["", "data: "])
async def test_endless_answer_is_not_read(start: str) -> None:
    """A response has a maximum length."""
    error, _ = await failure(*[Line(pieces=(f"{start}{'x' * 100_000}" for _ in range(100))) for _ in range(4)])
    assert isinstance(error, UnavailableError) and "too long" in str(error)


@pytest.mark.parametrize(
    "lines",
    [
        [Line(401, KEY)],
        [Line(418, f"bad {KEY}")],
        [Line(404, KEY)],
        [Line(302, KEY, headers={"Location": f"http://127.0.0.1:9/{KEY}"})],
        [Line(body=f"hello {KEY}")],
        [Line(body=json.dumps({"error": f"bad {KEY}"}))] * 4,
    ],
)
async def test_key_is_in_no_error(lines: list[Line]) -> None:
    """Also if the server quotes it. A redirect is not followed."""
    error, _ = await failure(*lines)
    assert KEY not in f"{error} {error!r} {error.__dict__} {error.__context__} {ModelSettings('http://x/v1', 'm', SecretStr(KEY))}"


def test_strict_schema_is_the_supported_subset() -> None:
    """All properties are required, no others are allowed, and no unsupported keyword remains."""
    schema = strict_schema(answers.Speech)
    text = json.dumps(schema)
    objects = [schema, *schema["$defs"].values()]
    assert all(sorted(node["properties"]) == sorted(node["required"]) for node in objects)
    assert all(node["additionalProperties"] is False for node in objects)
    assert not any(f'"{word}"' in text for word in ("oneOf", "discriminator", "default", "const", "maxLength", "minItems"))
