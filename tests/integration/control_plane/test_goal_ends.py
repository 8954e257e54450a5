"""A spent token budget ends the goal: no repairs, one conclusion by the owner, and the results that there are."""

from __future__ import annotations

from pathlib import Path

from ioa import Agent
from ioa.agent.model import Budget, ModelBrain
from ioa.concurrency import together
from ioa.ports.brain_types import Mission, TeamLaunch, TeamTools
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalId
from ioa.testing.scripted_model import ScriptedModel
from ioa_testkit.system import System

_CALL = ModelAnswer("I would rather not say.", prompt_tokens=900, answer_tokens=100)
_MEMBERS = [f"member{number}" for number in range(15)]


class _FormsTeam(ModelBrain):
    """A brain that forms its team without the model."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch:
        """Return a team of all members."""
        return TeamLaunch(members=tuple(map(AgentId, _MEMBERS)))


def _agent(name: str, brain: ModelBrain | None = None) -> Agent:
    agent = Agent(name, description=f"Is {name}.", may_team_up=False, brain=brain)

    @agent.task
    def run(task: str) -> str:
        return task

    return agent


async def test_useless_model_spends_one_call_beyond_the_budget(tmp_path: Path) -> None:
    """One member's repairs use up the budget; then only the owner is asked, once, and the goal ends with the reason."""
    model = ScriptedModel(lambda _: _CALL)
    agents = [_agent("lead", _FormsTeam(model, budget=Budget())), *map(_agent, _MEMBERS)]
    order = GoalOrder(goal="Agree on a name.", agent=AgentId("lead"), max_tokens=2_500)
    done = await System(tmp_path).run(order, agents=agents, model=model)

    assert (done.result.reason, done.result.usage.tokens, len(model.asked)) == (Reason.BUDGET, 4_000, 4)
    assert done.result.content


async def test_goal_is_cancelled_before_intake_reads_it(tmp_path: Path) -> None:
    """Of many goals that are published at once, the last ones are cancelled at once: each ends as cancelled, without work."""
    agent, worked = Agent("worker", description="Works."), list[str]()

    @agent.task
    def run(task: str) -> str:
        worked.append(task)
        return "done"

    async with System(tmp_path).serve(agent) as running:
        await together(*(running.client.submit(GoalOrder(goal=f"Work {number}.")) for number in range(300)))
        last = [GoalId(f"last-{number}") for number in range(5)]
        for goal_id in last:
            await running.client.submit(GoalOrder(goal=f"Work on {goal_id}.", goal_id=goal_id))
        for goal_id in last:
            await running.client.cancel(goal_id, "Not needed.")
        results = [await running.client.wait_for_result(goal_id) for goal_id in last]

    assert [result.reason for result in results] == [Reason.CANCELLED] * len(last)
    assert [task for task in worked if "last" in task] == []
