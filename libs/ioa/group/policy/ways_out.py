"""The exits of a node: which one is taken after a turn, and which ones may be chosen."""

from __future__ import annotations

from collections.abc import Iterable

from ioa.group.policy.casting import Scene
from ioa.group.policy.conditions import has_had, holds
from ioa.protocol.policy import END, Exit

_TO_THE_END = Exit(to=END)


def way_out(scene: Scene, go: str | None) -> Exit | None:
    """Return the exit that is taken after a turn; None if the node goes on.

    Args:
        scene: The node after the turn was counted.
        go: The target that the speaker chose, one of the offered ones.
    """
    node = scene.node
    if go is not None:
        return next(way for way in node.exits if way.by == "speaker" and way.to == go)
    for way in node.exits:
        if way.by == "rule" and way.when is not None and has_visit(scene, way.to) and holds(way.when, scene):
            return way
    if node.max is not None:
        return at_last(scene) if scene.course.turns >= node.max else None
    if all(way.is_bare for way in node.exits) and has_had(scene, 1):
        return at_last(scene)
    return None


def at_last(scene: Scene) -> Exit:
    """Return the exit of a node whose turns are over: the first bare one, otherwise the first open one, otherwise the end."""
    ways = _open(scene)
    return next((way for way in ways if way.is_bare), ways[0] if ways else _TO_THE_END)


def past(scene: Scene) -> Exit:
    """Return the exit of a node in which no member is present: the first open rule, otherwise the first open exit, or the end.

    If a member has spoken in it, its turns are over.
    """
    if scene.course.turns:
        return at_last(scene)
    ways = _open(scene)
    return next((way for way in ways if way.by == "rule"), ways[0] if ways else _TO_THE_END)


def judged(scene: Scene) -> tuple[Exit, ...]:
    """Return the exits that the judge of a node may choose now, one to each node."""
    return offered_ways(scene, [way for way in scene.node.exits if way.judge is not None])


def offered_ways(scene: Scene, ways: Iterable[Exit]) -> tuple[Exit, ...]:
    """Return those of some exits that may be chosen now, one to each node."""
    able = [way for way in ways if has_visit(scene, way.to) and (way.when is None or holds(way.when, scene))]
    return tuple({way.to: way for way in reversed(able)}.values())[::-1]


def is_judged(scene: Scene, *, gathered: bool) -> bool:
    """Return True if the judge is asked after this turn. A parallel turn of several members is a round."""
    node, turns = scene.node, scene.course.turns
    if node.judge is None or not scene.present:
        return False
    return gathered or node.asked == "turn" or turns % len(scene.present) == 0


def has_visit(scene: Scene, to: str) -> bool:
    """Return True if a node may be entered again; the end always may."""
    if to == END:
        return True
    number = scene.policy.node_numbers[to]
    visits = scene.policy.nodes[number].visits
    return visits is None or scene.course.visits[number] < visits


def _open(scene: Scene) -> list[Exit]:
    return [way for way in scene.node.exits if has_visit(scene, way.to)]
