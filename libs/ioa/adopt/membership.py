"""What all adopted agents have in common: a card, a function, and what is handed over of a task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from ioa.agent.conversation import set_off
from ioa.agent.definition import InputFile, TaskContext
from ioa.errors import TaskError
from ioa.foreign_text import shown_in_line
from ioa.hosting.agent import Agent

if TYPE_CHECKING:
    from ioa.adapters.openai.settings import ModelSettings
    from ioa.ports.brain import Brain
    from ioa.ports.chat_model import ChatModel
    from ioa.protocol.cards import Skill

_MAX_TOLD_CHARS = 2_000


class Card(TypedDict, total=False):
    """What else may be said of an adopted agent; `ioa.Agent` tells what each means. The model speaks for it in its group."""

    name: str
    examples: Sequence[str]
    skills: Sequence[str | Skill]
    tags: Sequence[str]
    version: str
    may_team_up: bool
    leads: bool | None
    declines: bool | None
    patience: timedelta | None
    accepts: Sequence[str] | None
    model: ModelSettings | ChatModel | None
    instructions: str
    brain: Brain | None
    needs_sandbox: bool


Run = Callable[[str, TaskContext], str | Awaitable[str]]


def adopted(agent_id: str, description: str, card: Card, run: Run) -> Agent:
    """Make an agent of a card and the function that hands its tasks over.

    Raises:
        InvalidInputError: The card cannot be valid.
    """
    agent = Agent(agent_id, description, **card)
    agent.task(run)
    return agent


def with_results(task: str, ctx: TaskContext) -> str:
    """Say a task to an agent that is told nothing but words: with the results that it builds on."""
    told = [task]
    for result in ctx.results:
        rejected = [f"(rejected: {result.rejected})"] if result.rejected else []
        told.append(set_off(f"Result of an earlier task, {result.task_desc!r}", "\n".join([*rejected, result.content])))
    return "\n\n".join(told)


def as_object(task: str, ctx: TaskContext, shown: Callable[[InputFile], Mapping[str, str]]) -> dict[str, Any]:
    """Say a task to an agent that reads JSON: `task, goal, goal_id, task_id, task_key, attempt, inputs, results`.

    Args:
        task: The task in words.
        ctx: The task.
        shown: Says of a file, which has its name and its media type, how its content is reached.
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


def text_of(answer: object, whose: str) -> str:
    """Return an answer if it is text.

    Raises:
        TaskError: It is none.
    """
    if not isinstance(answer, str):
        raise TaskError(f"{whose} answered with {type(answer).__name__}, and the answer to a task is text.")
    return answer


def failure(whose: str, error: object) -> TaskError:
    """Say that the other side has failed, in its own words, of which nothing can pass for ours."""
    why = error if isinstance(error, str) else repr(error)
    return TaskError(f"{whose} failed: {shown_in_line(why.strip()[:_MAX_TOLD_CHARS]) or 'it does not say why'}")


def hear(said: Mapping[str, object], ctx: TaskContext) -> None:
    """Take what an agent that writes JSON says of its steps: `progress` with a `fraction`, and `spend`. What is neither is left.

    Raises:
        InvalidInputError: A fraction or a usage cannot be one.
    """
    if isinstance(content := said.get("progress"), str):
        fraction = said.get("fraction")
        ctx.progress(content, fraction if isinstance(fraction, int | float) else None)
    if isinstance(spent := said.get("spend"), dict):
        ctx.spend(tokens=spent.get("tokens", 0), answer_tokens=spent.get("answer_tokens", 0), cost=spent.get("cost", 0.0))
