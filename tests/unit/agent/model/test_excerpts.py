"""Files in prompts of tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ioa.agent.model.task import messages_of
from ioa.files import is_text
from ioa.testing import RecordingContext, input_file


@pytest.fixture
def shown(tmp_path: Path) -> Callable[..., Any]:
    """Ask for what a question shows of a file."""

    async def of(data: bytes) -> str:
        (tmp_path / "a.log").write_bytes(data)
        told = await messages_of("", "sum up a.log", RecordingContext(tmp_path, inputs=[input_file(tmp_path / "a.log")]))
        return told[1].content.partition("<read>\na.log:\n")[2].partition("\n</read>")[0]

    return of


@pytest.mark.parametrize(
    "data",
    [
        b"a\0" + b"a" * 70_000,
        b"\xff" + b"a" * 70_000,
        b"a" * 70_000 + b"\xff",
        b"a" * 70_000 + b"\xc3",
        b"\xff\xfe" + "語".encode("utf-16-le") * 40_000,
        "Dear all".encode("utf-16"),
    ],
)
async def test_file_that_is_no_text_is_not_shown(data: bytes, shown: Callable[..., Any], tmp_path: Path) -> None:
    """A zero, a letter that is none at one of the ends, and UTF-16, which no question has ever shown."""
    assert (await shown(data), is_text(input_file(tmp_path / "a.log"))) == ("(no text)", False)
