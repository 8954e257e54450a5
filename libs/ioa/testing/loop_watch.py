"""Finds what blocks an event loop: one callback that keeps the loop from running the others.

The time counts in which the callback ran, slept or waited for the GIL. The time in which the thread was ready to run and the
machine had no core for it does not (Linux tells it in `/proc/self/task/*/schedstat`), so that a busy machine causes no false alarm.
A thread that looks on from beside takes the stack while the callback holds the loop; a callback that also holds the GIL all the
while is reported without one.

It replaces `asyncio.Handle._run` while it watches, hence sees the loops of the standard library only, not uvloop's.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

_STACK_FRAMES = 10


@dataclass(frozen=True)
class Block:
    """One callback that held its loop for too long."""

    callback: str
    duration: timedelta
    stack: str

    def __str__(self) -> str:
        held = f"{self.callback} held the event loop for {self.duration.total_seconds() * 1000:.0f} ms"
        return f"{held}\n{self.stack}" if self.stack else f"{held} (and the GIL, so that its stack is not known)"


@dataclass
class _Running:
    ident: int
    started: float
    delay: float
    stack: str = ""


@dataclass
class LoopWatch:
    """What `watch_loops` found so far."""

    threshold: timedelta
    blocks: list[Block] = field(default_factory=list)
    _running: dict[int, _Running] = field(default_factory=dict)
    _delays: dict[int, float] = field(default_factory=dict)
    _closing: threading.Event = field(default_factory=threading.Event)

    def run_timed(self, run: Callable[[asyncio.Handle], None], handle: asyncio.Handle) -> None:
        """Run one callback of a loop and record it if it took too long."""
        thread = threading.get_native_id()
        running = self._running[thread] = _Running(threading.get_ident(), time.monotonic(), self._delays.get(thread, 0.0))
        try:
            run(handle)
        finally:
            del self._running[thread]
            elapsed = time.monotonic() - running.started
            if elapsed > self.threshold.total_seconds():
                # The delay at the start was noted up to one look earlier: the error is small and in favour of the callback.
                held = timedelta(seconds=elapsed - (_run_delay(thread) - running.delay))
                if held > self.threshold:
                    self.blocks.append(Block(repr(handle), held, running.stack))

    def look_on(self) -> None:
        """Follow the loops' threads until `close`: how long each waited for a core, and the stack of what holds it too long."""
        threshold = self.threshold.total_seconds()
        while not self._closing.wait(threshold / 5):
            self.note_delays()
            for running in list(self._running.values()):
                if not running.stack and time.monotonic() - running.started > threshold / 2:
                    frame = sys._current_frames().get(running.ident)
                    running.stack = "".join(traceback.format_stack(frame, limit=_STACK_FRAMES)) if frame is not None else ""

    def note_delays(self) -> None:
        """Remember how long each thread has waited for a core in its life so far."""
        for thread in threading.enumerate():
            if thread.native_id is not None:
                self._delays[thread.native_id] = _run_delay(thread.native_id)

    def close(self) -> None:
        """End `look_on`."""
        self._closing.set()


@contextmanager
def watch_loops(threshold: timedelta = timedelta(milliseconds=250)) -> Iterator[LoopWatch]:
    """Watch every event loop of this process until the block ends."""
    watch = LoopWatch(threshold)
    watch.note_delays()
    run = asyncio.Handle._run

    def run_timed(handle: asyncio.Handle) -> None:
        watch.run_timed(run, handle)

    onlooker = threading.Thread(target=watch.look_on, name="loop-watch", daemon=True)
    onlooker.start()
    asyncio.Handle._run = run_timed  # type: ignore[method-assign, assignment]
    try:
        yield watch
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        watch.close()
        onlooker.join()


def _run_delay(thread: int) -> float:
    """Seconds that a thread of this process was ready to run and had no core; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
