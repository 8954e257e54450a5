"""What the agent behind an adapter does in the cases of `ioa.testing.conformance`: the words of its task say it.

A fake of a framework, a process or a server plays these deeds in its own terms. The module needs nothing but the standard library,
so that any process can use it. What has happened is written down in a folder, where a case can see it whichever process did it.
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
    """It tells how far it is."""

    text: str


@dataclass(frozen=True)
class Spent:
    """It has used tokens of a model."""

    tokens: int
    answer_tokens: int


@dataclass(frozen=True)
class Made:
    """It has made a file."""

    name: str
    data: bytes


@dataclass(frozen=True)
class FinalAnswer:
    """It is done; None stands for what is no text."""

    text: str | None


Deed = ProgressStep | Spent | Made | FinalAnswer
_DEEDS: Mapping[str, Deed] = {"step": ProgressStep(HALFWAY), "spend": Spent(TOKENS, ANSWER_TOKENS), "file": Made(FILE_NAME, FILE)}


class ForeignAgent:
    """An agent that does what its task says, in one of eight words and what follows it.

    Args:
        folder: Where it writes down what happens, and waits for what a case puts there.
    """

    def __init__(self, folder: Path) -> None:
        self._notes = folder / "notes.txt"
        self._go = folder / "go"

    def play(
        self, task: str, task_key: str, stopped: Callable[[], bool] = lambda: False, *, in_steps: bool = False
    ) -> Generator[Deed, None, None]:
        """Do a task in a thread or a process of its own. Closing the iterator stops it, which is written down.

        Args:
            task: What it was told.
            task_key: What it was told of the task's key; empty if nothing.
            stopped: Whether it is to stop, for a framework that is told so while it works.
            in_steps: Whether it takes one small step after the other where it waits, for a framework that stops between steps.
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
        """Do a task on an event loop. Cancelling stops it, which is written down."""
        with closing(self._deeds(task, task_key)) as deeds:
            for deed in deeds:
                if deed is None:
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                else:
                    yield deed

    def noted(self) -> list[str]:
        """Return what has happened so far, in order."""
        return self._notes.read_text().splitlines() if self._notes.exists() else []

    def let_go(self) -> None:
        """Let all that wait at the gate go on."""
        self._go.touch()

    def _deeds(self, task: str, task_key: str) -> Generator[Deed | None, None, None]:
        """Yield deeds, and None where it waits."""
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
                    raise TimeoutError("nobody opened the gate: does the adapter hold up the event loop?")
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
