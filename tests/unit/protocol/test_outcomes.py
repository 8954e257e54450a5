"""What is concluded from how tasks went: bounded, decaying, by kind of task, and fair to who is new."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.protocol.outcomes import (
    HALF_LIFE,
    KEEP,
    MAX_SHIFT,
    UNTRIED,
    Outcome,
    Record,
    Remembered,
    kind_of_need,
    likeness,
    record_of,
    remember,
    shifts,
)
from ioa.protocol.usage import Usage
from ioa.testing.manual_clock import NEW_YEAR

SUMS = "total the sales of each region"
KIND = kind_of_need(SUMS)


def went(
    *, done: int = 0, failed: int = 0, need: str = SUMS, at: datetime = NEW_YEAR, seconds: float = 1.0, cost: int = 0
) -> list[Remembered]:
    """Some tasks that were done, and then some that failed."""
    usage = Usage(cost_micros=cost)
    return [
        remember(Outcome(pool="a", agent_id="a", need=need, done=one, at=at, seconds=seconds, usage=usage))
        for one in [True] * done + [False] * failed
    ]


def test_nothing_is_known_of_who_was_never_tried() -> None:
    """Without outcomes there is no record, and if nobody has one nobody is moved."""
    assert (record_of([], KIND, NEW_YEAR), shifts([UNTRIED, UNTRIED])) == (UNTRIED, [0.0, 0.0])


def test_a_record_counts_and_weighs() -> None:
    """Done and failed are counted; success lies between what was seen and what is usual."""
    record = record_of(went(done=6, failed=2, seconds=2.0, cost=300), KIND, NEW_YEAR)
    assert (record.done, record.failed, record.evidence, record.tried) == (6, 2, 8.0, True)
    assert [record.success, record.seconds, record.cost_micros] == pytest.approx([(6 + 1.6) / 10, 2.0, 300.0])


def test_many_outcomes_of_one_owner_weigh_less_than_those_of_many() -> None:
    """A rival who tells of sixty goals that came to nothing talks a pool down by less than ten owners' word holds it up."""

    def told(owner: str, *, done: bool, times: int = 1) -> list[Remembered]:
        one = Outcome(pool="a", agent_id="a", need=SUMS, done=done, at=NEW_YEAR, seconds=1.0, owner=owner)
        return [remember(one)] * times

    rival, others = told("rival", done=False, times=60), [one for n in range(10) for one in told(f"o{n}", done=True)]
    alone = record_of(rival, KIND, NEW_YEAR)
    assert alone.evidence < record_of(others, KIND, NEW_YEAR).evidence == pytest.approx(10)
    assert record_of([*rival, *others], KIND, NEW_YEAR).success > 0.5
    assert record_of(told("once", done=True), KIND, NEW_YEAR) == record_of(went(done=1), KIND, NEW_YEAR)


def test_who_only_failed_has_no_usual_time() -> None:
    """Time and cost are those of tasks that were done."""
    record = record_of(went(failed=3), KIND, NEW_YEAR)
    assert (record.seconds, record.cost_micros) == (None, None)


def test_what_is_old_counts_less_and_is_forgotten() -> None:
    """After one half-life evidence counts half, and after a month not at all."""
    memory = went(done=4)
    assert record_of(memory, KIND, NEW_YEAR + HALF_LIFE).evidence == pytest.approx(2.0)
    assert record_of(memory, KIND, NEW_YEAR + KEEP + timedelta(seconds=1)) == UNTRIED


def test_a_clock_that_lags_makes_nothing_count_more() -> None:
    """An outcome of the future counts as one of now."""
    assert record_of(went(done=4), KIND, NEW_YEAR - KEEP).evidence == pytest.approx(4.0)


def test_another_kind_of_task_counts_a_little() -> None:
    """A quarter of an outcome carries over to tasks that have no word in common."""
    record = record_of(went(done=4, need="translate a poem"), KIND, NEW_YEAR)
    assert record.evidence == pytest.approx(1.0)


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


def test_success_lifts_and_failure_sinks() -> None:
    """Of three, the one that did its tasks stands before the one that was never tried, and that before the one that failed."""
    good, unknown, bad = shifts([record_of(went(done=9), KIND, NEW_YEAR), UNTRIED, record_of(went(failed=9), KIND, NEW_YEAR)])
    assert bad < 0 < good
    assert bad < unknown


def test_who_is_new_is_tried_before_who_is_mediocre() -> None:
    """Curiosity puts a stranger before one that fails every third time, however often that one was asked."""
    mediocre = record_of(went(done=40, failed=20), KIND, NEW_YEAR)
    known, new = shifts([mediocre, UNTRIED])
    assert new > known


def test_one_failure_is_forgiven_when_the_others_are_known_well() -> None:
    """The less is known of one compared with the others, the more it is worth a try."""
    unlucky = record_of(went(failed=1), KIND, NEW_YEAR)
    after_few, after_many = (shifts([unlucky, record_of(went(done=half, failed=half), KIND, NEW_YEAR)]) for half in (1, 30))
    assert after_many[0] - after_many[1] > after_few[0] - after_few[1]


def test_time_and_cost_decide_between_equals() -> None:
    """Of two that do all their tasks, the faster comes first, and of two as fast the cheaper."""
    memories = [went(done=9, seconds=8.0), went(done=9, seconds=2.0, cost=900), went(done=9, seconds=2.0, cost=100)]
    slow, dear, cheap = shifts([record_of(memory, KIND, NEW_YEAR) for memory in memories])
    assert slow < dear < cheap


def test_success_counts_more_than_speed() -> None:
    """Who is a hundred times as fast and fails every second time stays behind who is done with all."""
    fast = record_of(went(done=10, failed=10, seconds=0.1), KIND, NEW_YEAR)
    sure = record_of(went(done=20, seconds=10.0), KIND, NEW_YEAR)
    one, other = shifts([fast, sure])
    assert one < other


_records = st.builds(
    Record,
    done=st.integers(0, 64),
    failed=st.integers(0, 64),
    evidence=st.floats(0, 64),
    success=st.floats(0, 1),
    seconds=st.none() | st.floats(0.05, 1e9),
    cost_micros=st.none() | st.floats(0, 1e15),
)


@given(st.lists(_records, max_size=12))
def test_no_record_moves_a_score_further_than_the_bound(records: list[Record]) -> None:
    """Whatever is known, popularity never outweighs a match."""
    assert [abs(shift) <= MAX_SHIFT for shift in shifts(records)] == [True] * len(records)


MATCHES = {"worst": 0.930, "poor": 0.925, "fair": 0.920, "best": 0.915}
"""Four agents that match nearly alike, the best of them last."""


def give_out(tasks: int, odds: dict[str, float], memory: dict[str, list[Remembered]], chance: random.Random) -> list[str]:
    """Give each task to whoever stands first, have it done with the odds of that agent, and return who got which."""
    given_to: list[str] = []
    for _ in range(tasks):
        first = standing(memory)[0]
        given_to.append(first)
        memory[first] += went(done=1) if chance.random() < odds[first] else went(failed=1)
    return given_to


def standing(memory: dict[str, list[Remembered]]) -> list[str]:
    """The agents, the first one first."""
    moved = shifts([record_of(memory[name], KIND, NEW_YEAR) for name in MATCHES])
    scores = {name: MATCHES[name] + shift for name, shift in zip(MATCHES, moved, strict=True)}
    return sorted(MATCHES, key=lambda name: -scores[name])


def test_a_better_agent_rises_and_a_worse_one_sinks_within_fifty_tasks() -> None:
    """In nine of ten worlds the best of four stands first after fifty tasks, before the worst in all; each was tried in all."""
    odds = {"worst": 0.2, "poor": 0.6, "fair": 0.7, "best": 0.95}
    firsts, tried, late, to_worst = [], [], [], []
    for seed in range(40):
        memory: dict[str, list[Remembered]] = {name: [] for name in odds}
        given_to = give_out(50, odds, memory, random.Random(seed))
        firsts.append(standing(memory)[0])
        tried.append(set(given_to) == set(odds))
        late += given_to[25:]
        to_worst.append(given_to.count("worst"))
    assert (firsts.count("best") >= 36, "worst" in firsts, all(tried)) == (True, False, True)
    assert (late.count("best") > 0.8 * len(late), sum(to_worst) < 3 * len(to_worst)) == (True, True)


def test_a_good_agent_that_turns_bad_is_found_out() -> None:
    """Who did thirty tasks and then fails at all loses the first place within fifteen."""
    memory: dict[str, list[Remembered]] = {name: went(done=6, failed=2) for name in MATCHES}
    memory["worst"] = went(done=30)
    before = standing(memory)[0]
    given_to = give_out(15, dict.fromkeys(MATCHES, 1.0) | {"worst": 0.0}, memory, random.Random(0))
    assert (before, standing(memory)[0] == "worst", given_to.count("worst") < 15) == ("worst", False, True)
