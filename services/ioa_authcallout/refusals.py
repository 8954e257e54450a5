"""From where those come who are not let in, so that the operator can keep away who comes again and again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping

_SLICE_SECONDS, _SLICES = 10.0, 6
_ANSWERED = 100
"""How many refusals are told in a slice to those of one address. Who is not answered waits for the server to give him up, for two
seconds, and comes again less often: a connection costs the server more than it costs who makes it."""
_MANY = 100
"""How many refusals in the last minute have an address told."""
_TOLD = 5
_MOST_ADDRESSES = 10_000


class Refusals:
    """Counts refusals of the last minute by address. `now` returns seconds that never go back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._slices: deque[tuple[float, Counter[str]]] = deque(maxlen=_SLICES)

    def note(self, address: str) -> None:
        """Count one; of more addresses than are counted each is nobody's."""
        counted = self._slice()
        counted[address if address in counted or len(counted) < _MOST_ADDRESSES else ""] += 1

    def is_answered(self, address: str) -> bool:
        """Whether one more of this address is told that it is refused."""
        return self._slice()[address] <= _ANSWERED

    def many(self) -> Mapping[str, int]:
        """Return the addresses from which most came in the last minute, if they were many."""
        self._slice()
        of_all = sum((counted for _, counted in self._slices), Counter[str]())
        return {address: number for address, number in of_all.most_common(_TOLD) if number >= _MANY and address}

    def _slice(self) -> Counter[str]:
        now = self._now()
        while self._slices and now - self._slices[0][0] > _SLICE_SECONDS * _SLICES:
            self._slices.popleft()
        if not self._slices or now - self._slices[-1][0] > _SLICE_SECONDS:
            self._slices.append((now, Counter()))
        return self._slices[-1][1]
