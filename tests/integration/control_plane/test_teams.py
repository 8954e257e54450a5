"""The teams that ship, run on a whole system: who speaks when is what their policy says, and each goal has its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from ioa import Agent
from ioa.agent.turn_view import TurnView
from ioa.client.seat import PersonReply, PersonSeat
from ioa.concurrency import beside
from ioa.group.events import Said
from ioa.ports.brain import WholeConclusion
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.messages import AsyncTaskAssignment, Decision, Discussion, InformTaskResult, SyncTaskAssignment
from ioa.protocol.team import Filling, TeamSpec, read_toml
from ioa_testkit.finished import FinishedGoal
from ioa_testkit.system import System
from tests.unit.protocol.policies import SHIPPED

CHOICES: Mapping[str, Sequence[str]] = {
    "outliner": ("go section", "go section", "go finish"),
    "reviewer": ("go code", "go release"),
    "host": ("to gardener", "to sceptic", "go closing"),
    "moderator": ("decide stay", "decide end"),
    "judge": ("decide stay", "decide verdict"),
    "director": ("decide human-luna", "decide harry", "decide human-luna", "decide end"),
}
"""What members choose, one after the other, where there is something to choose."""

FILLED_IN: Mapping[str, str] = {"agrees": "yes", "phone": "12345678"}
"""What is filled in where no member and no option is asked for."""

EXPECTED: Mapping[str, str] = {
    "company": "manager architect manager architect manager coder reviewer coder reviewer manager",
    "debate": "for against for against for against chair",
    "judged-debate": "for against judge for against judge judge",
    "panel": "optimist pessimist engineer moderator optimist pessimist engineer moderator",
    "interview": "host gardener host gardener host sceptic host host",
    "fiction": "director critic director human-luna director harry director human-luna director",
    "service": "clerk human-caller clerk human-caller",
    "paper": "topic reader outliner author editor",
    "paper-loop": "analyst reader outliner writer outliner writer outliner editor",
}
TASKS: Mapping[str, Sequence[str]] = {"company": ["part of turn 6"] * 2 + ["part of turn 9"] * 2}
"""What members did that were given tasks."""
GAMES = {"undercover", "undercover-hosted", "werewolf"}
"""They are played where it is told who hears what."""


def named(file: str) -> TeamSpec:
    """A team that ships, with an agent for each role that is called like it."""
    team = read_toml((SHIPPED / f"{file}.toml").read_text())
    return team.model_copy(update={"fillings": tuple(Filling(role=one.role, agents=(one.role,)) for one in team.fillings)})


def member(role: str) -> Agent:
    """An agent that says its role and turn, chooses as `CHOICES` tell, and fills in the first of what a form gives."""
    agent, left = Agent(role, description=f"Plays {role}."), list(CHOICES.get(role, ()))

    @agent.task
    def run(task: str) -> str:
        return task

    @agent.speak
    def speak(view: TurnView) -> Discussion | Decision | WholeConclusion | SyncTaskAssignment | AsyncTaskAssignment:
        words = f"{role} in turn {view.turn}"
        if "CONCLUSION" in view.legal:
            return view.conclude(f"{role} concludes.")
        assert view.offer is not None and view.part is not None and role in view.part.roles
        if view.offer.options:
            return view.decide(left.pop(0).removeprefix("decide "))
        if view.offer.tasks and all(task.spec.task_id.split("-")[0] != f"t{view.turn - 1}" for task in view.tasks):
            return view.assign({mate.agent_id: f"part of turn {view.turn}" for mate in view.team[:2]})
        if view.offer.form:
            return view.say(
                words, fields={blank.name: next(iter(blank.options), True) for blank in view.offer.form if blank.required}
            )
        if not left or not (view.offer.go or view.offer.next_speakers):
            return view.say(words)
        verb, _, what = left.pop(0).partition(" ")
        return view.say(words, to=what) if verb == "to" else view.say(words, go=what)

    return agent


async def answering(seat: PersonSeat) -> None:
    """Be a person that answers whatever it is asked."""
    while True:
        async for one in seat.awaited():
            await seat.answer(
                one.item, PersonReply(f"turn {one.item}", fields={blank.name: FILLED_IN[blank.name] for blank in one.offer.form})
            )
        await asyncio.sleep(0.02)


def speakers(finished: FinishedGoal) -> str:
    """Who spoke or decided, in order."""
    said = [one.entry.event.message for one in finished.log if isinstance(one.entry.event, Said)]
    return " ".join(one.header.sender for one in said if isinstance(one.payload, Discussion | Decision))


def results(finished: FinishedGoal) -> list[str]:
    """What tasks came to."""
    said = [one.entry.event.message.payload for one in finished.log if isinstance(one.entry.event, Said)]
    return sorted(one.task_conclusion for one in said if isinstance(one, InformTaskResult))


@pytest.mark.slow
async def test_each_team_that_ships_runs_as_it_says(ioa_system: System) -> None:
    """On a real nats-server, with the services and clients that run in production."""
    ioa_system.within = timedelta(minutes=1)  # for each goal, on a machine that does much else
    teams = {file.stem: named(file.stem) for file in sorted(SHIPPED.glob("*.toml"))}
    roles = dict.fromkeys(role.name for team in teams.values() for role in team.policy.roles)
    async with ioa_system.serve(*map(member, roles)) as running:
        for file, team in teams.items():
            if file in GAMES:
                continue
            people = [running.seat(role.name) for role in team.policy.roles if role.human]
            async with beside(*map(answering, people)):
                finished = await running.run(GoalOrder(goal=team.goal, team=team))
            assert finished.result.reason is Reason.CONCLUDED
            assert speakers(finished) == EXPECTED[file], file
            assert results(finished) == TASKS.get(file, []), file
