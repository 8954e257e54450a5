"""The adopted agent in the cases of `ioa.testing.conformance`; the words of its task name its steps.

An agent of a framework, a program or a server reports these steps in its own protocol. The module needs only the standard library.
Notes in a folder record the steps, so that a case can read them from another process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

HALFWAY = "halfway there"
CRASH = "no vase is left"
TOKENS, ANSWER_TOKENS = 7, 3
FILE_NAME, FILE = "bytes.bin", bytes(range(256))
_LOOK_AGAIN_SECONDS = 0.002
_GIVE_UP_SECONDS = 10.0


@dataclass(frozen=True)
class ProgressStep:
    """The agent reports progress."""

    text: str


@dataclass(frozen=True)
class Spent:
    """The agent used tokens of a model."""

    tokens: int
    answer_tokens: int


@dataclass(frozen=True)
class Made:
    """The agent created a file."""

    name: str
    data: bytes


@dataclass(frozen=True)
class FinalAnswer:
    """The answer; None is an answer without text."""

    text: str | None


Deed = ProgressStep | Spent | Made | FinalAnswer
_DEEDS: Mapping[str, Deed] = {"step": ProgressStep(HALFWAY), "spend": Spent(TOKENS, ANSWER_TOKENS), "file": Made(FILE_NAME, FILE)}


class ForeignAgent:
    """A test double for an agent of another framework. The first word of a task is a command, the rest is its answer.

    `wait` never ends, `gate` waits for `let_go`, `crash` raises, `count` notes the task once; `step`, `spend` and `file` report.

    Args:
        folder: The folder of its notes, and of the file that opens the gate.
    """

    def __init__(self, folder: Path) -> None:
        self._notes = folder / "notes.txt"
        self._go = folder / "go"

    def play(
        self, task: str, task_key: str, stopped: Callable[[], bool] = lambda: False, *, in_steps: bool = False
    ) -> Generator[Deed, None, None]:
        """Do a task in a thread or a process. Closing the iterator stops it, and writes a note.

        Args:
            task: The task.
            task_key: The task's key; empty if the agent does not receive it.
            stopped: Returns True to stop, for a framework that is interrupted while it works.
            in_steps: Whether a waiting agent yields small steps, for a framework that stops between steps.
        """
        with closing(self._deeds(task, task_key)) as deeds:
            for deed in deeds:
                if stopped():
                    return
                if deed is None:
                    time.sleep(_LOOK_AGAIN_SECONDS)
                if deed is not None or in_steps:
                    yield deed or ProgressStep("still at it")

    async def perform(self, task: str, task_key: str) -> AsyncIterator[Deed]:
        """Do a task on an event loop. Cancelling stops it, and writes a note."""
        with closing(self._deeds(task, task_key)) as deeds:
            for deed in deeds:
                if deed is None:
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                else:
                    yield deed

    def noted(self) -> list[str]:
        """Return the notes so far, in order."""
        return self._notes.read_text().splitlines() if self._notes.exists() else []

    def let_go(self) -> None:
        """Open the gate."""
        self._go.touch()

    def _deeds(self, task: str, task_key: str) -> Generator[Deed | None, None, None]:
        """Yield steps, and None while waiting."""
        word, _, rest = task.partition(" ")
        if word == "wait":
            self._note("began")
            try:
                while True:
                    yield None
            finally:
                self._note("stopped")
        elif word == "gate":
            self._note(f"began {rest}")
            until = time.monotonic() + _GIVE_UP_SECONDS
            while not self._go.exists():
                if time.monotonic() > until:
                    raise TimeoutError("the gate stayed closed: does the adapter block the event loop?")
                yield None
        elif word == "crash":
            raise RuntimeError(CRASH)
        elif word == "count" and f"effect {task_key}" not in self.noted():
            self._note(f"effect {task_key}")
        elif word in _DEEDS:
            yield _DEEDS[word]
        yield FinalAnswer(None if word == "bad" else rest or "done")

    def _note(self, line: str) -> None:
        with self._notes.open("a") as notes:
            notes.write(f"{line}\n")
