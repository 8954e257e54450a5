"""Three robots sort three cubes. Each sees only the panels in its reach and reports them; a robot with full knowledge plans.

    ioa agent run examples/robots/sort_hidden.py:alice    # and bob, chad and table
    echo '{"seed": 7}' > world.json
    ioa run "$(python examples/robots/sort_hidden.py)" --agent alice --input world.json

The world is an agent without memory: its state follows from its seed and from the executed actions in the conversation,
so that any process may die and nothing is executed twice. The rules of the world are those of the task `sort` of RoCoBench
(MandiZhao/robot-collab, MIT), with hidden panels.
"""

from __future__ import annotations

import json
import random
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from ioa import Agent, Heard, InputFile, TaskContext, TurnView
from ioa.brain import Said

TARGETS = {"blue": 2, "pink": 4, "yellow": 6}
REACH = {"alice": (1, 2, 3), "bob": (3, 4, 5), "chad": (5, 6, 7)}
PANELS = range(1, 8)
TABLE = "table"
MAX_REPLANS = 5
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


def world_of(inputs: Iterable[InputFile], conversation: Sequence[Heard]) -> tuple[World, int]:
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
            yield _joint(tasks[one.task_id])


def _joint(task: str) -> Joint:
    return {robot: (str(cube), int(panel)) for robot, (cube, panel) in json.loads(task).items()}


table = Agent(TABLE, description="A table that moves the cubes as robots say.", examples=["the table moves the cubes"])


@table.task
def execute(task: str, ctx: TaskContext) -> str:
    """Execute a joint action, written as JSON, or refuse it."""
    world, answered = world_of(ctx.inputs, ctx.conversation)
    joint = _joint(task)
    if why := world.objection(joint):
        return f"REFUSED {answered + 1}: {why}."
    return f"EXECUTED {answered + 1}{': the cubes are sorted' if world.act(joint).done else ''}."


@dataclass(frozen=True)
class Turn:
    """The turn of a robot: a message to another robot, to the table, or at the end without an addressee."""

    text: str
    to: str = ""
    reached: bool = True


def turn_of(name: str, observation: str, conversation: Sequence[Heard]) -> Turn:
    """Return an action if all cubes are known, otherwise a report to a robot that has not spoken yet.

    Moves are in the conversation too, so no report is repeated; a robot that reads of the end concludes.
    """
    answers = [one.content for one in conversation if one.kind == "result"]
    if answers and "sorted" in answers[-1]:
        return Turn(f"The cubes are sorted, by {sum(one.startswith('EXECUTED') for one in answers)} actions.")
    if sum(one.startswith("REFUSED") for one in answers) > MAX_REPLANS:
        return _GIVEN_UP
    told = [one for one in conversation if one.kind == "message"]
    places = _seen(" ".join(one.content for one in told))
    for joint in executed(conversation):
        places |= dict(joint.values())
    places |= _seen(observation)
    silent = REACH.keys() - {name, *(one.sender for one in told)}
    if silent and places.keys() != TARGETS.keys():
        return Turn(observation, min(silent))
    return Turn(json.dumps(plan(places) if places.keys() == TARGETS.keys() else {}), TABLE)


def _seen(told: str) -> dict[str, int]:
    return {cube: int(panel) for cube, panel in re.findall(r"The (\w+) cube is on panel (\d)", told)}


_GIVEN_UP = Turn("The cubes could not be sorted.", reached=False)


def robot(name: str) -> Agent:
    """Create a robot that reports what it sees."""
    reach = f"{name} reaches the panels {REACH[name][0]} to {REACH[name][-1]}"
    agent = Agent(name, description=f"A robot: {reach}.", examples=[reach])

    @agent.task
    def run(task: str) -> str:
        return "I move cubes only together with the others."

    @agent.speak
    def speak(view: TurnView) -> Said:
        seen = world_of(view.inputs, view.conversation)[0].observe(name)
        turn = turn_of(name, seen, view.conversation)
        if turn.to and "SYNC_TASK_ASSIGNMENT" not in view.legal:
            turn = _GIVEN_UP
        if not turn.to:
            return view.conclude(turn.text, reached=turn.reached)
        if turn.to == TABLE:
            return view.assign({TABLE: turn.text})
        return view.say(turn.text, to=turn.to)

    return agent


alice, bob, chad = (robot(name) for name in REACH)

if __name__ == "__main__":
    print(GOAL)
