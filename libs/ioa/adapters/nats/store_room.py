"""What is left of the store that all share, and whose the goals are that wait in it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

import structlog
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from ioa.adapters.nats.direct_gets import StreamMessage
from ioa.adapters.nats.headers import header_bytes
from ioa.adapters.nats.keys import stream_of
from ioa.adapters.nats.streams import StreamSize, next_messages, stored_in
from ioa.adapters.nats.topology import GOAL_RECORDS, GOALS, LOG, TEAMS
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.cancellation import TaskGroup
from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.store_room import GOAL_SUBJECTS, StoreRoom
from ioa.protocol import subjects
from ioa.protocol.ids import UserId

_COUNTED_FOR = timedelta(seconds=1)
"""How long it is believed how much room there is."""
_LOOKED_AT, _AT_ONCE = 48, 4
"""How many goals that wait are looked at to tell whose they are, and how many side by side: each may have 256 kB."""
_STEPS = 32
"""In how many steps each is found at most, of which every second one halves where it may lie."""
_MOST_READ = 96
"""Behind how many steps together no more are looked for: who leaves gaps between goals can have each of them take many."""
_RECORD_BYTES = 30
"""What the server counts of each besides its subject, headers and data."""
_NOT_FOUND = "\x7f"
"""A byte by which nats-server finds no subject: a goal on such a one is stored, and given to nobody."""

_log = structlog.get_logger(__name__)


def stored_bytes(subject: str, data: bytes, headers: Mapping[str, str]) -> int:
    """Return about how many bytes the server counts of a message."""
    return _RECORD_BYTES + len(subject.encode()) + len(data) + header_bytes(headers)


class LookedAtRoom:
    """Room that is looked at when somebody asks, once a second at most; else, and if nobody answers, what is known is believed.

    Args:
        count: Asks the server; `UnavailableError` is no answer.
    """

    def __init__(self, count: Callable[[], Awaitable[StoreRoom | None]]) -> None:
        self._count = count
        self._counted_until = 0.0
        self._known: StoreRoom | None = None

    async def look(self) -> StoreRoom | None:
        """Tell how much there is; None is no bound."""
        now = time.monotonic()
        if self._counted_until <= now:
            self._counted_until = now + _COUNTED_FOR.total_seconds()
            with suppress(UnavailableError):
                self._known = await self._count()
        return self._known

    def take(self, size: int) -> None:
        """Take so many bytes off, until it is looked at anew."""
        if self._known is not None:
            self._known = self._known._replace(free_bytes=self._known.free_bytes - size)


class NatsSharedStore:
    """A `SharedStore` in the account of a connection.

    Args:
        client: The connection.
        store_bytes: How much the account may store; None is no bound.
        replicas: Of how many copies each is counted.
    """

    def __init__(self, client: Client, store_bytes: int | None, replicas: int) -> None:
        self._client = client
        self._store_bytes = store_bytes
        self._replicas = replicas
        self._room = LookedAtRoom(self._count)

    async def room(self) -> StoreRoom | None:
        """Ask for what the account stores, and what the logs do. Of subjects those count that somebody is charged with."""
        return await self._room.look()

    async def _count(self) -> StoreRoom | None:
        if self._store_bytes is None:
            return None
        with unavailable_unless_answered("JetStream"):
            account = await self._client.jetstream().account_info()
            log, goals, teams = [await stored_in(self._client, name) for name in (LOG, stream_of(GOAL_RECORDS), stream_of(TEAMS))]
        of_logs = max(0, log.most_bytes - log.stored_bytes)
        of_subjects = GOAL_SUBJECTS * goals.subject_bytes + teams.subject_bytes
        free_bytes = self._store_bytes - account.storage // self._replicas - of_logs - of_subjects
        return StoreRoom(free_bytes, self._store_bytes, of_subjects)


class _Look(NamedTuple):
    """What was found in looking for one message: itself, those on the way that nobody is ever given, and how many were read."""

    found: StreamMessage | None
    lost: Sequence[StreamMessage]
    read: int


class NatsWaitingGoals:
    """The stream `IOA_ORDERS`. nats-server counts bytes by stream alone, so that whose they are is told by some of its messages.

    Args:
        client: The connection.
        chosen: Returns a whole number from one to another; at random, so that nobody places what is looked at.
    """

    def __init__(self, client: Client, chosen: Callable[[int, int], int] = random.randint) -> None:
        self._client = client
        self._js = client.jetstream()
        self._chosen = chosen

    async def room(self) -> StoreRoom | None:
        """Ask the stream."""
        stored = await self._stored()
        most, of_subjects = stored.most_bytes, stored.subject_bytes
        return StoreRoom(most - stored.stored_bytes - of_subjects, most, of_subjects) if most else None

    async def held(self) -> Mapping[UserId, int]:
        """Look at some messages, and reckon that all are like those."""
        stored, read = await self._stored(), 0
        seen, on = Counter[UserId](), dict[str, UserId]()
        for _ in range(0, _LOOKED_AT, _AT_ONCE):
            chosen = [self._chosen(0, max(0, stored.messages - 1)) for _ in range(_AT_ONCE)]
            async with TaskGroup() as group:
                finds = [group.create_task(self._find(number, stored)) for number in chosen]
            looks = [find.result() for find in finds]
            lost = {one.seq: one for look in looks for one in look.lost}
            for message in [*(look.found for look in looks if look.found), *lost.values()]:
                with suppress(InvalidInputError):
                    user = subjects.parse_goal_subject(message.subject)[0]
                    seen[user] += stored_bytes(message.subject, message.data, message.headers)
                    on[message.subject] = user
                if _NOT_FOUND in message.subject:
                    await self._remove(message.seq)
            read += sum(look.read for look in looks)
            if read > _MOST_READ:
                break
            stored = await self._stored()
        subjects_of = Counter(on.values())
        return {
            user: stored.stored_bytes * size // seen.total() + stored.subject_bytes * subjects_of[user] // len(on)
            for user, size in seen.items()
        }

    async def _stored(self) -> StreamSize:
        with unavailable_unless_answered("The stream of goals"):
            return await stored_in(self._client, GOALS)

    async def _find(self, number: int, stored: StreamSize) -> _Look:
        """Look for the message that so many others lie before.

        The server tells with each how many lie behind it: by that it is found, by interpolation or halving. One at a sequence
        chosen at random, or the next one, would be looked at more often the more are gone in front of it: so it was that of who
        waits behind most. Of messages that nobody is ever given the server leaves some out, so that those before them seem to lie
        further back: what is not found exactly is no sample.
        """
        (begin, before), (end, until) = (stored.first_seq, 0), (stored.last_seq + 1, stored.messages)
        lost: list[StreamMessage] = []
        read = 0
        while read < _STEPS and before <= number < until and begin < end:
            seq = (begin + end) // 2 if read % 2 else begin + (end - begin) * (number - before) // (until - before)
            page = await next_messages(self._client, GOALS, ">", after=seq - 1, limit=1)
            read += 1
            if not page.messages:
                break
            message, place = page.messages[0], stored.messages - 1 - page.pending
            if _NOT_FOUND in message.subject:
                lost.append(message)
            elif place == number:
                return _Look(message, lost, read)
            if place < number:
                begin, before = message.seq + 1, place + 1
            else:
                end, until = seq, place
        return _Look(None, lost, read)

    async def _remove(self, seq: int) -> None:
        """Remove a goal that nobody is ever given; what cannot be removed is counted all the same."""
        with suppress(NotFoundError):
            try:
                with unavailable_unless_answered("The stream of goals"):
                    await self._js.delete_msg(GOALS, seq)
            except UnavailableError as error:
                _log.warning("goal_not_removed", seq=seq, error=error.message)
