"""Three robots sort three cubes. Each sees only the panels in its reach and reports them; a robot with full knowledge plans.

    ioa agent run examples/robots/sort_hidden.py:alice    # and bob, chad and table
    echo '{"seed": 7}' > world.json
    ioa run "$(python examples/robots/sort_hidden.py)" --agent alice --input world.json

The world is an agent without memory, so that any process may die and nothing is executed twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cubes import GOAL, REACH, TABLE, TARGETS, executed, joint_action, plan, rebuild_world
from ioa import Agent, Heard, TaskContext, TurnView
from ioa.brain import Said

MAX_REPLANS = 5

table = Agent(TABLE, description="A table that moves the cubes as robots say.", examples=["the table moves the cubes"])


@table.task
def execute(task: str, ctx: TaskContext) -> str:
    """Execute a joint action, written as JSON, or refuse it."""
    world, answered = rebuild_world(ctx.inputs, ctx.conversation)
    joint = joint_action(task)
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
        seen = rebuild_world(view.inputs, view.conversation)[0].observe(name)
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
