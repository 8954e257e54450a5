"""Recognizing that a message says again what was said (paper, section 4.2: repeated messages are half of the communication cost).

A new message repeats an earlier one if it says little that the earlier one does not, and most of what that one says. What
changes a number, a name, a yes into a no, what corrects, reports, and what answers a question is never a repetition of what it is
about. General words count half: who rephrases exchanges them first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ioa.group.alignment import is_exchanged, is_swapped
from ioa.group.lexicon import (
    ASKS,
    COMMITS,
    CORRECTS,
    GENERAL_BYTES,
    MAY,
    MAY_CORRECT,
    NAMES_QUESTION,
    NEGATES,
    OBLIGES,
    OPPOSITES,
    PAST,
    PLANS,
    QUESTION,
    REPORTS,
    SETTLES,
    SUPPOSES,
    WAS,
    feature_of,
    feature_of_text,
)
from ioa.group.sketch import (
    ASKED,
    ASKED_WHAT,
    CORRECTED,
    IS_PAST,
    IS_SAMPLE,
    MAY_HAVE_CORRECTED,
    OF_RESULT,
    OF_TASK,
    PLANNED,
    Remembered,
    Sketch,
    alike,
    digest_of,
    digest_of_uses,
    opened,
    packed,
    poles_of,
    short,
    sketch_of,
    words_of,
)
from ioa.group.wording import Wording, wording_of

LOOKBACK = 10
"""How many of the last messages and results a new message is compared with."""
TASKS_REMEMBERED = 16
"""How many of the last tasks a new one is compared with."""

_MOST_NEW = 0.42
"""The share of its own words that a repetition may have, by weight."""
_LONG = 14
"""Of so many words the share is surer, and less of it is another matter."""
_MOST_NEW_IN_A_LONG_ONE = 0.32
_MOST_NEW_IN_A_SAMPLE = 0.26
"""Of many words one in six is alike by its byte alone."""
_LEAST_COVERED = 0.6
"""The share of the earlier words that a repetition says again, by weight."""
_SAME_TASK = 0.8
"""The share that two tasks have in common if they are the same: tasks are alike by nature."""
_SURE = 1
"""How much more a number says than a word."""
_SHORT = 6
"""With fewer words a repetition names nothing of its own in place of something else."""
_VERY_SHORT = 5
"""With fewer words a general one that is another makes another message."""
_MANY_ACKNOWLEDGEMENTS = 2
_ENUMERATED = 2
"""From so many numbers on a text is known by them."""
_DENYING = frozenset(
    feature_of(word) & 0xFF for word in "avoid block broken drop except forbid free halt lack limit lose refuse".split()
)
_COUNTS = tuple(short(feature_of_text(str(number))) for number in range(2, 9))
"""What says how many others there are, from the smallest one on."""


def repeated(
    new: Wording, by: int, heard: Sequence[Sketch], names_of: Callable[[Remembered], Collection[int]]
) -> Remembered | None:
    """Find the latest of these texts that a new message says again; None if it says something new.

    Args:
        new: What the message says.
        by: Who says it, by the number that stands in sketches.
        heard: What was said before, the latest last.
        names_of: The features of the names of those who said an earlier text or are to do it: to name them is nothing new.
    """
    if not new.features:
        return _acknowledged_before(by, heard)
    said = words_of(new.features)
    for earlier in alike(said, heard):
        if _does_the_same(new, by, earlier) and _says_the_same(new, earlier, names_of(earlier)):
            return earlier
    return None


def repeated_task(new: Wording, uses: Collection[str], given: Iterable[Sketch]) -> Remembered | None:
    """Find the task among these that is given out again: in the same words or nearly so, and on the same results."""
    for sketch in given:
        earlier = opened(packed(sketch))
        if earlier.uses == digest_of_uses(uses) and _is_same_task(new, earlier):
            return earlier
    return None


def rephrases(text: str, earlier: Iterable[str]) -> bool:
    """Whether a need or a task is one of the earlier ones, in the same words or nearly so."""
    new = wording_of(text)
    return any(text == other or _is_same_task(new, opened(packed(sketch_of(wording_of(other), 0, 0)))) for other in earlier)


def _acknowledged_before(by: int, heard: Sequence[Sketch]) -> Remembered | None:
    """Find what makes an acknowledgement one too many: the speaker's own one, or two in a row just before."""
    earlier = [old for old in map(opened, map(packed, heard)) if not old.marks & (OF_RESULT | OF_TASK)]
    own = next((old for old in reversed(earlier) if old.who == by and not old.words), None)
    last = earlier[-_MANY_ACKNOWLEDGEMENTS:]
    in_a_row = len(last) == _MANY_ACKNOWLEDGEMENTS and not any(old.words for old in last)
    return own or (last[-1] if in_a_row else None)


def _does_the_same(new: Wording, by: int, old: Remembered) -> bool:
    """Whether it is no answer, correction, question or news of what was said."""
    does, did = new.marks, old.marks
    if did & ASKED and not does & ASKS and by != old.who and (not does & OBLIGES or does & COMMITS or did & ASKED_WHAT):
        return False
    if does & CORRECTS and not did & CORRECTED:
        return False
    if does & QUESTION and not did & (ASKED | ASKED_WHAT if does & NAMES_QUESTION else ASKED | PLANNED):
        return False
    suggests = does & QUESTION and does & NAMES_QUESTION and did & ASKED and not does & WAS
    plans = does & SUPPOSES or (does & (PLANS | MAY) and not does & REPORTS)
    return bool(suggests or plans) or not _tells_news(new, old)


def _tells_news(new: Wording, old: Remembered) -> bool:
    """Whether a text that neither plans nor supposes tells that something has been done: what was planned, or something else."""
    does = new.marks
    if not old.marks & IS_PAST and (does & REPORTS or (old.marks & PLANNED and does & (PAST | SETTLES))):
        return True
    return not old.words or any(feature & 0xFF not in old.words for feature in new.news)


def _says_the_same(new: Wording, old: Remembered, names: Collection[int]) -> bool:
    is_sample = bool(old.marks & IS_SAMPLE)
    features = _comparable(new.features, old)
    said, known = words_of(features), old.words
    if not _differs_in_nothing(new, old, names):
        return False
    own = said.translate(None, known).translate(None, words_of(names))
    missing = known.translate(None, said)
    things = own.translate(None, GENERAL_BYTES)
    may_correct = new.marks & MAY_CORRECT and not old.poles & MAY_HAVE_CORRECTED
    if _has_opposites(new, old, own, missing):
        return False
    if own and (things or len(known) < _VERY_SHORT) and (may_correct or (not is_sample and is_exchanged(said, known))):
        return False
    if things and len(said) < _SHORT and len(new.exact) < _ENUMERATED and _replaces(things, missing):
        return False
    if not is_sample and is_swapped(said, known, words_of(new.names.union(names)), words_of(new.exact)):
        return False
    may_add = _MOST_NEW_IN_A_SAMPLE if is_sample else _MOST_NEW_IN_A_LONG_ONE if len(said) >= _LONG else _MOST_NEW
    sure = _SURE * len(new.exact)
    return _weight(own) <= may_add * (_weight(said) + sure) and _weight(missing) <= (1 - _LEAST_COVERED) * (_weight(known) + sure)


def _replaces(things: bytes, missing: bytes) -> bool:
    """Whether a text names something in place of something else, or more than one thing."""
    return len(things) > 1 or missing.translate(None, GENERAL_BYTES) != b""


def _differs_in_nothing(new: Wording, old: Remembered, names: Collection[int] = ()) -> bool:
    """Whether all that has no other words is the same: numbers and identifiers, names, yes and no, before and after."""
    if old.marks & IS_SAMPLE:
        if digest_of(new.exact) != old.digest:
            return False
    elif not _has_its_numbers(new.exact, old):
        return False
    if any(feature & 0xFF not in old.words for feature in _comparable(new.names, old) if feature not in names):
        return False
    negates = bool(new.marks & NEGATES)
    if not old.negated and any(feature & 0xFF in old.words for feature in new.negated):
        return False
    if not negates and len(old.negated) == 1 and old.negated in words_of(new.features) and not _denies_otherwise(new, old):
        return False
    return negates != bool(old.negated) or not _are_poles_apart(poles_of(new), old.poles)


def _has_its_numbers(exact: Collection[int], old: Remembered) -> bool:
    """Whether there is no other number; one that counts what several others tell is none."""
    added = {short(feature) for feature in exact} - old.exact
    return not added or (len(exact) == len(old.exact) + 1 and added.issubset(_COUNTS[: max(0, len(old.exact) - 1)]))


def _denies_otherwise(new: Wording, old: Remembered) -> bool:
    """Whether a text lacks, avoids or forbids, in a word of its own, what the other one says there is not."""
    return not _DENYING.isdisjoint(set(words_of(new.features)).difference(old.words))


def _comparable(features: Iterable[int], old: Remembered) -> list[int]:
    """Those features that the earlier sketch would hold if its text had them."""
    if not old.marks & IS_SAMPLE:
        return list(features)
    return [feature for feature in features if short(feature) <= old.limit]


def _has_opposites(new: Wording, old: Remembered, own: bytes, missing: bytes) -> bool:
    """Whether one text raises what the other lowers; who does not raise it may well lower it."""
    return any(
        meant & 0xFF in missing and (meant & 0xFF in old.negated) == (feature in new.negated)
        for feature in new.features
        if feature in OPPOSITES and feature & 0xFF in own
        for meant in OPPOSITES[feature]
    )


def _are_poles_apart(one: int, other: int) -> bool:
    """Whether of some pair of poles, two bits each, one text has the one alone and the other text the other."""
    while one and other:
        if one & 0b11 and other & 0b11 and (one ^ other) & 0b11 == 0b11:
            return True
        one, other = one >> 2, other >> 2
    return False


def _weight(words: bytes) -> int:
    return len(words) + len(words.translate(None, GENERAL_BYTES))


def _is_same_task(new: Wording, old: Remembered) -> bool:
    said = words_of(_comparable(new.features, old))
    shared = len(said) - len(said.translate(None, old.words))
    union = len(old.words) + len(said) - shared
    return (
        shared > 0
        and shared >= _SAME_TASK * union
        and _differs_in_nothing(new, old)
        and not _has_opposites(new, old, said.translate(None, old.words), old.words.translate(None, said))
    )
