"""What pages of HTML say, read where it can be ended: a page may be written to take any time and memory to read.

What one read shows is read in place, since that is soon done; what is longer in other processes, by turns of the users whose goals
want it. A thread would go on reading when nobody waits for it any more.
"""

from __future__ import annotations

from datetime import timedelta

from ioa.agent.html_text import text_of_html
from ioa.fair_turns import TenantTurns
from ioa.idle_child import IdleChildren

SOON_READ_CHARS = 20_000
"""What is not longer takes less than a process does to start."""
_AT_ONCE, _OF_ONE_USER = 2, 1
_READ_WITHIN, _READ_BYTES, _TEXT_BYTES = timedelta(seconds=60), 512 * 1024**2, 32 * 1024**2
"""How long a page may take, how much memory, and how large its text may be."""


class PageReader:
    """Reads pages for all decisions of one brain."""

    def __init__(self, longest: timedelta = _READ_WITHIN) -> None:
        self._turns = TenantTurns(_AT_ONCE, _OF_ONE_USER)
        self._children = IdleChildren(_AT_ONCE, longest=longest, memory_bytes=_READ_BYTES, answer_bytes=_TEXT_BYTES)

    async def text_of(self, page: str) -> str:
        """Return what a page says, in a turn of whom this task works for.

        Raises:
            TaskError: It took too long, too much memory, or its text is too large.
        """
        if len(page) <= SOON_READ_CHARS:
            return text_of_html(page)
        async with self._turns.turn():
            text: str = await self._children.ask("ioa.agent.html_text.text_of_html", page)
            return text
