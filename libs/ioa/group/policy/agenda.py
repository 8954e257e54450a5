"""Fork and join: a node is left by all of its ways, one after the other, and another one waits until all that lead to it are done.

What is not taken at once is on the agenda. It goes on where a branch has come to its end, or to a node that still waits.
"""

from __future__ import annotations

from ioa.group.policy.casting import Scene
from ioa.group.policy.conditions import holds
from ioa.group.state import Course
from ioa.protocol.policy import END, Exit


def has_visit(scene: Scene, to: str) -> bool:
    """Whether a node, or the end, may be entered as often as it would be now."""
    if to == END:
        return True
    number = scene.policy.node_numbers[to]
    visits = scene.policy.nodes[number].visits
    return visits is None or scene.course.visits[number] < visits


def waits(scene: Scene, to: str) -> bool:
    """Whether a node waits for others, once the one in which the group is has been left."""
    if not scene.policy.forks or to == END:
        return False
    awaited = scene.policy.awaited.get(scene.policy.node_numbers[to], frozenset())
    return bool(awaited) and not _done_behind(scene).issuperset(awaited)


def upcoming(scene: Scene) -> tuple[str, ...]:
    """Name the nodes on the agenda that may be entered once the one in which the group is has been left, in their order."""
    names = [scene.policy.nodes[number].name for number in scene.course.agenda]
    return tuple([name for name in names if has_visit(scene, name) and not waits(scene, name)])


def alternatives(scene: Scene, way: Exit) -> tuple[Exit, ...]:
    """Return an exit; in place of one to a node that still waits one to each node on the agenda, of which is chosen."""
    if not waits(scene, way.to):
        return (way,)
    return tuple([way.model_copy(update={"to": name}) for name in upcoming(scene)])


def left_by(scene: Scene, way: Exit, *, chosen: bool = False) -> tuple[Course, str | None]:
    """Return the course when a node is left, and what is entered then; None if all that it could be waits for good.

    Args:
        scene: The node.
        way: By which exit it is left.
        chosen: Whether somebody has chosen it: then the end is the end, whatever is on the agenda.
    """
    course = scene.course
    if not scene.policy.forks:
        return course, way.to
    later = [number for number in _forked(scene) if scene.policy.nodes[number].name != way.to and number not in course.agenda]
    course = course.model_copy(update={"agenda": (*course.agenda, *later), "done": tuple(sorted(_done_behind(scene)))})
    behind = scene._replace(course=course)
    if chosen if way.to == END else not waits(behind, way.to):
        return course, way.to
    return course, next(iter(upcoming(behind)), END if way.to == END else None)


def _forked(scene: Scene, *, only_open: bool = True) -> tuple[int, ...]:
    """Return all nodes that are entered, one after the other, when a node is left by all of its ways.

    Args:
        scene: The node.
        only_open: Whether ways are left out whose condition does not hold.
    """
    if scene.node.take == "one":
        return ()
    ways = [way for way in scene.node.exits if way.to != END and (not only_open or way.when is None or holds(way.when, scene))]
    return tuple(dict.fromkeys(scene.policy.node_numbers[way.to] for way in ways if has_visit(scene, way.to)))


def _done_behind(scene: Scene) -> frozenset[int]:
    """Return what is done when the node has been left in which the group is; what its branches consist of is to be done anew."""
    return frozenset({*scene.course.done, scene.course.node}.difference(_branches_of(scene)))


def _branches_of(scene: Scene) -> frozenset[int]:
    """Return what a node forks to, now or not, and what that leads to: up to a node that waits for others, or to the fork."""
    policy, node, forked = scene.policy, scene.course.node, frozenset(_forked(scene, only_open=False))
    found, left = {node}, set(forked - {node})
    while ready := {number for number in left if found.issuperset(policy.awaited.get(number, ()))}:
        found |= ready
        left = left.union(*(policy.targets[number] for number in ready)) - found
    return forked | found - {node}
