"""How often one caller may ask: a token bucket for each caller and family of requests, and what is said beyond it.

A bucket is one number, the time at which it is full again (the generic cell rate algorithm, ITU-T I.371), so that judging a request
costs less than reading it. Whoever is refused is told when to come back, each one at a time of its own: those who keep to it do not
meet again. Whoever does not is told nothing any more, since telling it costs as much as answering does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

F = TypeVar("F", bound=str)


class Family(StrEnum):
    """Requests that are counted together."""

    RENEW = "renew"
    SEARCH = "search"
    SAY = "say"
    SYNC = "sync"
    FILES = "files"
    READS = "reads"
    OTHERS = "others"
    LOGS = "logs"
    """What is appended to groups' logs, in kB."""


@dataclass(frozen=True)
class Rate:
    """How many requests a second, and how many at once after a while without any.

    With `unit_bytes` a request counts once more for each so many bytes that it has, never for more than the burst. What it has cost
    is known behind it, and counts whole: with `answer_bytes` once more for each so many bytes that it is answered, and with
    `second_counts` as so many more for each second for which it has held up others. Beyond the burst that is a debt.
    """

    per_second: float
    burst: int
    unit_bytes: int | None = None
    second_counts: int | None = None
    answer_bytes: int | None = None


SAY_UNIT_BYTES = 16_384
"""For how many of its bytes a message to a group counts once more."""

UNIT_BYTES = 16_384
"""For how many of its bytes any other request counts once more: to read a megabyte takes as long as hundreds of small ones."""

FILE_UNIT_BYTES = 600_000
"""For how many of its bytes a request for a file does. It is more than a piece and what is told of it, which count as one."""

SEARCH_UNIT_BYTES = 4_000
"""For how many of its bytes a search counts once more: what the longest text of a need has."""

READ_UNIT_BYTES = 100
"""For how many of its bytes a request for what a stream holds counts once more: it may name a thousand subjects."""
READ_SECOND_COUNTS = 40_000
"""As how many messages each second counts for which a stream is held: with the rate below a quarter of the time is one caller's."""
READ_ANSWER_BYTES = 1_000
"""For how many bytes of its answer such a request does: 10 MB a second."""
SYNC_ANSWER_BYTES = 131_072
"""For how many bytes of its answer a request for a page of a log counts once more: 6.5 MB at once, and then 2.6 MB a second."""
LOG_UNIT_BYTES = 1_000
"""In how many bytes that is counted which an agent has appended to logs."""


def quarter(per_second: float) -> int:
    """Say as how many requests each second counts that answering takes, of those that a quarter of the time is one caller's."""
    return math.ceil(4 * per_second)


def half(per_second: float) -> int:
    """Say likewise for pages of logs, which take long to read for whoever comes back to a long one."""
    return math.ceil(2 * per_second)


RATES: Mapping[Family, Rate] = {
    Family.RENEW: Rate(2, 10, unit_bytes=UNIT_BYTES),
    Family.SEARCH: Rate(10, 40, unit_bytes=SEARCH_UNIT_BYTES),
    Family.SAY: Rate(50, 100, unit_bytes=SAY_UNIT_BYTES, second_counts=quarter(50)),
    Family.SYNC: Rate(20, 50, unit_bytes=UNIT_BYTES, second_counts=half(20), answer_bytes=SYNC_ANSWER_BYTES),
    Family.FILES: Rate(100, 200, unit_bytes=FILE_UNIT_BYTES, second_counts=quarter(100)),
    Family.READS: Rate(
        10_000, 40_000, unit_bytes=READ_UNIT_BYTES, second_counts=READ_SECOND_COUNTS, answer_bytes=READ_ANSWER_BYTES
    ),
    Family.OTHERS: Rate(10, 20, unit_bytes=UNIT_BYTES, second_counts=quarter(10)),
    Family.LOGS: Rate(3_200, 12_800, answer_bytes=LOG_UNIT_BYTES),
}
"""What an honest agent does not come near: a renewal in 3 s, a report in a second on each of its tasks. What is said stays in logs,
so that it counts by its bytes: 0.8 MB a second, and by how long it takes to judge, which the team that it is said in decides."""

_FLOOD = Rate(200, 400)
"""More refusals than these, and than he was admitted meanwhile, are a flood. So many cost a few ms in a second. Who comes back when
he is told to is refused about as often as he is admitted, however much he asks for."""
LONGEST_DEBT = 300.0
"""For how many seconds a caller is put off, at most, by what its requests have cost beyond the burst. Where a quarter of the
time is one caller's that is 75 s of it, more than any request takes. The rest is forgotten, so that nobody is shut out for good."""
_CHARGED_PART = 0.1
"""Which part the last answer has in what one is taken to count for."""
SLOWED_FOR = 60.0
"""For how many seconds it is told of a caller that it asked too often."""
_LONGEST_PROMISE = 5.0
"""How many seconds ahead a time to come back may be, at most."""
_SLACK = 0.001
"""Which part of a request is forgiven, since sums of times are rounded."""
_MAX_BUCKETS = 16_384
"""Beyond so many, those that are full are forgotten."""


class Admitted:
    """The request may be answered."""


@dataclass(frozen=True)
class QuotaRefusal:
    """The request came too early; `retry_after` is in seconds. None: its caller has been told often enough, and is not again."""

    retry_after: float | None
    is_first: bool
    """Whether none of this caller was refused for a while."""
    is_flood: bool
    """Whether so many come that even refusing them costs too much."""


ADMITTED = Admitted()


@dataclass
class _Bucket:
    full_at: float
    promised: float
    calm_at: float
    slowed_at: float = float("-inf")
    refused: int = 0
    charged: float = 0.0
    """In how many seconds is there again what an answer has counted for lately, beside its request: so much later does the next one
    come back."""


class Buckets(Generic[F]):
    """Judge requests by when they come. All times are in seconds of one clock that never goes back.

    `F` is what families are: `Family` where they are requests, else what the doctor calls them.
    """

    def __init__(self, rates: Mapping[F, Rate]) -> None:
        self._rates = rates
        self._buckets: dict[tuple[str, F], _Bucket] = {}
        self._room = _MAX_BUCKETS

    def judge(
        self, caller: str, family: F, now: float, size_bytes: int = 0, counts: int | Callable[[], int] = 1
    ) -> Admitted | QuotaRefusal:
        """Take what a request of so many bytes counts for off the caller's bucket, or say when to come back.

        Args:
            caller: Who asks.
            family: With what the request is counted.
            now: When it came.
            size_bytes: How many bytes it has.
            counts: As how many it counts apart from them, at least as one; or says so, and is asked only where there is room for
                one, since to look at a request costs more than to refuse it.
        """
        rate = self._rates[family]
        more = 0 if rate.unit_bytes is None else size_bytes // rate.unit_bytes
        known = counts if isinstance(counts, int) else 1
        each, burst = min(rate.burst, known + more) / rate.per_second, (rate.burst + _SLACK) / rate.per_second
        bucket = self._buckets.get((caller, family))
        if bucket is None:
            self._make_room(now)
            bucket = self._buckets[caller, family] = _Bucket(now, now, now)
        since = max(bucket.full_at, now)
        if not isinstance(counts, int) and since + each - now <= burst:
            each = min(rate.burst, counts() + more) / rate.per_second
        full_at = since + each
        if full_at - now <= burst:
            bucket.full_at = full_at
            bucket.calm_at -= 1 / _FLOOD.per_second
            return ADMITTED
        is_first = now - bucket.slowed_at > SLOWED_FOR
        bucket.slowed_at = now
        bucket.refused = 1 if is_first else bucket.refused + 1
        bucket.calm_at = max(bucket.calm_at, now) + 1 / _FLOOD.per_second
        is_flood = bucket.calm_at - now > _FLOOD.burst / _FLOOD.per_second
        promised = max(bucket.promised + each + bucket.charged, full_at - burst)
        if promised - now > _LONGEST_PROMISE:
            return QuotaRefusal(None, is_first, is_flood)
        bucket.promised = promised
        return QuotaRefusal(promised - now, is_first, is_flood)

    def charge(self, caller: str, family: F, now: float, held_seconds: float = 0.0, answered_bytes: int = 0) -> None:
        """Take off the caller's bucket what an admitted request counts for by its answer, and by how long it has held up others."""
        rate, bucket = self._rates[family], self._buckets.get((caller, family))
        more = held_seconds * (rate.second_counts or 0)
        if rate.answer_bytes is not None:
            more += answered_bytes // rate.answer_bytes
        if more and bucket is not None:
            charged, burst = more / rate.per_second, rate.burst / rate.per_second
            bucket.full_at = min(max(bucket.full_at, now) + charged, now + burst + LONGEST_DEBT)
            bucket.charged += _CHARGED_PART * (min(charged, burst) - bucket.charged)

    def callers(self) -> set[str]:
        """Return who has asked, but for those who have been forgotten to make room."""
        return {caller for caller, _ in self._buckets}

    def slowed(self, now: float) -> dict[tuple[str, F], int]:
        """Return who asked too often lately, and how many requests were refused since that began."""
        return {key: one.refused for key, one in self._buckets.items() if now - one.slowed_at <= SLOWED_FOR}

    def _make_room(self, now: float) -> None:
        if len(self._buckets) < self._room:
            return
        self._buckets = {key: one for key, one in self._buckets.items() if one.full_at > now or now - one.slowed_at <= SLOWED_FOR}
        self._room = max(_MAX_BUCKETS, 2 * len(self._buckets))


_LONGEST_HELD = 1.0
"""For how many seconds a request may be said to have held what serves others: it may as well have stood for all of them."""


class Holding:
    """Tells for how long each request has held what serves them one after the other, by when each was asked and answered."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def took(self, what: str, began: float, ended: float) -> float:
        """Return for how many seconds a request held `what`; until then it waited for those that were answered before it."""
        since = max(began, self._until.get(what, began))
        self._until[what] = ended
        return min(ended - since, _LONGEST_HELD)
