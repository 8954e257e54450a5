"""The adapter for OpenAI-compatible endpoints, against a real HTTP server."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
import pytest
from pydantic import SecretStr

from ioa.adapters.openai.chat import ModelSettings, OpenAiChat, open_openai_chat
from ioa.adapters.openai.dialect import AnswerFormat, strict_schema
from ioa.agent.model import answers
from ioa.agent.model.budget import Budget
from ioa.errors import InvalidInputError, IoaError, ModelError, UnavailableError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ModelAnswer
from ioa.protocol.messages import Discussion, SyncTaskAssignment
from tests.unit.agent.model.http_script import Line, completion, refused, serving
from tests.unit.agent.model.situations import ANN, launched

KEY = "sk-very-secret"
LIMITS = AnswerLimits(max_tokens=50, timeout=timedelta(seconds=20))
SHAPE = answers.conclusion(Budget())
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
    assert answer == ModelAnswer("{}", complete=False, prompt_tokens=7, answer_tokens=3)
    assert (body["model"], body["max_tokens"], body["messages"][1]) == ("tiny", 50, {"role": "user", "content": "well?"})
    assert (body["response_format"]["type"], script.headers[0]["authorization"]) == ("json_schema", f"Bearer {KEY}")


@pytest.mark.parametrize("key", ["3", "x", "EMPTY", "none", KEY])
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
    with serving(no, no, no, completion("a"), completion("b")) as (url, script):
        async with chat(url) as model:
            texts = [(await model.answer(ASK, SHAPE, LIMITS)).text for _ in range(2)]
            assert model.dialect.format is AnswerFormat.PLAIN
    kinds = [body.get("response_format", {}).get("type") for body in script.bodies]
    assert (texts, kinds) == (["a", "b"], ["json_schema", "json_schema", "json_object", None, None])
    assert "maxLength" not in json.dumps(script.bodies[1])
    assert "goal_reached" in script.bodies[4]["messages"][-1]["content"]


async def test_learns_the_names_of_newer_parameters() -> None:
    """A server that wants another token limit and no temperature keeps its schema."""
    lines = (refused("use max_completion_tokens instead"), refused("temperature is not supported"), completion("a"))
    with serving(*lines) as (url, script):
        async with chat(url) as model:
            await model.answer(ASK, SHAPE, LIMITS)
            assert model.dialect.format is AnswerFormat.SCHEMA
    assert ("temperature" in script.bodies[2], script.bodies[2]["max_completion_tokens"]) == (False, 50)


async def test_a_refusal_of_everything_teaches_nothing() -> None:
    """A prompt that is too long is an error and leaves the dialect as it was."""
    with serving(*[refused("context too long")] * 4, completion("a")) as (url, script):
        async with chat(url) as model:
            with pytest.raises(ModelError, match="context too long"):
                await model.answer(ASK, SHAPE, LIMITS)
            await model.answer(ASK, SHAPE, LIMITS)
    assert script.bodies[4]["response_format"]["type"] == "json_schema"


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


@pytest.mark.parametrize("body", ["", "<html>hello</html>", "{}", '{"choices": []}', '{"choices": [{"message": 1}]}'])
async def test_something_else_than_a_completion(body: str) -> None:
    """An answer of another program is an error that no retry helps."""
    error, waits = await failure(Line(body=body))
    assert (type(error), waits) == (ModelError, [])


@pytest.mark.parametrize(
    "line", [Line(401, KEY), Line(403, KEY), Line(404, KEY), Line(418, f"bad {KEY}"), Line(body=f"hello {KEY}"), Line(413, KEY)]
)
async def test_the_key_never_appears(line: Line) -> None:
    """Whatever the server echoes, no error and no repr holds the key."""
    error, _ = await failure(line)
    assert KEY not in f"{error} {error!r} {error.__dict__} {error.__context__} {ModelSettings('http://x/v1', 'm', SecretStr(KEY))}"


def test_the_schema_is_what_strict_output_takes() -> None:
    """Every object names all its properties as required, allows no others, and no word of pydantic's own is left."""
    group = launched()
    shape = answers.speech(group.view(ANN), (Discussion, SyncTaskAssignment), Budget())
    assert shape is not None
    schema = strict_schema(shape, with_lengths=False)
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
