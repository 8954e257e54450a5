"""Finds what blocks an event loop: one callback that keeps the loop from running the others.

The time counts in which the callback ran, slept or waited for the GIL. The time in which the thread was ready to run and the
machine had no core for it does not (Linux tells it in `/proc/self/task/*/schedstat`), so that a busy machine causes no false alarm;
nor does such time of a thread that the callback started, since it waits until that one runs.
A thread that looks on from beside takes the stack while the callback holds the loop. When it cannot look, and the callback uses no
core either, somebody holds the GIL all the while, perhaps a library's call in another thread that waits for the disk, or the
callback's own that waits for a process to be forked: that is a block too, but it is reported only from four times the threshold on,
since a busy disk is not the code's fault, and without the time that any thread, such as the one with the GIL, had no core. The same
holds for the callback's own calls that wait for the disk (a file that is closed, say, while another process writes much), which the
onlooker counts by the thread's state.
Garbage collections do not count either: how long one takes depends on all that the process holds, such as what two thousand tests
have left, and not on the callback it happens to fall into. Nor does it count that a module's code is read, or compiled and written:
it happens to whoever is first, on a new installation.

It replaces `asyncio.Handle._run` while it watches, hence sees the loops of the standard library only, not uvloop's.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import linecache
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

_STACK_FRAMES = 10
_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_PATIENCE = 4


@dataclass(frozen=True)
class Block:
    """One callback that held its loop for too long."""

    callback: str
    duration: timedelta
    stack: str

    def __str__(self) -> str:
        held = f"{self.callback} held the event loop for {self.duration.total_seconds() * 1000:.0f} ms"
        return f"{held}\n{self.stack}" if self.stack else f"{held} (and something held the GIL, so that the stack is not known)"


@dataclass(frozen=True)
class Measured:
    """What is known of a callback that took long; times in seconds.

    Args:
        elapsed: From its start to its end.
        looks: How often the onlooker saw it, which takes the GIL.
        disk: How long it waited for the disk, by the looks that found it so.
        unseen: How long it neither had a core nor waited for one, while the onlooker, who did neither, could not look.
        computed: How long it had a core.
        starved: How long its thread was ready to run and had none.
        starved_new: The same of a thread that was started meanwhile.
        starved_all: The same, summed over all threads of the process.
    """

    elapsed: float
    looks: int
    disk: float = 0.0
    unseen: float = 0.0
    computed: float = 0.0
    starved: float = 0.0
    starved_new: float = 0.0
    starved_all: float = 0.0

    def blocked(self, threshold: timedelta) -> timedelta | None:
        """For how long the callback held its loop; None if that is no block."""
        if self.looks > 1 or self.computed > threshold.total_seconds():
            held = max(self.elapsed - self.starved - self.starved_new, self.computed)
            own = held - self.disk - self.unseen
            limit = threshold if own > threshold.total_seconds() else threshold * _PATIENCE
        else:  # hardly a look got through; a single one may have been let in by the end of what held the GIL
            held, limit = self.elapsed - self.starved_all, threshold * _PATIENCE
        return timedelta(seconds=held) if timedelta(seconds=held) > limit else None


@dataclass
class _Running:
    ident: int
    native_id: int
    started: float
    core_time: float
    collected: float
    delays: dict[str, float]
    looks: int = 0
    disk_looks: int = 0
    loaded: float = 0.0
    loaded_core_time: float = 0.0
    stack: str = ""


@dataclass
class LoopWatch:
    """What `watch_loops` found so far."""

    threshold: timedelta
    blocks: list[Block] = field(default_factory=list)
    _running: dict[int, _Running] = field(default_factory=dict)
    _delays: dict[str, float] = field(default_factory=lambda: _run_delays())
    _closing: threading.Event = field(default_factory=threading.Event)
    _onlooker: str = ""
    _collected: float = 0.0
    _collecting_since: float = 0.0

    @property
    def _pause(self) -> float:
        return self.threshold.total_seconds() / 5

    def note_collection(self, phase: str, _info: dict[str, int]) -> None:
        """Add up the time of garbage collections; a callback of `gc`."""
        if phase == "start":
            self._collecting_since = time.monotonic()
        else:
            self._collected += time.monotonic() - self._collecting_since

    def load(self, get_code: Callable[[], CodeType | None]) -> CodeType | None:
        """Get a module's code, on whichever thread."""
        running = self._running.get(threading.get_native_id())
        if running is None:
            return get_code()
        schedstat = Path(f"/proc/self/task/{running.native_id}/schedstat")
        started, core_time, delay = time.monotonic(), time.thread_time(), _run_delay(schedstat)
        try:
            return get_code()
        finally:
            running.loaded += time.monotonic() - started - (_run_delay(schedstat) - delay)
            running.loaded_core_time += time.thread_time() - core_time

    def run_timed(self, run: Callable[[asyncio.Handle], None], handle: asyncio.Handle) -> None:
        """Run one callback of a loop and record it if it took too long."""
        thread = threading.get_native_id()
        running = self._running[thread] = _Running(
            threading.get_ident(), thread, time.monotonic(), time.thread_time(), self._collected, self._delays
        )
        try:
            run(handle)
        finally:
            del self._running[thread]
            elapsed = time.monotonic() - running.started - (self._collected - running.collected) - running.loaded
            if elapsed > self.threshold.total_seconds():
                self._judge(handle, running, str(thread), elapsed)

    def _judge(self, handle: asyncio.Handle, running: _Running, thread: str, elapsed: float) -> None:
        # The delays at the start were noted up to one look earlier: the error is small and in favour of the callback.
        starved = {task: delay - running.delays.get(task, 0.0) for task, delay in _run_delays().items()}
        computed = time.thread_time() - running.core_time - (self._collected - running.collected) - running.loaded_core_time
        known = {*running.delays, self._onlooker}
        started = max((delay for task, delay in starved.items() if task not in known), default=0.0)
        disk = running.disk_looks * self._pause
        own, onlooker = starved.get(thread, 0.0), starved.get(self._onlooker, 0.0)
        unseen = max(elapsed - computed - own - started - onlooker - (running.looks + 1) * self._pause, 0.0)
        measured = Measured(elapsed, running.looks, disk, unseen, computed, own, started, sum(starved.values()))
        held = measured.blocked(self.threshold)
        if held is not None:
            self.blocks.append(Block(repr(handle), held, running.stack))

    def look_on(self) -> None:
        """Follow the loops' threads until `close`: how long each waited for a core, and the stack of what holds it too long."""
        threshold, self._onlooker = self.threshold.total_seconds(), str(threading.get_native_id())
        while not self._closing.wait(self._pause):
            self._delays = _run_delays()
            for running in list(self._running.values()):
                running.looks += 1
                running.disk_looks += waits_for_the_disk(Path(f"/proc/self/task/{running.native_id}/stat"))
                if not running.stack and time.monotonic() - running.started > threshold / 2:
                    running.stack = _stack_of(running.ident)

    def close(self) -> None:
        """End `look_on`."""
        self._closing.set()


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
    onlooker = threading.Thread(target=watch.look_on, name="loop-watch", daemon=True)
    onlooker.start()
    asyncio.Handle._run = run_timed  # type: ignore[method-assign, assignment]
    SourceFileLoader.get_code = load  # type: ignore[method-assign, assignment]
    try:
        yield watch
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        gc.callbacks.remove(watch.note_collection)
        watch.close()
        onlooker.join()


def _stack_of(ident: int) -> str:
    """Return where a thread stands, innermost first, with the lines of code.

    It is written without letting go of the interpreter: CPython 3.11 has crashed when Python walked a frame that went on meanwhile.
    """
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        threads = [one.splitlines() for one in file.read().split("\n\n")]
    frames = next((lines[1 : _STACK_FRAMES + 1] for lines in threads if f"0x{ident:016x}" in lines[0]), [])
    places = [_PLACE.search(frame) for frame in frames]
    return "\n".join(
        f"{frame}\n    {linecache.getline(place['file'], int(place['line'])).strip()}"
        for frame, place in zip(frames, places, strict=True)
        if place
    )


def _run_delays() -> dict[str, float]:
    """The run delay of each thread of this process."""
    return {file.parent.name: _run_delay(file) for file in Path("/proc/self/task").glob("*/schedstat")}


def _run_delay(schedstat: Path) -> float:
    """Seconds that a thread was ready to run and had no core; 0 where the system does not say, or it has ended."""
    try:
        return int(schedstat.read_text(encoding="ascii").split()[1]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def waits_for_the_disk(stat: Path) -> bool:
    """Whether a thread waits uninterruptibly (state D), by its `stat` in /proc; no where there is none, or it has ended."""
    try:
        told = stat.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return told.rpartition(")")[2].split()[0] == "D"  # its name, in brackets, may hold blanks and brackets
