"""An agent that builds on what others found: the results of the tasks before come with its own."""

from ioa import Agent, TaskContext

agent = Agent("poster", description="Puts the results of other agents on a poster.", examples=["make a poster of #1 and #2"])


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Frame each result with who found it."""
    return "\n".join(f"* {result.agent_id}: {result.content} *" for result in ctx.results) or "There is nothing to show."
