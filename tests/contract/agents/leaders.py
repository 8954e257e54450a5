"""Leaders of groups for tests of other members."""

from __future__ import annotations

from ioa import Agent, GoalOrder, TurnView
from ioa.brain import Said, TeamLaunch
from ioa.protocol.ids import AgentId

WATCH = GoalOrder(goal="Keep watch", agent=AgentId("lead"))


def launch_team(*members: str) -> TeamLaunch:
    """Return a team of the leader and these members."""
    return TeamLaunch(members=tuple(map(AgentId, members)))


def asking(member: str) -> Agent:
    """Return an agent `lead` that asks a member a question, and concludes if the floor returns."""
    lead = Agent("lead", description="Leads")

    @lead.speak
    def speak(view: TurnView) -> Said:
        return view.say("What do you see?", to=member) if view.turn == 1 else view.conclude("Nothing.")

    return lead
