"""A world of three cubes on seven panels, and a planner with full knowledge.

Its state follows from its seed and from the executed actions in the conversation. It follows the rules of the task `sort` of
RoCoBench (MandiZhao/robot-collab, MIT), with hidden panels.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from ioa import Heard, InputFile

TARGETS = {"blue": 2, "pink": 4, "yellow": 6}
REACH = {"alice": (1, 2, 3), "bob": (3, 4, 5), "chad": (5, 6, 7)}
PANELS = range(1, 8)
TABLE = "table"
_PARTS = [f"{robot} reaches the panels {panels[0]} to {panels[-1]}" for robot, panels in REACH.items()]
GOAL = "\n".join(f"{number}. {part}" for number, part in enumerate([*_PARTS, "the table moves the cubes"], 1))

STARTS = [
    tuple(zip(TARGETS, panels, strict=True))
    for panels in permutations(PANELS, len(TARGETS))
    if not any(panel == target for panel, target in zip(panels, TARGETS.values(), strict=True))
]
"""Where the cubes may be in the beginning: in one of 134 ways, none of them on its own panel."""

Places = Mapping[str, int]
"""The panel of each cube."""
Joint = Mapping[str, tuple[str, int]]
"""The cube that each robot picks and the panel it puts it on; a robot that is not named waits."""


@dataclass(frozen=True)
class World:
    """Where the cubes are. A refused action changes nothing."""

    places: tuple[tuple[str, int], ...]

    @classmethod
    def reset(cls, seed: int) -> World:
        """Place the cubes by a seed."""
        return cls(random.Random(seed).choice(STARTS))  # noqa: S311 - a world is no secret

    @property
    def done(self) -> bool:
        """Whether each cube is on its own panel."""
        return dict(self.places) == TARGETS

    def observe(self, robot: str) -> str:
        """Return the view of a robot in plain sentences."""
        seen = {panel: cube for cube, panel in self.places if panel in REACH[robot]}
        return " ".join(
            f"The {seen[panel]} cube is on panel {panel}." if panel in seen else f"Panel {panel} is empty."
            for panel in REACH[robot]
        )

    def objection(self, joint: Joint) -> str | None:
        """Say why an action cannot be executed; None if it can."""
        places = dict(self.places)
        if not joint:
            return "all wait"
        for robot, (cube, panel) in joint.items():
            if robot not in REACH or cube not in places:
                return f"there is no {robot} or no {cube} cube"
            if places[cube] not in REACH[robot] or panel not in REACH[robot]:
                return f"{robot} does not reach that"
            if panel in TARGETS.values() and panel != TARGETS[cube]:
                return f"panel {panel} is another cube's"
            if panel in places.values():
                return f"panel {panel} is taken"
        if len({cube for cube, _ in joint.values()}) < len(joint) or len({panel for _, panel in joint.values()}) < len(joint):
            return "two robots want the same"
        return None

    def act(self, joint: Joint) -> World:
        """Execute a legal action."""
        return World(tuple({**dict(self.places), **dict(joint.values())}.items()))


def plan(places: Places) -> Joint:
    """Return the first action of a shortest way to the end, found breadth first."""
    start = World(tuple(places.items()))
    seen, waiting = {start}, deque[tuple[World, Joint]]([(start, {})])
    while waiting:
        world, first = waiting.popleft()
        if world.done:
            return first
        for joint in _actions(world):
            after = world.act(joint)
            if after not in seen:
                seen.add(after)
                waiting.append((after, first or joint))
    return {}


def _actions(world: World) -> Iterator[Joint]:
    alone = [(robot, cube, panel) for robot, panels in REACH.items() for cube in TARGETS for panel in panels]
    able = [(robot, (cube, panel)) for robot, cube, panel in alone if world.objection({robot: (cube, panel)}) is None]
    choices = [[None, *(move for who, move in able if who == robot)] for robot in REACH]
    for chosen in product(*choices):
        joint = {robot: one for robot, one in zip(REACH, chosen, strict=True) if one is not None}
        if world.objection(joint) is None:
            yield joint


def rebuild_world(inputs: Iterable[InputFile], conversation: Sequence[Heard]) -> tuple[World, int]:
    """Return the world after the executed actions, and the number of answered actions."""
    [seed] = [json.loads(file.path.read_bytes())["seed"] for file in inputs if file.name == "world.json"]
    world = World.reset(seed)
    for joint in executed(conversation):
        world = world.act(joint)
    return world, sum(one.kind == "result" and one.sender == TABLE for one in conversation)


def executed(conversation: Sequence[Heard]) -> Iterator[Joint]:
    """Return the executed joint actions, in order."""
    tasks = {one.task_id: one.content for one in conversation if one.kind == "task"}
    for one in conversation:
        if one.kind == "result" and one.sender == TABLE and one.content.startswith("EXECUTED"):
            yield joint_action(tasks[one.task_id])


def joint_action(task: str) -> Joint:
    """Read a joint action, written as JSON."""
    return {robot: (str(cube), int(panel)) for robot, (cube, panel) in json.loads(task).items()}
