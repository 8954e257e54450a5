"""The next speaker of a node. Random choices are hashes of the position, so that a replayed log gives the same order."""

from __future__ import annotations

import hashlib

from ioa.group.policy.casting import Scene


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
        named: The named member. If it is not present, the hub speaks, or the next member in order.
    """
    last = scene.course.last
    if not scene.present:
        return None
    if scene.node.turns.mode == "random":
        return _drawn(scene)
    if scene.node.turns.follow and (follower := _follower(scene)) is not None:
        return follower
    hub = present_hub(scene) if scene.node.turns.mode == "hub" else None
    if hub is not None and (last != hub or (named is not None and named not in scene.present)):
        return hub
    if named in scene.present:
        return named
    if last is None:
        return scene.present[0]
    return next(filter(scene.present.__contains__, scene.following(last)))  # the last speaker if no other is present


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
    return scene.others(by) if by == present_hub(scene) else ()


def present_hub(scene: Scene) -> int | None:
    """Return the member that speaks after each other member; None without a hub, or if it is not present."""
    turns = scene.node.turns
    return next(iter(scene.holders(turns.by)), None) if turns.mode == "hub" and turns.by is not None else None


def _follower(scene: Scene) -> int | None:
    """Return the first present member of the role that follows the last speaker's role; None without one."""
    turns, last = scene.node.turns, scene.course.last
    held = () if last is None else scene.state.members[last].roles
    roles = [name for name in scene.node.roles if name in turns.follow and scene.policy.role_numbers[name] in held]
    followers = scene.holders(turns.follow[roles[0]]) if roles else ()
    return next((one for one in followers if turns.repeat or one != last), None)


def _drawn(scene: Scene) -> int:
    course, able = scene.course, choices(scene)
    key = f"{scene.policy.seed}/{scene.state.comm_id}/{scene.node.name}/{course.visits[course.node]}/{course.turns}"
    return able[int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % len(able)]
