"""Those who wait for an auth callout to judge them: in turns, so that who comes again and again keeps nobody else out.

nats-server gives each connection two seconds. So whoever was let in by his token before goes first, each holder in turn, however
many tokens he has; of the others each address in turn, and of an address who came last, since who has waited for long is gone soon.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

_GIVEN_UP_SECONDS = 1.8
"""For how long it makes sense to judge somebody: then nats-server has sent him away, or has by the time when it is told."""
_OF_ONE, _OF_ALL = 1_000, 4_000
"""How many wait of one address, or of one token that is known, and of all that are not."""
_AT_WORK_OF_ONE = 12
"""How many of one address are judged at a time: who brings an unknown key waits for its issuer."""
_KNOWN = 10_000


@dataclass(frozen=True)
class Arrival:
    """Somebody who wants in: what nats-server calls him and itself, what he shows, where he comes from, and when he came (s).

    `reply` is where the server waits for the answer. Its question is not kept: what he says of himself may make it 125 kB.
    """

    user: str
    server: str
    token: str
    address: str
    at: float
    reply: str


class _Lines:
    """Lines by what those who wait have in common, which take turns."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Arrival]] = OrderedDict()
        self._size = 0

    def put(self, key: str, arrival: Arrival) -> Arrival | None:
        """Have somebody wait; returns who waits no more for that."""
        line = self._lines.setdefault(key, deque())
        line.append(arrival)
        self._size += 1
        if len(line) > _OF_ONE:
            return self._left(key, line.popleft())
        if self._size > _OF_ALL:
            longest = max(self._lines, key=lambda one: len(self._lines[one]))
            return self._left(longest, self._lines[longest].popleft())
        return None

    def take(self, may: Callable[[Arrival], bool]) -> Arrival | None:
        """Return whose turn it is, of those who may have one, or None."""
        for key, line in self._lines.items():
            if may(line[-1]):
                self._lines.move_to_end(key)
                return self._left(key, line.pop())
        return None

    def _left(self, key: str, arrival: Arrival) -> Arrival:
        self._size -= 1
        if not self._lines[key]:
            del self._lines[key]
        return arrival


class ArrivalQueue:
    """Gives out who is judged next.

    Args:
        now: Seconds that never go back.
        given_up: Is told who is judged no more, since it was too long ago that he came, or too many wait.
    """

    def __init__(self, now: Callable[[], float], given_up: Callable[[Arrival], None]) -> None:
        self._now = now
        self._given_up = given_up
        self._known_lines, self._others = _Lines(), _Lines()
        self._known: OrderedDict[bytes, str] = OrderedDict()
        """Whose each token is that was let in."""
        self._at_work: Counter[str] = Counter()
        self._others_turn = False
        self._changed = asyncio.Event()

    def come(self, arrival: Arrival) -> None:
        """Take somebody in."""
        holder = self._known.get(digest_of(arrival.token))
        left = self._others.put(arrival.address, arrival) if holder is None else self._known_lines.put(holder, arrival)
        if left is not None:
            self._given_up(left)
        self._changed.set()

    async def next(self, *, known_alone: bool = False) -> Arrival:
        """Wait for whose turn it is, of those who were let in before or of all; `done` has to be told when he is judged."""
        while True:
            found = self._next(known_alone)
            if found is None:
                self._changed.clear()
                await self._changed.wait()
            elif self._now() - found.at > _GIVEN_UP_SECONDS:
                self._given_up(found)
            else:
                self._at_work[found.address] += 1
                return found

    def done(self, arrival: Arrival, holder: str | None) -> None:
        """Have another one of his address be judged; who is let in goes first the next time.

        Args:
            arrival: Who was judged.
            holder: Whose token it is, if he is let in; nobody's if he is refused. None says that it is not known.
        """
        self._at_work[arrival.address] -= 1
        if not self._at_work[arrival.address]:
            del self._at_work[arrival.address]
        if holder is not None:
            digest = digest_of(arrival.token)
            self._known.pop(digest, None)
            if holder:
                self._known[digest] = holder
                if len(self._known) > _KNOWN:
                    self._known.popitem(last=False)
        self._changed.set()

    def _next(self, known_alone: bool) -> Arrival | None:
        if known_alone:
            return self._known_lines.take(lambda _: True)
        lines = (self._others, self._known_lines) if self._others_turn else (self._known_lines, self._others)
        self._others_turn = not self._others_turn
        return lines[0].take(self._may) or lines[1].take(self._may)

    def _may(self, arrival: Arrival) -> bool:
        return self._at_work[arrival.address] < _AT_WORK_OF_ONE


def digest_of(token: str) -> bytes:
    """Return by what a token is known, which is not kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
