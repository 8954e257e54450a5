"""The next speaker of a node. Random choices are hashes of the position, so that a replayed log gives the same order."""

from __future__ import annotations

import hashlib

from ioa.group.policy.casting import Scene


def first_speaker(scene: Scene) -> int | None:
    """Return the first speaker of a visit without an opening; None if no member is present."""
    if not scene.present:
        return None
    match scene.node.turns.mode:
        case "hub":
            return next(iter(_hub(scene)), scene.present[0])
        case "random":
            return _drawn(scene)
        case _:
            return scene.present[0]


def opener(scene: Scene) -> int | None:
    """Return the member that opens a visit; None if it has begun, has no opening, or that member is not present."""
    if scene.node.opens is None or scene.course.last is not None:
        return None
    return next(iter(scene.holders(scene.node.opens.role)), None)


def seats(scene: Scene) -> tuple[int, ...]:
    """Return the present members that speak in parallel, as long as the node has turns for them."""
    most = scene.node.max
    return scene.present if most is None else scene.present[: max(1, most - scene.course.turns)]


def choices(scene: Scene) -> tuple[int, ...]:
    """Return the members that the role may choose that is asked for the next speaker."""
    return scene.present if scene.node.turns.repeat else scene.others(scene.course.last) or scene.present


def next_speaker(scene: Scene, named: int | None = None) -> int | None:
    """Return the speaker after the last one; None if no member is present.

    Args:
        scene: The node after the turn was counted.
        named: The member that the last speaker named.
    """
    course, turns = scene.course, scene.node.turns
    if course.last is None:
        return first_speaker(scene)
    if not scene.present:
        return None
    if turns.mode == "random":
        return _drawn(scene)
    hub = _hub(scene)[:1] if turns.mode == "hub" else ()
    if hub and course.last != hub[0]:
        return hub[0]
    if named is not None and turns.mode in ("hub", "nominate"):
        return named
    return next(filter(scene.present.__contains__, scene.following(course.last)))  # the last speaker if no other is present


def most_named(scene: Scene, turns_left: int) -> int:
    """Return how many members a speaker may name in parallel: several only as a hub, within the turns of node and group."""
    node = scene.node
    if node.turns.mode != "hub":
        return 1
    left = turns_left - 1 if node.max is None else min(turns_left, node.max - scene.course.turns) - 1
    return max(1, left)


def may_be_named(scene: Scene, by: int) -> tuple[int, ...]:
    """Return the members that a speaker may name as the next one."""
    turns = scene.node.turns
    if turns.mode == "nominate":
        return scene.present if turns.repeat else scene.others(by)
    return scene.others(by) if turns.mode == "hub" and by in _hub(scene)[:1] else ()


def _hub(scene: Scene) -> tuple[int, ...]:
    assert scene.node.turns.by is not None, "the checker lets no hub pass without its role"
    return scene.holders(scene.node.turns.by)


def _drawn(scene: Scene) -> int:
    course, able = scene.course, choices(scene)
    key = f"{scene.policy.seed}/{scene.state.comm_id}/{scene.node.name}/{course.visits[course.node]}/{course.turns}"
    return able[int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % len(able)]
