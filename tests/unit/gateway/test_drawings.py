"""Files as pages show them: whatever they hold, drawing takes nothing of the gateway's own time."""

from __future__ import annotations

import pytest

from ioa.protocol.goals import Artifact
from ioa_gateway import drawings
from ioa_gateway.drawings import drawing


def _file(data: bytes, media_type: str = "text/markdown", name: str = "a.md") -> Artifact:
    return Artifact(name=name, media_type=media_type, size_bytes=len(data), sha256="0" * 64, object_name="a")


async def test_what_takes_too_long_stands_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks is told why."""
    monkeypatch.setattr(drawings, "_PATIENCE_SECONDS", 0.01)
    drawn = await drawing(_file(b"# <b>Sales</b>"), b"# <b>Sales</b>")
    assert ("takes too much" in drawn, "<pre># &lt;b&gt;Sales&lt;/b&gt;</pre>" in drawn) == (True, True)


@pytest.mark.parametrize("media_type", ["text/markdown", "text/csv"])
async def test_marks_that_turn_the_reading_order_are_seen(media_type: str) -> None:
    """A name and a text that turn the words behind them round show the mark in its place."""
    data = "pay \u202eeve\u202c, not bob\r\n".encode()
    drawn = await drawing(_file(data, media_type, "a\u202efdp.md"), data)
    assert ("\u202e" in drawn, "pay \ufffdeve\ufffd" in drawn, "<title>a\ufffdfdp.md</title>" in drawn) == (False, True, True)
