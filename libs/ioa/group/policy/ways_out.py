"""Which way leads out of a node."""

from __future__ import annotations

from collections.abc import Iterable

from ioa.group.policy.agenda import alternatives, has_visit, upcoming, waits
from ioa.group.policy.casting import Scene
from ioa.group.policy.conditions import has_had, holds
from ioa.protocol.policy import END, Exit

_TO_THE_END = Exit(to=END)


def way_out(scene: Scene, go: str | None) -> Exit | None:
    """Return by which exit the group goes on after a turn; None if the node goes on.

    Args:
        scene: The node after the turn was counted.
        go: What the speaker chose; it was offered.
    """
    node = scene.node
    if go is not None:
        return way_to(scene, go, [way for way in node.exits if way.by == "speaker"])
    for way in node.exits:
        if way.by == "rule" and way.when is not None and is_open(scene, way) and holds(way.when, scene):
            return way
    if node.max is not None:
        return at_last(scene) if scene.course.turns >= node.max else None
    if all(way.is_bare for way in node.exits) and has_had(scene, 1):
        return at_last(scene)
    return None


def way_to(scene: Scene, chosen: str, ways: Iterable[Exit]) -> Exit:
    """Return the first of some exits by which what was chosen is reached."""
    return next(one for way in ways for one in alternatives(scene, way) if one.to == chosen)


def at_last(scene: Scene) -> Exit:
    """Return the exit of a node whose turns are over: the first bare one, else the first open one, else the end."""
    ways = [way for way in scene.node.exits if is_open(scene, way)]
    return next((way for way in ways if way.is_bare), ways[0] if ways else _if_none_is_open(scene))


def past(scene: Scene) -> Exit:
    """Return the exit of a node in which nobody is present: the first of a rule, else the first open one, else the end.

    If somebody has spoken in it and nobody is left who could go on, its turns are over.
    """
    if scene.course.turns:
        return at_last(scene)
    ways = [way for way in scene.node.exits if is_open(scene, way)]
    return next((way for way in ways if way.by == "rule"), ways[0] if ways else _if_none_is_open(scene))


def _if_none_is_open(scene: Scene) -> Exit:
    """Return the end, unless an exit leads to a node that waits: the group does not end as if that had been entered."""
    return next((way for way in scene.node.exits if has_visit(scene, way.to) and waits(scene, way.to)), _TO_THE_END)


def judged(scene: Scene) -> tuple[Exit, ...]:
    """Return the exits that the judge of a node may choose now, one to each node."""
    return offered_ways(scene, [way for way in scene.node.exits if way.judge is not None])


def offered_ways(scene: Scene, ways: Iterable[Exit]) -> tuple[Exit, ...]:
    """Return those of some exits that may be chosen now, one to each node."""
    able = [way for way in ways if is_open(scene, way) and (way.when is None or holds(way.when, scene))]
    if not able:
        return ()
    return tuple({one.to: one for way in reversed(able) for one in reversed(alternatives(scene, way))}.values())[::-1]


def is_judged(scene: Scene, *, gathered: bool) -> bool:
    """Whether the judge is asked after this turn. What several say side by side is a round."""
    node, turns = scene.node, scene.course.turns
    if node.judge is None or not scene.present:
        return False
    return gathered or node.asked == "turn" or turns % len(scene.present) == 0


def is_open(scene: Scene, way: Exit) -> bool:
    """Whether an exit may be taken: its node may be entered once more, and if that still waits the agenda goes on."""
    return has_visit(scene, way.to) and (not waits(scene, way.to) or bool(upcoming(scene)))
