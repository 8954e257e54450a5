"""Files of a task, for authors of agents. A kind of file is given by lower-case suffixes, such as `(".csv", ".tsv")`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ioa.agent.task_context import InputFile, TaskContext
from ioa.errors import DeclinedError, InvalidInputError

__all__ = ["is_text", "pick", "read_text"]


def pick(task: str, ctx: TaskContext, suffixes: Sequence[str]) -> list[InputFile]:
    """Return the files of a kind that the task names; otherwise those of the goal, or else those of the results that it uses.

    Of several files with one name, the newest is returned.

    Raises:
        DeclinedError: The task names files, and none of them is of this kind.
    """
    there = {file.name: file for file in ctx.files}
    named = [file for name, file in there.items() if _names(task, name)]
    chosen = _with_suffix(named, suffixes)
    if named and not chosen:
        raise DeclinedError(f"{named[0].name} is not one of {', '.join(suffixes)}.", hint=f"The files are {', '.join(there)}.")
    given = [there[file.name] for file in ctx.inputs]
    return chosen or _with_suffix(given, suffixes) or _with_suffix(there.values(), suffixes)


def is_text(file: InputFile) -> bool:
    """Return True if `ask_model` can show the file to a model: it is UTF-8."""
    from ioa.agent.model.task import text_of_file  # needed with a model only

    return text_of_file(file.path) is not None


def read_text(path: Path) -> str:
    r"""Return the content of a UTF-8 file, with `\n` as line end and without a byte order mark.

    Raises:
        InvalidInputError: The file is empty, or is not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(f"{path.name} is not a text in UTF-8.", hint="If it is a text, save it as UTF-8.") from None
    if not text.strip():
        raise InvalidInputError(f"{path.name} is empty.", hint="Send a file with text in it.")
    return text


def _names(task: str, name: str) -> bool:
    """Return True if a text contains a file's name as a whole word, in any case."""
    return re.search(rf"(?<![\w.-]){re.escape(name.casefold())}(?![\w-])", task.casefold()) is not None


def _with_suffix(files: Iterable[InputFile], suffixes: Sequence[str]) -> list[InputFile]:
    return [file for file in files if file.name.lower().endswith(tuple(suffixes))]
