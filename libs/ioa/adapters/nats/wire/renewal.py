"""Waits that end after a reconnect, because requests sent before may never be answered; and periodic checks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar
from weakref import WeakKeyDictionary

from nats.aio.client import Client

from ioa.adapters.nats.wire.connection import at_renewal
from ioa.cancellation import fail_after, heeding_cancellation

T = TypeVar("T")

_CHECK_SECONDS = 1.0


class RenewedError(Exception):
    """The connection was renewed: send the request again."""


class UntilRenewal:
    """Waits of one task on one connection. Made by `until_renewal`."""

    def __init__(self) -> None:
        self._renewed = False
        self._wait: asyncio.Timeout | None = None

    async def next(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask`, which is called again after each timeout of nats-py.

        Raises:
            RenewedError: The connection was renewed since the block began.
        """
        while not self._renewed:
            try:
                with suppress(TimeoutError), heeding_cancellation():
                    async with fail_after(None) as self._wait:
                        return await ask()
            finally:
                self._wait = None
        raise RenewedError

    def end(self) -> None:
        """End the wait, and all later ones."""
        self._renewed = True
        if self._wait is not None:
            self._wait.reschedule(asyncio.get_running_loop().time())


@contextmanager
def until_renewal(client: Client) -> Iterator[UntilRenewal]:
    """Run a block that ends without an error at the first wait after a reconnect."""
    waits = UntilRenewal()
    with at_renewal(client, waits.end), suppress(RenewedError):
        yield waits


_checking: WeakKeyDictionary[Client, int] = WeakKeyDictionary()


@contextmanager
def looking_now_and_then(client: Client, look: Callable[[], None]) -> Iterator[None]:
    """Call `look` periodically while the block runs: a route between servers may lose messages.

    All blocks of a connection together cause about one call per second.
    """
    _checking[client] = _checking.get(client, 0) + 1
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def check() -> None:
        nonlocal timer
        timer = loop.call_later(_CHECK_SECONDS * _checking[client], check)
        look()

    timer = loop.call_later(_CHECK_SECONDS * _checking[client], check)
    try:
        yield
    finally:
        timer.cancel()
        _checking[client] -= 1
