"""READ: shows a model the texts that its prompt cuts or only names. It takes no turn and is in no log."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from ioa.agent.model.answers import Read
from ioa.agent.model.prompt_transcript import file_line, read_log
from ioa.agent.turn_view import TurnView
from ioa.errors import InvalidInputError, IoaError
from ioa.foreign_text import defused, fenced, in_one_line
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId

MAX_READS = 8
"""Maximum reads of a decision."""
MAX_READ_CHARS = 20_000
"""Maximum characters of a read."""
MAX_FILE_BYTES = 16_000_000
"""Maximum bytes of a file that is downloaded for a read or a conclusion."""


@dataclass
class Reader:
    """The reads of a decision."""

    view: TurnView
    reads: int = 0

    async def read(self, asked: Read, most_bytes: int, *, is_exhausted: bool) -> str:
        """Return a part of a text of at most `most_bytes`, or the reason why it cannot be read.

        Raises:
            InvalidInputError: No read is left, or the budget is spent (`is_exhausted`).
        """
        if is_exhausted or self.reads == MAX_READS:
            raise InvalidInputError("the reads of this decision are used up; decide with what you have seen.")
        self.reads += 1
        try:
            text = await self._text(asked.what.strip().strip("`<>"))
        except InvalidInputError as error:
            return fenced("read", error.message)
        start = min(max(0, asked.start), len(text))
        part = text[start : start + MAX_READ_CHARS].encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")
        if start < len(text) and not part:
            return "There is no room for more. Decide with what you have seen."
        name, end = in_one_line(asked.what), start + len(part)
        more = f" ({len(text) - end:,} more: READ {name} from {end})" if end < len(text) else ""
        shown = f"{name} from {start} to {end} of {len(text)} characters{more}:\n{defused(part) or '(nothing)'}"
        return f"{fenced('read', shown)}\nNow decide, or READ on: {MAX_READS - self.reads} reads are left."

    async def _text(self, what: str) -> str:
        """Return a text by its name.

        Raises:
            InvalidInputError: There is no text of this name.
        """
        if what == "goal":
            return self.view.charter.goal
        entries = read_log(self.view)
        for entry in entries:
            if what in (entry.name, entry.number):
                return (await whole_texts(self.view, entry.name)).get(entry.name) or entry.text
        files = files_by_id(self.view)
        if what in files:
            return await self._file_text(files[what])
        known = [*(entry.name for entry in entries if entry.name != entry.number), *files]
        there = ", ".join(["goal", f"the messages m1 to m{len(entries)}", *map(in_one_line, known[:60])])
        raise InvalidInputError(f"There is nothing called `{in_one_line(what)[:100]}` to read. There are {there}.")

    async def _file_text(self, file: Artifact) -> str:
        about = f"{file_line(f'`{in_one_line(file.name)}`', file)} cannot be read"
        if file.size_bytes > MAX_FILE_BYTES:
            raise InvalidInputError(f"{about}: it is too large.")
        try:
            return (await self.view.files.get_file(file)).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidInputError(f"{about}: it is no text in UTF-8.") from None
        except IoaError as error:
            raise InvalidInputError(f"{about} now: {error.message}") from None


def files_by_id(view: TurnView) -> dict[str, Artifact]:
    """Return the files of all tasks and of the goal by the names that READ uses."""
    named = [(f"{task.spec.task_id}/", file) for task in view.tasks for file in task.artifacts]
    named += [("input/", file) for file in view.charter.inputs]
    return {place + " ".join(file.name.split()): file for place, file in named}


async def whole_texts(view: TurnView, *task_ids: str) -> dict[str, str]:
    """Return the whole texts of results. A text that exceeds a message is in a file; at most `MAX_FILE_BYTES` are read in total."""
    texts, left = dict[str, str](), MAX_FILE_BYTES
    for task_id in task_ids:
        if (task := view.task(TaskId(task_id))) is None:
            continue
        texts[task_id] = task.conclusion
        file = next((file for file in task.artifacts if file.name == f"{task_id}.txt"), None)
        if file is not None and file.size_bytes <= left:
            with suppress(IoaError):
                texts[task_id] = (await view.files.get_file(file)).decode("utf-8", "replace")
                left -= file.size_bytes
    return texts
