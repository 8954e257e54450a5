"""Doing a task by asking the model once: what an agent does whose author wrote instructions and no function."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ioa.agent.definition import InputFile, TaskContext
from ioa.agent.model.prompts import Prompts, cut
from ioa.errors import TaskError
from ioa.fences import defused, fenced, in_one_line
from ioa.ports.chat_model import ChatMessage

MAX_TEXT_BYTES = 60_000
"""The most that one text has in a question: a result, or a file that came with the goal."""
_MAX_SAID_BYTES = 2_000
_MAX_TASK_CHARS = 200
_LATEST = 40


@dataclass(frozen=True)
class InputText:
    """A file that came with the goal, as a model can be shown it; `text` is None of what is none."""

    name: str
    text: str | None


async def ask_model(instructions: str, task: str, ctx: TaskContext) -> str:
    """Ask the agent's model to do a task; again with twice the room if its answer was cut.

    What others wrote is fenced; a text that is too long has a mark where it is cut.

    Raises:
        TaskError: There is no whole answer.
        IoaError: The model cannot be asked; see `TaskContext.chat`.
    """
    messages = await messages_of(instructions, task, ctx)
    room = None
    for _ in range(2):
        answer = await ctx.chat(messages, max_tokens=room, stream=True)
        if answer.complete and answer.text.strip():
            return answer.text.strip()
        room = None if answer.complete else 2 * answer.usage.tokens_out or None
    raise TaskError("The model gave no whole answer.", hint="Ask for less at once, or raise IOA_LLM_MAX_ANSWER.")


async def messages_of(instructions: str, task: str, ctx: TaskContext, rules: str = "") -> list[ChatMessage]:
    """Return what a model is told of a task: what holds for all tasks, what was said and made, the task."""
    texts = await asyncio.to_thread(lambda: [_read(file) for file in ctx.inputs])
    system = Prompts().fill("task", instructions=fenced("instructions", defused(instructions)), rules=rules)
    return [ChatMessage("system", system), ChatMessage("user", "\n\n".join(filter(None, _told(task, ctx, texts))))]


def _told(task: str, ctx: TaskContext, texts: Sequence[InputText]) -> Iterator[str]:
    yield fenced("goal", cut(defused(ctx.goal), MAX_TEXT_BYTES))
    built_on = {result.task_id for result in ctx.results}
    said = [one for one in ctx.conversation if one.task_id not in built_on and one.task_id != ctx.task_id and one.content]
    for one in said[-_LATEST:]:
        shown = cut(defused(one.content), _MAX_SAID_BYTES)
        if one.kind == "rejection":
            yield fenced("rejected", shown, f"{one.task_id} from {one.sender}")
        else:
            yield fenced("message", shown, " ".join(filter(None, (one.kind, one.task_id, "from", one.sender))))
    for result in ctx.results:
        of = f"{in_one_line(result.task_desc)[:_MAX_TASK_CHARS]}:"
        named = f"{result.task_id} from {result.agent_id}"
        yield fenced("result", f"{of}\n{cut(defused(result.content), MAX_TEXT_BYTES)}", named)
        yield fenced("rejected", cut(defused(result.rejected), _MAX_SAID_BYTES), result.task_id)
    for text in texts:
        shown = "(no text)" if text.text is None else cut(defused(text.text), MAX_TEXT_BYTES) or "(empty)"
        yield fenced("read", f"{in_one_line(text.name)}:\n{shown}")
    if ctx.rejected:
        yield f"What was done before was not taken:\n{fenced('rejected', cut(defused(ctx.rejected), _MAX_SAID_BYTES))}"
    why = fenced("message", cut(defused(ctx.reason), _MAX_SAID_BYTES), f"from {ctx.asked_by}")
    yield "\n".join(filter(None, (f"{ctx.asked_by} gives you this task.", why, fenced("task", defused(task), ctx.task_id))))


def _read(file: InputFile) -> InputText:
    """Read a file as text if it is one. A model is shown its beginning and its end."""
    try:
        data = file.path.read_bytes()
        return InputText(file.name, None if b"\0" in data[:8_000] else data.decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return InputText(file.name, None)
