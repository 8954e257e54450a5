"""Whether what an exit waits for has come about, and who is removed when it is taken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from ioa.group.policy.casting import Scene
from ioa.protocol.policy import Condition, FieldValue, Removal

Told = Sequence[tuple[int, FieldValue]]


def holds(when: Condition, scene: Scene) -> bool:
    """Whether all that a condition names holds."""
    course = scene.course
    return (
        (when.turns is None or course.turns >= when.turns)
        and (when.rounds is None or has_had(scene, when.rounds))
        and (when.visits is None or course.visits[course.node] >= when.visits)
        and (when.field is None or _is_told(when, when.field, scene))
        and (when.left is None or when.at_most is None or _left(scene, when.left) <= when.at_most)
    )


def has_had(scene: Scene, rounds: int) -> bool:
    """Whether everybody who is present has had so many turns in this visit; nobody has where nobody is."""
    taken = scene.course.taken
    return bool(scene.present) and all(taken[number] >= rounds for number in scene.present)


def removed_by(removal: Removal, scene: Scene) -> int | None:
    """Return who goes: whom most have named, or the last one; None if nobody was named, or several by as many."""
    named = [value for _, value in _told(removal.field, scene) if isinstance(value, int)]
    if not named or removal.by == "last":
        return named[-1] if named else None
    counts = Counter(named)
    most = max(counts.values())
    first = [number for number, count in counts.items() if count == most]
    return None if len(first) > 1 and removal.ties == "none" else first[0]


def _told(field: str, scene: Scene) -> Told:
    """Return what was filled in by those who are in the group, in the order of telling."""
    names = [one.name for one in scene.node.tested]
    told = scene.course.told
    return told[names.index(field)] if told else ()


def _is_told(when: Condition, field: str, scene: Scene) -> bool:
    role = None if when.of is None else scene.policy.role_numbers[when.of]
    told = [(by, value) for by, value in _told(field, scene) if role is None or role in scene.state.members[by].roles]
    if when.by == "last":
        return bool(told) and _is_so(when, field, told[-1][1], scene)
    so = {by for by, value in told if _is_so(when, field, value, scene)}
    if when.by == "any":
        return bool(so)
    among = scene.present if when.by == "all" else scene.cast
    asked = [number for number in among if role is None or role in scene.state.members[number].roles]
    if when.by == "all":
        return bool(asked) and so.issuperset(asked)
    return 2 * len(so.intersection(asked)) > len(asked)


def _is_so(when: Condition, field: str, value: FieldValue, scene: Scene) -> bool:
    kind = next(one for one in scene.node.tested if one.name == field)
    shown: FieldValue = value
    if kind.kind == "member" and isinstance(value, int):
        shown = scene.agent(value)
    elif kind.kind == "option" and isinstance(value, int):
        shown = kind.options[value]
    if when.equals is not None:
        return shown == when.equals
    return when.like is None or looks_like(str(shown), when.like)


def _left(scene: Scene, role: str) -> int:
    number = scene.policy.role_numbers[role]
    return sum(not member.removed and number in member.roles for member in scene.state.members)


_SIGNS = {"?": ".", "#": r"\d"}


def looks_like(text: str, pattern: str) -> bool:
    """Return True if a text matches a pattern: `*` is any text, `?` any character, `#` a digit; case does not count."""
    return _compiled(pattern).fullmatch(text.casefold()) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern. Atomic groups take the first match of each part between two stars, so that matching takes linear time."""
    first, *others = ["".join(_SIGNS.get(sign) or re.escape(sign) for sign in part) for part in pattern.casefold().split("*")]
    between = "".join(f"(?>.*?{part})" for part in others[:-1])
    return re.compile(first + between + "".join(f".*{last}" for last in others[-1:]), re.DOTALL)
