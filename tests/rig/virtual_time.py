"""An event loop whose time passes only while nothing else is to be done, and then at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class _VirtualLoop(asyncio.SelectorEventLoop):
    _at = 0.0
    _ready: Any
    _scheduled: Any

    def time(self) -> float:
        """Tell the time in seconds."""
        return self._at

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._at = max(self._at, self._scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


def run_in_virtual_time(body: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for timers alone, however long."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        runner.run(body)
