"""Who sends more than an honest agent or user ever does is put off: its connections are ended, and new ones too for a while.

nats-server has no rates. What it takes itself, before any service of ours has a say (goals into their stream, direct gets, pulls,
publications that nobody reads), is bounded by nothing else than this. It ends what has gone wrong, and names who does it on
purpose: whoever connects anew at once, again and again, is kept out by taking his key away alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog
from prometheus_client import Counter

from ioa.ports.connections import ConnectionId, Connections, KeyHolders, SentTotals
from ioa.ports.inspection import FLOOD, SlowedCaller
from ioa.protocol.audit import Deed
from ioa.quotas import SLOWED_FOR, Rate
from ioa.runtime.audit import AuditLog
from ioa.runtime.process import background

_EVERY_SECONDS = 1.0
_MOST_WAITING = 1_000
"""How many connections wait to be ended; those beyond are ended when they are counted next."""
_MOST_LEVELS = 16_384
_AT_ONCE = Rate(10, 20)
"""How many new connections of a key that is put off are ended at once; the others are when they are counted next. Connecting costs
the server more than a short flood does, and who is ended at once may come back at once."""

_log = structlog.get_logger(__name__)

floods = Counter("ioa_floods_total", "How often a key was put off, since its holder sent more than anybody honest does")
ended = Counter("ioa_flood_connections_ended_total", "Connections of keys that were put off, which were ended")


@dataclass(frozen=True)
class FloodLimits:
    """What the connections of one key may send together, and for how many seconds who sends more is put off."""

    messages: Rate
    bytes: Rate
    pause: float


@dataclass
class _Level:
    """How full the buckets of a key are."""

    at: float
    messages: float = 0.0
    bytes: float = 0.0


@dataclass(frozen=True)
class _PutOff:
    until: float
    messages: int


@dataclass(frozen=True)
class _Seen:
    """What the connections of a server had sent when it was asked last, and the largest number of them all."""

    totals: Mapping[int, SentTotals]
    newest: int


class FloodJudge:
    """Judges by what connections have sent; a leaky bucket of messages and one of bytes for each key. All times are in seconds.

    What a connection had sent before it was seen first counts only if it is newer than all that were there when its server was
    asked before: else nobody knows when it was sent.
    """

    def __init__(self, limits: FloodLimits) -> None:
        self._limits = limits
        self._seen: dict[str, _Seen] = {}
        self._levels: dict[str, _Level] = {}
        self._put_off: dict[str, _PutOff] = {}
        self._calm_at: dict[str, float] = {}

    def counted(self, server: str, connections: Sequence[SentTotals], now: float) -> frozenset[str]:
        """Take in what a server's connections have sent, and return the keys that are put off from now on."""
        flooding = {one.key for one in connections if self._take(one, now)}
        before = self._seen.get(server)
        newest = max((one.connection.number for one in connections), default=0)
        self._seen[server] = _Seen(
            {one.connection.number: one for one in connections}, max(newest, 0 if before is None else before.newest)
        )
        self._make_room(now)
        return frozenset(flooding)

    def closed(self, sent: SentTotals, now: float) -> frozenset[str]:
        """Take in what a connection had sent at its end, and return the keys that are put off from now on."""
        return frozenset([sent.key] if self._take(sent, now) else [])

    def is_put_off(self, key: str, now: float) -> bool:
        """Whether the connections of a key are to be ended."""
        found = self._put_off.get(key)
        return found is not None and now < found.until

    def ends_at_once(self, key: str, now: float) -> bool:
        """Whether a new connection of a key is to be ended before it is counted."""
        calm_at = max(self._calm_at.get(key, now), now) + 1 / _AT_ONCE.per_second
        if not self.is_put_off(key, now) or calm_at - now > _AT_ONCE.burst / _AT_ONCE.per_second:
            return False
        self._calm_at[key] = calm_at
        return True

    def put_off(self, now: float) -> Mapping[str, int]:
        """Return who is put off, or was a minute ago, and how many messages of theirs were too many."""
        return {key: one.messages for key, one in self._put_off.items() if now < one.until + SLOWED_FOR}

    def _take(self, sent: SentTotals, now: float) -> bool:
        seen = self._seen.get(sent.connection.server)
        if seen is None:
            return False
        number = sent.connection.number
        before = seen.totals.get(number)
        if before is None and number <= seen.newest:
            return False
        messages = sent.messages - (before.messages if before else 0)
        size = sent.bytes - (before.bytes if before else 0)
        if messages <= 0 and size <= 0:
            return False
        level = self._levels.setdefault(sent.key, _Level(now))
        past = now - level.at
        level.at = now
        level.messages = max(0.0, level.messages - past * self._limits.messages.per_second) + messages
        level.bytes = max(0.0, level.bytes - past * self._limits.bytes.per_second) + size
        if level.messages <= self._limits.messages.burst and level.bytes <= self._limits.bytes.burst:
            return False
        is_new = not self.is_put_off(sent.key, now)
        self._put_off[sent.key] = _PutOff(now + self._limits.pause, int(level.messages))
        del self._levels[sent.key]
        return is_new

    def _make_room(self, now: float) -> None:
        """Forget keys whose buckets are empty again, and those that were put off long ago."""
        if len(self._levels) > _MOST_LEVELS:
            per_second = self._limits.messages.per_second
            self._levels = {key: one for key, one in self._levels.items() if (now - one.at) * per_second < one.messages}
        if len(self._put_off) > _MOST_LEVELS:
            self._put_off = {key: one for key, one in self._put_off.items() if now < one.until + SLOWED_FOR}
            self._calm_at = {key: at for key, at in self._calm_at.items() if key in self._put_off}


class FloodWatch:
    """Looks each second at what everybody outside has sent, and ends the connections of who is put off.

    Each replica of the registry does, on a connection of its own: who floods waits for nobody.
    """

    def __init__(
        self,
        connections: Connections,
        limits: FloodLimits,
        roster: Callable[[], Awaitable[KeyHolders]],
        audit: AuditLog,
        now: Callable[[], float],
    ) -> None:
        self._connections = connections
        self._judge = FloodJudge(limits)
        self._read_roster = roster
        self._roster = KeyHolders({}, frozenset())
        self._audit = audit
        self._now = now
        self._to_end: asyncio.Queue[ConnectionId] = asyncio.Queue(_MOST_WAITING)

    async def follow(self) -> None:
        """Look, for ever."""
        async with self._connections.hearing(self), background(self._end()):
            while True:
                self._roster = await self._read_roster()
                await self._connections.count()
                await asyncio.sleep(_EVERY_SECONDS)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Tell who is put off, or was a minute ago."""
        return [SlowedCaller(self._name(key), FLOOD, number) for key, number in self._judge.put_off(self._now()).items()]

    def opened(self, connection: ConnectionId, key: str) -> None:
        """End it if its key is put off and does not connect without end."""
        if self._judge.ends_at_once(key, self._now()):
            self._put(connection)

    def closed(self, sent: SentTotals) -> None:
        """Count what it had sent: who connects anew again and again is no other."""
        if sent.key not in self._roster.trusted:
            self._note(self._judge.closed(sent, self._now()))

    def counted(self, server: str, connections: Sequence[SentTotals]) -> None:
        """Judge, and end what is there of those who are put off."""
        now = self._now()
        judged = [one for one in connections if one.key not in self._roster.trusted]
        self._note(self._judge.counted(server, judged, now))
        for one in judged:
            if self._judge.is_put_off(one.key, now):
                self._put(one.connection)

    def _note(self, keys: Iterable[str]) -> None:
        for key in keys:
            floods.inc()
            _log.warning("flood_put_off", who=self._name(key), key=key)
            self._audit.note(Deed.SLOWED, who=self._name(key), target=FLOOD)

    def _put(self, connection: ConnectionId) -> None:
        if not self._to_end.full():
            self._to_end.put_nowait(connection)

    async def _end(self) -> None:
        while True:
            await self._connections.end(await self._to_end.get())
            ended.inc()

    def _name(self, key: str) -> str:
        """Return what the holder of a key is called; one who came by a token has no other name here than his key."""
        return self._roster.names.get(key, key)
