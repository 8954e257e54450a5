"""The assistant: what a model says is passed on as what it is, and nothing is cut in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant import MAX_BYTES, agent, reply
from ioa.errors import InvalidInputError, TaskError
from ioa.ports.chat_model import ModelAnswer
from ioa.testing.scripted_model import ScriptedModel
from ioa.testing.task_context import RecordingContext, input_file, upstream


async def test_says_who_wrote_it(tmp_path: Path) -> None:
    """The model is told the task, the texts and earlier results; its answer ends in its name."""
    text, picture = tmp_path / "letter.txt", tmp_path / "seal.png"
    text.write_text("Guten Tag")
    picture.write_bytes(b"x")
    context = RecordingContext(
        tmp_path, inputs=[input_file(text), input_file(picture)], results=[upstream("count the words", "words: 2")]
    )
    model = ScriptedModel(['{"text": "Good day"}'])
    said = await reply("translate letter.txt", context, model, "tiny")
    assert said == "Good day\n\n(Written by the language model tiny; nobody has checked it.)"
    assert all(one in model.asked[0].prompt for one in ("translate letter.txt", "Guten Tag", "words: 2", "cannot see: seal.png"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [(ModelAnswer('{"text": "half', finish="length"), "was cut"), ('{"text": " "}', "gave no answer"), ("", "gave no answer")],
)
async def test_half_an_answer_is_none(answer: ModelAnswer | str, said: str, tmp_path: Path) -> None:
    """An answer that was cut, or is empty, is the task's failure."""
    with pytest.raises(TaskError, match=said):
        await reply("translate this", RecordingContext(tmp_path), ScriptedModel([answer]), "tiny")


async def test_too_long_is_refused(tmp_path: Path) -> None:
    """A text that does not fit is refused before the model is asked."""
    text = tmp_path / "long.txt"
    text.write_text("a" * MAX_BYTES)
    model = ScriptedModel([])
    with pytest.raises(InvalidInputError, match="too long"):
        await reply("translate this", RecordingContext(tmp_path, inputs=[input_file(text)]), model, "tiny")
    assert model.asked == []


async def test_without_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no model is configured the assistant says which settings it misses."""
    for name in ("IOA_LLM_MODEL", "IOA_LLM_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    answer = agent.function(*agent.arguments("translate this", RecordingContext(tmp_path)))
    assert not isinstance(answer, str)
    with pytest.raises(InvalidInputError, match="IOA_LLM_MODEL"):
        await answer
