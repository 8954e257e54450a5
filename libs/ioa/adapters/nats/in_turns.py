"""Connections over which things are asked in turns, since the server cuts off who has too many bytes of answers unread."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol
from weakref import WeakKeyDictionary

from nats.aio.client import Client


class AskingTurns(Protocol):
    """Says when something may be asked over a connection. Both wait for that, and go on for as long as the block."""

    def reading(self, most_bytes: int) -> AbstractAsyncContextManager[None]:
        """Read what streams hold, up to so many bytes."""
        ...

    def asking(self) -> AbstractAsyncContextManager[None]:
        """Ask a service, which may take long."""
        ...


_turns: WeakKeyDictionary[Client, AskingTurns] = WeakKeyDictionary()


def ask_in_turns(client: Client, turns: AskingTurns) -> None:
    """Have all that is read and asked over a connection take turns."""
    _turns[client] = turns


def reading(client: Client, most_bytes: int) -> AbstractAsyncContextManager[None]:
    """Wait for a turn at reading, if there are any."""
    turns = _turns.get(client)
    return nullcontext() if turns is None else turns.reading(most_bytes)


def asking(client: Client) -> AbstractAsyncContextManager[None]:
    """Wait for a turn at asking, if there are any."""
    turns = _turns.get(client)
    return nullcontext() if turns is None else turns.asking()
