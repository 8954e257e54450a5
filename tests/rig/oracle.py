"""What goals of load must come to: answers that follow from a goal's own words, and from nothing that the system says.

A goal reads `load sum 17`: a kind and a seed. It asks for a discussion of so many turns, then for a sum whose parts are tasks of
several agents; one part may be a goal of its own, for a nested team. `load talk8 17` comes to `8 turns`, the other to `sum 2149`.
Some ask besides that members tell each other, one after the other, numbers that only whoever has the floor sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

_LARGEST = 1_000_000


@dataclass(frozen=True)
class Pace:
    """How long a thought and a part of a sum take, at least and at most. `word` is what a part's task begins with."""

    word: str
    thought: tuple[timedelta, timedelta]
    part: tuple[timedelta, timedelta]


QUICK = Pace("piece", (timedelta(0), timedelta(0)), (timedelta(seconds=0.01), timedelta(seconds=0.15)))
SLOW = Pace("part", (timedelta(seconds=1.5), timedelta(seconds=2.5)), (timedelta(seconds=1), timedelta(seconds=3)))


THOUGHTFUL = Pace("piece", (timedelta(seconds=0.05), timedelta(seconds=0.2)), QUICK.part)
"""As quick, but for the thoughts: long enough that others are met in the middle of one."""


@dataclass(frozen=True)
class Puzzle:
    """A kind of goal.

    Attributes:
        turns: How long its discussion is.
        sights: How many numbers its members tell each other.
        parts: How many numbers it adds up.
        nested: The kind of goal that one more part is, if it nests.
        sync: How many of its assignments, one after the other, are waited for; the others are paused on.
        batch: How many parts are given out at once.
    """

    pace: Pace
    turns: int = 0
    sights: int = 0
    parts: int = 0
    nested: str | None = None
    sync: int = 100
    batch: int = 3


PUZZLES: Mapping[str, Puzzle] = {
    "talk": Puzzle(QUICK, turns=6),
    "tell": Puzzle(QUICK, sights=5, parts=1),
    "led": Puzzle(THOUGHTFUL, sights=5),
    "reviewed": Puzzle(THOUGHTFUL, sights=3),
    "forked": Puzzle(THOUGHTFUL, sights=4),
    "crewed": Puzzle(THOUGHTFUL, parts=4, nested="team1", sync=1, batch=2),
    "joined": Puzzle(THOUGHTFUL, sights=4),
    "sync": Puzzle(QUICK, turns=2, parts=2),
    "async": Puzzle(QUICK, turns=1, parts=4, sync=0, batch=2),
    "mixed": Puzzle(QUICK, turns=2, parts=6, sync=1, batch=2),
    "deep": Puzzle(QUICK, turns=1, parts=1, nested="team2"),
    "team2": Puzzle(QUICK, parts=1, nested="team1"),
    "team1": Puzzle(QUICK, parts=2),
    "talk8": Puzzle(SLOW, turns=8),
    "talk16": Puzzle(SLOW, turns=16),
    "sum": Puzzle(SLOW, parts=5),
    "gather": Puzzle(SLOW, turns=2, parts=6, sync=0),
    "nest": Puzzle(SLOW, parts=2, nested="sum"),
    "nest2": Puzzle(SLOW, parts=1, nested="nest"),
}
"""What each kind of goal is made of. `deep` and `nest2` nest two teams."""

QUICK_KINDS = ("talk", "tell", "led", "reviewed", "forked", "crewed", "joined", "sync", "async", "mixed", "deep")
"""Goals that are over in a moment: a load in which everything happens at once."""

SLOW_KINDS = ("talk8", "sum", "talk16", "gather", "nest", "nest2")
"""Goals that take from ten seconds to a minute: an outage finds each of them in the middle of its work."""


def puzzle_of(goal: str) -> Puzzle | None:
    """Return the kind of a goal, or None for words whose answer is not known."""
    words = goal.split()
    return PUZZLES.get(words[1]) if len(words) > 2 and words[0] == "load" else None


def parts_of(goal: str) -> Sequence[str]:
    """Return what a goal's parts are called: the words that their tasks begin with."""
    puzzle, seed = puzzle_of(goal), goal.split()[2]
    if puzzle is None:
        return ()
    nested = [f"load {puzzle.nested} {seed}/n"] if puzzle.nested else []
    return [*nested, *(f"{puzzle.pace.word} {seed}/{number}" for number in range(puzzle.parts))]


def part_of(task: str) -> str:
    """Which part of a goal a task is for: its first words, without those that make it unique."""
    words = task.split()
    return " ".join(words[: 3 if words[0] == "load" else 2])


def answer_to(words: str) -> str | None:
    """Return what a goal, or the task that is one of its parts, must come to; None if its words do not tell."""
    if _pace_of_part(words) is not None:
        return str(_hashed(part_of(words)))
    puzzle = puzzle_of(words)
    if puzzle is None:
        return None
    seen = [sight_of(words, number) for number in range(puzzle.sights)]
    return stated(puzzle, puzzle.turns, [number_in(answer_to(part) or "") for part in parts_of(words)], seen)


def stated(puzzle: Puzzle, turns: int, numbers: Iterable[int], seen: Iterable[int] = ()) -> str:
    """Return the answer of a goal with so many turns taken, with parts that came to these numbers, and with what was seen."""
    talked = [f"{turns} turns"] if puzzle.turns else []
    told = [f"saw {sum(seen)}"] if puzzle.sights else []
    summed = [f"sum {sum(numbers)}"] if puzzle.parts or puzzle.nested else []
    return ", ".join(talked + told + summed)


def sight_of(goal: str, number: int) -> int:
    """Return the number that is to be seen after so many were told."""
    return _hashed(f"{goal} {number}")


def _hashed(words: str) -> int:
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8]) % _LARGEST


def number_in(answer: str) -> int:
    """Return the number that a part came to, whoever worked it out: `417`, `417 in attempt 2` or `2 turns, sum 417`."""
    words = answer.rpartition("sum ")[2].split()
    return int(words[0]) if words and words[0].isdecimal() else 0


def duration_of(words: str) -> tuple[timedelta, timedelta]:
    """How long one agent takes for a task, at least and at most."""
    return (_pace_of_part(words) or QUICK).part


def work_in(words: str) -> timedelta:
    """How long a goal's thinking and its tasks take at most if nobody is ever held up, its parts one after the other."""
    pace, puzzle = _pace_of_part(words), puzzle_of(words)
    if pace is not None:
        return pace.part[1]
    if puzzle is None:
        return timedelta(0)
    return (puzzle.turns + puzzle.sights) * puzzle.pace.thought[1] + sum((work_in(part) for part in parts_of(words)), timedelta(0))


def _pace_of_part(words: str) -> Pace | None:
    return next((pace for pace in (QUICK, SLOW) if words.startswith(f"{pace.word} ")), None)
