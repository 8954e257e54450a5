"""An agent in the event loop, which asks the system who else is there, and tells what it has cost."""

from ioa import Agent, TaskContext

agent = Agent("matchmaker", description="Names agents that can do something.", examples=["who can draw a chart?"])


@agent.task
async def run(task: str, ctx: TaskContext) -> str:
    """Ask discovery."""
    found = await ctx.search(task)
    ctx.spend(cost=0.001)
    return ", ".join(hit.card.agent_id for hit in found.merged) or "Nobody."
