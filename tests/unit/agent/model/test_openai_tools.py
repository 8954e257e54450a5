"""Tools of a model behind an OpenAI-compatible endpoint, whether its server knows them or not."""

from __future__ import annotations

import json

import pytest

from ioa.adapters.openai.dialect import ToolFormat
from ioa.ports.chat_model import ModelAnswer
from ioa.testing.chat_model_contract import ASKED, HISTORY, LIMITS, QUESTION, TOOL, Count
from tests.unit.agent.model.http_script import Line, completion, refused, serving
from tests.unit.agent.model.test_openai_chat import chat

NO_TOOLS = refused('"auto" tool choice requires --enable-auto-tool-choice')
NO_SCHEMA = refused("response_format is not supported")


def _calling(arguments: object, finish: str = "tool_calls", **call: str) -> Line:
    function = {"name": "population", "arguments": arguments}
    return completion(None, finish, tool_calls=[{"type": "function", "function": function, **call}])


async def test_tools_are_offered_in_the_servers_own_fields() -> None:
    """With the conversation so far; a last question keeps them in sight and forbids them."""
    with serving(_calling('{"city": "Tarn"}', id="a"), completion("431")) as (url, script):
        async with chat(url) as model:
            await model.answer(QUESTION, None, LIMITS, [TOOL])
            await model.answer(HISTORY, None, LIMITS, [TOOL], may_call=False)
    first, last = script.bodies
    offered = {"name": TOOL.name, "description": TOOL.description, "parameters": TOOL.parameters}
    assert first["tools"] == last["tools"] == [{"type": "function", "function": offered}]
    assert (first["tool_choice"], last["tool_choice"], "response_format" in first) == ("auto", "none", False)
    function = {"name": ASKED.name, "arguments": ASKED.arguments}
    assert last["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "431"},
    ]


@pytest.mark.parametrize("line", [_calling({"city": "Tarn"}, "stop"), _calling('{"city": "Tarn"}', "stop", id="")])
async def test_odd_forms_of_calls_are_read(line: Line) -> None:
    """Arguments as an object, no id, and an ending that calls itself `stop` are what servers send."""
    with serving(line) as (url, _):
        async with chat(url) as model:
            answer = await model.answer(QUESTION, None, LIMITS, [TOOL])
    [call] = answer.tool_calls
    assert (json.loads(call.arguments), call.call_id, answer.finish, answer.text) == ({"city": "Tarn"}, "call-1", "tools", "")


@pytest.mark.parametrize(("refusals", "kept"), [([NO_TOOLS], ToolFormat.SCHEMA), ([NO_TOOLS, NO_SCHEMA], ToolFormat.TEXT)])
async def test_a_server_without_tools_is_asked_otherwise_and_that_is_remembered(refusals: list[Line], kept: ToolFormat) -> None:
    """By a schema, else in words: the calls and the answer come out the same, and nothing is refused twice."""
    said = [completion('{"tool": "population", "arguments": {"city": "Tarn"}}'), completion('So: {"answer": "431 people"}')]
    with serving(*refusals, *said) as (url, script):
        async with chat(url) as model:
            first = await model.answer(QUESTION, None, LIMITS, [TOOL])
            second = await model.answer(HISTORY, None, LIMITS, [TOOL])
            assert model.dialect.tools is kept
    assert [(call.name, json.loads(call.arguments)) for call in first.tool_calls] == [("population", {"city": "Tarn"})]
    assert (first.text, first.finish, second.text, second.tool_calls) == ("", "tools", "431 people", ())
    last = script.bodies[-1]
    assert ("response_format" in last, "tools" in last, len(script.bodies)) == (kept is ToolFormat.SCHEMA, False, len(refusals) + 2)
    assert [message["role"] for message in last["messages"]] == ["system", "user", "assistant", "user"]
    assert json.loads(last["messages"][2]["content"]) == {"tool": "population", "arguments": {"city": "Tarn"}}
    assert last["messages"][3]["content"] == "<result of population>\n431\n</result>"


async def test_a_shape_is_kept_where_tools_are_in_words() -> None:
    """The answer of such a server has the shape that was asked for."""
    with serving(NO_TOOLS, completion('{"answer": {"people": 431}}')) as (url, script):
        async with chat(url) as model:
            answer = await model.answer(QUESTION, Count, LIMITS, [TOOL])
    schema = script.bodies[-1]["response_format"]["json_schema"]["schema"]
    assert Count.model_validate_json(answer.text) == Count(people=431)
    assert [list(way["properties"]) for way in schema["anyOf"]] == [["tool", "arguments"], ["answer"]]


async def test_a_text_of_a_server_without_tools_is_an_answer() -> None:
    """Whoever keeps to no form has answered; a cut call is none."""
    cut = completion('{"tool": "population", "arguments": {"city": "Tarn"}}', "length")
    with serving(NO_TOOLS, completion("431"), cut) as (url, _):
        async with chat(url) as model:
            answers = [await model.answer(QUESTION, None, LIMITS, [TOOL]) for _ in range(2)]
    assert answers[0] == ModelAnswer("431", prompt_tokens=7, answer_tokens=3)
    assert (answers[1].finish, answers[1].tool_calls) == ("length", ())
