"""Files as pages show them: whatever they hold, drawing takes nothing of the gateway's own time."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from ioa.protocol.goals import Artifact
from ioa_gateway import drawing_child, drawings
from ioa_gateway.drawing_child import MARKDOWN
from ioa_gateway.drawings import MOST_DRAWN_BYTES, drawing

_TABLE = ("|a" * 500 + "|\n" + "|-" * 500 + "|\n" + "|\n" * 31_000)[:MOST_DRAWN_BYTES].encode()


def _file(data: bytes, media_type: str = "text/markdown", name: str = "a.md") -> Artifact:
    return Artifact(name=name, media_type=media_type, size_bytes=len(data), sha256="0" * 64, object_name="a")


_MEASURED = """import sys
from ioa_gateway.drawing_child import main
try:
    main()
finally:
    sys.stderr.write(open("/proc/self/status").read())
"""


def _peak_of(text: str) -> tuple[int, int]:
    """Have a process draw a text; return how many bytes it says, and how many it has held at a time."""
    told = subprocess.run(
        (sys.executable, "-c", _MEASURED, MARKDOWN, "whole"), input=text.encode(), capture_output=True, check=False
    )
    held = re.search(rb"VmHWM:\s+(\d+) kB", told.stderr)
    assert held is not None, told.stderr
    return len(told.stdout), int(held[1]) * 1024


async def test_a_table_of_very_many_cells_is_drawn_elsewhere() -> None:
    """64 kB that make 60,000 cells cost this process next to nothing."""
    began = time.process_time()
    drawn = await drawing(_file(_TABLE), _TABLE)
    assert ("<h1>" in drawn, time.process_time() - began < 0.3) == (False, True)


async def test_what_takes_too_long_stands_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks is told why."""
    monkeypatch.setattr(drawings, "_PATIENCE_SECONDS", 0.01)
    drawn = await drawing(_file(b"# <b>Sales</b>"), b"# <b>Sales</b>")
    assert ("takes too much" in drawn, "<pre># &lt;b&gt;Sales&lt;/b&gt;</pre>" in drawn) == (True, True)


async def test_what_repeats_a_long_address_by_references_stands_as_it_was_written() -> None:
    """60 kB that would be 90 MB of HTML are none: the gateway would hold them several times for whoever reads slowly."""
    data = f"[a]: https://example.com/{'a' * 30_000}\n\n{'[a]' * 3_000}".encode()
    drawn = await drawing(_file(data), data)
    assert ("takes too much" in drawn, len(drawn) < 100_000) == (True, True)


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels tell no peak of a process so")
@pytest.mark.parametrize("reference", ["[a]\n", "![a]", "[x][a]\n", "|[a]|[a]\n|-|-\n[a]|[a]\n"])
def test_what_references_repeat_is_never_held(reference: str) -> None:
    """60 kB that would be 230 MB of HTML take the process that draws no more than its text does."""
    text = f"[a]: http://e.example/{'a' * 26_000}\n\n{reference * (36_000 // len(reference))}"
    written = f"[a]: http://e.example/\n\n{reference * (36_000 // len(reference))}"
    (refused, peak), (drawn, written_peak) = _peak_of(text), _peak_of(written)
    assert (refused, drawn > 36_000, peak - written_peak < 2_000_000) == (0, True, True)


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels tell no peak of a process so")
@pytest.mark.parametrize(
    "text", [_TABLE.decode(), "*a*" * 21_000, "- a\n" * 16_000, ">a\n\n" * 16_000, "[a](http://b.c)\n\n" * 3_500]
)
def test_what_is_much_by_itself_is_drawn_within_its_bounds(text: str) -> None:
    """What takes most for its size has room to spare, and is less than a third of what a gateway has with it."""
    drawn, peak = _peak_of(text[:MOST_DRAWN_BYTES])
    assert (drawn > 64_000, peak < drawing_child._MEMORY * 4 // 5, drawing_child._MEMORY <= 512 * 2**20 // 3) == (True, True, True)


@pytest.mark.parametrize("media_type", ["text/markdown", "text/csv"])
async def test_marks_that_turn_the_reading_order_are_seen(media_type: str) -> None:
    """A name and a text that turn the words behind them round show the mark in its place."""
    data = "pay \u202eeve\u202c, not bob\r\n".encode()
    drawn = await drawing(_file(data, media_type, "a\u202efdp.md"), data)
    assert ("\u202e" in drawn, "pay \ufffdeve\ufffd" in drawn, "<title>a\ufffdfdp.md</title>" in drawn) == (False, True, True)
