"""The oracle's answers follow from a goal's words alone, and add up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.rig.oracle import PUZZLES, answer_to, number_in, part_of, parts_of, puzzle_of, sight_of, stated, work_in


def test_a_discussion_comes_to_its_turns() -> None:
    """Nothing else is asked of it."""
    assert (answer_to("load talk8 17"), answer_to("load talk16 x")) == ("8 turns", "16 turns")


def test_a_sum_is_that_of_its_parts() -> None:
    """Each part is worked out by itself, by whoever is given it, in words that name it uniquely."""
    goal = "load sum 17"
    numbers = [int(answer_to(f"{part} room/t1-0") or "") for part in parts_of(goal)]
    assert (answer_to(goal), len(set(numbers))) == (f"sum {sum(numbers)}", 5)


def test_a_nested_goal_is_a_part() -> None:
    """Its answer counts like that of any other part, however deep it lies."""
    nested, own = parts_of("load nest2 17")
    assert (nested, number_in(answer_to(nested) or "")) == ("load nest 17/n", number_in(answer_to("load nest 17/n") or ""))
    assert answer_to("load nest2 17") == f"sum {number_in(answer_to(nested) or '') + number_in(answer_to(own) or '')}"


@pytest.mark.parametrize("kind", PUZZLES)
def test_an_incomplete_answer_is_another_one(kind: str) -> None:
    """A turn, a part or a sight that is missing is seen in the answer."""
    goal = f"load {kind} 17"
    puzzle = puzzle_of(goal)
    assert puzzle is not None
    numbers = [number_in(answer_to(part) or "") for part in parts_of(goal)]
    seen = [sight_of(goal, number) for number in range(puzzle.sights)]
    lacking = (
        stated(puzzle, puzzle.turns - 1, numbers, seen)
        if puzzle.turns
        else stated(puzzle, 0, numbers[1:], seen if numbers else seen[1:])
    )
    assert (stated(puzzle, puzzle.turns, numbers, seen), lacking == answer_to(goal)) == (answer_to(goal), False)
    assert not seen or stated(puzzle, puzzle.turns, numbers, seen[1:]) != answer_to(goal)


@pytest.mark.parametrize("conclusion", ["417", "417 in attempt 2", "2 turns, sum 417", "sum 417 in attempt 1"])
def test_a_number_is_read_however_it_was_worked_out(conclusion: str) -> None:
    """By an agent alone, in whatever attempt, or by a nested team."""
    assert number_in(conclusion) == 417


@pytest.mark.parametrize("words", ["What is 15 % of 80?", "load nothing 17", "load sum", ""])
def test_other_words_have_no_known_answer(words: str) -> None:
    """A goal that is no puzzle is judged by its log alone."""
    assert (answer_to(words), work_in(words)) == (None, timedelta(0))


def test_work_is_bounded_by_the_longest_of_each_part() -> None:
    """Thoughts and parts, one after the other, nested ones too."""
    assert (work_in("load talk8 1"), work_in("load nest 1")) == (timedelta(seconds=20), timedelta(seconds=21))
    assert part_of("load sum 17/n room/t1-0") == "load sum 17/n"
