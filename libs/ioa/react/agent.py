"""Making a ReAct agent of its tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from ioa.agent.definition import AgentDefinition, TaskContext
from ioa.errors import InvalidInputError
from ioa.hosting.agent import Agent
from ioa.ports.brain import Brain
from ioa.ports.chat_model import ChatModel
from ioa.protocol.cards import Skill
from ioa.react.loop import Options, Run
from ioa.react.mcp_servers import Mcp, open_servers
from ioa.react.tools import Guard, ReactTool, check_names

if TYPE_CHECKING:
    from ioa.adapters.openai.settings import ModelSettings

OpenTools = Callable[[TaskContext], AbstractAsyncContextManager[Sequence[ReactTool]]]
"""Opens tools for one task, which keep something of their own, such as a page of a browser."""


@dataclass
class _ReactAgent(Agent):
    """An agent whose model asks for tools."""

    tools: Sequence[ReactTool | Mcp] | OpenTools = field(default=(), kw_only=True, repr=False)
    options: Options = field(default_factory=Options, kw_only=True, repr=False)
    tasks_of_one_user: int | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.tools):
            check_names([one for one in self.tools if isinstance(one, ReactTool)])
        self.task(of_one_user=self.tasks_of_one_user)(self._reason_and_act)

    @property
    def needs_model(self) -> bool:
        """It can do nothing without one."""
        return True

    def working_as(self, other: AgentDefinition) -> Self:
        """Take over another agent's functions but for that of tasks, which goes by this one's tools."""
        super().working_as(other)
        self._own.task = self._reason_and_act
        return self

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Connect its MCP servers, whose tools are those of the agent that is given."""
        if callable(self.tools):
            yield self
            return
        async with open_servers(self.tools) as tools:
            yield self.with_card(tools=tools)

    async def _reason_and_act(self, task: str, ctx: TaskContext) -> str:
        opened = self.tools(ctx) if callable(self.tools) else open_servers(self.tools)  # of which a running agent has none left
        async with opened as tools:
            check_names(tools)
            about = f"You are {self.name or self.agent_id}: {self.description}"
            return await Run(tools, self.options, ctx).answer(about, self.instructions, task)


def react_agent(  # noqa: PLR0913 - the options of an agent, which authors give by name
    agent_id: str,
    *,
    description: str,
    tools: Sequence[ReactTool | Mcp] | OpenTools,
    name: str = "",
    examples: Sequence[str] = (),
    skills: Sequence[str | Skill] = (),
    tags: Sequence[str] = (),
    version: str = "1",
    may_team_up: bool = False,
    needs_sandbox: bool = False,
    accepts: Sequence[str] | None = None,
    instructions: str = "",
    model: ModelSettings | ChatModel | str | None = None,
    brain: Brain | None = None,
    max_steps: int = 8,
    max_tokens: int | None = None,
    tool_timeout: timedelta = timedelta(seconds=60),
    max_observation_chars: int = 8_000,
    guard: Guard | None = None,
    of_one_user: int | None = None,
) -> Agent:
    """Make an agent whose model asks for tools until it can answer; `Agent` says what the other arguments mean.

    Args:
        agent_id: As of any agent.
        description: What it does; the model is told.
        tools: What the model may ask for, made by `@tool`, and servers that have more of it, by `mcp`; or `open_tools(ctx)`, an
            async context manager that gives the tools of one task, which share nothing with those of another.
        name: As of any agent.
        examples: As of any agent.
        skills: As of any agent.
        tags: As of any agent.
        version: As of any agent.
        may_team_up: As of any agent.
        needs_sandbox: As of any agent.
        accepts: As of any agent.
        instructions: How it is to go about its tasks.
        model: A model of its own.
        brain: As of any agent.
        max_steps: How many answers of the model may ask for tools; then it has to answer.
        max_tokens: Where one answer of the model is cut.
        tool_timeout: How long one tool may take.
        max_observation_chars: Where what a tool brings is cut.
        guard: Called with each call and the task's context before the tool runs. A text that it returns refuses the call, and is
            told to the model; so does an exception. The arguments were checked; those of an MCP tool are checked by its server.
            `ioa.guards` has ready ones, which may also guard single tools.
        of_one_user: How many of the tasks that run at once may be of one user's goals, as `Agent.task` says; all by default.

    Raises:
        InvalidInputError: The card cannot be valid, two tools have one name, there are no steps, or nothing of one user could run.
    """
    if max_steps < 1:
        raise InvalidInputError(f"An agent cannot act in {max_steps} steps.", hint="Give max_steps of 1 or more.")
    return _ReactAgent(
        agent_id,
        description,
        name,
        skills,
        examples,
        tags,
        version,
        may_team_up,
        needs_sandbox=needs_sandbox,
        accepts=accepts,
        model=model,
        instructions=instructions,
        brain=brain,
        tools=tools,
        options=Options(max_steps, max_tokens, tool_timeout, max_observation_chars, guard),
        tasks_of_one_user=of_one_user,
    )
