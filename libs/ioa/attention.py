"""Waiting for something that is stored elsewhere, by hints that come before it or are lost."""

from __future__ import annotations

import asyncio

from ioa.cancellation import fail_after

_SOON_SECONDS, _LONGEST_SECONDS = 0.005, 1.0


class Attention:
    """When to look again: several times within about a second of a hint, once when told to, and else not at all."""

    def __init__(self) -> None:
        self._anything = asyncio.Event()
        self._pause = _SOON_SECONDS

    def hint(self) -> None:
        """Look several times: something was stored, or is about to be."""
        self._pause = _SOON_SECONDS
        self._anything.set()

    def look(self) -> None:
        """Look once: a hint may have been lost."""
        self._anything.set()

    async def wait(self) -> None:
        """Wait until it is worth looking again; call it when a look has shown nothing."""
        try:
            async with fail_after(self._pause if self._pause < _LONGEST_SECONDS else None):
                await self._anything.wait()
        except TimeoutError:
            self._pause *= 2
        self._anything.clear()
