"""Which way leads out of a node."""

from __future__ import annotations

from ioa.group.policy.casting import Scene
from ioa.group.policy.conditions import has_had, holds
from ioa.protocol.policy import END, Exit


def way_out(scene: Scene, go: str | None) -> str | None:
    """Return where the group goes on after a turn; None if the node goes on.

    Args:
        scene: The node after the turn was counted.
        go: What the speaker chose; it was offered.
    """
    if go is not None:
        return go
    node = scene.node
    for way in node.exits:
        if way.by == "rule" and way.when is not None and is_open(scene, way) and holds(way.when, scene):
            return way.to
    if node.max is not None:
        return at_last(scene) if scene.course.turns >= node.max else None
    if all(way.is_bare for way in node.exits) and has_had(scene, 1):
        return at_last(scene)
    return None


def at_last(scene: Scene) -> str:
    """Return the exit of a node whose turns are over: the first bare one, else the first open one, else the end."""
    ways = [way for way in scene.node.exits if is_open(scene, way)]
    return next((way.to for way in ways if way.is_bare), ways[0].to if ways else END)


def past(scene: Scene) -> str:
    """Return the exit of a node in which nobody is present: the first of a rule, else the first open one, else the end."""
    ways = [way for way in scene.node.exits if is_open(scene, way)]
    return next((way.to for way in ways if way.by == "rule"), ways[0].to if ways else END)


def is_open(scene: Scene, way: Exit) -> bool:
    """Whether the node that an exit leads to may be entered once more."""
    if way.to == END:
        return True
    number = scene.policy.node_numbers[way.to]
    visits = scene.policy.nodes[number].visits
    return visits is None or scene.course.visits[number] < visits
