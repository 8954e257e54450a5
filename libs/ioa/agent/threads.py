"""Running an author's sync function where it can hold up nobody."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Outcome:
    """What a call came to; an exception travels as a value, since a future takes neither `StopIteration` nor `SystemExit`."""

    answer: Any = None
    error: BaseException | None = None


async def call_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a thread of its own and wait for it.

    Cancelling ends the waiting, not the thread: nothing can stop a function that does not look whether it should. It is a daemon of
    its own rather than one of a pool, so that such a function keeps neither other work nor the end of the process waiting.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: _Outcome) -> None:
        if not done.done():
            done.set_result(outcome)

    def work() -> None:
        try:
            outcome = _Outcome(answer=context.run(function, *arguments))
        except BaseException as error:
            outcome = _Outcome(error=error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name=getattr(function, "__name__", "task"), daemon=True).start()
    outcome = await done
    if outcome.error is not None:
        raise outcome.error
    return outcome.answer
