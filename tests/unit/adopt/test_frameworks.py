"""What it costs to follow an agent of a framework."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace as Some
from typing import Any

from ioa.adopt import agent_framework
from ioa.testing import RecordingContext


class _Writing:
    """An agent, and its stream: a long text of which the rest comes letter by letter."""

    def create_session(self, *, session_id: str) -> str:
        """Name the session."""
        return session_id

    def run(self, _words: str, **_how: object) -> Any:
        """Answer by updates."""
        return self

    async def __aiter__(self) -> AsyncIterator[Any]:
        for text in (" \U0001f600" + "a" * 1_000_000, *("abc" * 1_000)):
            yield Some(text=text, contents=None)

    async def get_final_response(self) -> Any:
        """Return the answer."""
        return Some(text="done", usage_details=None, messages=[])


async def test_a_text_is_told_by_its_end(tmp_path: Path) -> None:
    """What came before is not copied for each letter, on the loop that the agent shares with all its goals."""
    ctx = RecordingContext(tmp_path)
    run: Any = agent_framework("writer", _Writing(), description="Writes").function
    began = time.thread_time()
    assert await run("write", ctx) == "done"
    assert time.thread_time() - began < 0.5, "it takes 0.03 s, and took 0.9 s"
    assert (len(ctx.reports), ctx.reports[-1][0]) == (3_001, ("abc" * 100)[-200:])
