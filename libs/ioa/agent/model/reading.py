"""READ: showing a model what is cut in its prompt or only named there. It costs no turn and leaves no trace in the group."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ioa.agent.model.answer_to_message import files_by_id
from ioa.agent.model.answers import Read
from ioa.agent.model.transcript import LogEntry, read_log
from ioa.agent.turn_view import TurnView
from ioa.errors import IoaError
from ioa.fences import defused, fenced, in_one_line
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId

MAX_READS = 8
"""How many reads a decision may take."""
MAX_READ_CHARS = 20_000
"""How much one read shows."""
MAX_CHARS = 60_000
"""How much the reads of a decision show together."""
MAX_FILE_BYTES = 16_000_000
"""A larger file is not fetched to be read."""

_TEXT_KINDS = re.compile(r"text/.*|application/(?:json|xml|yaml|toml|x-ndjson|jsonl|csv|sql|javascript|x-yaml|.*\+json|.*\+xml)")


class Unreadable(Exception):  # noqa: N818 - an answer to the model, not an error
    """What a model is told instead of a text."""


@dataclass
class Reader:
    """The reads of one decision."""

    view: TurnView
    reads: int = 0
    chars: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether there is nothing more to be read for this decision."""
        return self.reads >= MAX_READS or self.chars >= MAX_CHARS

    def spent(self) -> str:
        """Return what a model is told that wants to read on nevertheless."""
        return f"the reads of this decision are used up ({self.reads} of {MAX_READS}); decide with what you have seen."

    async def read(self, asked: Read, most_bytes: int) -> str:
        """Show a part of a text, or say in a sentence why not. `most_bytes` are what the prompt has room for."""
        self.reads += 1
        try:
            text = await self._text(asked.what.strip().strip("`<>"))
        except Unreadable as why:
            return fenced("read", str(why))
        start = min(max(0, asked.start), len(text))
        wanted = asked.end if asked.end > start else len(text)
        end = min(wanted, len(text), start + min(MAX_READ_CHARS, MAX_CHARS - self.chars))
        part = text[start:end].encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")
        if end > start and not part:
            return "There is no room for more. Decide with what you have seen."
        end = start + len(part)
        self.chars += end - start
        name = in_one_line(asked.what)
        missing = min(wanted, len(text)) - end
        more = f" ({missing:,} more: READ {name} from {end})" if missing else ""
        shown = f"{name} from {start} to {end} of {len(text)} characters{more}:\n{defused(part) or '(nothing)'}"
        left = f"{MAX_READS - self.reads} reads and {MAX_CHARS - self.chars:,} characters are left"
        return f"{fenced('read', shown)}\nNow decide, or READ on: {left}."

    async def _text(self, what: str) -> str:
        """Return what something holds.

        Raises:
            Unreadable: There is nothing of the name, or it is no text.
        """
        if what == "goal":
            return self.view.charter.goal
        entries = read_log(self.view)
        if (entry := _named(what, entries)) is not None:
            return entry.text if entry.spec is None else await whole_text(self.view, entry.spec.task_id)
        files = files_by_id(self.view) | {f"input/{' '.join(file.name.split())}": file for file in self.view.charter.inputs}
        if (file := files.get(what)) is not None:
            return await self._whole(file)
        known = [*(entry.read_name for entry in entries if entry.spec is not None), *files]
        raise Unreadable(
            f"There is nothing called `{in_one_line(what)[:100]}` to read. There are goal, the messages m1 to m{len(entries)}"
            f"{', ' if known else ''}{', '.join(map(in_one_line, known[:60]))}."
        )

    async def _whole(self, file: Artifact) -> str:
        kind = file.media_type.partition(";")[0].strip().lower()
        about = f"`{in_one_line(file.name)}` ({in_one_line(kind)}, {file.size_bytes:,} bytes, sha256 {file.sha256})"
        if file.size_bytes > MAX_FILE_BYTES or not _TEXT_KINDS.fullmatch(kind):
            raise Unreadable(f"{about} cannot be shown as text.")
        try:
            return (await self.view.files.get_file(file)).decode("utf-8-sig", "replace")
        except IoaError as error:
            raise Unreadable(f"{about} cannot be read now: {error.message}") from None


async def whole_text(view: TurnView, task_id: TaskId, most_bytes: int = MAX_FILE_BYTES) -> str:
    """All of a result: what was longer than a message is in a file, which stays there if it has more than so many bytes."""
    task = view.task(task_id)
    if task is None:
        return ""
    whole = next((file for file in task.artifacts if file.name == f"{task_id}.txt"), None)
    if whole is None or whole.size_bytes > most_bytes:
        return task.conclusion
    try:
        return (await view.files.get_file(whole)).decode("utf-8", "replace")
    except IoaError:
        return task.conclusion


def _named(what: str, entries: list[LogEntry]) -> LogEntry | None:
    by_number = next((entry for entry in entries if what == entry.name), None)
    return by_number or next((entry for entry in entries if entry.read_name == what), None)
