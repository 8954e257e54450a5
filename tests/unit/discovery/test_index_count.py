"""How many cards there are is counted now and then, however often it is asked."""

from __future__ import annotations

import asyncio

from ioa.errors import UnavailableError
from ioa_discovery.index_count import KEPT_SECONDS, IndexCount


class Counting:
    """An index that is asked how many cards it holds, and a clock. False in this: it holds one more each time."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_away = False
        self.seconds = 0.0

    async def count(self) -> int:
        """Return how often it was asked, when others had their turn."""
        await asyncio.sleep(0)
        if self.is_away:
            raise UnavailableError("away")
        self.asked += 1
        return self.asked

    def now(self) -> float:
        """Return the time."""
        return self.seconds


async def test_however_many_ask_one_counts() -> None:
    """All who ask within a second, at once or one after the other, are told the same count, and who asks later a new one."""
    index = Counting()
    count = IndexCount(index.count, index.now)
    told = await asyncio.gather(*(count.read() for _ in range(50)))
    index.seconds += KEPT_SECONDS / 2
    told.append(await count.read())
    assert (set(told), index.asked) == ({1}, 1)
    index.seconds += KEPT_SECONDS / 2
    assert (await count.read(), index.asked) == (2, 2)


async def test_an_index_that_was_away_is_asked_again() -> None:
    """That nobody could count is told, and not kept."""
    index = Counting()
    count = IndexCount(index.count, index.now)
    index.is_away = True
    told = await asyncio.gather(count.read(), count.read(), return_exceptions=True)
    index.is_away = False
    assert ([type(one) for one in told], await count.read()) == ([UnavailableError] * 2, 1)
