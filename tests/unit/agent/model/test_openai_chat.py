"""The adapter for OpenAI-compatible endpoints, against a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from ioa.adapters.openai.chat import ModelSettings, OpenAiChat, open_openai_chat
from ioa.adapters.openai.dialect import AnswerFormat
from ioa.adapters.openai.request_body import strict_schema
from ioa.agent.model import answers
from ioa.agent.model.budget import Budget
from ioa.errors import InvalidInputError, IoaError, ModelError, UnavailableError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, Finish, ModelAnswer, PromptTooLongError
from ioa.protocol.codec import encode
from ioa.protocol.usage import MAX_COUNT
from tests.rig.counted_body import PIECE, CountedBody
from tests.unit.agent.model.http_script import Line, chunk, completion, refused, serving

KEY = "sk-very-secret"
LIMITS = AnswerLimits(max_tokens=50, timeout=timedelta(seconds=20))
SHAPE = answers.Speech
ASK = (ChatMessage("system", "be brief"), ChatMessage("user", "well?"))


@asynccontextmanager
async def chat(url: str, waits: list[float] | None = None) -> AsyncIterator[OpenAiChat]:
    """Open the adapter with a sleep that only notes how long it would have been."""

    async def note(seconds: float) -> None:
        (waits if waits is not None else []).append(seconds)

    async with httpx.AsyncClient() as client:
        settings = ModelSettings(url, "tiny", SecretStr(KEY))
        yield OpenAiChat(settings, client, sleep=note, rng=random.Random(1))


async def failure(*lines: Line, limits: AnswerLimits = LIMITS) -> tuple[IoaError, list[float]]:
    """Ask a server that will fail, and return the error and the waits."""
    waits: list[float] = []
    with serving(*lines) as (url, _):
        async with chat(url, waits) as model:
            with pytest.raises(IoaError) as caught:
                await model.answer(ASK, SHAPE, limits)
    return caught.value, waits


async def test_asks_for_a_schema_and_reads_the_answer() -> None:
    """The request carries model, messages, limits, shape and key; the answer its text and token counts."""
    with serving(completion("{}", "length")) as (url, script):
        async with open_openai_chat(ModelSettings(url, "tiny", SecretStr(KEY))) as model:
            answer = await model.answer(ASK, SHAPE, LIMITS)
    body = script.bodies[0]
    assert answer == ModelAnswer("{}", finish="length", prompt_tokens=7, answer_tokens=3)
    assert (body["model"], body["max_tokens"], body["messages"][1]) == ("tiny", 50, {"role": "user", "content": "well?"})
    assert (body["response_format"]["type"], script.headers[0]["authorization"]) == ("json_schema", f"Bearer {KEY}")
    assert script.headers[0]["accept-encoding"] == "identity"


async def _said(kind: Mapping[str, str] | Mapping[bytes, bytes], *pieces: bytes) -> tuple[ModelAnswer | IoaError, list[int]]:
    """Ask a server that says so, each time it is asked, and return what comes of it, and how many pieces were read each time."""
    bodies: list[CountedBody] = []

    async def serve(_request: httpx.Request) -> httpx.Response:
        bodies.append(CountedBody(*pieces))
        return httpx.Response(200, headers=kind, stream=bodies[-1])

    async def at_once(_seconds: float) -> None:
        await asyncio.sleep(0)

    async with httpx.AsyncClient(transport=httpx.MockTransport(serve)) as client:
        model = OpenAiChat(ModelSettings("http://model.test/v1", "tiny"), client, sleep=at_once)
        answer: ModelAnswer | IoaError
        try:
            answer = await model.answer(ASK, None, LIMITS, hear=list[str]().append)
        except IoaError as error:
            answer = error
    return answer, [body.taken for body in bodies]


@pytest.mark.parametrize("charset", ["hex", "utf-16"])
async def test_an_answer_is_utf_8_whatever_it_says(charset: str) -> None:
    """JSON is; reading it as what Python knows under such a name failed with errors that ended a goal."""
    answer, _ = await _said({"content-type": f"application/json; charset={charset}"}, completion("Gruß").body.encode())
    assert isinstance(answer, ModelAnswer), answer
    assert answer.text == "Gruß"


async def test_an_answer_is_read_whatever_its_headers_say() -> None:
    """A proxy may name itself; the answer failed by an error that nobody expects, without another try."""
    answer, _ = await _said({b"X-Served-By": "Zürich".encode()}, completion("Hi.").body.encode())
    assert isinstance(answer, ModelAnswer), answer
    assert answer.text == "Hi."


async def test_no_error_of_a_library_reaches_who_asks() -> None:
    """Another model is asked, or the rules, where this one cannot be used; who asks knows no other errors than the system's."""

    async def serve(_request: httpx.Request) -> httpx.Response:
        raise UnicodeError("of a library")

    async def at_once(_seconds: float) -> None:
        await asyncio.sleep(0)

    async with httpx.AsyncClient(transport=httpx.MockTransport(serve)) as client:
        model = OpenAiChat(ModelSettings("http://model.test/v1", "tiny"), client, sleep=at_once)
        with pytest.raises(UnavailableError, match=r"cannot be read \(UnicodeError\)"):
            await model.answer(ASK, None, LIMITS)
        assert await model.context_tokens() == 128_000


EVENTS = {"content-type": "text/event-stream"}
CALLS = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [{"id": "a"}] * 3_000}}]})


@pytest.mark.parametrize(
    ("kind", "piece"),
    [
        ({}, PIECE),
        (EVENTS, PIECE + b"\n"),
        (EVENTS, chunk(content="a" * 50_000).encode()),
    ],
    ids=["whole", "lines", "text"],
)
async def test_of_an_endless_answer_no_more_is_read_than_one_may_have(kind: dict[str, str], piece: bytes) -> None:
    """Fifty tokens may be some kilobytes; a megabyte more is read, and not fifty. The server is one that cannot be used now."""
    answer, taken = await _said(kind, *[piece] * 1_000)
    assert isinstance(answer, UnavailableError)
    assert all(one * len(piece) < 1_200_000 for one in taken), taken


@pytest.mark.parametrize("key", ["3", KEY])
async def test_no_answer_is_changed_for_the_key(key: str) -> None:
    """An answer that happens to hold the key comes as the model gave it: figures and words stay what they are."""
    said = f"3 of the 33 boxes are EMPTY, none of them {key}"
    with serving(completion(said)) as (url, _):
        async with open_openai_chat(ModelSettings(url, "tiny", SecretStr(key))) as model:
            assert (await model.answer(ASK, SHAPE, LIMITS)).text == said


async def test_a_refusal_by_the_model_is_its_text() -> None:
    """What the model says instead of an answer is handed on."""
    with serving(completion(None, refusal="I won't.")) as (url, _):
        async with chat(url) as model:
            assert (await model.answer(ASK, SHAPE, LIMITS)).text == "I won't."


async def test_gives_up_strictness_step_by_step_and_remembers() -> None:
    """A server that knows no response format is asked in plain words, at once from the second question on."""
    no = refused("response_format is not supported")
    with serving(no, no, completion("a"), completion("b")) as (url, script):
        async with chat(url) as model:
            texts = [(await model.answer(ASK, SHAPE, LIMITS)).text for _ in range(2)]
            assert model.dialect.format is AnswerFormat.PLAIN
    kinds = [body.get("response_format", {}).get("type") for body in script.bodies]
    assert (texts, kinds) == (["a", "b"], ["json_schema", "json_object", None, None])
    told = [message["content"] for message in script.bodies[3]["messages"]]
    assert (told[0].startswith("be brief"), "goal_reached" in told[0], told[1:]) == (True, True, ["well?"])


async def test_learns_the_names_of_newer_parameters() -> None:
    """A server that wants another token limit and no temperature keeps its schema."""
    lines = (refused("use max_completion_tokens instead"), refused("temperature is not supported"), completion("a"))
    with serving(*lines) as (url, script):
        async with chat(url) as model:
            await model.answer(ASK, SHAPE, LIMITS)
            assert model.dialect.format is AnswerFormat.SCHEMA
    assert ("temperature" in script.bodies[2], script.bodies[2]["max_completion_tokens"]) == (False, 50)


async def test_a_refusal_of_everything_teaches_nothing() -> None:
    """What the server refuses however it is asked is an error, and leaves the dialect as it was."""
    with serving(*[refused("I will not")] * 3, completion("a")) as (url, script):
        async with chat(url) as model:
            with pytest.raises(ModelError, match="I will not"):
                await model.answer(ASK, SHAPE, LIMITS)
            await model.answer(ASK, SHAPE, LIMITS)
    assert script.bodies[3]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("told", "context"),
    [
        (
            '{"error":{"code":400,"message":"request (5000 tokens) exceeds the context size (4096 tokens)","n_ctx":4096}}',
            4096,
        ),
        ("This model's maximum context length is 8192 tokens. However, you requested 20000 tokens (4000 in the messages)", 8192),
        ("prompt is too long: 210000 tokens > 32000 maximum", 32_000),
    ],
)
async def test_a_refusal_for_length_tells_the_context(told: str, context: int) -> None:
    """The number that the server names counts from then on. Strictness stays."""
    with serving(Line(400, told), completion("a")) as (url, script):
        async with chat(url) as model:
            assert await model.context_tokens() == 128_000
            with pytest.raises(PromptTooLongError):
                await model.answer(ASK, SHAPE, LIMITS)
            assert await model.context_tokens() == context
            await model.answer(ASK, SHAPE, LIMITS)
    assert script.bodies[1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("pages", "context"),
    [
        ({"/v1/models": '{"data": [{"id": "tiny", "max_model_len": 32768}, {"id": "big", "max_model_len": 9}]}'}, 32_768),
        ({"/v1/models": '{"data": [{"id": "x"}]}', "/props": '{"default_generation_settings": {"n_ctx": 4096}}'}, 4_096),
        ({"/v1/models": '{"data": [{"id": "tiny", "context_window": "many"}]}', "/props": "[]"}, 128_000),
    ],
)
async def test_the_context_is_asked_for_once(pages: dict[str, str], context: int) -> None:
    """By what servers say of their models, llama.cpp of its slots; where nothing is said a large one is assumed."""
    with serving(pages=pages) as (url, script):
        async with chat(url) as model:
            assert [await model.context_tokens() for _ in range(2)] == [context] * 2
    assert len(script.gets) == (1 if "max_model_len" in str(pages) or "context_length" in str(pages) else 2)


async def test_a_context_that_is_set_is_not_asked_for() -> None:
    """The setting stands, until a refusal says less."""
    with serving(refused("n_ctx 2048")) as (url, script):
        async with httpx.AsyncClient() as client:
            model = OpenAiChat(ModelSettings(url, "tiny", context=8_000), client)
            assert await model.context_tokens() == 8_000
            with pytest.raises(PromptTooLongError):
                await model.answer(ASK, SHAPE, LIMITS)
            assert (await model.context_tokens(), script.gets) == (2_048, [])


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "stop"), ("length", "length"), ("tool_calls", "tools"), ("content_filter", "filter"), ("eos", "other")],
)
async def test_says_how_an_answer_ended(reason: str, finish: Finish) -> None:
    """Whoever reads the answer can tell a whole one from a part."""
    with serving(completion("a", reason)) as (url, _):
        async with chat(url) as model:
            assert (await model.answer(ASK, SHAPE, LIMITS)).finish == finish


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 2}},
        {"prompt_cache_hit_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 2}, "prompt_tokens_details": None},
    ],
)
async def test_counts_what_was_cached_and_reasoned(usage: dict[str, object]) -> None:
    """In the words of either kind of provider."""
    line = json.loads(completion("a").body)
    line["usage"] |= usage
    with serving(Line(body=json.dumps(line))) as (url, _):
        async with chat(url) as model:
            answer = await model.answer(ASK, SHAPE, LIMITS)
    assert (answer.prompt_tokens, answer.cached_tokens, answer.reasoning_tokens) == (7, 5, 2)


async def test_so_many_questions_are_under_way_at_once() -> None:
    """What is asked beyond the bound waits for an answer to another question."""
    under_way, most, go = 0, 0, asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await go.wait()
        under_way -= 1
        return httpx.Response(200, text=completion("a").body)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client, asyncio.TaskGroup() as group:
        model = OpenAiChat(ModelSettings("http://x/v1", "tiny", concurrency=2), client)
        asked = [group.create_task(model.answer(ASK, SHAPE, LIMITS)) for _ in range(5)]
        for _ in range(50):
            await asyncio.sleep(0)
        go.set()
    assert (most, [task.result().text for task in asked]) == (2, ["a"] * 5)


async def test_retries_what_a_retry_can_help() -> None:
    """Overload and server errors are tried again, after a wait that grows and is at least what the server says."""
    waits: list[float] = []
    lines = (Line(429, headers={"Retry-After": "7"}), Line(500), Line(503), completion("a"))
    with serving(*lines) as (url, _):
        async with chat(url, waits) as model:
            assert (await model.answer(ASK, SHAPE, LIMITS)).text == "a"
    assert waits[0] == 7.0
    assert 0.5 <= waits[1] <= 1.5 <= waits[2] + 0.5 <= 3.5


async def test_stops_retrying() -> None:
    """After four tries the model counts as unavailable."""
    error, waits = await failure(*[Line(502)] * 4)
    assert (type(error), len(waits), "502" in str(error)) == (UnavailableError, 3, True)


async def test_does_not_wait_longer_than_is_sensible() -> None:
    """A server that wants an hour of rest is unavailable now."""
    error, waits = await failure(Line(429, headers={"Retry-After": "3600"}))
    assert (type(error), waits) == (UnavailableError, [])


@pytest.mark.parametrize("said", ["inf", "nan"])
async def test_what_no_clock_can_tell_is_no_time_to_wait_for(said: str) -> None:
    """A server says for how long it is away in numbers that are no time: it is unavailable, or asked again at once."""
    error, _ = await failure(*[Line(429, headers={"Retry-After": said})] * 4)
    assert isinstance(error, UnavailableError)
    assert error.retry_after is None or error.retry_after <= timedelta(days=1)


@pytest.mark.parametrize("count", [-1, 2**63])
async def test_what_no_usage_can_be_is_counted_as_the_nearest_that_can(count: int) -> None:
    """An answer is worth no less for what its server counts, and what it costs can travel with a message."""
    line = json.loads(completion("a").body)
    line["usage"] = {"prompt_tokens": count, "completion_tokens": count, "prompt_cache_hit_tokens": count}
    with serving(Line(body=json.dumps(line))) as (url, _):
        async with chat(url) as model:
            answer = await model.answer(ASK, SHAPE, LIMITS)
    counted = 0 if count < 0 else MAX_COUNT
    assert (answer.prompt_tokens, answer.answer_tokens, answer.cached_tokens) == (counted, counted, counted)
    encode(Budget(prompt_price=1e300, answer_price=1e300).usage_of(answer))


async def test_no_answer_in_time() -> None:
    """A server that hangs is unavailable once the timeout has passed."""
    error, _ = await failure(Line(hang=True), limits=AnswerLimits(50, timedelta(milliseconds=100)))
    assert isinstance(error, UnavailableError)


async def test_nobody_listens() -> None:
    """A refused connection is tried again and then reported with the address."""
    with serving() as (url, _):
        pass
    waits: list[float] = []
    async with chat(url, waits) as model:
        with pytest.raises(UnavailableError, match="ConnectError"):
            await model.answer(ASK, SHAPE, LIMITS)
    assert len(waits) == 3


@pytest.mark.parametrize("body", ["", "<html>hello</html>", '{"choices": []}'])
async def test_something_else_than_a_completion(body: str) -> None:
    """An answer of another program is an error that no retry helps."""
    error, waits = await failure(Line(body=body))
    assert (type(error), waits) == (ModelError, [])


@pytest.mark.parametrize("line", [Line(401, KEY), Line(418, f"bad {KEY}"), Line(body=f"hello {KEY}")])
async def test_the_key_never_appears(line: Line) -> None:
    """Whatever the server echoes, no error and no repr holds the key."""
    error, _ = await failure(line)
    assert KEY not in f"{error} {error!r} {error.__dict__} {error.__context__} {ModelSettings('http://x/v1', 'm', SecretStr(KEY))}"


def test_the_schema_is_what_strict_output_takes() -> None:
    """Every object names all its properties as required, allows no others, and no word of pydantic's own is left."""
    schema = strict_schema(answers.Speech)
    text = json.dumps(schema)
    objects = [schema, *schema["$defs"].values()]
    assert all(sorted(node["properties"]) == sorted(node["required"]) for node in objects)
    assert all(node["additionalProperties"] is False for node in objects)
    assert not any(f'"{word}"' in text for word in ("oneOf", "discriminator", "default", "const", "maxLength", "minItems"))


LOCAL = "http://localhost:8080/v1"


@pytest.mark.parametrize(
    ("env", "url", "model", "key"),
    [
        ({"IOA_LLM_BASE_URL": LOCAL + "/", "IOA_LLM_MODEL": "m", "IOA_LLM_API_KEY": "k"}, LOCAL, "m", "k"),
        ({"OPENAI_MODEL": "m", "OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "m", "k"),
        ({"OPENAI_MODEL": "m", "OPENAI_BASE_URL": LOCAL}, LOCAL, "m", None),
        ({"IOA_LLM_BASE_URL": LOCAL, "IOA_LLM_MODEL": "m", "OPENAI_API_KEY": "k"}, LOCAL, "m", None),
    ],
)
def test_settings_from_the_environment(env: dict[str, str], url: str, model: str, key: str | None) -> None:
    """Our own names come first, the usual ones second, and no key goes to an address it was not meant for."""
    assert ModelSettings.from_environment(env) == ModelSettings(url, model, SecretStr(key) if key else None)


def test_a_key_from_a_file(tmp_path: Path) -> None:
    """A key may lie in a file, as secrets that are mounted do."""
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    env = {"IOA_LLM_BASE_URL": LOCAL, "IOA_LLM_MODEL": "m", "IOA_LLM_API_KEY_FILE": str(file)}
    read = ModelSettings.from_environment(env)
    assert read is not None and read.api_key is not None
    assert (read.api_key.get_secret_value(), KEY in repr(read)) == (KEY, False)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("IOA_LLM_CONTEXT", "many"),
        ("IOA_LLM_MAX_ANSWER", "0"),
        ("IOA_LLM_TIMEOUT", "-1"),
        ("IOA_LLM_FORMAT", "xml"),
        ("IOA_LLM_EXTRA", "{"),
        ("IOA_LLM_NOW", "2026-01-01T00:00:00"),
        ("IOA_LLM_API_KEY_FILE", "/nowhere/key"),
    ],
)
def test_a_malformed_setting_is_named(variable: str, value: str) -> None:
    """The error names the variable, and holds no key."""
    env = {"IOA_LLM_BASE_URL": LOCAL, "IOA_LLM_MODEL": "m", variable: value}
    if variable != "IOA_LLM_API_KEY_FILE":
        env["IOA_LLM_API_KEY"] = KEY
    with pytest.raises(InvalidInputError) as caught:
        ModelSettings.from_environment(env)
    assert (str(caught.value).startswith(f"{variable}: "), KEY in f"{caught.value!r} {caught.value.__context__}") == (True, False)


@pytest.mark.parametrize("env", [{}, {"OPENAI_API_KEY": "k"}, {"OPENAI_BASE_URL": LOCAL, "OPENAI_API_KEY": "k"}])
def test_no_model_unless_one_is_named(env: dict[str, str]) -> None:
    """What stands in an environment for other programs starts no model here."""
    assert ModelSettings.from_environment(env) is None


@pytest.mark.parametrize(
    "env",
    [
        {"IOA_LLM_BASE_URL": LOCAL},
        {"IOA_LLM_BASE_URL": "localhost:8080", "IOA_LLM_MODEL": "m"},
        {"IOA_LLM_BASE_URL": "ftp://x", "IOA_LLM_MODEL": "m"},
    ],
)
def test_settings_that_cannot_be_meant(env: dict[str, str]) -> None:
    """A missing name and a malformed address are said at once."""
    with pytest.raises(InvalidInputError) as caught:
        ModelSettings.from_environment(env)
    assert caught.value.hint
