"""Find files by name or content in the task's inputs and in the folder that `IOA_WORKSPACE` names.

    which files mention "sundial"
    search for "total revenue" in *.md
    in which line of notes.txt does "Tuesday" occur
    find files named *.csv
    list all python files

A request says at most one text, in quotes, any names or patterns of files, and else nothing but the words of `_WORDS`; any other
word is refused by name. The answer is `path:line: text`, and the hits are attached as a CSV file. Hidden folders, binary files and
links that lead out of the folder are passed over.
"""

from __future__ import annotations

import csv
import fnmatch
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ioa import Agent, InvalidInputError, TaskContext
from task_files import decode
from words import account_for

MAX_FILES = 20_000
MAX_FILE_BYTES = 4_000_000
_SHOWN = 40
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|(?<!\w)\'([^\']+)\'(?!\w)|`([^`]+)`')
_PATTERN = re.compile(r"[^\s*?.]*[*?.][^\s]*[^\s.,;:?!]|\*")
"""A name with a full stop in it, or anything with an asterisk or a question mark before its end."""
_KINDS = {
    "csv": ("*.csv",),
    "html": ("*.html", "*.htm"),
    "image": ("*.png", "*.jpg", "*.jpeg", "*.gif", "*.svg"),
    "json": ("*.json",),
    "markdown": ("*.md",),
    "pdf": ("*.pdf",),
    "python": ("*.py",),
    "text": ("*.txt",),
    "yaml": ("*.yml", "*.yaml"),
}
_WORDS = frozenset(
    "please find search grep list show me look for which what how many where in of the all every any a file files line lines "
    "folder workspace word text phrase that mention mentions mentioned contain contains containing with named called does do is "
    "are occur occurs appear appears there have".split()
)


@dataclass(frozen=True)
class Hit:
    """A file, or a line in it."""

    path: str
    line: int = 0
    text: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}" if self.line else self.path


def create_agent(workspace: Path | None) -> Agent:
    """Create the agent for one folder; without one it searches the task's inputs only."""
    agent = Agent(
        "file-search",
        description="Searches files by name pattern and by content, in the inputs of a task and in a workspace folder, and returns "
        "path, line and excerpt of every hit.",
        skills=["search in files", "find files by name", "grep"],
        examples=[
            "find all files named *.csv",
            "which files mention 'sundial'?",
            "search for 'total revenue' in the files",
            "in which line of notes.txt does 'Tuesday' occur",
            "list the files in the workspace",
            "grep 'TODO' in *.py",
            "where is the word 'harbour' mentioned",
            "find markdown files that contain 'install'",
        ],
        tags=["files", "search"],
        may_team_up=False,
    )

    @agent.task
    def run(task: str, ctx: TaskContext) -> str:
        files = {file.name: file.path for file in ctx.inputs}
        files |= dict(_files_in(workspace)) if workspace else {}
        return search(task, files, ctx)

    return agent


def search(task: str, files: dict[str, Path], ctx: TaskContext) -> str:
    """Search `files` (shown name to path) for what the task names.

    Raises:
        InvalidInputError: There are no files, or the task says neither a name nor a text to look for.
    """
    if not files:
        raise InvalidInputError("There are no files to search.", hint="Send files with the goal, or set IOA_WORKSPACE to a folder.")
    patterns, term = _wish(task)
    chosen = {name: path for name, path in sorted(files.items()) if not patterns or _matches(name, patterns)}
    hits = list(_lines(chosen, term, ctx)) if term else [Hit(name) for name in chosen]
    found = len({hit.path for hit in hits})
    what = f"'{term}'" if term else f"files named {' or '.join(patterns)}" if patterns else "files"
    where = f" in files named {' or '.join(patterns)}" if term and patterns else ""
    if not hits:
        return f"No {'line with ' if term else ''}{what}{where} found in {len(chosen if term else files)} files."
    _attach(hits, ctx)
    head = f"{what}{where}: {len(hits)} lines in {found} of {len(chosen)} files" if term else f"{what}: {len(hits)} of {len(files)}"
    more = [f"- … and {len(hits) - _SHOWN} more in the attached table"] if len(hits) > _SHOWN else []
    return "\n".join([f"{head}:", *(f"- {hit}" for hit in hits[:_SHOWN]), *more])


def _wish(task: str) -> tuple[list[str], str]:
    """The patterns of file names that a task says, and the text it looks for; every word of it is accounted for."""
    terms = [next(group for group in match.groups() if group) for match in _QUOTED.finditer(task)]
    if len(terms) > 1:
        raise InvalidInputError(f"Only one text can be looked for at a time, not {len(terms)}.", hint="Ask for each by itself.")
    patterns: list[str] = []
    words = []
    for piece in _QUOTED.sub(" ", task).split():
        word = piece.strip(",;:?!.").lower()
        if pattern := _PATTERN.match(piece):
            patterns.append(pattern.group())
        elif word in _KINDS:
            patterns += _KINDS[word]
        else:
            words.append(word)
    hint = 'Put the text to look for in quotes, as in: which files mention "sundial"; or name a pattern, such as *.csv.'
    account_for(" ".join(words), _WORDS, hint)
    if not terms and not {"file", "files", "find", "list"} & set(words):
        raise InvalidInputError("It is not clear what to look for.", hint="Put a text in quotes, or name a pattern such as *.csv.")
    return list(dict.fromkeys(patterns)), terms[0] if terms else ""


def _files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    root = folder.resolve()
    count = 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith(".") or not path.resolve().is_relative_to(root) or not path.is_file():
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield path.relative_to(root).as_posix(), path


def _matches(name: str, patterns: list[str]) -> bool:
    lower = name.lower()
    return any(fnmatch.fnmatch(lower, one.lower()) or fnmatch.fnmatch(lower.rsplit("/", 1)[-1], one.lower()) for one in patterns)


def _lines(files: dict[str, Path], term: str, ctx: TaskContext) -> Iterator[Hit]:
    wanted = term.casefold()
    for index, (name, path) in enumerate(files.items()):
        if ctx.cancelled:
            return
        if index % 500 == 499:
            ctx.progress(f"searched {index + 1} files", (index + 1) / len(files))
        if path.stat().st_size > MAX_FILE_BYTES:
            continue
        data = path.read_bytes()
        if b"\x00" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            continue
        for number, line in enumerate(decode(data).splitlines(), 1):
            if (place := line.casefold().find(wanted)) >= 0:
                yield Hit(name, number, _excerpt(line, place, len(term)))


def _excerpt(line: str, place: int, length: int) -> str:
    start, end = max(0, place - 60), place + length + 60
    return ("…" if line[:start].strip() else "") + line[start:end].strip() + ("…" if line[end:].strip() else "")


def _attach(hits: list[Hit], ctx: TaskContext) -> None:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [("path", "line", "text"), *((hit.path, hit.line or "", hit.text) for hit in hits)]
    )
    ctx.artifact("search-hits.csv", table.getvalue(), "text/csv")


_WORKSPACE = os.environ.get("IOA_WORKSPACE", "")
agent = create_agent(Path(_WORKSPACE) if _WORKSPACE else None)

if __name__ == "__main__":
    agent.run()
