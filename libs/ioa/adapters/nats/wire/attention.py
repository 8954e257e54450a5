"""Polling of a store that is driven by hints, which may arrive before the change or be lost."""

from __future__ import annotations

import asyncio

from ioa.concurrency import fail_after

_SOON_SECONDS, _LONGEST_SECONDS = 0.005, 1.0


class Attention:
    """Decides when to poll: several times within about 1 s after a hint, once when requested, otherwise never."""

    def __init__(self) -> None:
        self._anything = asyncio.Event()
        self._pause = _SOON_SECONDS

    def hint(self) -> None:
        """Poll several times: the store has changed, or will change soon."""
        self._pause = _SOON_SECONDS
        self._anything.set()

    def look(self) -> None:
        """Poll once: a hint may have been lost."""
        self._anything.set()

    async def wait(self) -> None:
        """Wait until the next poll is due; call it after a poll without a change."""
        try:
            async with fail_after(self._pause if self._pause < _LONGEST_SECONDS else None):
                await self._anything.wait()
        except TimeoutError:
            self._pause *= 2
        self._anything.clear()
