"""Questions to the user of a goal: their text for a reader, and their items."""

from __future__ import annotations

import re

from ioa.client.documents import OpenQuestion
from ioa.errors import InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.protocol.ids import CommId, TaskId, is_token

_NUMBER = re.compile(r"[0-9]{1,9}")


def question_in_words(asked: OpenQuestion) -> str:
    """Return a question as text: its author, its options, its deadline, and the default that counts then."""
    asker = f"Task {asked.task_id} of {asked.asker}" if asked.task_id else asked.asker
    lines = [f"{asker} asks{f' the {asked.role}' if asked.role else ''}: {continued(asked.text)}"]
    lines += [f"Answer one of {', '.join(map(shown_in_line, asked.options))}."] if asked.options else []
    return "\n".join((*lines, f"Until {asked.until:%Y-%m-%d %H:%M} UTC, then {shown_in_line(asked.default)}."))


def parse_item(item: str) -> tuple[CommId, int, TaskId | None]:
    """Parse an item: the group, the turn or the number of the question, and the task if a task asks.

    Raises:
        InvalidInputError: It is no item.
    """
    comm_id, *task, number = item.split(".") if item.count(".") in (1, 2) else (item, "")
    if not is_token(comm_id) or not _NUMBER.fullmatch(number) or not all(map(is_token, task)):
        raise InvalidInputError(
            f"{item!r} is nothing that `ioa waiting` shows.", hint="An item is GROUP.TURN, or GROUP.TASK.NUMBER."
        )
    return CommId(comm_id), int(number), TaskId(task[0]) if task else None
