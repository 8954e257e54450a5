"""Subscriptions that pass messages to a function, signals of news, and waits that end after a reconnect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.wire.attention import Attention
from ioa.concurrency import fail_after, heeding_cancellation

Message: TypeAlias = Msg
"""A received message."""

T = TypeVar("T")

_CHECK_SECONDS = 1.0

_log = structlog.get_logger(__name__)

_listeners: WeakKeyDictionary[Client, list[Callable[[], None]]] = WeakKeyDictionary()
_checking: WeakKeyDictionary[Client, int] = WeakKeyDictionary()


class MessageSink(asyncio.Future[Msg]):
    """Pass each message of a subscription to a function that does not block: `client.subscribe(subject, future=MessageSink(take))`.

    nats-py sets a message on a future immediately, but passes it to a callback through a queue and a task.
    """

    def __init__(self, take: Callable[[Msg], None]) -> None:
        super().__init__()
        self._take = take

    def set_result(self, message: Msg) -> None:
        """Pass a message to the function."""
        try:
            self._take(message)
        except Exception:  # noqa: BLE001 - an exception would end the reading of all messages
            _log.exception("message_not_taken")


@asynccontextmanager
async def taking(client: Client, subject: str, take: Callable[[Msg], None], queue: str = "") -> AsyncIterator[None]:
    """Pass every message on a subject, or those for a member of a queue group, to a function while the block runs."""
    subscription = await client.subscribe(subject, queue=queue, future=MessageSink(take))
    try:
        yield
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()


@contextmanager
def at_renewal(client: Client, listener: Callable[[], None]) -> Iterator[None]:
    """Call `listener` after each reconnect while the block runs. Requests sent before may never be answered."""
    listeners = _listeners.setdefault(client, [])
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


def announce_renewal(client: Client) -> None:
    """Call the listeners of `at_renewal`."""
    for listener in list(_listeners.get(client, ())):
        listener()


@asynccontextmanager
async def watching(client: Client, subject: str, take: Callable[[Msg], None], look: Callable[[], None]) -> AsyncIterator[None]:
    """Pass messages on a subject to `take` while the block runs.

    Messages may be lost, so `look` is called after each reconnect and periodically; it must read the state itself. With n blocks
    on a connection, each calls its `look` about every n seconds.
    """
    _checking[client] = _checking.get(client, 0) + 1
    timer: asyncio.TimerHandle

    def check(*, is_due: bool = True) -> None:
        nonlocal timer
        timer = asyncio.get_running_loop().call_later(_CHECK_SECONDS * _checking[client], check)
        if is_due:
            look()

    check(is_due=False)
    try:
        async with taking(client, subject, take):
            with at_renewal(client, look):
                yield
    finally:
        timer.cancel()
        _checking[client] -= 1


@asynccontextmanager
async def open_attention(client: Client, subject: str) -> AsyncIterator[Attention]:
    """Yield an `Attention` that wakes after each message on the subject, after a reconnect, and periodically.

    Users follow streams by such signals, and read. They may not create consumers, because the server delivers to any subject that
    the creator of a consumer names.
    """
    attention = Attention()
    async with watching(client, subject, lambda _: attention.hint(), attention.look):
        yield attention


class UntilRenewal:
    """Waits of a task on a connection, which end after a reconnect. Made by `until_renewal`."""

    def __init__(self) -> None:
        self._renewed = False
        self._wait: asyncio.Timeout | None = None

    async def next(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask`, which is called again after each timeout; end the block after a reconnect."""
        while not self._renewed:
            try:
                with suppress(TimeoutError), heeding_cancellation():
                    async with fail_after(None) as self._wait:
                        return await ask()
            finally:
                self._wait = None
        raise _RenewedError

    def end(self) -> None:
        """End the wait, and all later ones."""
        self._renewed = True
        if self._wait is not None:
            self._wait.reschedule(asyncio.get_running_loop().time())


class _RenewedError(Exception):
    """The connection was renewed."""


@contextmanager
def until_renewal(client: Client) -> Iterator[UntilRenewal]:
    """Run a block that ends without an error at the first wait after a reconnect."""
    waits = UntilRenewal()
    with at_renewal(client, waits.end), suppress(_RenewedError):
        yield waits
