"""Answers of OpenAI-compatible servers that deviate from the API, as a whole and as a stream, over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ioa.adapters.openai.completion import without_thoughts
from ioa.errors import IoaError, UnavailableError
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.usage import MAX_COUNT
from ioa.testing.chat_model_contract import LIMITS, QUESTION, TOOL
from tests.contract.chat_model.test_openai_chat import chat
from tests.rig.http_script import COUNTED, DONE, Line, chunk, completion, serving, streamed

TEXT = "Ocean waves rise."
TEXT_EVENTS = (chunk(role="assistant", content=""), chunk(content="Ocean waves "), chunk("stop", content="rise."))
USAGE_EVENT = f"data: {json.dumps(COUNTED)}\n\n"
ARGUMENTS = '{"city": "Tarn"}'


async def _answer(*lines: Line, tools: bool = False, heard: list[str] | None = None) -> ModelAnswer:
    """Request one streamed answer."""
    with serving(*lines) as (url, _):
        async with chat(url) as model:
            texts = list[str]() if heard is None else heard
            return await model.answer(QUESTION, None, LIMITS, [TOOL] if tools else (), hear=texts.append)


def _whole(text: object = TEXT, finish: object = "stop", message: dict[str, Any] | None = None, **fields: object) -> Line:
    choice = {"index": 0, "message": {"content": text, **(message or {})}, "finish_reason": finish}
    return Line(body=json.dumps({**COUNTED, "choices": [choice], **fields}))


def _typed(kind: str) -> Line:
    return replace(streamed(*TEXT_EVENTS), headers={"content-type": kind})


@pytest.mark.parametrize(
    "line",
    [
        _typed("Text/Event-Stream; charset=utf-8"),
        _typed("text/plain; charset=utf-16"),
        streamed(pieces=[piece.replace("\n", "\r\n") for piece in (*TEXT_EVENTS, USAGE_EVENT, DONE)]),
        _whole([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": TEXT}]),
        _whole(None, message={"refusal": TEXT}),
        _whole(usage=None),
        _whole(usage={"prompt_tokens": 11, "prompt_tokens_details": [{"modality": "TEXT"}], "completion_tokens_details": 1}),
        _whole(message={"tool_calls": None, "reasoning_content": "hm"}),
        Line(body=_whole().body, headers={"x-served-by": "Z\u00fcrich", "content-type": "text/html; charset=hex"}),
    ],
)
async def test_text_of_a_deviating_response_is_read(line: Line) -> None:
    """An optional field of another type, or another content type, causes no error."""
    assert (await _answer(line)).text == TEXT


@pytest.mark.parametrize(
    "line",
    [
        streamed(pieces=[*TEXT_EVENTS, USAGE_EVENT, DONE]),
        streamed(pieces=[*TEXT_EVENTS, USAGE_EVENT]),
        streamed(pieces=[*TEXT_EVENTS, DONE]),
        Line(pieces=[_whole().body]),
    ],
    ids=["done", "usage", "no usage", "whole"],
)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "broken"])
async def test_complete_answer_on_a_connection_without_end_is_returned(line: Line, is_open: bool) -> None:
    """A connection that stays open costs no answer, and one that breaks afterwards costs no retry."""
    unfinished = replace(line, open=True) if is_open else replace(line, headers={"content-length": "9999"})
    assert (await _answer(unfinished)).text == TEXT


@pytest.mark.parametrize("error", [{"code": 502, "message": "Provider returned error"}, {"message": "overloaded"}, "busy"])
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_error_with_status_200_is_retried(error: object, is_streamed: bool) -> None:
    """Also after a part of the answer; the last error names its cause."""
    line = streamed(chunk(content="Half"), last={"error": error}) if is_streamed else Line(body=json.dumps({"error": error}))
    assert (await _answer(line, _whole())).text == TEXT
    with pytest.raises(UnavailableError, match=r"Provider|overloaded|busy"):
        await _answer(*[line] * 4)


async def test_permanent_error_with_status_200_is_not_retried() -> None:
    """The error contains the server's message."""
    with pytest.raises(IoaError, match="no such model"):
        await _answer(Line(body='{"error": {"code": 418, "message": "no such model"}}'))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (f"<think>\nShips? No.\n</think>\n\n{TEXT}", TEXT),
        (f"Ships? No.\n</think>\n\n{TEXT}", TEXT),
        ("<think>Ships? N", ""),
        (f"{TEXT}<think>Good?</think>", TEXT),
        ('{"note": "</think> ends a thought"}', '{"note": "</think> ends a thought"}'),
    ],
)
async def test_thoughts_are_removed(written: str, text: str) -> None:
    """From the text, and from a streamed answer also from the partial texts."""
    assert without_thoughts(written) == text
    assert (await _answer(_whole(written))).text == text
    heard: list[str] = []
    pieces = [chunk(content=written[at : at + 5]) for at in range(0, len(written), 5)]
    assert (await _answer(streamed(*pieces, chunk("stop")), heard=heard)).text == text
    if written.startswith("<think>"):
        assert all(text.startswith(one) for one in heard)


def _call(**call: object) -> dict[str, object]:
    return {"type": "function", "function": {"name": "population", "arguments": ARGUMENTS}, **call}


def _calling(*calls: dict[str, object], finish: str = "tool_calls") -> Line:
    return _whole(None, finish, {"tool_calls": calls})


def _named(name: str | None, arguments: object = ARGUMENTS) -> dict[str, object]:
    return _call(function={"name": name, "arguments": arguments})


TWO = [{"index": 0, **_call(id="a")}, {"index": 0, **_call(id="b")}]
HALVES = [
    {"index": 0, "id": "a", "function": {"name": "population", "arguments": ARGUMENTS[:6]}},
    {"index": 0, "function": {"arguments": ARGUMENTS[6:]}},
]


def _streamed_calls(*deltas: dict[str, object]) -> Line:
    return streamed(*[chunk(tool_calls=[one]) for one in deltas], chunk("tool_calls"))


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        (_calling(_call(id="a")), 1),
        (_calling(_named("population", {"city": "Tarn"})), 1),
        (_whole(f'<tool_call>\n{{"name": "population", "arguments": {ARGUMENTS}}}\n</tool_call>'), 1),
        (_whole(f'[TOOL_CALLS] [{{"name": "population", "arguments": {ARGUMENTS}}}]'), 1),
        (_whole(f'<think>x</think>I look. {{"tool": "population", "arguments": {ARGUMENTS}}}' * 2), 2),
        (_streamed_calls(*HALVES), 1),
        (_streamed_calls(*({name: value for name, value in half.items() if name != "index"} for half in HALVES)), 1),
        (_streamed_calls(*TWO), 2),
        (_streamed_calls({"index": 0, **_call(id="a")}, {"index": 1, **_call(id="b")}), 2),
    ],
)
async def test_tool_call_of_any_shape_is_read(line: Line, calls: int) -> None:
    """Each call has the offered name, JSON arguments (default an empty object) and its own id."""
    answer = await _answer(line, tools=True)
    read = {(call.name, call.arguments) for call in answer.tool_calls}
    assert (len(answer.tool_calls), answer.finish, answer.text) == (calls, "tools", "")
    assert read in ({("population", ARGUMENTS)}, {("population", "{}")})
    assert len({call.call_id for call in answer.tool_calls} - {""}) == calls


@pytest.mark.parametrize(
    "text", ['{"name": "weather", "arguments": {}}', '{"name": "population"}', "population(Tarn)", f'{{"city": "{TOOL.name}"}}']
)
async def test_other_json_in_a_text_is_no_call(text: str) -> None:
    """A call names an offered tool and has arguments; a truncated answer has no calls."""
    assert (await _answer(_whole(text), tools=True)).tool_calls == ()
    written = _whole(f'{{"name": "population", "arguments": {ARGUMENTS}}}', "length")
    answer = await _answer(written, tools=True)
    assert (answer.tool_calls, answer.finish) == ((), "length")


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 2}}, (7, 3, 5, 2)),
        ({"prompt_cache_hit_tokens": 5, "prompt_tokens_details": None}, (7, 3, 5, 0)),
        ({"prompt_tokens": 2**63, "completion_tokens": -1, "prompt_cache_hit_tokens": 1e300}, (MAX_COUNT, 0, MAX_COUNT, 0)),
    ],
)
async def test_usage_counts_cached_and_reasoning_tokens(usage: dict[str, object], counts: tuple[int, ...]) -> None:
    """Counts are within the range of a usage."""
    line = json.loads(completion("a").body)
    answer = await _answer(Line(body=json.dumps({**line, "usage": {**line["usage"], **usage}})))
    assert (answer.prompt_tokens, answer.answer_tokens, answer.cached_tokens, answer.reasoning_tokens) == counts
