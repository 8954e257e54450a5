"""Looking through dead letters that are kept in a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from ioa.errors import NotFoundError
from ioa.ports.clock import Clock
from ioa.ports.dead_letter_box import DeadLetter, DeadLetterPage
from tests.rig.memory_delivery import MemoryDeadLetters


class MemoryDeadLetterBox:
    """A `DeadLetterBox` over `MemoryDeadLetters`. False in this: letters are lost with the process, and bear the time of reading.

    Args:
        letters: Where services put them.
        clock: Stamps them.
        publish: Publishes a message again, by its subject and payload.
    """

    def __init__(self, letters: MemoryDeadLetters, clock: Clock, publish: Callable[[str, bytes], Awaitable[None]]) -> None:
        self._letters = letters
        self._clock = clock
        self._publish = publish
        self._returned: set[int] = set()
        self._seen: dict[int, datetime] = {}

    async def page(self, *, limit: int, before: int | None = None) -> DeadLetterPage:
        """List letters, newest first."""
        numbers = [
            seq
            for seq in range(len(self._letters.letters), 0, -1)
            if seq not in self._returned and (before is None or seq < before)
        ]
        page = [self._letter(seq) for seq in numbers[:limit]]
        return DeadLetterPage(page, page[-1].seq if len(numbers) > limit else None)

    async def read(self, seq: int) -> DeadLetter:
        """Read one letter."""
        if seq in self._returned or not 0 < seq <= len(self._letters.letters):
            raise NotFoundError(f"There is no dead letter {seq}.", hint="`ioa dead` lists those that there are.")
        return self._letter(seq)

    async def put_back(self, letter: DeadLetter) -> bool:
        """Publish the message again and take the letter out."""
        letter.check_returnable()
        if letter.seq in self._returned:
            return False
        self._returned.add(letter.seq)
        await self._publish(letter.subject, letter.data)
        return True

    def _letter(self, seq: int) -> DeadLetter:
        kept = self._letters.letters[seq - 1]
        at = self._seen.setdefault(seq, self._clock.now())
        return DeadLetter(
            seq=seq, reason=kept.reason, why=kept.why, subject=kept.subject, at=at, data=kept.data, size_bytes=len(kept.data)
        )
