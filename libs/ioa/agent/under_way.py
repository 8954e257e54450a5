"""Something asked for from within a task that is under way, on whichever thread the author's function runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from ioa.errors import InvalidInputError

T = TypeVar("T")


class UnderWay(Generic[T]):
    """An answer that is on its way: `await` it in an async function, call `result()` in a plain one.

    Args:
        future: Brings the answer.
        call: What the author wrote, as errors name it.
    """

    def __init__(self, future: Future[T], call: str) -> None:
        self._future = future
        self._call = call

    @classmethod
    def start(cls, asked: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop, call: str) -> UnderWay[T]:
        """Begin on an event loop, from any thread."""
        return cls(asyncio.run_coroutine_threadsafe(asked, loop), call)

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> T:
        """Wait for the answer.

        Raises:
            InvalidInputError: The caller runs on an event loop, which waiting would block.
            CancelledError: The task was cancelled (that of `concurrent.futures`).
            IoaError: There is no answer; the call that began this says which errors.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._wait()
        raise InvalidInputError("Waiting for an answer would block the event loop.", hint=f"Write: await {self._call}")

    def _wait(self) -> T:
        return self._future.result()

    def cancel(self) -> None:
        """Give it up; whoever waits for it is told."""
        self._future.cancel()

    def when_done(self, forget: Callable[[UnderWay[T]], object]) -> None:
        """Have `forget` called with this when the answer is there or given up."""
        self._future.add_done_callback(lambda _: forget(self))
