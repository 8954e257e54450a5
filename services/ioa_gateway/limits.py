"""What one key, and all together, may use up of one gateway."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from ioa.errors import RateLimitedError
from ioa.fair_semaphore import FairSemaphore
from ioa.protocol.ids import UserId
from ioa.rate_limit import RateLimit, RateLimiter
from ioa_gateway.callers import Caller

LAUNCHES_A_MINUTE, TEAMS_A_MINUTE, WEBHOOKS_A_MINUTE, SIGN_OUTS_A_MINUTE, STREAMS = 60, 60, 60, 60, 50
STREAMS_OF_USER, REQUESTS_OF_USER = 1_000, 400
"""What one user follows and waits for by all keys, and how many of his requests are under way: of 2,000 connections others have
the rest."""
BODIES, ALL_BODIES = 2, 8
"""How many large messages of one user, and of all, are held at a time, each of 20 MB at the most."""
HELD_BYTES, ALL_HELD_BYTES = 10_000_000, 40_000_000
"""How many bytes of bodies of one user, and of all, are held while they are answered: what is read of one takes several times as
much, and some calls wait for minutes."""
FILES_OF_USER, FILES = 60, 240
"""How many files of one user, and of all, are taken in or handed out at a time: each has pieces in memory, and whoever sends or
reads it may be slow."""
COMING = 100
"""How many bodies of one user, of whatever size, may be on their way at a time: each holds a connection."""
MAX_PAGE_READS, DRAWINGS = 16, 1
"""Concurrent reads of pages of entries, goals and lists; and of drawn files."""
ORDERS = 1
"""Request bodies that may contain a team, or use A2A 0.3, that are parsed at once."""
PUTS, PUTS_OF_USER = 8, 2
"""How many teams are put at a time, of all and of one user: in memory one is forty times as large as it was sent."""
SEATS, SEATS_OF_USER = 16, 4
SEATS_RATE = RateLimit(5, 50)
"""How many requests in the names of people are answered at a time, of all and by keys of one user, and how often one key may ask in
that of one person: group setup and routers bound what comes of the person, by whichever key, and name him."""
TOLD, TOLD_USER = 4, 1
"""How many requests by MCP that are no calls, such as lists of tools, are answered at a time, of all and of one user."""
WHOLE_FILES, WHOLE_FILES_OF_USER = 4, 1
"""How many files are handed out by MCP at a time, of all and of one user: each is written as JSON in one piece, which takes eight
times as much of memory until it is sent."""
ANSWER_BYTES, ALL_ANSWER_BYTES = 2_000_000, 8_000_000
"""How many bytes of answers of tools of MCP of one user, and of all, are kept until they are sent: up to twenty times as much of
memory."""
SHORT_ANSWER_BYTES = 4_000
_A_MINUTE = 60
_COLLECTED_BYTES = 1_000_000
"""After how many bytes of bodies that were answered it is looked what of them is garbage."""


class CallerLimits:
    """Counts by key.

    Args:
        clock: Seconds of a clock that never goes back.

    Attributes:
        pages: Limits concurrent reads of pages, served round-robin by user.
        orders: Whose body is read that takes long, such as one that may hold a team.
        puts: Whose team is put.
        seats: By whose key somebody asks in the name of a person.
        drawings: Whose file is drawn.
        told: Who is told by MCP what there is.
        whole_files: Whose file is handed out by MCP.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._launches, self._teams = _a_minute(LAUNCHES_A_MINUTE), _a_minute(TEAMS_A_MINUTE)
        self._webhooks = _a_minute(WEBHOOKS_A_MINUTE)
        self._sign_outs, self._seats = _a_minute(SIGN_OUTS_A_MINUTE), RateLimiter(SEATS_RATE)
        self.seats = FairSemaphore(SEATS, SEATS_OF_USER)
        self.pages = FairSemaphore(MAX_PAGE_READS)
        self.orders, self.puts = FairSemaphore(ORDERS, ORDERS), FairSemaphore(PUTS, PUTS_OF_USER)
        self.drawings, self.told = FairSemaphore(DRAWINGS, DRAWINGS), FairSemaphore(TOLD, TOLD_USER)
        self.whole_files = FairSemaphore(WHOLE_FILES, WHOLE_FILES_OF_USER)
        self._streams: Counter[str] = Counter()
        self._streams_of: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        self._bodies: Counter[str] = Counter()
        self._coming: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()
        self._left = 0

    def check_launch(self, key_id: str) -> None:
        """Count a launch.

        Raises:
            RateLimitedError: There were too many in the last minute.
        """
        self._check_rate(self._launches, key_id, f"This key launches more than {LAUNCHES_A_MINUTE} goals a minute.")

    def check_team(self, key_id: str) -> None:
        """Count a team that is to be put.

        Raises:
            RateLimitedError: There were too many in the last minute.
        """
        self._check_rate(self._teams, key_id, f"This key puts more than {TEAMS_A_MINUTE} teams a minute.")

    def check_webhook(self, key_id: str) -> None:
        """Count a webhook that is to be made, before its name is looked up, which takes time of whoever asks for nothing.

        Raises:
            RateLimitedError: There were too many in the last minute.
        """
        self._check_rate(self._webhooks, key_id, f"This key makes more than {WEBHOOKS_A_MINUTE} webhooks a minute.")

    def check_sign_out(self, key_id: str) -> None:
        """Count a session of a key that is to end before its time, which is written down, and read by all gateways.

        Raises:
            RateLimitedError: There were too many in the last minute.
        """
        self._check_rate(self._sign_outs, key_id, f"This key ends more than {SIGN_OUTS_A_MINUTE} sessions a minute.")

    def check_seat(self, key_id: str, person: str) -> None:
        """Count what a key asks in the name of a person.

        Raises:
            RateLimitedError: It has asked too often lately.
        """
        too_many = f"This key asks more than {SEATS_RATE.per_second:g} times a second for {person}."
        self._check_rate(self._seats, f"{key_id} {person}", too_many)

    def _check_rate(self, limiter: RateLimiter, key: str, too_many: str) -> None:
        retry_after = limiter.acquire(key, self._clock())
        if retry_after:
            raise RateLimitedError(too_many, retry_after=timedelta(seconds=retry_after))

    @contextmanager
    def new_stream(self, caller: Caller) -> Iterator[None]:
        """Count a stream, or whatever else is waited for, for as long as the block, if there is room for it.

        Raises:
            RateLimitedError: There is none.
        """
        if self._streams[caller.key_id] >= STREAMS:
            raise RateLimitedError(f"This key follows and fetches {STREAMS} things here already.", hint="End some of them.")
        if self._streams_of[caller.user] >= STREAMS_OF_USER:
            raise RateLimitedError(f"{caller.user} follows and fetches {STREAMS_OF_USER:,} things here already.", hint="End some.")
        with _counted(self._streams, caller.key_id), _counted(self._streams_of, caller.user):
            yield

    @contextmanager
    def file(self, user: UserId) -> Iterator[None]:
        """Count a file of a user while it is taken in or handed out, if there is room for it.

        Raises:
            RateLimitedError: There is none.
        """
        if self._files[user] >= FILES_OF_USER or self._files.total() >= FILES:
            raise RateLimitedError("This gateway takes in and hands out as many files as it may.", retry_after=timedelta(seconds=1))
        with _counted(self._files, user):
            yield

    @contextmanager
    def request(self, user: UserId) -> Iterator[None]:
        """Count a request of a user until it is answered or its stream begins; all who have shown no key yet are one user.

        Raises:
            RateLimitedError: There are too many.
        """
        if self._requests[user] >= REQUESTS_OF_USER:
            raise RateLimitedError(f"{user or 'Whoever has no key'} asks for {REQUESTS_OF_USER} things at a time.")
        with _counted(self._requests, user):
            yield

    @contextmanager
    def large_body(self, user: UserId) -> Iterator[None]:
        """Count a body of a user that is held in memory as a whole, for as long as the block, if there is room for it.

        A user makes as many keys as he likes, so that by key one user would take all places. A place is given back when the memory
        is, see `_collect`.

        Raises:
            RateLimitedError: There is none.
        """
        if self._bodies[user] >= BODIES or self._bodies.total() >= ALL_BODIES:
            raise RateLimitedError("This gateway holds as many large messages as it may.", retry_after=timedelta(seconds=1))
        with _counted(self._bodies, user):
            try:
                yield
            finally:
                self._collect()

    @contextmanager
    def held(self, user: UserId, size: int) -> Iterator[None]:
        """Count the bytes of a body of a user that is kept while it is answered, for as long as the block, if there is room.

        Raises:
            RateLimitedError: There is none.
        """
        if self._held[user] + size > HELD_BYTES or self._held.total() + size > ALL_HELD_BYTES:
            raise RateLimitedError("This gateway answers as many bytes of messages as it may.", retry_after=timedelta(seconds=1))
        with _counted(self._held, user, size):
            try:
                yield
            finally:
                self._left += size
                if self._left >= _COLLECTED_BYTES:
                    self._collect()

    @contextmanager
    def answer(self, user: UserId, size: int) -> Iterator[None]:
        """Count the bytes of an answer to a user that is kept until it is sent, for as long as the block, if there is room.

        One that has more than may be kept takes all the room of its user. What has next to none does not count: it tells that
        something was done, which is not to be done again.

        Raises:
            RateLimitedError: There is none.
        """
        size = 0 if size <= SHORT_ANSWER_BYTES else min(size, ANSWER_BYTES)
        if (size and self._answers[user] + size > ANSWER_BYTES) or self._answers.total() + size > ALL_ANSWER_BYTES:
            raise RateLimitedError(
                "This gateway keeps as many bytes of answers as it may until they are read.", retry_after=timedelta(seconds=1)
            )
        with _counted(self._answers, user, size):
            yield

    def _collect(self) -> None:
        """Let go of what bodies that were answered have left.

        Libraries leave them in cycles, and the collector comes by itself after so many objects, of which a body of 20 MB is one. It
        looks through all that is not frozen: what others' requests hold meanwhile is not young any more when they end.
        """
        self._left = 0
        gc.collect()

    @contextmanager
    def coming_body(self, user: UserId) -> Iterator[None]:
        """Count a body of a user while it comes, if there is room for it; all who have shown no key yet are one user.

        Raises:
            RateLimitedError: There is none.
        """
        if self._coming[user] >= COMING:
            raise RateLimitedError(
                f"{user or 'Whoever has no key'} sends {COMING} bodies at a time.", retry_after=timedelta(seconds=1)
            )
        with _counted(self._coming, user):
            yield


def _a_minute(count: int) -> RateLimiter:
    return RateLimiter(RateLimit(count / _A_MINUTE, count))


@contextmanager
def _counted(counts: Counter[str], key_id: str, many: int = 1) -> Iterator[None]:
    counts[key_id] += many
    try:
        yield
    finally:
        counts[key_id] -= many
        if not counts[key_id]:
            del counts[key_id]
