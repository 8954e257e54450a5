"""Whether what an exit waits for has come about, and who is removed when it is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from ioa.group.policy.casting import Scene
from ioa.protocol.policy import Condition, FieldValue, Node, Removal, Words
from ioa.protocol.word_forms import has_form, looks_like

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
        and (when.says is None or scene.node.awaited_words.index(Words(when.says, when.of)) in course.said)
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


def said(node: Node, before: Sequence[int], held: Collection[str], words: str) -> tuple[int, ...]:
    """Return what of the words that a node waits for was said last, by their places.

    Args:
        node: The node.
        before: The same before the last message.
        held: The roles of who has said it. What others are waited for to say stays as it was.
        words: What was said.
    """
    folded = words.casefold()
    return tuple(
        [
            place
            for place, one in enumerate(node.awaited_words)
            if (has_form(folded, one.like) if one.of is None or one.of in held else place in before)
        ]
    )


def _told(field: str, scene: Scene) -> Told:
    """Return what was filled in by those who are in the group, in the order of telling."""
    names = [one.name for one in scene.node.tested]
    told = scene.course.told
    return told[names.index(field)] if told else ()


def _is_told(when: Condition, field: str, scene: Scene) -> bool:
    role = None if when.of is None else scene.policy.role_numbers[when.of]
    told = [(by, value) for by, value in _told(field, scene) if role is None or role in scene.members[by].roles]
    if when.by == "last":
        return bool(told) and _is_so(when, field, told[-1][1], scene)
    so = {by for by, value in told if _is_so(when, field, value, scene)}
    if when.by == "any":
        return bool(so)
    among = scene.present if when.by == "all" else scene.cast
    asked = [number for number in among if role is None or role in scene.members[number].roles]
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
    return sum(not member.removed and number in member.roles for member in scene.members)
