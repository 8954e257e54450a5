"""Tasks that use a model: budget, context and the agent's own model."""

from __future__ import annotations

from ioa import Agent, ModelAgent, TaskContext, TurnView
from ioa.agent.model import ModelBrain
from ioa.agent.rules import RuleBrain
from ioa.brain import Said
from ioa.hosting.brains import open_minds
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId, comm_id_of_goal
from ioa.protocol.messages import InformTaskResult
from ioa.testing import ScriptedBrain, ScriptedModel
from ioa_testkit import System
from tests.contract.agents.leaders import launch_team


async def test_task_of_a_group_with_a_spent_budget_asks_no_model(ioa_system: System) -> None:
    """A task may use nine tenths, and its unreported usage counts: the second question is not sent."""
    model = ScriptedModel(lambda asked: ModelAnswer("Hello.", prompt_tokens=80, answer_tokens=40))
    agent = Agent("greeter", description="Greets people", examples=["say hello to Ada"], model=model, brain=RuleBrain())

    @agent.task
    async def run(task: str, ctx: TaskContext) -> str:
        for _ in range(3):
            await ctx.chat(task)
        return "never"

    goal = await ioa_system.run(GoalOrder(goal="say hello to Ada", max_tokens=100), agents=[agent])
    assert (len(model.asked), goal.succeeded) == (1, False)
    assert model.asked[0].limits.max_tokens == 90


async def test_task_context_contains_assigner_team_and_conversation(ioa_system: System) -> None:
    """They are from the group of the task."""
    seen: list[TaskContext] = []
    agent = Agent("cook", description="Cooks", examples=["cook"])

    @agent.task
    def run(task: str, ctx: TaskContext) -> str:
        seen.append(ctx)
        ctx.trace({"step": 1})
        return "Cooked."

    lead, guest, wishes = Agent("lead", description="Leads"), Agent("guest", description="Eats"), iter(["cook fish", "cook rice"])
    lead.speak(lambda view: view.say("Fish, please.", to="guest"))

    @guest.speak
    def order(view: TurnView) -> Said:
        wish = next(wishes, None)
        return view.conclude("Eaten.") if wish is None else view.assign({"cook": wish})

    dinner = GoalOrder(goal="a dinner", agent=AgentId("lead"))
    goal = await ioa_system.run(dinner, agents=[lead, guest, agent], brain=ScriptedBrain(teams=[launch_team("guest", "cook")]))
    results = [message.payload for message in goal.messages(by="cook") if isinstance(message.payload, InformTaskResult)]
    ctx = seen[1]
    assert (ctx.asked_by, ctx.comm_id) == ("guest", comm_id_of_goal(ctx.goal_id))
    assert [(mate.agent_id, mate.online) for mate in ctx.team] == [("lead", True), ("guest", True)]
    assert [(one.sender, one.kind, one.content, one.assignee) for one in ctx.conversation] == [
        ("lead", "message", "Fish, please.", None),
        ("guest", "task", "cook fish", "cook"),
        ("cook", "result", "Cooked.", "cook"),
        ("guest", "task", "cook rice", "cook"),
    ]
    assert [(one.artifacts, [trace.name for trace in one.traces]) for one in results] == [((), ["trace.jsonl"])] * 2


async def test_an_agents_own_model_works_for_it(ioa_system: System) -> None:
    """It replaces the model of the process. The author's brain speaks; without one, the model does."""
    own, shared = ScriptedModel(["Good day!"]), ScriptedModel([])
    agent = ModelAgent(
        "writer", "Writes letters", examples=["write a letter"], instructions="Be kind.", model=own, brain=RuleBrain()
    )
    goal = await ioa_system.run("write a letter", agents=[agent], model=shared)
    assert (goal.succeeded, goal.content, shared.asked) == (True, "Good day!", [])
    async with open_minds([Agent("writer", "Writes letters", model=own)], {}) as [mind]:
        assert isinstance(mind.brain, ModelBrain) and mind.chat is not None
