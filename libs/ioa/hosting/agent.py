"""The agent that an author writes: a definition that runs itself.

agent = Agent("greeter", description="Greets people", examples=["say hello to Ada"])

@agent.task
def run(task: str) -> str:
    return f"Hello! You asked: {task}"

if __name__ == "__main__":
    agent.run()
"""

from __future__ import annotations

from ioa.agent.definition import AgentDefinition


class Agent(AgentDefinition):
    """An agent: what others may know of it, and the function that does its work.

    Args:
        agent_id: 1 to 64 letters, digits, `_` or `-`; unique in the system. Replicas get a suffix.
        description: What it does, in a sentence or two. Discovery searches it.
        name: How people call it; its id if nothing is said.
        skills: What it can do, each in a few words. Discovery searches them.
        examples: Requests it serves well. They matter more to discovery than anything else on the card.
        tags: Words by which a search may be narrowed to some agents.
        version: Which version of the agent this is; a search may ask for one.
        may_team_up: Whether it may open a nested team for a task of its own.
        needs_sandbox: Whether it runs code of others by `ioa.sandbox`. It starts only where a sandbox holds, or where
            `IOA_SANDBOX=none` says to do without, and its card gets the level as a tag, such as `sandbox:landlock`.

    Raises:
        InvalidInputError: The card cannot be valid; the message says which field.
    """

    def run(self) -> None:
        """Join the system that `IOA_NATS_URL` names and serve until SIGTERM."""
        # Here, so that `import ioa` in an author's file does not load what serves agents before it is needed.
        from ioa.hosting.host import serve

        serve([self])
