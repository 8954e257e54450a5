"""The card and the function of an adopted agent, and the task as text or JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ioa.agent.task_context import InputFile, TaskContext
from ioa.errors import TaskError
from ioa.foreign_text import shown_in_line
from ioa.hosting.agent import Agent

if TYPE_CHECKING:
    from ioa.adapters.openai.settings import ModelSettings
    from ioa.agent.brain_port import Brain
    from ioa.ports.chat_model import ChatModel
    from ioa.protocol.cards import Skill

_MAX_SHOWN_CHARS = 2_000


class Card(TypedDict, total=False):
    """More fields of the card of an adopted agent, as for `ioa.Agent`. The model speaks for the agent in a group."""

    examples: Sequence[str]
    skills: Sequence[str | Skill]
    tags: Sequence[str]
    may_team_up: bool
    leads: bool | None
    declines: bool | None
    accepts: Sequence[str] | None
    model: ModelSettings | ChatModel | None
    instructions: str
    brain: Brain | None
    needs_sandbox: bool


Run = Callable[[str, TaskContext], str | Awaitable[str]]


def adopted(agent_id: str, description: str, card: Card, run: Run) -> Agent:
    """Return an agent with this card, whose tasks `run` does.

    Raises:
        InvalidInputError: The card is not valid.
    """
    agent = Agent(agent_id, description, **card)
    agent.task(run)
    return agent


def as_object(task: str, ctx: TaskContext, shown: Callable[[InputFile], Mapping[str, str]]) -> dict[str, Any]:
    """Return a task as JSON: `task, goal, goal_id, task_id, task_key, attempt, inputs, results`.

    Args:
        task: The task.
        ctx: Its context.
        shown: Returns the members of a file that lead to its content; its name and media type are added.
    """

    def of(file: InputFile) -> dict[str, str]:
        return {"name": file.name, "media_type": file.media_type, **shown(file)}

    return {
        "task": task,
        "goal": ctx.goal,
        "goal_id": ctx.goal_id,
        "task_id": ctx.task_id,
        "task_key": ctx.task_key,
        "attempt": ctx.attempt,
        "inputs": [of(file) for file in ctx.inputs],
        "results": [
            {
                "task_id": result.task_id,
                "agent_id": result.agent_id,
                "task": result.task_desc,
                "content": result.content,
                "rejected": result.rejected,
                "files": [of(file) for file in result.artifacts],
            }
            for result in ctx.results
        ],
    }


def failure(whose: str, error: object) -> TaskError:
    """Return the error of another system, in its own words without control characters."""
    why = error if isinstance(error, str) else repr(error)
    return TaskError(f"{whose} failed: {shown_in_line(why.strip()[:_MAX_SHOWN_CHARS]) or 'no reason was given'}")


def hear(said: Mapping[str, object], ctx: TaskContext) -> None:
    """Pass on what an adopted agent reports in a JSON object: `progress` with its `fraction`, and `spend`.

    Other keys are ignored.

    Raises:
        InvalidInputError: The fraction or the use is not valid.
    """
    if isinstance(content := said.get("progress"), str):
        fraction = said.get("fraction")
        ctx.progress(content, fraction if isinstance(fraction, int | float) else None)
    if isinstance(spent := said.get("spend"), dict):
        ctx.spend(tokens=spent.get("tokens", 0), answer_tokens=spent.get("answer_tokens", 0), cost=spent.get("cost", 0.0))
