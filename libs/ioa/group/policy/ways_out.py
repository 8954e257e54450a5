"""Which way leads out of a node."""

from __future__ import annotations

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
        return next(way for way in node.exits if way.by == "speaker" and way.to == go)
    for way in node.exits:
        if way.by == "rule" and way.when is not None and is_open(scene, way) and holds(way.when, scene):
            return way
    if node.max is not None:
        return at_last(scene) if scene.course.turns >= node.max else None
    if all(way.is_bare for way in node.exits) and has_had(scene, 1):
        return at_last(scene)
    return None


def at_last(scene: Scene) -> Exit:
    """Return the exit of a node whose turns are over: the first bare one, else the first open one, else the end."""
    ways = [way for way in scene.node.exits if is_open(scene, way)]
    return next((way for way in ways if way.is_bare), ways[0] if ways else _TO_THE_END)


def past(scene: Scene) -> Exit:
    """Return the exit of a node in which nobody is present: the first of a rule, else the first open one, else the end."""
    ways = [way for way in scene.node.exits if is_open(scene, way)]
    return next((way for way in ways if way.by == "rule"), ways[0] if ways else _TO_THE_END)


def judged(scene: Scene) -> tuple[Exit, ...]:
    """Return the exits that the judge of a node may choose now, one to each node."""
    ways = [way for way in scene.node.exits if way.judge is not None and is_open(scene, way)]
    return tuple({way.to: way for way in reversed(ways) if way.when is None or holds(way.when, scene)}.values())[::-1]


def is_judged(scene: Scene, *, gathered: bool) -> bool:
    """Whether the judge is asked after this turn. What several say side by side is a round."""
    node, turns = scene.node, scene.course.turns
    if node.judge is None or not scene.present:
        return False
    return gathered or node.asked == "turn" or turns % len(scene.present) == 0


def is_open(scene: Scene, way: Exit) -> bool:
    """Whether the node that an exit leads to may be entered once more."""
    if way.to == END:
        return True
    number = scene.policy.node_numbers[way.to]
    visits = scene.policy.nodes[number].visits
    return visits is None or scene.course.visits[number] < visits
