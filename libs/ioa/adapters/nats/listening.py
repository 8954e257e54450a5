"""Listening to requests, and closing the door on whoever floods them.

What is refused here has cost its way here already: one connection of a hostile caller sends several times of what a process can
read, and whatever else comes over that process's connection waits behind it. The server takes no rates, but it knows who listens
to what, and how much of it is wanted. So a subscription is for so many messages and is renewed in time, which bounds what can be on
its way; and one that somebody floods is not, but callers are listened to by their names, all but that one. The server then drops
the flood before it gets here, and tells who sends it that nobody answers. From time to time a few messages show whether it is over.

A connection may have so many subscriptions and no more. Where callers times subjects are too many, a subject is listened to as a
whole, now and then, until its flood is over: those who are known to flood are told of to who can end them (`flood_tellers`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain, repeat
from weakref import WeakKeyDictionary

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from ioa.adapters.nats.authorization import SUBSCRIPTIONS_BESIDES
from ioa.adapters.nats.sinks import MessageSink
from ioa.cancellation import fail_after, heeding_cancellation
from ioa.protocol.ids import is_token

_WANTED = 1_000
"""How many messages a subscription is for. It is renewed at half of them. So many of a flood may be on their way, and the server
keeps them until they are answered; a router that has all that it can do, 5,000 messages a second, renews ten times a second."""
_WANTED_OF_RARE = 600
"""How many it is for where callers ask now and then: more than it takes to see that one floods."""
_MOST_SINGLY = SUBSCRIPTIONS_BESIDES // 2
"""How many callers are listened to by their names over one connection, on all subjects together: half of the subscriptions that a
tenant's service has beside those for its goals, since each takes two while one is renewed."""
_FEW = 500
"""How many show whether a flood is over."""
_CLOSED_SECONDS = (5.0, 10.0, 20.0, 40.0)
"""How long somebody is closed out, each time that the flood has not ended; the last as often as it takes."""
_LOOK_SECONDS = 1.0
"""How long it is looked whether a flood is over, and how often for new callers while it is not."""
_WANTED_EVERY_SECONDS, _WANTED_PART = 0.05, 10
"""How often messages are wanted anew where so many in half a second are wanted and no more, and which part of them at a time. Who
asks between others' flood is heard by chance, so that he must have many of them."""
_REST_SECONDS = 0.2
"""How long nobody is listened to where the server has written in a sender's place. Who asks meanwhile hears that nobody listens,
and asks again. After it one message is listened to, and to the others if that is not another such one."""
_NO_AGENT = "_"
"""What the names of callers begin with that are no agents."""

_log = structlog.get_logger(__name__)


class _Subscriptions:
    """Subscriptions to one subject, each for so many messages, one after the other for as long as they are renewed."""

    def __init__(
        self,
        client: Client,
        subject: str,
        queue: str,
        take: Callable[[Msg], None],
        group: asyncio.TaskGroup,
        *,
        renewed_at: int = _WANTED // 2,
    ) -> None:
        self._client = client
        self._subject = subject
        self._queue = queue
        self._take = take
        self._group = group
        self._renewed_at = renewed_at
        self._standing: list[Subscription] = []
        self._left = 0
        self.renews = True

    @property
    def is_used_up(self) -> bool:
        """Whether all messages have come, and no more are to."""
        return not self._left

    async def add(self, wanted: int) -> None:
        """Want so many more messages."""
        self._left += wanted
        with suppress(nats.errors.ConnectionClosedError, nats.errors.ConnectionDrainingError):
            subscription = await self._client.subscribe(self._subject, queue=self._queue, future=MessageSink(self._receive))
            await subscription.unsubscribe(limit=wanted)
            self._standing = [*(one for one in self._standing if one._received < one._max_msgs), subscription]

    async def renew_now_and_then(self, most: int) -> None:
        """Want a part of `most` messages again once half of them have come, so that so many come in half a second, for ever."""
        while True:
            await asyncio.sleep(_WANTED_EVERY_SECONDS)
            if self._left <= most // 2:
                await self.add(-(-most // _WANTED_PART))

    async def aclose(self, *, drain: bool) -> None:
        """Want nothing more; take what the server has sent already, if that is to be waited for."""
        self.renews = False
        for subscription in self._standing:
            with heeding_cancellation(), suppress(nats.errors.Error, OSError, TimeoutError):
                await (subscription.drain() if drain else subscription.unsubscribe())  # type: ignore[no-untyped-call]
            self._client._remove_sub(subscription._id)  # else a renewed connection would have it again

    def _receive(self, message: Msg) -> None:
        self._left -= 1
        if self.renews and self._left == self._renewed_at:
            self._group.create_task(self.add(2 * self._renewed_at))
        self._take(message)


class _Singly:
    """Whom the `Listener`s of one connection listen to by their names."""

    def __init__(self) -> None:
        self.left = _MOST_SINGLY


_singly_of: WeakKeyDictionary[Client, _Singly] = WeakKeyDictionary()


class Listener:
    """Listens to a subject: to everybody or, during a flood, to each known caller but who floods, if there are not too many.

    Args:
        client: The connection.
        subject: Where requests come, with wildcards.
        queue: The queue group, among whose members requests are shared out.
        caller_at: Which token of the subject is the caller; None if no caller is named, and no flood ever closed out.
        known: Returns the callers to listen to during a flood.
        group: Runs what looks after it all.
        at_most: How many messages are wanted in half a second, of all callers together; the server drops what is beyond. None: all.
        is_rare: Whether honest callers ask now and then: fewer messages are on their way, where all replicas of all services hear
            each, so that a flood costs as many times as much.
    """

    def __init__(
        self,
        client: Client,
        subject: str,
        queue: str,
        caller_at: int | None,
        known: Callable[[], Iterable[str]],
        group: asyncio.TaskGroup,
        at_most: int | None = None,
        *,
        is_rare: bool = False,
    ) -> None:
        self._client = client
        self._subject = subject
        self._queue = queue
        self._wanted = _WANTED_OF_RARE if is_rare else _WANTED
        self._caller_at = caller_at
        self._known = known
        self._group = group
        self._at_most = at_most
        self._renewing: asyncio.Task[None] | None = None
        self._take: Callable[[Msg], None] = _ignore
        self._everybody: _Subscriptions | None = None
        self._each: dict[str, _Subscriptions] = {}
        self._singly = _singly_of.setdefault(client, _Singly())
        self._amid: tuple[_Subscriptions, asyncio.Task[None]] | None = None
        """By what everybody is listened to amid a flood, where known callers are too many, and what renews it."""
        self._flooding: set[str] = set()
        self._noticed = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        self._rests = self._is_closed = False

    async def open(self, take: Callable[[Msg], None]) -> None:
        """Give what comes from everybody to `take`, which must not block."""
        self._take = take
        await self._listen_to_everybody()

    def rest(self) -> None:
        """Listen to nobody for a moment: more messages as large as what just came would have the connection ended."""
        if not (self._flooding or self._rests or self._is_closed):
            self._rests = True
            self._resting = self._group.create_task(self._rest(self._resting))

    def close_out(self, caller: str) -> None:
        """Listen to who floods the subject no more until that is over."""
        if caller in self._flooding:
            return
        self._flooding.add(caller)
        for subscriptions in (self._everybody, self._each.get(caller)):
            if subscriptions is not None:
                subscriptions.renews = False
        self._noticed.set()
        if self._closing is None or self._closing.done():
            self._closing = self._group.create_task(self._keep_closed())

    async def aclose(self) -> None:
        """Take what has come, and nothing more."""
        self._is_closed = True
        for task in (self._closing, self._resting):
            await _end(task)
        await _end(self._renewing)  # which the others may have begun anew
        if self._everybody is not None:
            await self._everybody.aclose(drain=True)
        await self._end_amid()
        for name in list(self._each):
            await self._end_single(name, drain=True)

    async def _rest(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        if self._renewing is not None:
            self._renewing.cancel()
        if self._everybody is not None:
            await self._everybody.aclose(drain=True)
        await asyncio.sleep(_REST_SECONDS)
        self._rests = False
        if not self._flooding:
            self._everybody = _Subscriptions(self._client, self._subject, self._queue, self._take_first, self._group)
            await self._everybody.add(1)

    def _take_first(self, message: Msg) -> None:
        """Take the first message after a rest, and listen to everybody unless it has brought another one."""
        self._take(message)
        if not (self._flooding or self._rests or self._is_closed):
            self._resting = self._group.create_task(self._listen_to_everybody())

    async def _listen_to_everybody(self) -> None:
        self._everybody = await self._listen(self._subject, self._at_most)
        if self._at_most is not None:
            self._renewing = self._group.create_task(self._everybody.renew_now_and_then(self._at_most))

    async def _keep_closed(self) -> None:
        all_seconds = chain(_CLOSED_SECONDS, repeat(_CLOSED_SECONDS[-1]))
        while self._flooding:  # another one may begin to whenever this waits
            if self._everybody is not None:
                self._everybody.renews = False
            seconds = next(all_seconds)
            _log.warning("flood_closed_out", subject=self._subject, callers=sorted(self._flooding), seconds=seconds)
            await self._stay_closed(seconds)
            for name in tuple(self._flooding):
                if not await self._is_flooding(name):
                    self._flooding.discard(name)
            if not self._flooding:
                self._everybody = await self._listen(self._subject)
                await self._end_amid()
                for name in list(self._each):
                    await self._end_single(name)

    async def _stay_closed(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            self._noticed.clear()
            for name in self._flooding & self._each.keys():
                await self._end_single(name)
            new = set(self._known()) - self._flooding - self._each.keys()
            unheard = [name for name in new if is_token(name.removeprefix(_NO_AGENT))]
            if len(unheard) <= self._singly.left:
                await self._listen_singly(unheard)
                await self._end_amid()
            elif self._amid is None:
                await self._listen_amid_flood()
            with suppress(TimeoutError):
                async with fail_after(min(_LOOK_SECONDS, max(0.0, until - loop.time()))):
                    await self._noticed.wait()

    async def _listen_singly(self, names: Iterable[str]) -> None:
        """Listen to callers by their names, all of whom are counted before another subject's listener looks how many are left."""
        singles = {name: self._subscriptions(self._subject_of(name)) for name in names}
        self._singly.left -= len(singles)
        self._each |= singles
        for single in singles.values():
            await single.add(self._wanted)

    async def _listen_amid_flood(self) -> None:
        """Listen to everybody, to a part of what may come in half a second at a time, and to nobody by his name."""
        _log.warning("flood_heard_in_part", subject=self._subject, callers=sorted(self._flooding))
        amid = self._subscriptions(self._subject)
        amid.renews = False
        self._amid = amid, self._group.create_task(amid.renew_now_and_then(self._wanted))
        await amid.add(self._wanted)
        for name in list(self._each):
            await self._end_single(name)

    async def _end_amid(self) -> None:
        if self._amid is not None:
            (amid, renewing), self._amid = self._amid, None
            await _end(renewing)
            await amid.aclose(drain=True)

    async def _end_single(self, name: str, *, drain: bool = False) -> None:
        self._singly.left += 1
        await self._each.pop(name).aclose(drain=drain)

    async def _is_flooding(self, caller: str) -> bool:
        """Listen to a few messages of who flooded; whether all of them come at once."""
        few = _Subscriptions(self._client, self._subject_of(caller), self._queue, self._take, self._group)
        few.renews = False
        await few.add(_FEW)
        await asyncio.sleep(_LOOK_SECONDS)
        await few.aclose(drain=False)
        return few.is_used_up

    def _subject_of(self, caller: str) -> str:
        tokens = self._subject.split(".")
        assert self._caller_at is not None
        tokens[self._caller_at] = caller
        return ".".join(tokens)

    async def _listen(self, subject: str, at_most: int | None = None) -> _Subscriptions:
        subscriptions = self._subscriptions(subject)
        await subscriptions.add(at_most or self._wanted)
        return subscriptions

    def _subscriptions(self, subject: str) -> _Subscriptions:
        renewed_at = self._wanted // 2
        return _Subscriptions(self._client, subject, self._queue, self._take, self._group, renewed_at=renewed_at)


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _ignore(_message: Msg) -> None:
    """Stand for what takes messages until there is something."""
