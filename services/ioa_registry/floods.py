"""Who sends more than an honest agent or user ever does is put off: its connections are ended, and new ones too for a while.

nats-server has no rates. What it takes itself, before any service of ours has a say (goals into their stream, pulls,
publications that nobody reads), is bounded by nothing else than this. Ending connections stops what has gone wrong. Whoever
connects anew at once, on purpose, is kept out by those who can refuse him, and who are told here whom: the gate of nats-server
and auth callouts.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TypeVar

import structlog
from prometheus_client import Counter as Metric

from ioa.cancellation import fail_after
from ioa.errors import ForbiddenError
from ioa.networks import network_of
from ioa.ports.connections import ConnectionId, Connections, KeyHolders, SentTotals
from ioa.ports.inspection import CHURNED, FLOOD, HELD, RETURNED, TRACED, TURNED_AWAY, UNCOUNTED, SlowedCaller
from ioa.protocol import subjects
from ioa.protocol.audit import Deed
from ioa.protocol.ids import TenantId, UserId, full_name
from ioa.protocol.kept_out import Readmit
from ioa.protocol.registry import Acknowledged
from ioa.quotas import SLOWED_FOR, Rate
from ioa.runtime.audit import AuditLog
from ioa.runtime.caller_pace import CallerPace
from ioa.runtime.process import background
from ioa_registry.churn import LOOKS, WINDOW_SECONDS, ChurnJudge
from ioa_registry.servers import OfServers

Remembered = TypeVar("Remembered")

_EVERY_SECONDS = 1.0
_MOST_DOUBLINGS = 20
_MOST_WAITING = 1_000
"""How many connections wait to be ended; those beyond are ended when they are counted next."""
_MOST_LEVELS = 16_384
_LONGEST_SECONDS = 3_600.0
"""For how long somebody is put off at most, who comes back and floods each time."""
_FORGIVEN_SECONDS = 86_400.0
"""How long somebody must have kept quiet after a pause, for the next one to be the first again."""
_SENT_A_SECOND, _SENT_AT_ONCE = 10, 2
"""How many messages somebody may be sent, or ask to be, for each that he may send: our own clients take no more, since each has to
be decoded."""
_OF_A_SERVICE, _AT_ONCE_OF_A_SERVICE = 10, 2
"""How many messages a service or an admin of a tenant with a name may send for each that an agent may, a second and at once."""
_CONNECTING = 10
"""As how many messages it counts to be let in, on a connection that one has too: it costs the server a quarter of a millisecond."""
_AT_ONCE = Rate(10, 20)
"""How many new connections of a key that is put off are ended at once; the others are when they are counted next. Connecting costs
the server more than a short flood does, and who is ended at once may come back at once."""

_RETURNS = Rate(1, 60)
"""How often an agent may give a goal back without being named: many times as often as one whose model is away."""

_TURNED_AWAY = Rate(1, 60)
"""How often somebody of an address may come in vain without its being named: a process whose key was revoked does once in 5 s."""
_OF_A_REFUSED_GOAL = 300
"""As how many messages a goal counts that is refused to who has filled what goals wait in, and goes on: 133 at once, and then 33 a
second."""

_MB = 1_000_000
_MOST_GONE = 4_096
"""How many connections are remembered that have ended, or whose holders are not known yet."""

_log = structlog.get_logger(__name__)

floods = Metric("ioa_floods_total", "How often a key was put off, since its holder sent, had or did more than anybody honest does")
ended = Metric("ioa_flood_connections_ended_total", "Connections of keys that were put off, which were ended")


@dataclass(frozen=True)
class FloodLimits:
    """What the connections of one holder may send together, and for how many seconds who sends more is put off the first time.

    Each time after it is twice as long, up to an hour. So is who has more than `connections` at one server, or more than
    `subscriptions` on them: all agents share what the server has room for, and so do all users.
    """

    messages: Rate
    bytes: Rate
    pause: float
    connections: int
    subscriptions: int
    uncounted: Rate
    """How many bytes of which servers count nothing."""

    @property
    def sent(self) -> Rate:
        """How many messages they may be sent, and ask to be."""
        return Rate(_SENT_A_SECOND * self.messages.per_second, _SENT_AT_ONCE * self.messages.burst)


@dataclass
class _Level:
    """How full the buckets of a key are."""

    at: float
    messages: float = 0.0
    bytes: float = 0.0
    pulled: float = 0.0
    received: float = 0.0
    uncounted: float = 0.0

    def is_empty(self, limits: FloodLimits, now: float) -> bool:
        """Whether all of them are by now."""
        filled = (
            (self.messages, limits.messages),
            (self.bytes, limits.bytes),
            (max(self.pulled, self.received), limits.sent),
            (self.uncounted, limits.uncounted),
        )
        return all(level <= (now - self.at) * rate.per_second for level, rate in filled)


@dataclass(frozen=True)
class Excess:
    """What somebody is put off for, and how much of it.

    `FLOOD` and how many messages, one of `HELD` and how many of them, `UNCOUNTED` and how many MB, `CHURNED`, or `TRACED`.
    """

    family: str
    number: int


@dataclass(frozen=True)
class _PutOff:
    until: float
    why: Excess
    times: int

    def is_remembered(self, now: float) -> bool:
        return now < self.until + _FORGIVEN_SECONDS


@dataclass(frozen=True)
class _Seen:
    """What the connections of a server had sent when it was asked last, and the largest number of them all."""

    totals: Mapping[int, SentTotals]
    newest: int


class FloodJudge:
    """Judges by what connections have sent; a leaky bucket of messages and one of bytes for each key. All times are in seconds.

    A key stands for its holder, and may be any name of him.

    What a connection had sent before it was seen first counts only if it is newer than all that were there when its server was
    asked before: else nobody knows when it was sent.
    """

    def __init__(self, limits: FloodLimits) -> None:
        self._limits = limits
        self._seen = OfServers[_Seen]()
        self._levels: dict[str, _Level] = {}
        self._put_off: dict[str, _PutOff] = {}
        self._calm_at: dict[str, float] = {}
        self._churn = ChurnJudge()

    def counted(self, server: str, connections: Sequence[SentTotals], now: float) -> frozenset[str]:
        """Take in what a server's connections have sent, and return the keys that are put off from now on.

        Of those without a key it is remembered what they had sent before anybody was let in there.
        """
        judged = [one for one in connections if one.key]
        flooding = {one.key for one in judged if self._take(one, now)}
        before = self._seen.get(server)
        for held in self._held_too_many(judged):
            flooding |= {key for key, why in held.items() if self._put_off_for(key, why, now)}
        churning = self._churn.looked(server, [self._newly(one) for one in judged], now)
        flooding |= {key for key in churning if self._put_off_for(key, Excess(CHURNED, LOOKS), now)}
        newest = max((one.connection.number for one in connections), default=0)
        totals = {one.connection.number: one for one in connections}
        self._seen.put(server, _Seen(totals, max(newest, 0 if before is None else before.newest)))
        self._make_room(now)
        return frozenset(flooding)

    def glanced(self, server: str, connections: Sequence[SentTotals], at_seconds: float) -> None:
        """Take in what some connections had, see `ChurnJudge.glanced`; it is judged when they are counted next."""
        self._churn.glanced(server, connections, at_seconds)

    def drowning(self, connections: Sequence[SentTotals]) -> Collection[ConnectionId]:
        """Return which connections of agents are sent more than they can have asked for since they were counted, by somebody else.

        They may come back at once. What the server still had to send there is forgotten by then.
        """
        return [
            one.connection
            for one in connections
            if one.is_agent and not one.is_answerable and self._newly(one).received > self._limits.sent.burst
        ]

    def opened(self, key: str, now: float, *, is_service: bool = False) -> frozenset[str]:
        """Take in that a key was let in, and return the keys that are put off from now on."""
        more = _Level(now, messages=_CONNECTING / _OF_A_SERVICE if is_service else _CONNECTING)
        return frozenset([key] if self._fill(key, more, now) else [])

    def closed(self, sent: SentTotals, now: float) -> frozenset[str]:
        """Take in what a connection had sent at its end; return the keys that are put off from now on."""
        return frozenset([sent.key] if self._take(sent, now) else [])

    def pulled(self, key: str, messages: int, now: float) -> frozenset[str]:
        """Take in that a key may be sent so many messages for one request, and return the keys that are put off from now on."""
        return frozenset([key] if self._fill(key, _Level(now, pulled=messages), now) else [])

    def traced(self, key: str, now: float) -> frozenset[str]:
        """Take in that a key has the server write in its place, as nobody honest does; return who is put off from now on."""
        return frozenset([key] if self._put_off_for(key, Excess(TRACED, 1), now) else [])

    def uncounted(self, key: str, size: int, now: float, *, is_service: bool = False) -> frozenset[str]:
        """Take in that a key has sent so many bytes of which servers count nothing; return who is put off from now on."""
        more = _Level(now, uncounted=size / _OF_A_SERVICE if is_service else size)
        return frozenset([key] if self._fill(key, more, now) else [])

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

    def readmit(self, key: str) -> bool:
        """Forget that a key was put off, and why; whether it was."""
        self._levels.pop(key, None)
        self._calm_at.pop(key, None)
        return self._put_off.pop(key, None) is not None

    def kept_out(self, now: float) -> Sequence[str]:
        """Return who is put off now, by tenants in turn, of each of them those last who were put off first: some are told alone."""
        of_tenant: dict[str, list[str]] = {}
        for key, one in reversed(self._put_off.items()):
            if now < one.until:
                of_tenant.setdefault(_tenant_of(key), []).append(key)
        return [key for turn in zip_longest(*of_tenant.values()) for key in turn if key is not None]

    def why(self, key: str) -> Excess:
        """Return for what a key was put off last."""
        return self._put_off[key].why

    def put_off(self, now: float) -> Mapping[str, Excess]:
        """Return who is put off, or was a minute ago, and for what; those first who were put off last."""
        return {key: one.why for key, one in reversed(self._put_off.items()) if now < one.until + SLOWED_FOR}

    def _take(self, sent: SentTotals, now: float) -> bool:
        new = self._newly(sent)
        received = new.received if sent.is_answerable else 0
        if new.messages <= 0 and new.bytes <= 0 and received <= 0:
            return False
        if not sent.is_service:
            return self._fill(sent.key, _Level(now, new.messages, new.bytes, received=received), now)
        more = _Level(now, new.messages / _OF_A_SERVICE, new.bytes / _OF_A_SERVICE)
        return self._fill(sent.key, more, now, _AT_ONCE_OF_A_SERVICE / _OF_A_SERVICE)

    def _newly(self, sent: SentTotals) -> SentTotals:
        """Return what a connection has sent, and was sent, since it was seen last."""
        seen, number = self._seen.get(sent.connection.server), sent.connection.number
        before = None if seen is None else seen.totals.get(number)
        if seen is None or (before is None and number <= seen.newest):
            before = sent
        if before is None:
            return sent
        messages, size = sent.messages - before.messages, sent.bytes - before.bytes
        return replace(sent, messages=messages, bytes=size, received=sent.received - before.received)

    def _fill(self, key: str, more: _Level, now: float, part: float = 1.0) -> bool:
        """Put into the buckets of a key, of which a part is used, what was sent; whether it is put off now, and was not before."""
        level = self._levels.setdefault(key, _Level(now))
        past = now - level.at
        level.at = now
        limits = self._limits
        level.messages = max(0.0, level.messages - past * limits.messages.per_second) + more.messages
        level.bytes = max(0.0, level.bytes - past * limits.bytes.per_second) + more.bytes
        level.pulled = max(0.0, level.pulled - past * limits.sent.per_second) + more.pulled
        level.received = max(0.0, level.received - past * limits.sent.per_second) + more.received
        level.uncounted = max(0.0, level.uncounted - past * limits.uncounted.per_second) + more.uncounted
        most_sent = max(level.pulled, level.received)
        sent, size = limits.messages.burst * part, limits.bytes.burst * part
        is_flood = level.messages > sent or level.bytes > size or most_sent > limits.sent.burst
        if not is_flood and level.uncounted <= limits.uncounted.burst:
            return False
        del self._levels[key]
        flood = Excess(FLOOD, int(max(level.messages, most_sent)))
        return self._put_off_for(key, flood if is_flood else Excess(UNCOUNTED, int(level.uncounted / _MB)), now)

    def _held_too_many(self, connections: Sequence[SentTotals]) -> Iterator[Mapping[str, Excess]]:
        """Tell who has too many connections at a server, and who has too many subscriptions."""
        open_now, subscriptions = Counter[str](), Counter[str]()
        for one in (one for one in connections if not one.is_service):
            open_now[one.key] += 1
            subscriptions[one.key] += one.subscriptions
        for family, held, most in zip(
            HELD, (open_now, subscriptions), (self._limits.connections, self._limits.subscriptions), strict=True
        ):
            yield {key: Excess(family, number) for key, number in held.items() if number > most}

    def _put_off_for(self, key: str, why: Excess, now: float) -> bool:
        """Put a key off, for longer than the last time; whether it was not already."""
        is_new = not self.is_put_off(key, now)
        known = self._put_off.pop(key, None)
        times = known.times + is_new if known is not None and known.is_remembered(now) else 1
        pause = max(self._limits.pause, min(_LONGEST_SECONDS, self._limits.pause * 2.0 ** min(times - 1, _MOST_DOUBLINGS)))
        self._put_off[key] = _PutOff(now + pause, why, times)
        return is_new

    def _make_room(self, now: float) -> None:
        """Forget keys whose buckets are empty again, and those that were put off long ago."""
        if len(self._levels) > _MOST_LEVELS:
            self._levels = {key: one for key, one in self._levels.items() if not one.is_empty(self._limits, now)}
        if len(self._put_off) > _MOST_LEVELS:
            self._put_off = {key: one for key, one in self._put_off.items() if one.is_remembered(now)}
            self._put_off = dict(self._newest_of_each_tenant())
            self._calm_at = {key: at for key, at in self._calm_at.items() if key in self._put_off}

    def _newest_of_each_tenant(self) -> Sequence[tuple[str, _PutOff]]:
        """Return who is remembered, those last who were put off last; where they are too many, each tenant has its share."""
        of_tenant = Counter(map(_tenant_of, self._put_off))
        share, taken, newest = _MOST_LEVELS // max(1, len(of_tenant)), Counter[str](), list[tuple[str, _PutOff]]()
        too_many = len(self._put_off) > _MOST_LEVELS
        for key, one in reversed(self._put_off.items()):
            taken[tenant := _tenant_of(key)] += 1
            if not too_many or taken[tenant] <= share:
                newest.append((key, one))
        return newest[::-1]


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
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connections = connections
        self._judge = FloodJudge(limits)
        self._returns = CallerPace(now, RETURNED, _RETURNS)
        self._strangers = CallerPace(now, TURNED_AWAY, _TURNED_AWAY)
        self._read_roster = roster
        self._roster = KeyHolders({}, frozenset())
        self._audit = audit
        self._now = now
        self._chance = chance
        self._to_end: asyncio.Queue[ConnectionId] = asyncio.Queue(_MOST_WAITING)
        self._changed = asyncio.Event()
        self._newly = set[str]()
        self._may_all = True
        self._there = _There()

    async def follow(self) -> None:
        """Look, for ever."""
        async with self._connections.hearing(self), background(self._end()):
            while True:
                self._roster = await self._read_roster()
                self._changed.clear()
                self._end_known()
                may_tell = await self._may(self._connections.keep_out(self._judge.kept_out(self._now())))
                self._may_all = await self._may(self._connections.count()) and may_tell
                with suppress(TimeoutError):
                    async with fail_after(_EVERY_SECONDS + WINDOW_SECONDS * (self._chance() - 0.5)):
                        await self._changed.wait()

    async def _may(self, asking: Awaitable[None]) -> bool:
        """Ask; whether that is allowed. That it is not is said once, and not with each time that it is tried again."""
        try:
            await asking
        except ForbiddenError as error:
            if self._may_all:
                _log.error("floods_not_watched", why=error.message, hint=error.hint)
            return False
        return True

    async def readmit(self, asked: Readmit) -> Acknowledged:
        """Let somebody in again before his time is over."""
        if self._judge.readmit(asked.name):
            _log.info("flood_readmitted", who=asked.name)
            self._audit.note(Deed.READMITTED, who=subjects.BY_ADMIN, target=asked.name)
            self._changed.set()
        return Acknowledged()

    def slowed(self) -> Sequence[SlowedCaller]:
        """Tell who is put off, or was a minute ago, who gives goals back, and from where somebody comes in vain."""
        put_off = self._judge.put_off(self._now()).items()
        named = *self._returns.slowed(), *self._strangers.slowed()
        return [*(SlowedCaller(holder, why.family, why.number) for holder, why in put_off), *named]

    def opened(self, sent: SentTotals) -> None:
        """Count it, and end it if its holder is put off and does not connect without end."""
        holder, now = self._by_holder(self._there.opened(sent)), self._now()
        if holder.key:
            self._note(self._judge.opened(holder.key, now, is_service=holder.is_service))
        if self._judge.ends_at_once(holder.key, now):
            self._put(sent.connection)

    def closed(self, sent: SentTotals) -> None:
        """Count what it had sent: who connects anew again and again is no other."""
        known = self._there.closed(sent)
        if known is not None and (holder := self._by_holder(known)).key:
            self._note(self._judge.closed(holder, self._now()))

    def counted(self, server: str, connections: Sequence[SentTotals]) -> None:
        """Judge, and end what is there of those who are put off."""
        now = self._now()
        known = self._there.counted(server, connections)
        drowning = self._judge.drowning(known)
        listed = [self._by_holder(one) for one in known]
        self._note(self._judge.counted(server, listed, now))
        for one in listed:
            if self._judge.is_put_off(one.key, now) or one.connection in drowning:
                self._put(one.connection)
        for connection, told_by in self._there.taken_unknown():
            self.traced(connection, told_by)

    def glanced(self, server: str, connections: Sequence[SentTotals], at_seconds: float) -> None:
        """Remember what those had who are judged."""
        known = [self._by_holder(self._there.as_known(one)) for one in connections]
        self._judge.glanced(server, [one for one in known if one.key], at_seconds)

    def pulling(self, key: str, messages: int, told_by: TenantId | None = None) -> None:
        """Count what is sent for few requests: each of them costs the server much.

        No tenant tells of another's agents, nor of any that are not there: those have a key, or are guests who are connected.
        """
        name = self._roster.names.get(key, key)
        is_told_of = told_by is None or (name.startswith(full_name(told_by, "")) and self._is_there(key))
        if key not in self._roster.trusted and is_told_of:
            self._note(self._judge.pulled(name, messages, self._now()))

    def refused(self, user: UserId, goals: int, told_by: TenantId | None) -> None:
        """Count each goal as much as one that is given back."""
        self._cost(user, _OF_A_REFUSED_GOAL * goals, told_by)

    def searched(self, user: UserId, messages: int, told_by: TenantId | None = None) -> None:
        """Count what his goals have the server search."""
        self._cost(user, messages, told_by)

    def traced(self, connection: ConnectionId, told_by: TenantId | None = None) -> None:
        """Put its holder off, and end it at once: each more message of it has others wait. No tenant tells of another's."""
        sent = self._there.holder_of(connection)
        if sent is None:
            self._there.keep_unknown(connection, told_by)
        elif (key := self._by_holder(sent).key) and told_by in (None, sent.tenant):
            self._put(connection)
            self._note(self._judge.traced(key, self._now()))
            self._changed.set()

    def uncounted(self, connection: ConnectionId, size: int, told_by: TenantId | None = None) -> None:
        """Count it to the holder of the connection. Gates tell of it, and no tenant; who is not known yet is told of again."""
        sent = self._there.holder_of(connection)
        if told_by is None and sent is not None and (key := self._by_holder(sent).key):
            self._note(self._judge.uncounted(key, size, self._now(), is_service=sent.is_service))

    def turned_away(self, host: str) -> None:
        """Count it, to name the address, or network of IPv6: who comes by no key that lets in has no name."""
        if network := network_of(host):
            self._strangers.count(network)

    def gave_back(self, key: str) -> None:
        """Count it, to name who gives back many more goals than one does that stops, or has lost what it needs."""
        self._returns.count(self._roster.names.get(key, key))

    def _cost(self, user: UserId, messages: int, told_by: TenantId | None) -> None:
        """Count so many messages to a user who is there by a key or a token of his own, and to no agent of that name."""
        by_key, by_token = full_name(told_by, user), full_name(told_by, f"user:{user}")
        for name, is_there in ((by_key, by_key in self._roster.users), (by_token, self._is_there(by_token))):
            if is_there:
                self._note(self._judge.pulled(name, messages, self._now()))

    def _is_there(self, key: str) -> bool:
        return key in self._roster.names or self._there.is_there(key)

    def _end_known(self) -> None:
        """End what is known of the connections of those who are newly put off.

        The next list of them may be long in coming: it waits behind what else the server says itself, as the answers to what a
        flood asks.
        """
        holders, self._newly = self._newly, set()
        for sent in self._there.all() if holders else ():
            if self._roster.names.get(sent.key, sent.key) in holders:
                self._put(sent.connection)

    def _note(self, holders: Iterable[str]) -> None:
        for holder in holders:
            self._newly.add(holder)
            why = self._judge.why(holder)
            floods.inc()
            _log.warning("flood_put_off", who=holder, why=why.family, number=why.number)
            self._audit.note(Deed.SLOWED, who=holder, target=why.family)
            self._changed.set()

    def _put(self, connection: ConnectionId) -> None:
        if not self._to_end.full():
            self._to_end.put_nowait(connection)

    async def _end(self) -> None:
        while True:
            await self._connections.end(await self._to_end.get())
            ended.inc()

    def _by_holder(self, sent: SentTotals) -> SentTotals:
        """Return what was sent by the name of who sent it, under whichever of his keys; observers have no name but their key.

        By none is what those have sent who act for others.
        """
        return replace(sent, key="" if sent.key in self._roster.trusted else self._roster.names.get(sent.key, sent.key))


class _There:
    """Whose the connections of each server are, that are judged: those that are open, and the last ones that were.

    It is whose a connection was when it was heard of first: as it was opened, or in a list, where nobody heard that. Of one that
    had ended before the list it stays unknown: what else is told of it may be what somebody merely says.
    """

    def __init__(self) -> None:
        self._open = OfServers[dict[int, SentTotals]]()
        self._keys = OfServers[frozenset[str]]()
        """The keys of whose holders a server had connections when it was asked last."""
        self._gone: dict[ConnectionId, SentTotals] = {}
        self._unknown = defaultdict[TenantId | None, dict[ConnectionId, None]](dict)
        """By who tells: no tenant pushes out of whom others have told."""

    def opened(self, sent: SentTotals) -> SentTotals:
        """Take in that somebody was let in, and return whose the connection is."""
        found = self._open.get(sent.connection.server) or {}
        known = found.setdefault(sent.connection.number, sent)
        self._open.put(sent.connection.server, found)
        return known

    def closed(self, sent: SentTotals) -> SentTotals | None:
        """Take in that a connection has ended, and return whose it was, if that is known."""
        if self.holder_of(sent.connection) is None:
            return None
        self._gone[sent.connection] = known = self.as_known(sent)
        (self._open.get(sent.connection.server) or {}).pop(sent.connection.number, None)
        _make_room_in(self._gone)
        return known

    def counted(self, server: str, connections: Sequence[SentTotals]) -> Sequence[SentTotals]:
        """Take in which connections a server has, that is asked each second, and return whose they are.

        Of those that it does not list some have ended, whose ends may be heard later, and some came when the list was made. Of a
        server that stays away all are forgotten at last.
        """
        known = [self.as_known(one) for one in connections]
        open_now = {one.connection.number: one for one in known if one.key}
        newest = max((one.connection.number for one in known), default=0)
        for number, one in (self._open.get(server) or {}).items():
            if number > newest:
                open_now[number] = one
            elif number not in open_now:
                self._gone[one.connection] = one
        _make_room_in(self._gone)
        self._open.put(server, open_now)
        self._keys.put(server, frozenset(one.key for one in open_now.values()))
        return known

    def as_known(self, sent: SentTotals) -> SentTotals:
        """Return what was sent as by whose the connection is, whatever is said of that now."""
        if (known := self.holder_of(sent.connection)) is None:
            return sent
        is_answerable = sent.is_answerable and not known.is_service
        whose = replace(sent, key=known.key, tenant=known.tenant, is_agent=known.is_agent, is_service=known.is_service)
        return replace(whose, is_answerable=is_answerable)

    def all(self) -> Iterator[SentTotals]:
        """Return what the connections had sent when they were seen last, that are open."""
        return chain.from_iterable(open_now.values() for open_now in self._open.all())

    def is_there(self, key: str) -> bool:
        """Whether the holder of a key was there when it was asked last."""
        return any(key in keys for keys in self._keys.all())

    def holder_of(self, connection: ConnectionId) -> SentTotals | None:
        """Return whose a connection is, or was."""
        return (self._open.get(connection.server) or {}).get(connection.number) or self._gone.get(connection)

    def keep_unknown(self, connection: ConnectionId, told_by: TenantId | None) -> None:
        """Remember of whom was told before he was seen."""
        self._unknown[told_by][connection] = None
        _make_room_in(self._unknown[told_by])

    def taken_unknown(self) -> Sequence[tuple[ConnectionId, TenantId | None]]:
        """Take those who are seen by now."""
        told = [(one, told_by) for told_by, ones in self._unknown.items() for one in ones]
        seen = [(one, told_by) for one, told_by in told if self.holder_of(one) is not None]
        for one, told_by in seen:
            del self._unknown[told_by][one]
        return seen


def _make_room_in(remembered: dict[ConnectionId, Remembered]) -> None:
    while len(remembered) > _MOST_GONE:
        del remembered[next(iter(remembered))]


def _tenant_of(key: str) -> str:
    """Read off a full name which tenant's it is; empty for the tenant without a name, and for a public key."""
    return key.rpartition("/")[0]
