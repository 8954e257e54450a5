"""Records of pools: bounded, aging, by kind of task."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.protocol.agents.outcomes import (
    HALF_LIFE,
    KEEP,
    MAX_SHIFT,
    UNTRIED,
    Outcome,
    Remembered,
    kind_of_need,
    likeness,
    record_of,
    remember,
    score_shift,
)
from ioa.testing.manual_clock import NEW_YEAR

SUMS = "total the sales of each region"
KIND = kind_of_need(SUMS)


def went(*, done: int = 0, failed: int = 0, need: str = SUMS, at: datetime = NEW_YEAR) -> list[Remembered]:
    """Some tasks that were done, and then some that failed."""
    return [remember(Outcome(pool="a", need=need, done=one, at=at)) for one in [True] * done + [False] * failed]


def test_a_record_counts_and_weighs() -> None:
    """Done and failed are counted; success lies between what was seen and what is usual."""
    record = record_of(went(done=6, failed=2), KIND, NEW_YEAR)
    assert (record.done, record.failed, record.evidence, record.tried) == (6, 2, 8.0, True)
    assert record.success == pytest.approx((6 + 1.6) / 10)


def test_what_is_old_counts_less_and_is_forgotten() -> None:
    """After one half-life evidence counts half, and after a month not at all."""
    memory = went(done=4)
    assert record_of(memory, KIND, NEW_YEAR + HALF_LIFE).evidence == pytest.approx(2.0)
    assert record_of(memory, KIND, NEW_YEAR + KEEP + timedelta(seconds=1)) == UNTRIED


def test_a_clock_that_lags_makes_nothing_count_more() -> None:
    """An outcome of the future counts as one of now."""
    assert record_of(went(done=4), KIND, NEW_YEAR - KEEP).evidence == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Total the sales of sales_2024.csv", "total sales in march.csv", 0.6, 1.0),
        ("translate the letter into French", "Translations of letters: French", 0.7, 1.0),
        ("draw a bar chart", "write a poem about rain", 0.0, 0.0),
        ("画一个销售柱状图", "画销售图", 0.5, 1.0),
        ("the of and 42", "the of and 42", 0.0, 0.0),
    ],
)
def test_kinds_are_alike_by_their_words(one: str, other: str, least: float, most: float) -> None:
    """Names of files, numbers, endings and small words make no difference; no words in common is nothing in common."""
    assert least <= likeness(kind_of_need(one), kind_of_need(other)) <= most


def test_tasks_of_another_kind_change_no_score() -> None:
    """Failed tasks whose words differ wholly are counted, and change no score."""
    record = record_of(went(failed=9, need="translate a poem"), KIND, NEW_YEAR)
    assert (record.failed, record.evidence, score_shift(record)) == (9, 0.0, 0.0)


def test_success_raises_and_failure_lowers_a_score() -> None:
    """More successes raise a score more, more failures lower it more."""
    memories = (went(failed=9), went(failed=1), went(done=1), went(done=9))
    shifts = [score_shift(record_of(memory, KIND, NEW_YEAR)) for memory in memories]
    assert shifts == sorted(shifts)
    assert shifts[1] < 0 < shifts[2]


@given(st.integers(0, 64), st.integers(0, 64))
def test_shift_is_bounded(done: int, failed: int) -> None:
    """Outcomes never outweigh a match."""
    assert abs(score_shift(record_of(went(done=done, failed=failed), KIND, NEW_YEAR))) <= MAX_SHIFT
