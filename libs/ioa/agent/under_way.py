"""A request of a task that waits for its answer, usable from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from ioa.errors import InvalidInputError

T = TypeVar("T")


class UnderWay(Generic[T]):
    """A pending answer: `await` it in an async function, call `result()` in a sync one.

    Args:
        future: The answer.
        call: The author's call, for errors.
    """

    def __init__(self, future: Future[T], call: str) -> None:
        self._future = future
        self._call = call

    @classmethod
    def start(cls, asked: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop, call: str) -> UnderWay[T]:
        """Start a request on an event loop, from any thread."""
        return cls(asyncio.run_coroutine_threadsafe(asked, loop), call)

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> T:
        """Wait for the answer.

        Raises:
            InvalidInputError: The caller runs on an event loop, which waiting would block.
            CancelledError: The task was cancelled (that of `concurrent.futures`).
            IoaError: The request failed; see the call that started it.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._future.result()
        raise InvalidInputError("Waiting for an answer would block the event loop.", hint=f"Write: await {self._call}")

    def cancel(self) -> None:
        """Cancel the request; its waiters are cancelled."""
        self._future.cancel()

    def when_done(self, forget: Callable[[UnderWay[T]], object]) -> None:
        """Call `forget` when the answer has arrived or the request was cancelled."""
        self._future.add_done_callback(lambda _: forget(self))
