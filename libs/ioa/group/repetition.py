"""Recognizing that a message says again what was said (paper, section 4.2: repeated messages are half of the communication cost).

A group's state keeps a sketch of the last messages and tasks: a few dozen small integers each, no prose. A new message repeats
an earlier one if it says nearly nothing that the earlier one does not, and much of what that one says. What changes a number, a
name, a yes into a no, what corrects, and what answers a question is never a repetition of what it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ioa.group.wording import NEGATED, Wording, feature_of, wording_of
from ioa.protocol.ids import AgentId, AgentIdField, TaskId, TaskIdField
from ioa.protocol.model import Model

LOOKBACK = 10
"""How many of the last messages a new one is compared with."""

TASKS_REMEMBERED = 32
"""How many of the last tasks a new one is compared with."""

MAX_FEATURES = 64
"""What a sketch holds at most; of a longer text a fixed sample."""

_MOST_NEW = 0.34
"""The share of its features that a repetition may have of its own."""
_LEAST_TO_ADD = 5
"""A shorter repetition has none at all."""
_LEAST_COVERED = 0.5
"""The share of the earlier message's features that a repetition says again."""
_SAME_TASK = 0.8
"""The share that two tasks have in common if they are the same: tasks are alike by nature."""
_LEAST_ALIGNED = 3
_MOST_EXCHANGED = 2
_MANY_ACKNOWLEDGEMENTS = 2


class Sketch(Model):
    """What a text says, in small.

    Attributes:
        features: In the order of the text; of a long one those with the lowest numbers, sorted.
        exact: A digest of all its numbers and identifiers, also of those that a long text's sample leaves out.
        asks: It is a question or a request.
        corrects: It takes something back.
        past: It speaks of what was done.
        complete: Nothing was left out.
    """

    features: tuple[int, ...] = ()
    exact: int = 0
    asks: bool = False
    corrects: bool = False
    past: bool = False
    complete: bool = True


class Heard(Model):
    """A message that became a turn."""

    turn: int
    by: AgentIdField
    sketch: Sketch


class Given(Model):
    """A task that was given out."""

    task_id: TaskIdField
    uses: tuple[TaskIdField, ...]
    sketch: Sketch


def repeated_message(new: Wording, by: AgentId, heard: Sequence[Heard]) -> Heard | None:
    """Find the latest of these messages that a new one says again; None if it says something new."""
    if not new.features:
        return _acknowledged_before(by, heard)
    said = frozenset(_affirmed(new.features))
    return next((earlier for earlier in reversed(heard) if _covers(said, earlier.sketch) and _repeats(new, by, earlier)), None)


def repeated_task(new: Wording, uses: Iterable[TaskId], given: Iterable[Given]) -> Given | None:
    """Find the task among these that is given out again: in the same words or nearly so, and on the same results."""
    same_input = [earlier for earlier in given if set(earlier.uses) == set(uses)]
    return next((earlier for earlier in same_input if _is_same_task(new, earlier.sketch)), None)


def rephrases(text: str, earlier: Iterable[str]) -> bool:
    """Whether a need or a task is one of the earlier ones, in the same words or nearly so."""
    new = wording_of(text)
    return any(text == other or _is_same_task(new, sketch_of(wording_of(other))) for other in earlier)


def sketch_of(wording: Wording) -> Sketch:
    """Keep of a text what later ones are compared with."""
    complete = len(wording.features) <= MAX_FEATURES
    return Sketch(
        features=wording.features if complete else tuple(sorted(wording.features)[:MAX_FEATURES]),
        exact=_digest(wording.exact),
        asks=wording.asks,
        corrects=wording.corrects,
        past=wording.past,
        complete=complete,
    )


def _digest(features: Iterable[int]) -> int:
    digest = 0
    for feature in sorted(features):
        digest = (digest * 31 + feature + 1) % 2**31
    return digest


def _acknowledged_before(by: AgentId, heard: Sequence[Heard]) -> Heard | None:
    """Find what makes an acknowledgement one too many: the speaker's own one, or two in a row just before."""
    own = next((earlier for earlier in reversed(heard) if earlier.by == by and not earlier.sketch.features), None)
    last = heard[-_MANY_ACKNOWLEDGEMENTS:]
    in_a_row = len(last) == _MANY_ACKNOWLEDGEMENTS and not any(earlier.sketch.features for earlier in last)
    return own or (last[-1] if in_a_row else None)


def _covers(said: frozenset[int], old: Sketch) -> bool:
    """Whether much of the earlier text is said again. This alone tells nearly all messages apart, so it is looked at first."""
    known = set(_affirmed(old.features))
    return len(said & known) >= _LEAST_COVERED * len(known)


def _repeats(new: Wording, by: AgentId, earlier: Heard) -> bool:
    old = earlier.sketch
    if old.asks and not new.asks and by != earlier.by:
        return False
    if (new.corrects and not old.corrects) or (new.reports and not old.past):
        return False
    return _differs_in_nothing(new, old, feature_of(earlier.by)) and _resembles(new, old)


def _differs_in_nothing(new: Wording, old: Sketch, speaker: int | None = None) -> bool:
    """Whether all that has no other words is the same: numbers and identifiers, names, yes and no."""
    known = set(old.features)
    if not old.complete and _digest(new.exact) != old.exact:
        return False
    fixed = (new.exact | new.names) - {speaker}
    if any(_is_missing(feature, old, known) for feature in fixed):
        return False
    negates = any(feature & NEGATED for feature in new.features)
    return not any(
        feature ^ NEGATED in known and feature not in known and (feature & NEGATED or not negates) for feature in new.features
    )


def _resembles(new: Wording, old: Sketch) -> bool:
    """Whether the new text, which says much of the old one, adds nearly nothing; what is negated was compared before."""
    said, known = _affirmed(new.features), _affirmed(old.features)
    shared = set(said) & set(known)
    own = [feature for feature in said if _is_missing(feature, old, shared)]
    if own and (new.may_correct or (old.complete and _is_exchanged(said, known))):
        return False
    if old.complete and _is_swapped(said, known, new.names):
        return False
    may_add = _MOST_NEW * len(said) if len(said) >= _LEAST_TO_ADD else 0
    return len(own) <= may_add


def _affirmed(features: Iterable[int]) -> tuple[int, ...]:
    """The words alone, whether they were negated or not."""
    return tuple(dict.fromkeys(feature & ~NEGATED for feature in features))


def _is_exchanged(new: Sequence[int], old: Sequence[int]) -> bool:
    """Whether the same sentence speaks of something else: a word or two are others, and all the rest stands in its place."""
    if len(new) == len(old) >= _LEAST_ALIGNED:
        differing = sum(one != other for one, other in zip(new, old, strict=True))
        return differing <= min(_MOST_EXCHANGED, len(new) // 2)
    start = _common_start(new, old)
    end = _common_start(new[start:][::-1], old[start:][::-1])
    exchanged = len(new) - start - end, len(old) - start - end
    return min(exchanged) >= 1 and max(exchanged) <= _MOST_EXCHANGED and start + end >= _LEAST_ALIGNED


def _is_swapped(new: Sequence[int], old: Sequence[int], names: Iterable[int]) -> bool:
    """Whether two names have changed places: who does what is another matter then."""
    if len(new) != len(old):
        return False
    moved = {one for one, other in zip(new, old, strict=True) if one != other}
    return len(moved) == 2 and not moved.isdisjoint(names)


def _common_start(one: Sequence[int], other: Sequence[int]) -> int:
    """How many features two sequences have in common before they differ."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)


def _is_missing(feature: int, old: Sketch, known: set[int]) -> bool:
    """Whether the earlier text surely lacks a feature: of a sampled one only the lowest features are known."""
    if feature in known or feature | NEGATED in known:
        return False
    return old.complete or feature <= old.features[-1]


def _is_same_task(new: Wording, old: Sketch) -> bool:
    known = set(old.features)
    said = set(new.features)
    return bool(said) and _differs_in_nothing(new, old) and len(said & known) >= _SAME_TASK * len(said | known)
