"""Asking discovery from within a task, on whichever thread the author's function runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import Future
from typing import Any

from ioa.errors import InvalidInputError
from ioa.protocol.codec import validate
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Need, Search, SearchResult


class Searching:
    """A search that is under way: `await` it in an async function, call `result()` in a plain one."""

    def __init__(self, future: Future[SearchResult]) -> None:
        self._future = future

    @classmethod
    def start(cls, search: Coroutine[Any, Any, SearchResult], loop: asyncio.AbstractEventLoop) -> Searching:
        """Start a search on an event loop, from any thread."""
        return cls(asyncio.run_coroutine_threadsafe(search, loop))

    def __await__(self) -> Generator[Any, None, SearchResult]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> SearchResult:
        """Wait for the answer.

        Raises:
            InvalidInputError: The caller runs on an event loop, which waiting would block.
            UnavailableError: Discovery does not answer.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._future.result()
        raise InvalidInputError("Waiting for a search would block the event loop.", hint="Write: await ctx.search(…)")


def search_for_others(needs: Sequence[str | Need], *, me: AgentId, purpose: str, budget: int | None) -> Search:
    """Make a search of needs, of which those in plain words do not find the agent that asks.

    Raises:
        InvalidInputError: It is none; the message says what is wrong.
    """
    spelled = [{"text": need, "filters": {"not_self": True}} if isinstance(need, str) else need for need in needs]
    return validate(Search, {"needs": spelled, "by": me, "purpose": purpose, "budget": budget})
