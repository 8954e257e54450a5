"""When silent groups are asked for: soon at first, then ever more rarely, and right after their own deadlines."""

from __future__ import annotations

import random
from bisect import bisect_left
from datetime import timedelta

from ioa.agent.probing import Probing
from ioa.protocol.ids import CommId
from ioa.quotas import RATES, Family

A, B = CommId("a"), CommId("b")
EVEN = 0.5
"""A draw that changes no pause."""


def probing() -> Probing:
    """Pauses without chance: 3, 6, 12 s and so on."""
    return Probing(lambda: EVEN)


def times(one: Probing, until: float, deadline: float | None = None) -> list[float]:
    """When a group of which nothing comes is asked for."""
    asked = []
    while (due := one.next_due()) is not None and due <= until:
        comm_id = one.take(due)
        assert comm_id is not None
        asked.append(due)
        one.find_silent(comm_id, due, deadline)
    return asked


def test_nothing_is_asked_for_at_first() -> None:
    """Without groups nothing is due."""
    assert (probing().next_due(), probing().take(1e9)) == (None, None)


def test_a_silent_group_is_asked_for_ever_more_rarely() -> None:
    """The pauses double from 3 s up to 5 minutes, so that a group that is silent for a day costs 300 requests."""
    one = probing()
    one.hear(A, 0)
    asked = times(one, 86_400)
    pauses = [after - before for before, after in zip([0, *asked], asked, strict=False)]
    assert (pauses[:8], set(pauses[7:]), len(asked)) == ([3, 6, 12, 24, 48, 96, 192, 300], {300}, 293)


def test_what_comes_puts_the_question_off() -> None:
    """As long as something comes in every pause nothing is asked, and then the pauses begin anew."""
    one = probing()
    for second in range(0, 100, 2):
        one.hear(A, second)
        assert one.take(second) is None
    assert times(one, 120) == [101, 107, 119]


def test_a_deadline_that_passes_is_asked_about() -> None:
    """A second or two after the group's own deadline it is asked for, and the pauses begin anew."""
    one = probing()
    one.hear(A, 0)
    assert times(one, 75, deadline=60) == [3, 9, 21, 45, 61.5, 67.5]


def test_a_deadline_that_has_passed_changes_nothing() -> None:
    """A deadline that lies back by this machine's clock does not have the group asked for again and again."""
    one = probing()
    one.hear(A, 0)
    assert times(one, 100, deadline=-90) == [3, 9, 21, 45, 93]


def test_a_group_can_be_asked_for_at_once() -> None:
    """What is wanted now comes before what was due earlier than now, once."""
    one = probing()
    one.hear(A, 0)
    one.hear(B, 1)
    one.ask_at_once(B, 1.5)
    assert (one.take(1.5), one.take(1.5), one.next_due()) == (B, None, 3)


def test_after_a_renewal_all_are_asked_for_one_after_the_other() -> None:
    """Each group once, however long the pauses had become, and no faster than leaves room for what is known to be missing."""
    chance = random.Random(3)
    one = Probing(chance.random)
    groups = {CommId(f"g{number}") for number in range(1_000)}
    for comm_id in groups:
        one.hear(comm_id, 0)
    times(one, 1_000)
    one.ask_for_all(1_000)
    taken, at = list[CommId](), list[float]()
    while (due := one.next_due()) is not None and due <= 1_070:
        taken += [comm_id for comm_id in [one.take(due)] if comm_id is not None]
        at.append(due)
        one.forget(taken[-1])
    assert (len(taken), set(taken)) == (1_000, groups)
    rate = RATES[Family.SYNC]
    assert at == sorted(at)
    assert all(bisect_left(at, begun + 1) - place <= rate.burst / 2 + rate.per_second for place, begun in enumerate(at))


def test_a_forgotten_group_is_asked_for_no_more() -> None:
    """Forgetting ends it, also for a group that is noted again later."""
    one = probing()
    one.hear(A, 0)
    one.forget(A)
    one.find_silent(A, 3, None)
    assert one.next_due() is None
    one.hear(A, 10)
    assert times(one, 20) == [13, 19]


def test_a_group_that_is_taken_and_never_answered_is_asked_for_again() -> None:
    """Whoever takes a group and dies over it leaves it due after its pause."""
    one = Probing(lambda: EVEN, timedelta(seconds=1))
    one.hear(A, 0)
    assert [one.take(second) for second in (1, 1, 2, 3)] == [A, None, A, A]
