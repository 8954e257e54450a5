"""The assistant: the answer of a model is marked, and no text is truncated."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant import MAX_BYTES, run
from ioa.errors import InvalidInputError
from ioa.testing.recording_context import RecordingContext, input_file, upstream
from ioa.testing.scripted_model import ScriptedModel


async def test_answer_names_its_author(tmp_path: Path) -> None:
    """The prompt contains the task, the texts and earlier results; the answer is marked as unchecked."""
    text, picture = tmp_path / "letter.txt", tmp_path / "seal.png"
    text.write_text("Guten Tag")
    picture.write_bytes(b"\x89PNG\0")
    model = ScriptedModel(["Good day"])
    context = RecordingContext(
        tmp_path, inputs=[input_file(text), input_file(picture)], results=[upstream("count the words", "words: 2")], model=model
    )
    assert await run("translate letter.txt", context) == "Good day\n\n(Written by a language model; nobody has checked it.)"
    parts = ("translate letter.txt", "Guten Tag", "words: 2", "<inputs>\nseal.png\n</inputs>")
    assert [part for part in parts if part not in model.asked[0].prompt] == []


@pytest.mark.parametrize("name", ["long.txt", "long.log", "long"])
async def test_too_long_is_refused(name: str, tmp_path: Path) -> None:
    """A text that does not fit is refused before the model is asked, whatever its name; a picture is no text, however large."""
    text, picture = tmp_path / name, tmp_path / "seal.png"
    text.write_text("a" * (MAX_BYTES + 1))
    picture.write_bytes(b"\x89PNG\0" * MAX_BYTES)
    with pytest.raises(InvalidInputError, match=f"{MAX_BYTES + 1} bytes are too long"):
        await run("translate this", RecordingContext(tmp_path, inputs=[input_file(text), input_file(picture)]))
