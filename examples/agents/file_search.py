"""Find files by name or content in the task's inputs and in the folder that `IOA_WORKSPACE` names.

A request says at most one text, in quotes, any names or patterns of files, and else nothing but the words of `_WORDS`; any other
word is refused by name. The answer is `path:line: text`, and the hits are attached as a CSV file. Hidden folders, binary and
large files, and links that lead out of the folder are passed over.
"""

from __future__ import annotations

import csv
import fnmatch
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ioa import Agent, InvalidInputError, TaskContext
from task_files import decode
from words import QUOTED, account_for, quotations

MAX_FILES = 20_000
MAX_FILE_BYTES = 4_000_000
_SHOWN = 40
_HINT = "Put the text to look for in quotes, or name a pattern such as *.csv"
_PATTERN = re.compile(r"[^\s*?.]*[*?.][^\s]*[^\s.,;:?!]|\*")
"""A name with a full stop in it, or anything with an asterisk or a question mark before its end."""
_KINDS = {
    "csv": ["*.csv"], "html": ["*.html", "*.htm"], "json": ["*.json"], "markdown": ["*.md"], "pdf": ["*.pdf"], "python": ["*.py"],
    "text": ["*.txt"], "yaml": ["*.yml", "*.yaml"],
}  # fmt: skip
_WORDS = frozenset(
    "please find search grep list show me look for which what how many where in of the all every any a file files line lines "
    "folder workspace word text phrase that mention mentions mentioned contain contains containing with named called does do is "
    "are occur occurs appear appears there have".split()
)


Hit = tuple[str, int, str]
"""A file, the number of a line in it, and an excerpt of that; 0 and nothing when the file's name is the hit."""


def create_agent(workspace: Path | None) -> Agent:
    """Create the agent for one folder; without one it searches the task's inputs only."""
    agent = Agent(
        "file-search",
        description="Searches files by name pattern and by content, in the inputs of a task and in a workspace folder, and returns "
        "path, line and excerpt of every hit.",
        skills=["search in files", "find files by name", "grep"],
        examples=[
            "find all files named *.csv", "which files mention 'sundial'?", "search for 'total revenue' in the files",
            "in which line of notes.txt does 'Tuesday' occur", "list the files in the workspace", "grep 'TODO' in *.py",
            "where is the word 'harbour' mentioned", "find markdown files that contain 'install'",
        ],
        tags=["files", "search"],
        may_team_up=False,
    )  # fmt: skip

    @agent.task
    def run(task: str, ctx: TaskContext) -> str:
        return search(task, {file.name: file.path for file in ctx.inputs} | dict(_files_in(workspace) if workspace else {}), ctx)

    return agent


def search(task: str, files: dict[str, Path], ctx: TaskContext) -> str:
    """Search `files` (shown name to path) for what the task names.

    Raises:
        InvalidInputError: There are no files, or the task says neither a name nor a text to look for.
    """
    if not files:
        raise InvalidInputError("There are no files to search.", hint="Send files with the goal, or set IOA_WORKSPACE to a folder.")
    patterns, term = _wish(task)
    named = " or ".join(patterns)
    chosen = {name: path for name, path in sorted(files.items()) if not patterns or _matches(name, patterns)}
    hits = list(_lines(chosen, term, ctx)) if term else [(name, 0, "") for name in chosen]
    what = f"'{term}'{f' in files named {named}' * bool(named)}" if term else f"files named {named}" if named else "files"
    if not hits:
        return f"No {'line with ' * bool(term)}{what} found in {len(chosen if term else files)} files."
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [("path", "line", "text"), *((path, line or "", text) for path, line, text in hits)]
    )
    ctx.artifact("search-hits.csv", table.getvalue(), "text/csv")
    found = f"{len(hits)} lines in {len({path for path, *_ in hits})} of {len(chosen)} files"
    lines = [f"- {path}:{line}: {text}" if line else f"- {path}" for path, line, text in hits[:_SHOWN]]
    lines += [f"- … and {len(hits) - _SHOWN} more in the attached table"] * (len(hits) > _SHOWN)
    return "\n".join([f"{what}: {found if term else f'{len(hits)} of {len(files)}'}:", *lines])


def _wish(task: str) -> tuple[list[str], str]:
    """The patterns of file names that a task says, and the text it looks for; every word of it is accounted for."""
    terms = quotations(task)
    if len(terms) > 1:
        raise InvalidInputError(f"Only one text can be looked for at a time, not {len(terms)}.", hint="Ask for each by itself.")
    patterns, words = list[str](), list[str]()
    for piece in QUOTED.sub(" ", task).split():
        word = piece.strip(",;:?!.").lower()
        pattern = _PATTERN.match(piece)
        if pattern or word in _KINDS:
            patterns += [pattern[0]] if pattern else _KINDS[word]
        else:
            words.append(word)
    account_for(" ".join(words), _WORDS, f'{_HINT}, as in: which files mention "sundial".')
    if not terms and not {"file", "files", "find", "list"} & set(words):
        raise InvalidInputError("It is not clear what to look for.", hint=f"{_HINT}.")
    return list(dict.fromkeys(patterns)), terms[0] if terms else ""


def _files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    root, count = folder.resolve(), 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(place, name) for name in sorted(names) if not name.startswith(".")):
            if path.resolve().is_relative_to(root) and path.is_file():
                count += 1
                if count > MAX_FILES:
                    raise InvalidInputError(
                        f"The folder holds more than {MAX_FILES} files.", hint="Set IOA_WORKSPACE to a smaller one."
                    )
                yield path.relative_to(root).as_posix(), path


def _matches(name: str, patterns: list[str]) -> bool:
    names = (name.lower(), name.lower().rsplit("/", 1)[-1])
    return any(fnmatch.fnmatchcase(one, pattern.lower()) for one in names for pattern in patterns)


def _lines(files: dict[str, Path], term: str, ctx: TaskContext) -> Iterator[Hit]:
    wanted = term.casefold()
    for index, (name, path) in enumerate(files.items()):
        if ctx.cancelled:
            return
        if index % 500 == 499:
            ctx.progress(f"searched {index + 1} files", (index + 1) / len(files))
        data = path.read_bytes() if path.stat().st_size <= MAX_FILE_BYTES else b"\x00"
        if b"\x00" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            continue
        for number, line in enumerate(decode(data).splitlines(), 1):
            if (place := line.casefold().find(wanted)) >= 0:
                start, end = max(0, place - 60), place + len(term) + 60
                yield name, number, "…" * bool(start) + line[start:end].strip() + "…" * (end < len(line))


_WORKSPACE = os.environ.get("IOA_WORKSPACE", "")
agent = create_agent(Path(_WORKSPACE) if _WORKSPACE else None)

if __name__ == "__main__":
    agent.run()
