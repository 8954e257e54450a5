"""Teams of teams under a policy, down to the deepest that may be: there one more is refused, and the goal goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ioa import Agent, TurnView
from ioa.agent.hooks import Said as Spoken
from ioa.group.events import SubgroupClosed, SubgroupOpened
from ioa.group.state import Limits
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.team import team_of
from ioa_testkit.system import System

CREW: dict[str, Any] = {
    "team": "crew",
    "ends": "last",
    "roles": {"lead": "lead", "hand": "worker"},
    "nodes": [{"name": "work", "roles": ["lead"], "tasks": True, "max": 1}],
}
DEEPEST = Limits.model_fields["max_depth"].default


async def test_a_team_below_the_deepest_is_refused_and_its_parent_goes_on(tmp_path: Path) -> None:
    """Its lead is told why and keeps the floor; what it says then is the result of the task above, up to that of the goal."""
    refused = list[str]()
    lead, worker = Agent("lead", description="leads"), Agent("worker", description="works", may_team_up=True)

    @lead.speak
    def speak(view: TurnView) -> Spoken:
        if view.refusals:
            refused.extend(view.refusals)
            return view.say("No deeper.")
        return view.say(f"{view.tasks[-1].conclusion} Up.") if view.tasks else view.assign({"worker": "Go on."}, team="crew")

    @worker.task
    def work(task: str) -> str:
        raise AssertionError("a team serves each task")

    async with System(tmp_path).serve(lead, worker) as running:
        await running.client.put_team(team_of(CREW))
        finished = await running.run(GoalOrder(goal="Go down.", team=team_of(CREW)))
    events = [stored.entry.event for stored in finished.log]
    opened = [event for event in events if isinstance(event, SubgroupOpened)]
    closed = [event.reason for event in events if isinstance(event, SubgroupClosed)]
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "No deeper." + " Up." * DEEPEST)
    assert (len(opened), closed) == (DEEPEST, [Reason.CONCLUDED] * DEEPEST)
    assert len(refused) == 1 and f"nest {DEEPEST} deep" in refused[0]
