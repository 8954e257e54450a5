"""The exits of a node: which one is taken after a turn, which ones may be chosen, and which member an exit removes.

A node with `take = "all"` is a fork: the nodes of its other exits go on the agenda. A node with `join = "all"` waits until all
nodes that lead to it are done. The agenda continues when a branch has ended, or leads to a node that waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ioa.group.policy.casting import Scene
from ioa.protocol.ids import AgentId
from ioa.protocol.policy_parts import END, Condition, Exit, FieldValue, Removal

_TO_THE_END = Exit(to=END)


def way_out(scene: Scene, go: str | None) -> Exit | None:
    """Return the exit that is taken after a counted turn; None if the node goes on. `go` is the target that the speaker chose."""
    node = scene.node
    if go is not None:
        return chosen_exit(scene, go, node.offered)
    for way in node.rules:
        if way.when is not None and holds(way.when, scene) and _is_open(scene, way):
            return way
    if node.max is not None:
        return last_exit(scene) if scene.course.turns >= node.max else None
    if node.is_bare and scene.has_had(1):
        return last_exit(scene)
    return None


def last_exit(scene: Scene) -> Exit:
    """Return the exit of a node whose turns are over: the first bare one, otherwise the first open one, otherwise the end.

    If no member has spoken in it, the first exit of a rule comes before the others. If only exits to nodes that wait are left, and
    the agenda is empty, it is the first of these.
    """
    able = [way for way in scene.node.exits if scene.has_visit(way.to)]
    ways = [way for way in able if _is_open(scene, way)]
    first = [way for way in ways if way.is_bare or (way.by == "rule" and not scene.course.turns)]
    return next(iter((*first, *ways, *able)), _TO_THE_END)


def judged(scene: Scene, *, gathered: bool) -> tuple[Exit, ...]:
    """Return the exits that the judge of a node is asked for now, one to each node.

    It is asked after each turn or round. A parallel turn of several members is a round.
    """
    node, present = scene.node, len(scene.present)
    if node.judge is None or not present or not (gathered or node.asked == "turn" or scene.course.turns % present == 0):
        return ()
    return offered_ways(scene, [way for way in node.exits if way.judge is not None])


def offered_ways(scene: Scene, ways: Iterable[Exit]) -> tuple[Exit, ...]:
    """Return those of some exits that may be chosen now, one to each node."""
    able = [way for way in ways if scene.has_visit(way.to) and (way.when is None or holds(way.when, scene))]
    return tuple({way.to: way for way in reversed(_choices(scene, able))}.values())[::-1]


def chosen_exit(scene: Scene, to: str, ways: Iterable[Exit]) -> Exit:
    """Return the exit by which a speaker or the judge reaches the node that it has chosen."""
    return next(way for way in _choices(scene, ways) if way.to == to)


def left_by(scene: Scene, way: Exit, *, chosen: bool = False) -> tuple[Scene, str | None]:
    """Note that the node is done, put the other nodes of a fork on the agenda, and return the next node.

    It is None if all nodes that could be entered wait for good. An end that a speaker or the judge has chosen is the end, whatever
    is on the agenda.
    """
    course, is_end = scene.course, way.to == END
    if not (scene.policy.awaited or scene.node.take == "all" or course.agenda):
        return scene, way.to
    later = [to for to in _forked(scene) if to not in course.agenda and scene.policy.nodes[to].name != way.to]
    done = sorted(_done_after(scene)) if scene.policy.awaited else ()
    scene = scene.with_course(agenda=(*course.agenda, *later), done=tuple(done))
    if chosen if is_end else not _waits(scene, way.to):
        return scene, way.to
    return scene, next(iter(_upcoming(scene)), END if is_end else None)


def _is_open(scene: Scene, way: Exit) -> bool:
    """Return whether an exit may be taken: its node has a visit left, and if that node waits, the agenda continues instead."""
    return scene.has_visit(way.to) and (not _waits(scene, way.to) or bool(_upcoming(scene)))


def _choices(scene: Scene, ways: Iterable[Exit]) -> list[Exit]:
    """Return exits; an exit to a node that waits is replaced by an exit to each node of the agenda that may be entered."""
    return [
        one
        for way in ways
        for one in ([way.model_copy(update={"to": to}) for to in _upcoming(scene)] if _waits(scene, way.to) else [way])
    ]


def _waits(scene: Scene, to: str) -> bool:
    """Return whether a node still waits for other nodes when the present node has been left."""
    awaited = None if to == END else scene.policy.awaited.get(scene.policy.node_numbers[to])
    return awaited is not None and not awaited <= _done_after(scene)


def _upcoming(scene: Scene) -> list[str]:
    """Return the nodes of the agenda that may be entered when the present node has been left, in their order."""
    names = [scene.policy.nodes[number].name for number in scene.course.agenda]
    return [name for name in names if scene.has_visit(name) and not _waits(scene, name)]


def _forked(scene: Scene, *, only_open: bool = True) -> list[int]:
    """Return the nodes to which a fork leads, in the order of its exits; only those whose conditions hold, or all of them."""
    if scene.node.take == "one":
        return []
    ways = [way for way in scene.node.exits if way.to != END and scene.has_visit(way.to)]
    open_ways = [way for way in ways if not only_open or way.when is None or holds(way.when, scene)]
    return list(dict.fromkeys(scene.policy.node_numbers[way.to] for way in open_ways))


def _done_after(scene: Scene) -> set[int]:
    """Return the nodes that are done when the present node has been left. A fork begins its branches again."""
    return {*scene.course.done, scene.course.node} - _branches(scene)


def _branches(scene: Scene) -> set[int]:
    """Return the nodes of a fork's branches: its targets, and the nodes after them up to a node that waits for others."""
    policy, fork = scene.policy, scene.course.node
    forked = set(_forked(scene, only_open=False))
    found, left = {fork}, forked - {fork}
    while ready := {number for number in left if found.issuperset(policy.awaited.get(number, ()))}:
        found |= ready
        left = left.union(*(policy.targets[number] for number in ready)) - found
    return forked | found - {fork}


def holds(when: Condition, scene: Scene) -> bool:
    """Return whether all parts of a condition hold."""
    course = scene.course
    return (
        (when.turns is None or course.turns >= when.turns)
        and (when.rounds is None or scene.has_had(when.rounds))
        and (when.visits is None or course.visits[course.node] >= when.visits)
        and (when.field is None or _is_fulfilled(when, when.field, scene))
        and (when.left is None or when.at_most is None or _count_left(scene, when.left) <= when.at_most)
    )


def _count_left(scene: Scene, role: str) -> int:
    number = scene.policy.role_numbers[role]
    return sum(not member.removed and number in member.roles for member in scene.state.members)


def removed_by(removal: Removal, scene: Scene) -> int | None:
    """Return the member that is removed: the most named, or the last named one; None without one, or in a tie."""
    named = [AgentId(str(value)) for _, value in _field_values(removal.field, scene)]
    counts = Counter(named[-1:] if removal.by == "last" else named).most_common(2)
    if not counts or (removal.ties == "none" and len({count for _, count in counts}) < len(counts)):
        return None
    return scene.state.number_of(counts[0][0])


def _field_values(field: str, scene: Scene) -> Sequence[tuple[int, FieldValue]]:
    """Return the values of a field of the members of the group, in the order of their messages."""
    names = [one.name for one in scene.node.tested]
    told = scene.course.told
    return told[names.index(field)] if told else ()


def _is_fulfilled(when: Condition, field: str, scene: Scene) -> bool:
    """Return whether the values of a field fulfil a condition; with `of`, only values from holders of that role count."""
    role = None if when.of is None else scene.policy.role_numbers[when.of]

    def counts(number: int) -> bool:
        return role is None or role in scene.state.members[number].roles

    def is_so(value: FieldValue) -> bool:
        return value == when.equals if when.equals is not None else when.like is None or looks_like(str(value), when.like)

    told = [(by, value) for by, value in _field_values(field, scene) if counts(by)]
    so = [by for by, value in told if is_so(value)]
    match when.by:
        case "last":
            return bool(so) and so[-1] == told[-1][0]
        case "any":
            return bool(so)
        case "all":
            asked = set(filter(counts, scene.present))
            return bool(asked) and asked.issubset(so)
        case "most":
            asked = set(filter(counts, scene.cast.held))
            return 2 * len(asked.intersection(so)) > len(asked)


def looks_like(text: str, pattern: str) -> bool:
    """Return True if a text matches a pattern: `*` is any text, `?` any character, `#` a digit; case does not count."""
    return fnmatchcase(text.casefold(), pattern.casefold().replace("[", "[[]").replace("#", "[0-9]"))
