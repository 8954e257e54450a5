"""What is left of the store that all share, and whose the goals are that wait in it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta

import structlog
from nats.aio.client import Client
from nats.js.api import RawStreamMsg
from nats.js.errors import NotFoundError

from ioa.adapters.nats.headers import header_bytes
from ioa.adapters.nats.keys import stream_of
from ioa.adapters.nats.streams import Stored, all_stored, stored_in
from ioa.adapters.nats.topology import ENDED, GOALS, LOG
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.store_room import StoreRoom
from ioa.protocol import subjects
from ioa.protocol.ids import UserId

_COUNTED_FOR = timedelta(seconds=1)
"""How long it is believed how much room there is."""
_ASKED_FOR = timedelta(seconds=0.5)
"""How long whoever asks first waits at most, and no other: JetStream answers such requests in one line, appends pass it by."""
_LOOKED_AT, _AT_ONCE = 48, 4
"""How many goals that wait are looked at to tell whose they are, and how many side by side: each may have 256 kB."""
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
            with suppress(UnavailableError, TimeoutError):
                async with fail_after(_ASKED_FOR.total_seconds()):
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
        """Ask for what the account stores, and what the logs do.

        Subjects of streams that have bounds of their own count there, and those of ids that are kept for ever do nowhere: nobody
        could make room among them.
        """
        return await self._room.look()

    async def _count(self) -> StoreRoom | None:
        if self._store_bytes is None:
            return None
        with unavailable_unless_answered("JetStream"):
            account = await self._client.jetstream().account_info()
            streams = await all_stored(self._client)
        if (log := streams.get(LOG)) is None:
            raise UnavailableError("The stream of group logs does not answer.")
        of_logs = max(0, log.most_bytes - log.stored_bytes)
        of_subjects = sum(one.subject_bytes for name, one in streams.items() if not one.most_bytes and name != stream_of(ENDED))
        free_bytes = self._store_bytes - account.storage // self._replicas - of_logs - of_subjects
        return StoreRoom(free_bytes, self._store_bytes, of_subjects)


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
        stored = await self._stored()
        seen, on = Counter[UserId](), dict[str, UserId]()
        for _ in range(0, _LOOKED_AT, _AT_ONCE):
            places = [self._chosen(stored.first_seq, max(stored.first_seq, stored.last_seq)) for _ in range(_AT_ONCE)]
            async with TaskGroup() as group:
                looks = [group.create_task(self._look(place)) for place in places]
            for message in filter(None, (look.result() for look in looks)):
                subject = message.subject or ""
                with suppress(InvalidInputError):
                    user = subjects.parse_goal_subject(subject)[0]
                    written = len(subject.encode()) + len(message.data or b"") + len(message.hdrs or b"")
                    seen[user] += _RECORD_BYTES + written
                    on[subject] = user
                if _NOT_FOUND in subject:
                    await self._remove(message.seq or 0)
        subjects_of = Counter(on.values())
        return {
            user: stored.stored_bytes * size // seen.total() + stored.subject_bytes * subjects_of[user] // len(on)
            for user, size in seen.items()
        }

    async def _stored(self) -> Stored:
        with unavailable_unless_answered("The stream of goals"):
            return await stored_in(self._client, GOALS)

    async def _look(self, seq: int) -> RawStreamMsg | None:
        with unavailable_unless_answered("The stream of goals"):
            try:
                return await self._js.get_msg(GOALS, seq=seq, subject=f"{subjects.OLD_GOAL}.>", next=True)
            except NotFoundError:
                return None

    async def _remove(self, seq: int) -> None:
        """Remove a goal that nobody is ever given; what cannot be removed is counted all the same."""
        with suppress(NotFoundError):
            try:
                with unavailable_unless_answered("The stream of goals"):
                    await self._js.delete_msg(GOALS, seq)
            except UnavailableError as error:
                _log.warning("goal_not_removed", seq=seq, error=error.message)
