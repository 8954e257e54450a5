"""Looking now and then, turn about: what a route between servers loses is not heard, and many that look must not be a load."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from nats.aio.client import Client

_EVERY_SECONDS = 1.0


class _TurnAbout:
    def __init__(self) -> None:
        self._looks: deque[Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def taking_part(self, look: Callable[[], None]) -> Iterator[None]:
        self._looks.append(look)
        if self._timer is None:
            self._arm()
        try:
            yield
        finally:
            self._looks.remove(look)
            if not self._looks and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _let_one_look(self) -> None:
        self._looks[0]()
        self._looks.rotate(-1)
        self._arm()

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_EVERY_SECONDS, self._let_one_look)


_of_clients: WeakKeyDictionary[Client, _TurnAbout] = WeakKeyDictionary()


@contextmanager
def looking_now_and_then(client: Client, look: Callable[[], None]) -> Iterator[None]:
    """Call `look` now and then while the block runs: of all that look over one connection, one each second."""
    with _of_clients.setdefault(client, _TurnAbout()).taking_part(look):
        yield
