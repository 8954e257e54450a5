"""Detector of callbacks that block an event loop.

A callback blocks if its thread computes for longer than the threshold, or if it takes four times the threshold by the clock. The
second limit is higher, because a callback on a busy machine waits for a core, the disk or the GIL. Garbage collections and the
import of modules do not count.

It replaces `asyncio.Handle._run` while it watches, and therefore sees the loops of the standard library only, not uvloop's.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.machinery import SourceFileLoader
from types import CodeType

_WAITING_FACTOR = 4


@dataclass(frozen=True)
class Block:
    """A callback that held its loop for too long."""

    callback: str
    duration: timedelta

    def __str__(self) -> str:
        return f"{self.callback} held the event loop for {self.duration.total_seconds() * 1000:.0f} ms"


@dataclass
class LoopWatch:
    """The blocks that `watch_loops` has found."""

    threshold: timedelta
    blocks: list[Block] = field(default_factory=list)
    _excluded: dict[int, float] = field(default_factory=dict)
    """Seconds of garbage collections and imports, by thread."""
    _collecting_since: float = 0.0

    def note_collection(self, phase: str, _info: dict[str, int]) -> None:
        """Add up the time of garbage collections; a callback of `gc`."""
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._exclude(time.thread_time() - self._collecting_since)

    def load(self, get_code: Callable[[], CodeType | None]) -> CodeType | None:
        """Get the code of a module."""
        started = time.monotonic()
        try:
            return get_code()
        finally:
            self._exclude(time.monotonic() - started)

    def run_timed(self, run: Callable[[asyncio.Handle], None], handle: asyncio.Handle) -> None:
        """Run one callback of a loop and record it if it took too long."""
        thread = threading.get_ident()
        excluded, started, computed = self._excluded.get(thread, 0.0), time.monotonic(), time.thread_time()
        callback = handle._callback  # type: ignore[attr-defined]
        run(handle)
        elapsed, computed = time.monotonic() - started, time.thread_time() - computed
        if elapsed > self.threshold.total_seconds():
            excluded = self._excluded.get(thread, 0.0) - excluded
            limit = self.threshold.total_seconds()
            if computed - excluded > limit or elapsed - excluded > _WAITING_FACTOR * limit:
                task = getattr(callback, "__self__", handle)
                self.blocks.append(Block(repr(task), timedelta(seconds=elapsed - excluded)))

    def _exclude(self, seconds: float) -> None:
        thread = threading.get_ident()
        self._excluded[thread] = self._excluded.get(thread, 0.0) + seconds


@contextmanager
def watch_loops(threshold: timedelta = timedelta(milliseconds=250)) -> Iterator[LoopWatch]:
    """Watch every event loop of this process until the block ends."""
    watch = LoopWatch(threshold)
    run, get_code = asyncio.Handle._run, SourceFileLoader.get_code

    def run_timed(handle: asyncio.Handle) -> None:
        watch.run_timed(run, handle)

    def load(loader: SourceFileLoader, name: str) -> CodeType | None:
        return watch.load(lambda: get_code(loader, name))

    gc.callbacks.append(watch.note_collection)
    asyncio.Handle._run = run_timed  # type: ignore[method-assign, assignment]
    SourceFileLoader.get_code = load  # type: ignore[method-assign, assignment]
    try:
        yield watch
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        gc.callbacks.remove(watch.note_collection)
