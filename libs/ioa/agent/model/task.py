"""Doing a task by asking the model once: what an agent does whose author wrote instructions and no function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from ioa.agent.model.prompt_templates import below, excerpt, fill
from ioa.agent.model.turn_prompt import written_time
from ioa.agent.task_context import InputFile, TaskContext
from ioa.agent.tasks.chat_question import ChatAnswer
from ioa.errors import TaskError
from ioa.foreign_text import defused, fenced, in_one_line
from ioa.json_text import find_object
from ioa.ports.chat_model import ChatMessage, Tool, ToolCall

MAX_TEXT_BYTES = 60_000
"""The most that one text has in a question: a result, or a file that came with the goal."""
MAX_READS = 4
"""Maximum number of answers that read something before the task's result."""
_MAX_SAID_BYTES = 2_000
_LATEST = 40
"""Messages of the conversation that one read returns."""
_CONVERSATION = "conversation"
_LAST = "The steps are spent. Answer now."

READ = Tool(
    "read",
    "Read a file of the goal by its name, or `conversation`: what the group has said so far.",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False},
)
"""The tool that reads what the task does not name."""


async def ask_model(instructions: str, task: str, ctx: TaskContext) -> str:
    """Ask the agent's model to do a task; ask again with twice the limit if its answer was cut.

    The prompt contains the goal, the results that the task uses, the files that the task names, and the task. The model can read
    the other files and the conversation. Text of other agents is fenced, and cut where it is too long.

    Raises:
        TaskError: There is no complete answer.
        IoaError: The model cannot be asked; see `TaskContext.chat`.
    """

    async def observe(calls: Sequence[ToolCall]) -> list[ChatMessage]:
        return [ChatMessage("tool", await read(call.arguments, ctx), tool_call_id=call.call_id) for call in calls]

    tools = (READ,) if readable(task, ctx) else ()
    return await converse(await messages_of(instructions, task, ctx), tools, observe, ctx, max_steps=MAX_READS)


async def converse(
    messages: list[ChatMessage],
    tools: Sequence[Tool],
    observe: Callable[[Sequence[ToolCall]], Awaitable[list[ChatMessage]]],
    ctx: TaskContext,
    *,
    max_steps: int,
    on_answer: Callable[[ChatAnswer], None] | None = None,
) -> str:
    """Ask the model until it answers in words, and add its calls and their results to the messages.

    An empty answer, or an answer that was cut, is requested again once; after a cut with twice the limit.

    Args:
        messages: The prompt.
        tools: The tools that the model may call.
        observe: Runs the calls of an answer, and returns a message for each call.
        ctx: The context of the task.
        max_steps: Maximum answers with calls; then the model must answer.
        on_answer: Called with each answer.

    Raises:
        TaskError: There is no complete answer within the steps.
        IoaError: The model cannot be asked; see `TaskContext.chat`.
    """
    limit, step, is_second = None, 0, False
    while True:
        is_last = step == max_steps
        sent = [*messages, ChatMessage("user", _LAST)] if is_last else messages
        answer = await ctx.chat(sent, tools=tools, max_tokens=limit, may_call=not is_last, stream=True)
        if on_answer is not None:
            on_answer(answer)
        if answer.complete and answer.tool_calls:
            if is_last:
                raise TaskError(f"There is no answer within {max_steps} steps.", hint="Allow more, or ask for less.")
            step += 1
            messages += [ChatMessage("assistant", answer.text, answer.tool_calls), *await observe(answer.tool_calls)]
        elif answer.complete and answer.text.strip():
            return answer.text.strip()
        elif not is_second:
            is_second, limit = True, None if answer.complete else 2 * answer.usage.tokens_out or None
        elif answer.complete:
            raise TaskError("The model returned an answer without text.", hint="If it only returns reasoning, check its server.")
        else:
            raise TaskError("The model's answer was cut off at its limit.", hint="Ask for less, or raise IOA_LLM_MAX_ANSWER.")


async def messages_of(instructions: str, task: str, ctx: TaskContext, rules: str = "") -> list[ChatMessage]:
    """Return the prompt of a task: first the parts that other tasks of the goal share, so that providers can cache them."""
    told = await asyncio.to_thread(lambda: [*filter(None, _told(instructions, task, ctx))])
    return [ChatMessage("system", fill("task", rules=rules)), ChatMessage("user", "\n\n".join(told))]


def readable(task: str, ctx: TaskContext) -> tuple[str, ...]:
    """Return the names that the model can read: files that the task does not name, and the conversation."""
    files = [in_one_line(file.name) for file in ctx.inputs if not _is_named(file, task)]
    return (*files, _CONVERSATION) if _conversation(ctx) else tuple(files)


async def read(arguments: str, ctx: TaskContext) -> str:
    """Return the file or the conversation that a call names."""
    name = str((find_object(arguments) or {}).get("name", "")).strip()
    if name == _CONVERSATION:
        return "\n".join(_conversation(ctx)) or "(nothing)"
    file = next((file for file in ctx.inputs if in_one_line(file.name).casefold() == in_one_line(name).casefold()), None)
    if file is None:
        names = ", ".join([*(in_one_line(file.name) for file in ctx.inputs), _CONVERSATION])
        return f"There is no {in_one_line(name)[:100]!r}. There are: {names}."
    return await asyncio.to_thread(_shown, file)


def _told(instructions: str, task: str, ctx: TaskContext) -> Iterator[str]:
    yield fenced("goal", excerpt(ctx.goal, MAX_TEXT_BYTES))
    yield from (_shown(file) for file in ctx.inputs if _is_named(file, task))
    for result in ctx.results:
        named = f"{result.task_id} from {result.agent_id}"
        yield fenced("result", f"{excerpt(result.task_desc, _MAX_SAID_BYTES)}\n\n{excerpt(result.content, MAX_TEXT_BYTES)}", named)
        yield fenced("rejected", excerpt(result.rejected, _MAX_SAID_BYTES), result.task_id)
    yield fenced("instructions", defused(instructions))
    names = readable(task, ctx)
    yield f"You can `read`:\n{fenced('inputs', ', '.join(names))}" if names else ""
    if ctx.rejected:
        yield f"An earlier result was rejected:\n{fenced('rejected', excerpt(ctx.rejected, _MAX_SAID_BYTES))}"
    now = f"It is {written_time(ctx.at)} " if ctx.at is not None else ""
    why = fenced("message", excerpt(ctx.reason, _MAX_SAID_BYTES), f"from {ctx.asked_by}")
    yield below(f"{now}{ctx.asked_by} assigns this task to you.", why, fenced("task", defused(task), ctx.task_id))


def _is_named(file: InputFile, task: str) -> bool:
    return file.name.casefold() in task.casefold()


def _shown(file: InputFile) -> str:
    shown = text_of_file(file.path)
    return fenced("read", f"{in_one_line(file.name)}:\n{'(no text)' if shown is None else shown or '(empty)'}")


def text_of_file(path: Path) -> str | None:
    """Return a text file, defused, with only the beginning and the end of a large one; None if it is not text in UTF-8."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else excerpt(text, MAX_TEXT_BYTES)


def _conversation(ctx: TaskContext) -> list[str]:
    """Return the latest messages of the group without what the prompt contains already."""
    shown = {ctx.task_id, *(result.task_id for result in ctx.results)}
    said = [one for one in ctx.conversation if one.content and one.task_id not in shown and one.content != ctx.reason]
    lines = []
    for one in said[-_LATEST:]:
        about = " ".join(filter(None, (one.kind, one.task_id, "from", one.sender)))
        lines.append(fenced("rejected" if one.kind == "rejection" else "message", excerpt(one.content, _MAX_SAID_BYTES), about))
    return lines
