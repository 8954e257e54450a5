"""Waiting by nats-py: a cancellation counts, whatever the library makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.wire.subscriptions import until_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.concurrency import heeding_cancellation
from ioa.errors import UnavailableError

Ask = Callable[[], Coroutine[Any, Any, None]]


class Library:
    """Waits as nats-py does: a cancellation that comes together with the answer is dropped."""

    def __init__(self, answer: Callable[[], None]) -> None:
        self.waits = asyncio.Event()
        self._answer = answer

    async def ask(self) -> None:
        """Wait for ever; when cancelled, answer instead."""
        self.waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self._answer()


def nothing() -> None:
    """Come back."""


def time_out() -> None:
    """Say that time has run out, as nats-py does of a pull that the server has ended."""
    raise TimeoutError


def refuse() -> None:
    """Fail."""
    raise OSError("gone")


async def heeding(ask: Ask) -> None:
    """Wait heeding cancellation."""
    with heeding_cancellation():
        await ask()


async def answered(ask: Ask) -> None:
    """Wait for an answer."""
    with unavailable_unless_answered("Nobody"):
        await ask()


async def for_ever(ask: Ask) -> None:
    """Ask again whenever time runs out."""
    with until_renewal(Client()) as waits:
        while True:
            await waits.next(ask)


@pytest.mark.parametrize("wait", [heeding, answered, for_ever])
@pytest.mark.parametrize("answer", [nothing, time_out, refuse])
async def test_a_cancelled_wait_ends(wait: Callable[[Ask], Coroutine[Any, Any, None]], answer: Callable[[], None]) -> None:
    """Whatever comes together with the cancellation, the task is cancelled."""
    library = Library(answer)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(wait(library.ask))
        await library.waits.wait()
        task.cancel()
    assert task.cancelled()


async def test_an_error_without_a_cancellation_is_told() -> None:
    """Nobody cancelled: what nats-py raised stands."""
    with pytest.raises(UnavailableError), unavailable_unless_answered("Nobody"):
        time_out()
