"""Texts of a view or a task, for functions, prompts and briefs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ioa.agent.conversation import Heard, name_of_entry, named, read_conversation, read_entry
from ioa.group.state import OpenTask
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import MAX_CONTENT_CHARS, AsyncTaskAssignment, Discussion, SyncTaskAssignment, TaskSpec

if TYPE_CHECKING:  # a task needs no view
    from ioa.agent.task_context import TaskContext
    from ioa.agent.turn_view import TurnView

_MAX_SAID_BYTES = MAX_CONTENT_CHARS
"""Maximum bytes of the conversation that a function receives in a turn; a task may be as long."""
_LEFT_OUT = "[… the beginning is left out …]"


@dataclass(frozen=True)
class GivenOut:
    """How a task was assigned.

    Attributes:
        asked_by: The agent that assigned it.
        reason: The text of the assignment.
        rejected: The reasons why earlier results were rejected, one line for each.
    """

    asked_by: AgentId
    reason: str = ""
    rejected: str = ""


def heard_in(view: TurnView) -> Mapping[str, Sequence[Heard]]:
    """Return the parts of each message, and of each task that ended without a message, by the entry's name."""
    turns: dict[TaskId, int] = {}
    return {name_of_entry(entry): tuple(read_entry(entry, turns, view.replies)) for entry in view.log}


def without(view: TurnView, dropped: Collection[str]) -> TurnView:
    """Return a view without entries, by their names."""
    return replace(view, log=tuple([entry for entry in view.log if name_of_entry(entry) not in dropped]))


def board_lines(view: TurnView) -> list[str]:
    """Return the items of the board as text; of an item that is a whole visible message, only its place."""
    in_sight = {
        (name_of_entry(message), message.payload.content) for message in view.messages if isinstance(message.payload, Discussion)
    }
    lines = []
    for one in view.board.values():
        told = f"{one.name}, version {one.version}"
        is_shown = (named(one.by, one.message_id), one.text) in in_sight
        lines.append(f"{told}, as {one.by} says in turn {one.turn}" if is_shown else attributed(f"{told}, by {one.by}", one.text))
    return lines


def attributed(name: str, text: str) -> str:
    """Write a text after the name of its author; only its first line is not indented, so that it cannot imitate another text."""
    return f"{name}: " + "\n  ".join(text.splitlines())


def set_off(heading: str, text: str) -> str:
    """Write a text below a heading, indented; `textwrap.dedent` restores it."""
    return f"{heading}:\n" + "".join([f"  {line}" for line in text.splitlines(keepends=True)])


def with_results(task: str, ctx: TaskContext) -> str:
    """Return a task and the results that it uses as one text."""
    told = [task]
    for result in ctx.results:
        rejected = [f"(rejected: {result.rejected})"] if result.rejected else []
        told.append(set_off(f"Result of an earlier task, {result.task_desc!r}", "\n".join([*rejected, result.content])))
    return "\n\n".join(told)


def said_last(said: Sequence[Heard], most_bytes: int) -> str:
    """Return the last part of a conversation as text, at most about `most_bytes` long."""
    data = "\n".join([attributed(one.sender, one.content) for one in said]).encode("utf-8", "replace")
    mark = f"{_LEFT_OUT} " if len(data) > most_bytes else ""
    return mark + data[-most_bytes:].decode("utf-8", "ignore")


def spoken(view: TurnView) -> list[Heard]:
    """Return the messages, questions and results of the conversation, in order."""
    return [
        one
        for one in read_conversation(view.log, view.replies)
        if one.kind in ("message", "question", "answer", "result", "failure")
    ]


def told_of_part(view: TurnView) -> str:
    """Return the task of a function that speaks in a turn: its part, the goal, and the last part of the conversation."""
    part = view.part
    prompts = () if part is None else part.prompts
    remembered = [view.memory] if view.memory else []
    heard = spoken(view)
    said = ["What was said so far:", said_last(heard, _MAX_SAID_BYTES)] if heard else []
    board = ["On the board:", *board_lines(view)] if view.board else []
    return "\n".join([*prompts, view.charter.goal, *remembered, *board, *said])


def given_out(view: TurnView, spec: TaskSpec) -> GivenOut:
    """Return how a task was assigned; the owner assigns planned tasks.

    It repeats a rejected task if it uses the rejected result, or if the same message rejects a result of its assignee.
    """
    task = view.state.task(spec.task_id)
    asked_by, reason, at_once = (task.assigner if isinstance(task, OpenTask) else view.charter.owner), "", frozenset[TaskId]()
    for message in view.messages:
        payload = message.payload
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment) and spec in payload.tasks:
            asked_by, reason, at_once = message.header.sender, payload.content, frozenset(one.task_id for one in payload.rejects)
    rejected = [
        record.rejected
        for record in view.tasks
        if record.spec.task_id in spec.uses or (record.spec.task_id in at_once and record.spec.assignee == spec.assignee)
    ]
    return GivenOut(asked_by, reason, "\n".join(filter(None, rejected)))
