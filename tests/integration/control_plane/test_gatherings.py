"""Judges, forms and votes on a whole system: who is asked decides, and who speaks beside others reads them afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from ioa import Agent, TurnView
from ioa.agent.hooks import Said as Spoken
from ioa.agent.rules import RuleBrain
from ioa.group.events import Said
from ioa.ports.brain import Mission, TeamLaunch, TeamTools
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision, Discussion
from ioa.protocol.team import team_of
from ioa.testing import ScriptedBrain
from ioa_testkit.finished import FinishedGoal
from ioa_testkit.system import System
from tests.integration.control_plane.test_teams import named
from tests.rig.log_checker import Evidence, check_courses, check_logs

Speaks = Callable[[TurnView], Spoken]
Line = tuple[str, str]

DEBATE: Mapping[str, Any] = {
    "team": "debate",
    "leader": "judge",
    "roles": {name: name for name in ("pro", "con", "judge")},
    "nodes": [
        {"name": "debate", "roles": ["pro", "con"], "max": 8, "exits": [{"to": "vote", "by": "judge"}]},
        {"name": "vote", "roles": ["pro", "con"], "turns": "together", "max": 2,
         "form": {"won": "pro|con", "points": "0..10", "why": "text?"},
         "exits": [{"to": "end", "when": {"field": "won", "by": "all", "equals": "pro"}}, {"to": "verdict"}]},
        {"name": "verdict", "roles": ["judge"]},
    ],
}  # fmt: skip


class Everybody(RuleBrain):
    """Rules that take everybody into the team."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch:
        """Ask nobody."""
        return TeamLaunch(members=tuple(AgentId(name) for name in ("bob", "eve", "joe")))


VOTED_OUT: Mapping[str, Any] = {
    "team": "voted-out",
    "leader": "judge",
    "roles": {name: name for name in ("pro", "con", "judge")},
    "nodes": [
        {"name": "vote", "roles": ["pro", "con", "judge"], "turns": "together", "form": {"out": "member"},
         "exits": [{"to": "talk", "remove": {"field": "out"}}]},
        {"name": "talk", "roles": ["pro", "con", "judge"]},
    ],
}  # fmt: skip


def agents(**speakers: Speaks) -> list[Agent]:
    """Agents that say what these functions return."""
    return [agent(name, speaks) for name, speaks in speakers.items()]


def agent(name: str, speaks: Speaks) -> Agent:
    """An agent that says what a function returns, and concludes by its name."""
    this = Agent(name, description=f"Plays {name}.")

    @this.task
    def run(task: str) -> str:
        return task

    @this.speak
    def speak(view: TurnView) -> Spoken:
        return view.conclude(f"{name} concludes.") if view.legal[:1] == ("CONCLUSION",) else speaks(view)

    return this


def lines(finished: FinishedGoal) -> list[Line]:
    """Who said, or decided, what."""
    said = [one.entry.event.message for one in finished.log if isinstance(one.entry.event, Said)]
    told = [(one.header.sender, one.payload) for one in said if isinstance(one.payload, Discussion | Decision)]
    return [(sender, payload.choice if isinstance(payload, Decision) else payload.content) for sender, payload in told]


def judged(finished: FinishedGoal) -> list[str]:
    """What the checker finds wrong with the group's log."""
    evidence = Evidence(goals=[], results=[], logs={finished.result.comm_id: finished.log})
    return [*check_logs(evidence), *check_courses(evidence)]


@pytest.fixture(autouse=True)
def patience(ioa_system: System) -> None:
    """Let a goal take its time, on a machine that does much else."""
    ioa_system.within = timedelta(minutes=1)


def talks(view: TurnView) -> Discussion:
    """Say something that nobody has said."""
    return view.say(f"{view.me} in turn {view.turn}")


async def test_a_judge_ends_a_panel_when_it_has_heard_enough(ioa_system: System) -> None:
    """It is asked after each round; a choice that is no option is refused with what is, and comes back as a refusal."""
    refusals: list[str] = []

    def rule(view: TurnView) -> Decision:
        assert view.offer is not None and (view.offer.options, view.offer.default) == (("end", "stay"), "stay")
        refusals.extend(view.refusals)
        if len(view.conversation) < 6:
            return view.decide("stay")
        return view.decide("end" if view.refusals else "the end", "Nothing new comes.")

    talking = agents(optimist=talks, pessimist=talks, engineer=talks, moderator=rule)
    finished = await ioa_system.run(GoalOrder(goal="Ship it?", team=named("panel")), agents=talking)
    assert (finished.result.reason, finished.result.content) == (Reason.CONCLUDED, "moderator concludes.")
    round_ = ["optimist", "pessimist", "engineer", "moderator"]
    assert [who for who, _ in lines(finished)] == [*round_, *round_]
    assert [what for who, what in lines(finished) if who == "moderator"] == ["stay", "end"]
    assert ["'the end' is none of the options" in one for one in refusals] == [True]
    assert judged(finished) == []


async def test_a_debate_whose_judge_decides_comes_to_a_vote(ioa_system: System) -> None:
    """Each votes once, by what its form asks for, and reads the other's vote only when both have voted."""
    heard: dict[str, list[int]] = defaultdict(list)
    refusals: dict[str, Sequence[str]] = {}

    def side(view: TurnView) -> Discussion:
        assert view.offer is not None
        if not view.offer.form:
            return talks(view)
        heard[view.me].append(len(view.conversation))
        refusals[view.me] = view.refusals
        points = 20 if view.me == "con" and not view.refusals else 7
        return view.say(f"{view.me} votes", fields={"won": view.me, "points": points})

    def judge(view: TurnView) -> Spoken:
        if view.offer is not None and view.offer.options:
            return view.decide("vote")
        votes = [dict(one.fields) for one in view.conversation if one.fields]
        return view.say(str(sorted(str(one["won"]) for one in votes)))

    finished = await ioa_system.run(GoalOrder(goal="Cars?", team=team_of(DEBATE)), agents=agents(pro=side, con=side, judge=judge))
    said = lines(finished)
    assert [who for who, _ in said[:3]] == ["pro", "con", "judge"]
    assert (sorted(said[3:5]), said[5:]) == ([("con", "con votes"), ("pro", "pro votes")], [("judge", "['con', 'pro']")])
    assert heard == {"pro": [2], "con": [2, 2]}
    assert refusals["con"] and "The field points cannot be what you say: it is a whole number" in refusals["con"][0]
    assert judged(finished) == []


async def test_a_free_group_votes(ioa_system: System) -> None:
    """Whoever asks gets the floor back with what came of it; an agent without an answer passes."""
    told: list[str] = []

    def ask(view: TurnView) -> Spoken:
        if view.votes is None:
            return view.say("Which?", to=["bob", "eve", "joe"], question={"choice": "red|blue", "sure": "1..10"})
        [choice, sure] = view.votes.fields
        told.append(f"{dict(choice.counts)} {sure.lowest}-{sure.highest} silent {view.votes.silent}")
        return view.conclude("Red.")

    def vote(view: TurnView) -> Discussion:
        assert view.offer is not None and [blank.name for blank in view.offer.form] == ["choice", "sure"]
        assert [one.sender for one in view.conversation] == ["ada"]
        return view.say(f"{view.me} is for red.", fields={"choice": "red", "sure": len(view.me) + (view.me == "eve")})

    joe = Agent("joe", description="Which colour, red or blue?", examples=["which colour"])

    @joe.task
    def run(task: str) -> str:
        return task

    all_of_them = [*agents(ada=ask, bob=vote, eve=vote), joe]
    finished = await ioa_system.run(GoalOrder(goal="Which colour?", agent="ada"), agents=all_of_them, brain=Everybody())
    assert (finished.result.content, told) == ("Red.", ["{'red': 2, 'blue': 0} 3-4 silent ('joe',)"])


async def test_who_is_voted_out_has_no_part_any_more(ioa_system: System) -> None:
    """It hears of its removal and of nothing after it, is not asked again, and the others come to the end."""
    heard: dict[str, list[str]] = {}

    def play(view: TurnView) -> Discussion:
        heard[view.me] = [one.content for one in view.conversation]
        if view.offer is not None and view.offer.form:
            return view.say(f"{view.me} votes.", fields={"out": "con"})
        return talks(view)

    three = agents(pro=play, con=play, judge=play)
    finished = await ioa_system.run(GoalOrder(goal="Who?", team=team_of(VOTED_OUT)), agents=three)
    told = [
        (one.entry.event.message.header.sender, one.entry.audience) for one in finished.log if isinstance(one.entry.event, Said)
    ]
    assert [sender for sender, _ in told[3:]] == ["pro", "judge", "judge"]
    assert [("con" in audience) for _, audience in told] == [True, True, True, False, False, False]
    assert (heard["con"], judged(finished)) == ([], [])


async def test_agent_invited_during_a_discussion_reads_it_and_speaks(ioa_system: System) -> None:
    """The leader invites the agent by a need."""

    def lead(view: TurnView) -> Spoken:
        if not view.conversation:
            return view.say("It is of steel.", to="bob")
        if len(view.conversation) == 2 and "smith" not in [mate.agent_id for mate in view.team]:
            return view.invite(need="weld steel", why="Bob does not know.")
        return view.say("Smith?", to="smith") if len(view.conversation) == 2 else view.conclude(view.conversation[-1].content)

    def answer(view: TurnView) -> Discussion:
        return view.say(f"{view.me} has heard {len(view.conversation)}.", to="ada")

    smith = Agent("smith", description="weld steel", examples=["weld steel"])
    smith.speak(answer)
    plan = ScriptedBrain(teams=[TeamLaunch(members=(AgentId("bob"),))])
    everybody = [*agents(ada=lead, bob=answer), smith]
    finished = await ioa_system.run(GoalOrder(goal="Build it.", agent="ada"), agents=everybody, brain=plan)
    assert finished.result.content == "smith has heard 3."
    assert "ada invites smith: Bob does not know." in finished.transcript
    assert judged(finished) == []
