"""How often one caller may ask, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import ceil

import pytest

from ioa import quotas
from ioa.quotas import ADMITTED, LONGEST_DEBT, SLOWED_FOR, Buckets, Family, Holding, QuotaRefusal, Rate

RATES = {Family.SAY: Rate(per_second=10, burst=3), Family.SEARCH: Rate(per_second=1, burst=1)}


def test_a_burst_then_the_rate() -> None:
    """As many as a burst are admitted at once, then as many as the rate allows, each as soon as it does."""
    buckets = Buckets(RATES)
    assert [buckets.judge("ada", Family.SAY, 0.0) == ADMITTED for _ in range(4)] == [True, True, True, False]
    assert [buckets.judge("ada", Family.SAY, now) == ADMITTED for now in (0.11, 0.15, 0.21)] == [True, False, True]


def test_what_one_has_cost_is_forgotten_in_the_end() -> None:
    """However much that was, by mistake or not: who waits for so long as is documented may ask again as anybody."""
    for family, rate in quotas.RATES.items():
        buckets, until = Buckets(quotas.RATES), rate.burst / rate.per_second + LONGEST_DEBT
        for _ in range(2):
            assert buckets.judge("ada", family, 0.0) == ADMITTED
        for _ in range(2):
            buckets.charge("ada", family, 0.0, 1e6, 10**12)
        is_counted = rate.second_counts is not None or rate.answer_bytes is not None
        assert (buckets.judge("ada", family, LONGEST_DEBT - 1.0) == ADMITTED) != is_counted
        assert all(buckets.judge("ada", family, until) == ADMITTED for _ in range(rate.burst))


def test_what_is_said_counts_by_its_bytes() -> None:
    """Large messages fill a store, so that fewer of them are admitted; the largest still is, whatever the burst."""
    buckets = Buckets({Family.SAY: Rate(per_second=10, burst=3, unit_bytes=1_000)})
    assert [buckets.judge("ada", Family.SAY, 0.0, size) == ADMITTED for size in (999, 1_000, 0)] == [True, True, False]
    assert [buckets.judge("ada", Family.SAY, now, 1_000_000) == ADMITTED for now in (0.2, 0.31)] == [False, True]


def test_how_much_is_asked_counts_and_is_looked_at_only_where_there_is_room() -> None:
    """A request for several counts as so many, though never for more than a burst; of one that is refused nothing is read."""
    buckets, read = Buckets({Family.SEARCH: Rate(per_second=1, burst=4, unit_bytes=1_000)}), list[int]()

    def of(number: int) -> Callable[[], int]:
        def count() -> int:
            read.append(number)
            return number

        return count

    assert buckets.judge("ada", Family.SEARCH, 0.0, 1_000, of(3)) == ADMITTED
    assert buckets.judge("ada", Family.SEARCH, 0.0, 0, of(1)) != ADMITTED
    assert buckets.judge("ada", Family.SEARCH, 3.0, 0, of(4)) != ADMITTED
    assert buckets.judge("ada", Family.SEARCH, 4.0, 0, of(100)) == ADMITTED
    assert read == [3, 4, 100]


def test_how_much_is_asked_is_known_at_once_where_it_need_not_be_read() -> None:
    """Who is refused is told when there is room for all of it, also where there is none for one."""
    buckets = Buckets({Family.SEARCH: Rate(per_second=10, burst=40)})
    assert buckets.judge("ada", Family.SEARCH, 0.0, counts=40) == ADMITTED
    refused = buckets.judge("ada", Family.SEARCH, 0.0, counts=32)
    assert isinstance(refused, QuotaRefusal) and refused.retry_after == pytest.approx(3.2)
    assert buckets.judge("ada", Family.SEARCH, 3.2, counts=32) == ADMITTED


def test_what_holds_up_others_counts_by_its_time() -> None:
    """Of its caller alone, and whole, however long it was; where time does not count, it is not looked at."""
    buckets = Buckets({Family.READS: Rate(per_second=10, burst=20, second_counts=100), Family.SAY: Rate(per_second=10, burst=1)})
    for caller, held in (("ada", 0.1), ("mallory", 6.0)):
        assert buckets.judge(caller, Family.READS, 0.0) == ADMITTED
        buckets.charge(caller, Family.READS, 0.0, held)
    assert [buckets.judge("mallory", Family.READS, now) == ADMITTED for now in (58.19, 58.21, 58.22)] == [False, True, False]
    assert buckets.judge("ada", Family.READS, 0.19) == ADMITTED
    assert buckets.judge("ada", Family.SAY, 0.0) == ADMITTED
    buckets.charge("ada", Family.SAY, 0.0, 60.0)
    assert buckets.judge("ada", Family.SAY, 0.11) == ADMITTED


def test_what_is_answered_counts_by_its_bytes() -> None:
    """Each so many bytes count once more, of a large answer beyond the burst; a small answer counts as its request alone."""
    buckets = Buckets({Family.SYNC: Rate(per_second=10, burst=20, answer_bytes=1_000)})
    for caller, size in (("ada", 999), ("bob", 5_000), ("mallory", 100_000)):
        assert buckets.judge(caller, Family.SYNC, 0.0) == ADMITTED
        buckets.charge(caller, Family.SYNC, 0.0, answered_bytes=size)
    assert sum(buckets.judge("ada", Family.SYNC, 0.0) == ADMITTED for _ in range(30)) == 19
    assert sum(buckets.judge("bob", Family.SYNC, 0.0) == ADMITTED for _ in range(30)) == 14
    assert [buckets.judge("mallory", Family.SYNC, now) == ADMITTED for now in (8.1, 8.21)] == [False, True]


def test_who_waits_holds_nothing() -> None:
    """Of requests that are served one after the other, each has held what it asks for since the one before it was answered.

    A server that stands for ten seconds is no one's doing who asks it: what is waited for counts for a second at most.
    """
    holding = Holding()
    assert [holding.took("log", 0.0, 0.75), holding.took("log", 0.5, 1.0), holding.took("log", 10.0, 10.5)] == [0.75, 0.25, 0.5]
    assert holding.took("results", 0.5, 1.0) == 0.5
    assert holding.took("log", 20.0, 30.0) == 1.0


def test_nobody_pays_for_another() -> None:
    """A caller's bucket is its own, and one for each family."""
    buckets = Buckets(RATES)
    for _ in range(1_000):
        buckets.judge("mallory", Family.SEARCH, 0.0)
    assert buckets.judge("ada", Family.SEARCH, 0.0) == buckets.judge("mallory", Family.SAY, 0.0) == ADMITTED


def test_those_who_come_back_when_told_do_not_meet_again() -> None:
    """Each refused request is given a time of its own to come back at, and is admitted then."""
    buckets = Buckets(RATES)
    judged = [buckets.judge("ada", Family.SAY, 0.0) for _ in range(20)]
    times = [one.retry_after for one in judged if isinstance(one, QuotaRefusal)]
    assert [round(time, 6) for time in times if time is not None] == [round(0.1 * number, 6) for number in range(1, 18)]
    assert all(buckets.judge("ada", Family.SAY, time + 1e-6) == ADMITTED for time in times if time is not None)


@pytest.mark.parametrize(("heeds", "is_flood"), [(True, False), (False, True)])
@pytest.mark.parametrize("side_by_side", [64, 192])
def test_who_comes_back_when_told_is_no_flood_however_much_he_reads(*, side_by_side: int, heeds: bool, is_flood: bool) -> None:
    """Where a request counts by its answer, too, which is known only behind it: he is not told to come back before his time."""
    buckets, arrivals, floods = Buckets(quotas.RATES), list[tuple[float, int]](), 0
    for number in range(side_by_side):
        heappush(arrivals, (0.0, number))
    while arrivals[0][0] < 8.0:
        now, number = heappop(arrivals)
        judged, again = buckets.judge("ada", Family.READS, now), 0.002
        if isinstance(judged, QuotaRefusal):
            floods += judged.is_flood
            if heeds:
                again = ceil((judged.retry_after or 5.0) * 1_000) / 1_000
        else:
            buckets.charge("ada", Family.READS, now, 0.000_1, 10_000)
        heappush(arrivals, (now + again, number))
    assert (floods > 0) == is_flood


def test_who_does_not_listen_is_told_no_more() -> None:
    """A flood gets answers for a few seconds' worth of requests, and from then on no more than its rate has."""
    buckets = Buckets(RATES)
    judged = [buckets.judge("mallory", Family.SAY, 0.0) for _ in range(10_000)]
    assert len([one for one in judged if isinstance(one, QuotaRefusal) and one.retry_after is not None]) == 50
    later = [buckets.judge("mallory", Family.SAY, 1.0) for _ in range(10_000)]
    assert len([one for one in later if one == ADMITTED or (isinstance(one, QuotaRefusal) and one.retry_after is not None)]) == 13


def test_who_goes_on_is_let_in_as_often_as_one_that_does_not() -> None:
    """What is refused takes nothing off: else who comes at ten times the rate would have nobody let in, long after he stops."""
    buckets, let_in = Buckets({Family.OTHERS: Rate(10, 10)}), 0
    for hundredth in range(6_000):
        let_in += buckets.judge("eve", Family.OTHERS, hundredth / 100) == ADMITTED
    assert let_in in (609, 610)


def test_who_asks_too_often_is_named_for_a_while() -> None:
    """What was refused is counted from when it began, until a minute has passed without any."""
    buckets = Buckets(RATES)
    judged = [buckets.judge("mallory", Family.SEARCH, now) for now in (0.0, 0.1, 0.2)]
    assert [one.is_first for one in judged if isinstance(one, QuotaRefusal)] == [True, False]
    assert buckets.slowed(0.2 + SLOWED_FOR) == {("mallory", Family.SEARCH): 2}
    assert buckets.slowed(0.3 + SLOWED_FOR) == {}


def test_made_up_callers_do_not_fill_the_memory() -> None:
    """Buckets that are full again are forgotten, and one that is not stays."""
    buckets = Buckets(RATES)
    for number in range(100_000):
        buckets.judge(f"caller-{number}", Family.SAY, number / 1_000)
        buckets.judge("mallory", Family.SEARCH, number / 1_000)
    assert len(buckets._buckets) < 20_000
    assert ("mallory", Family.SEARCH) in buckets.slowed(100.0)
