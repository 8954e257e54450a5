"""Asking again, calling in threads, and cutting texts to size."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.agent.patience import patiently
from ioa.agent.speech import shortened
from ioa.agent.threads import call_in_thread
from ioa.errors import ConflictError, UnavailableError


async def test_what_is_unavailable_is_asked_again() -> None:
    """A request is repeated until it is answered."""
    answers = iter([UnavailableError("not yet"), "answer"])

    async def ask() -> str:
        answer = next(answers)
        if isinstance(answer, UnavailableError):
            raise answer
        return str(answer)

    assert await patiently(ask) == "answer"


async def test_a_refusal_is_an_answer() -> None:
    """Any other error is raised at once."""
    asked = []

    async def ask() -> None:
        asked.append(1)
        raise ConflictError("taken")

    with pytest.raises(ConflictError):
        await patiently(ask)
    assert asked == [1]


async def test_patience_ends_when_it_is_cancelled() -> None:
    """Whoever cannot wait cancels."""
    asked = asyncio.Event()

    async def ask() -> None:
        asked.set()
        raise UnavailableError("never")

    waiting = asyncio.create_task(patiently(ask))
    await asked.wait()
    waiting.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled()


async def test_a_call_in_a_thread_sees_its_callers_context() -> None:
    """Context variables, such as a trace, are the caller's."""
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("mine")

    seen = await call_in_thread(lambda name: (variable.get(), threading.current_thread().daemon, name), "argument")

    assert seen == ("mine", True, "argument")


@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_what_a_thread_raises_is_raised(error: BaseException) -> None:
    """Every kind of exception comes back to the caller."""

    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await call_in_thread(fail)
    assert raised.value is error


async def test_a_cancelled_call_does_not_wait_for_its_thread() -> None:
    """The thread goes on by itself, and nobody minds what it returns."""
    began, let_go = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        let_go.wait(20)

    calling = asyncio.create_task(call_in_thread(work))
    await asyncio.to_thread(began.wait, 20)
    calling.cancel()
    await asyncio.wait([calling])
    let_go.set()

    assert calling.cancelled()


@given(st.text(), st.integers(8, 60))
def test_a_shortened_text_fits(text: str, max_bytes: int) -> None:
    """Any text can travel within its bound, and one that fits is left as it is."""
    short = shortened(text, max_bytes)

    assert len(short.encode()) <= max_bytes
    assert short == text or len(text.encode("utf-8", "replace")) > max_bytes


def test_half_a_character_is_replaced() -> None:
    """What UTF-8 cannot encode becomes a question mark."""
    assert shortened("caf\udce9") == "caf?"
