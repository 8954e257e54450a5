"""An answer that is told while it is written: by a real endpoint that streams, as far as whoever follows the goal."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ioa import ModelAgent
from ioa.adapters.openai.chat import ModelSettings
from ioa.agent.rules import RuleBrain
from ioa.client.history import conversation
from ioa.client.watching import watch
from ioa.errors import IoaError, ModelError, UnavailableError
from ioa.group.events import Said
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import comm_id_of_goal
from ioa.protocol.messages import InformTaskProgress
from ioa.testing.chat_model_contract import LIMITS, QUESTION, TOOL, Count
from ioa_testkit import System
from tests.unit.agent.model.http_script import COUNTED, Line, chunk, completion, refused, serving, streamed
from tests.unit.agent.model.test_openai_chat import chat


async def _heard(*lines: Line) -> tuple[ModelAnswer, list[str], list[dict[str, object]]]:
    """Ask once, and return the answer, what was heard of it, and the requests."""
    heard: list[str] = []
    with serving(*lines) as (url, script):
        async with chat(url) as model:
            answer = await model.answer(QUESTION, None, LIMITS, [TOOL], hear=heard.append)
    return answer, heard, script.bodies


async def test_an_answer_is_heard_while_it_is_written() -> None:
    """Piece by piece, whatever characters are in it; in the end it is the answer that would have come whole, with its costs."""
    answer, heard, [body] = await _heard(
        streamed(chunk(role="assistant"), chunk(content="Zwölf\u2028"), chunk("stop", content="Äpfel"))
    )
    assert heard == ["Zwölf\u2028", "Zwölf\u2028Äpfel"]
    assert answer == ModelAnswer("Zwölf\u2028Äpfel", prompt_tokens=7, answer_tokens=3)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


async def test_a_letter_that_is_told_in_two_halves_is_one() -> None:
    """JSON spells what lies beyond 16 bits in two parts, and servers that break off between them send each by itself."""
    answer, _, _ = await _heard(streamed(pieces=[_spelt("Well \\ud83d"), _spelt("\\ude00."), "data: [DONE]\n\n"]))
    assert answer.text == "Well \U0001f600."


@pytest.mark.parametrize("value", ["[" * 50_000, "NaN", "9" * 5_000, "1e400", '"\\ud800"'], ids=lambda value: value[:9])
async def test_whatever_stands_in_a_stream_is_no_crash(value: str) -> None:
    """It is left out, or no answer."""
    odd = f'data: {{"choices": [{{"index": 0, "delta": {{"content": {value}}}}}]}}\n\n'
    try:
        await _heard(*[streamed(pieces=[odd, _spelt("So."), "data: [DONE]\n\n"])] * 4)
    except IoaError as error:
        assert isinstance(error, ModelError | UnavailableError)


def _spelt(content: str) -> str:
    return f'data: {{"choices": [{{"index": 0, "delta": {{"content": "{content}"}}, "finish_reason": null}}]}}\n\n'


async def test_calls_of_tools_are_put_together() -> None:
    """Their arguments come in pieces, or whole and without a number."""
    pieces = [
        chunk(content="Let me see.", tool_calls=[{"index": 0, "id": "a", "function": {"name": "population", "arguments": '{"ci'}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": 'ty": "Tarn"}'}}]),
        chunk("tool_calls", tool_calls=[{"id": "b", "function": {"name": "population", "arguments": {"city": "Orle"}}}]),
    ]
    answer, heard, _ = await _heard(streamed(*pieces))
    calls = [(call.call_id, call.arguments) for call in answer.tool_calls]
    assert (calls, answer.finish) == ([("a", '{"city": "Tarn"}'), ("b", '{"city": "Orle"}')], "tools")
    assert (heard, answer.text) == (["Let me see."], "Let me see.")


@pytest.mark.parametrize("last", [None, {"error": {"message": "overloaded"}}])
async def test_an_answer_that_breaks_off_is_no_answer(last: object) -> None:
    """It is asked for again, and heard anew; where it breaks off each time, the model cannot be used."""
    broken = streamed(chunk(content="Half of "), last=last)
    answer, heard, bodies = await _heard(broken, streamed(chunk("stop", content="All.")))
    assert (answer.text, heard, len(bodies)) == ("All.", ["Half of ", "All."], 2)
    with pytest.raises(UnavailableError, match="the connection failed"):
        await _heard(*[broken] * 4)


async def test_a_cut_answer_says_so() -> None:
    """Nobody takes half an answer for a whole one because it came in pieces."""
    answer, _, _ = await _heard(streamed(chunk("length", content="Twelve ap")))
    assert answer.finish == "length"


async def test_a_server_without_streams_is_asked_for_whole_answers() -> None:
    """Tools stay as they are, and nothing is refused twice; one that ignores the wish is understood as well."""
    with serving(refused("stream_options: unknown field"), completion("a"), completion("b")) as (url, script):
        async with chat(url) as model:
            for _ in range(2):
                await model.answer(QUESTION, None, LIMITS, [TOOL], hear=lambda text: None)
    assert [("stream" in body, "tools" in body) for body in script.bodies] == [(True, True), (False, True), (False, True)]
    answer, heard, _ = await _heard(completion("whole"))
    assert (answer.text, heard) == ("whole", [])


async def test_what_a_stream_does_not_count_is_estimated_once() -> None:
    """Budgets hold: from then on the server, which may count whole answers, is asked for those."""
    uncounted = streamed(chunk("stop", content="Twelve apples."), last={"choices": []})
    with serving(uncounted, completion("b")) as (url, script):
        async with chat(url) as model:
            first, second = [await model.answer(QUESTION, None, LIMITS, hear=lambda text: None) for _ in range(2)]
    assert (first.prompt_tokens > 20, first.answer_tokens, second.answer_tokens) == (True, 4, 3)
    assert ["stream" in body for body in script.bodies] == [True, False]


async def test_only_words_are_streamed() -> None:
    """Half of a JSON object tells nobody anything, and neither does what nobody listens to."""
    with serving(completion("{}"), completion("a")) as (url, script):
        async with chat(url) as model:
            await model.answer(QUESTION, Count, LIMITS, hear=lambda text: None)
            await model.answer(QUESTION, None, LIMITS)
    assert not any("stream" in body for body in script.bodies)


async def test_whoever_follows_a_goal_sees_a_text_grow(ioa_system: System) -> None:
    """While it is written, and only then: what stands in the log in the end is the result, and no draft of it."""
    seen = threading.Event()

    def written() -> Iterator[str]:
        yield chunk(content="Once upon")
        seen.wait(20)
        yield from streamed(chunk("stop", content=" a time."), last=COUNTED).pieces

    drafts: list[str] = []
    with serving(streamed(pieces=written())) as (url, _):
        teller = ModelAgent(
            "teller",
            description="Tells stories",
            examples=["tell a story"],
            instructions="Be brief.",
            model=ModelSettings(url, "tiny"),
            brain=RuleBrain(),
        )
        async with ioa_system.serve(teller) as running:
            goal_id = await running.client.launch(GoalOrder(goal="tell a story", max_tokens=50_000))
            async with watch(running.client, comm_id_of_goal(goal_id)) as coming:
                async for news in coming:
                    payload = news.message.payload if isinstance(news, Said) else None
                    if isinstance(payload, InformTaskProgress) and payload.draft:
                        drafts.append(payload.draft)
                        seen.set()
            log = await conversation(running.client, comm_id_of_goal(goal_id))
            result = await running.client.wait_for_result(goal_id)
    assert (drafts, "Once upon a time." in result.content) == (["Once upon"], True)
    assert not any("draft" in stored.entry.event.model_dump_json() for stored in log)
