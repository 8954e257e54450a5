"""Doing a task by asking the model once: what an agent does whose author wrote instructions and no function."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Iterator
from pathlib import Path

from ioa.agent.model.prompts import Ends, Prompts, ends_of, excerpt
from ioa.agent.task_context import TaskContext
from ioa.errors import TaskError
from ioa.fences import defused, fenced, in_one_line
from ioa.ports.chat_model import ChatMessage

MAX_TEXT_BYTES = 60_000
"""The most that one text has in a question: a result, or a file that came with the goal."""
_MAX_SAID_BYTES = 2_000
_MAX_TASK_CHARS = 200
_LATEST = 40
_TELLING_BYTES = 8_000
"""Of how many bytes none is zero in a text."""
_LATER_BYTES = bytes(range(0x80, 0xC0))
"""What a letter of UTF-8 goes on with: at most three of them."""


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
    if answer.complete:
        raise TaskError("The model returned an answer without text.", hint="If it only returns reasoning, check its server.")
    raise TaskError("The model's answer was cut off at its limit.", hint="Ask for less at once, or raise IOA_LLM_MAX_ANSWER.")


async def messages_of(instructions: str, task: str, ctx: TaskContext, rules: str = "") -> list[ChatMessage]:
    """Return what a model is told of a task: what holds for all tasks, what was said and made, the task."""
    told = await asyncio.to_thread(lambda: [*filter(None, _told(task, ctx))])
    system = Prompts().fill("task", instructions=fenced("instructions", defused(instructions)), rules=rules)
    return [ChatMessage("system", system), ChatMessage("user", "\n\n".join(told))]


def _told(task: str, ctx: TaskContext) -> Iterator[str]:
    yield fenced("goal", excerpt(ctx.goal, MAX_TEXT_BYTES))
    built_on = {result.task_id for result in ctx.results}
    said = [one for one in ctx.conversation if one.task_id not in built_on and one.task_id != ctx.task_id and one.content]
    for one in said[-_LATEST:]:
        shown = excerpt(one.content, _MAX_SAID_BYTES)
        if one.kind == "rejection":
            yield fenced("rejected", shown, f"{one.task_id} from {one.sender}")
        else:
            yield fenced("message", shown, " ".join(filter(None, (one.kind, one.task_id, "from", one.sender))))
    for result in ctx.results:
        of = f"{defused(in_one_line(result.task_desc[: 4 * _MAX_TASK_CHARS])[:_MAX_TASK_CHARS])}:"
        named = f"{result.task_id} from {result.agent_id}"
        yield fenced("result", f"{of}\n{excerpt(result.content, MAX_TEXT_BYTES)}", named)
        yield fenced("rejected", excerpt(result.rejected, _MAX_SAID_BYTES), result.task_id)
    for file in ctx.inputs:
        ends = ends_of_file(file.path)
        shown = "(no text)" if ends is None else ends.excerpt(MAX_TEXT_BYTES) or "(empty)"
        yield fenced("read", f"{in_one_line(file.name)}:\n{shown}")
    if ctx.rejected:
        yield f"What was done before was not taken:\n{fenced('rejected', excerpt(ctx.rejected, _MAX_SAID_BYTES))}"
    why = fenced("message", excerpt(ctx.reason, _MAX_SAID_BYTES), f"from {ctx.asked_by}")
    yield "\n".join(filter(None, (f"{ctx.asked_by} gives you this task.", why, fenced("task", defused(task), ctx.task_id))))


def ends_of_file(path: Path) -> Ends | None:
    """Read as much of a text file as a question shows of it, its beginning and its end; None of what is no text in UTF-8.

    Whoever gives a goal says how large its files are, so of a large one nothing else is read.
    """
    try:
        with path.open("rb") as opened:
            head, size = opened.read(MAX_TEXT_BYTES), opened.seek(0, os.SEEK_END)
            if b"\0" in head[:_TELLING_BYTES]:
                return None
            if size <= MAX_TEXT_BYTES:
                return ends_of(head.decode("utf-8"), MAX_TEXT_BYTES)
            opened.seek(size - MAX_TEXT_BYTES // 3)
            tail = opened.read(MAX_TEXT_BYTES // 3)
        utf_8 = codecs.getincrementaldecoder("utf-8")
        utf_8().decode(head)  # which may end within a letter
        utf_8().decode(tail[:3].lstrip(_LATER_BYTES) + tail[3:], final=True)
    except (OSError, UnicodeDecodeError):
        return None
    return Ends(None, size, head, tail, None)
