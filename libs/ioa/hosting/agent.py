"""The agents that an author writes: definitions that run themselves.

agent = Agent("greeter", description="Greets people", examples=["say hello to Ada"])

@agent.task
def run(task: str) -> str:
    return f"Hello! You asked: {task}"

if __name__ == "__main__":
    agent.run()
"""

from __future__ import annotations

from ioa.agent.definition import AgentDefinition
from ioa.agent.task_context import TaskContext
from ioa.errors import InvalidInputError


class Agent(AgentDefinition):
    """An agent: its card, and the functions that its author registers.

    Args:
        agent_id: 1 to 64 letters, digits, `_` or `-`; unique in the system. Replicas get a suffix.
        description: What it does, in a sentence or two. Discovery searches it.
        examples: Requests that it serves well. They matter more to discovery than the rest of the card.
        skills: Its skills, each in a few words. Discovery searches them.
        tags: Words by which a search can be filtered.
        model: A language model for its turns and for `ctx.chat`: `ModelSettings`, which the settings of the deployment override; or
            any `ChatModel`.
        instructions: Instructions for its model, at most 8,000 characters; or a function of the `TurnView`, sync or async, that
            returns them within 5 seconds, before each turn and task. No other agent reads them.
        brain: Decides its messages in place of a language model and of rules; see `ioa.brain`.
        may_team_up: True if it may open a nested group for a task.
        leads: True: it is preferred as leader of goals that name no agent. False: it never leads one.
        declines: True if it rejects unsuitable tasks by a `DeclinedError`; then it also gets tasks that its card only nearly fits.
        accepts: Other pools whose agents can have it in their groups; None: all.
        needs_sandbox: True if it runs untrusted code with `ioa.sandbox`. It starts only if the sandbox works, or with
            `IOA_SANDBOX=none`. Its card has the level as a tag, such as `sandbox:bwrap`.
        on_event: Called with each event of the agent: its kind and its data; see `ioa.agent.agent_events`.

    Raises:
        InvalidInputError: The card is not valid.
    """

    def run(self) -> None:
        """Join the system in reach and serve until SIGTERM.

        The system is at `IOA_NATS_URL`, otherwise at the address in `.ioa` (or `IOA_DATA`), otherwise at the default address. Until
        a program listens there, the agent searches again and prints the addresses.
        """
        # Here, so that `import ioa` in an author's file does not load what serves agents before it is needed.
        from ioa.hosting.host import serve

        serve([self])


class ModelAgent(Agent):
    """An agent that does its tasks by asking its language model once; `Agent` describes the arguments.

    The prompt contains the goal, the files that the task names, the results that it uses, the instructions, the time and the task.
    The model can read the other files and the conversation by a tool. The agent joins only if there is a model.

    Raises:
        InvalidInputError: The card cannot be valid, or there are no instructions.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fixed_instructions.strip():
            raise InvalidInputError(
                f"Agent {self.agent_id!r} has no instructions.", hint='Describe its work: ModelAgent(…, instructions="…").'
            )
        self.task(self._ask_model)

    async def _ask_model(self, task: str, ctx: TaskContext) -> str:
        from ioa.agent.model.task import ask_model  # what only a model needs

        return await ask_model(self.fixed_instructions, task, ctx)

    @property
    def needs_model(self) -> bool:
        """It can do nothing without one."""
        return True
