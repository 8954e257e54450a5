"""The files that a task is about: which they are, and what is written in them. For authors of agents.

A kind of file is told by how its name ends: `suffixes` are such as `(".csv", ".tsv")`, in lower case.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Sequence
from pathlib import Path

from ioa.agent.definition import InputFile, TaskContext
from ioa.agent.file_names import as_attached, comparable, composed, names_in, words_in
from ioa.agent.html_text import text_of_html
from ioa.errors import DeclinedError, InvalidInputError

_WORD = re.compile(r"[\w.-]+")
_FORMATS = re.compile(
    rb"(?i)(?:\xef\xbb\xbf)?\s*+(?:(?P<PDF>%pdf-)|(?P<RTF>\{\\rtf)|(?P<ZIP>pk\x03\x04)|(?P<HTML><!doctype html|<html\b)"
    rb"|(?P<XML><\?xml)|(?P<MIME>(?:[\w-]++:[^\n]*+\n(?:[ \t][^\n]*+\n)*+)*?mime-version:))"
)
"""How files begin that are no plain texts, whatever they are called."""
_BEGINNING_BYTES = 65_536
"""How much of a file shows what it is: all headers of a mail, which are the longest beginning."""
_DECLARED_BYTES = 4_096
"""In how many bytes a page declares its encoding: HTML has it in the first 1,024. All that follows a `<meta` is read for each."""

__all__ = [
    "at_hand", "came", "decoded", "format_of", "is_text", "missing", "named_in", "of_results", "pick", "read_and_tell",
    "read_text", "text_of_html", "with_suffix",
]  # fmt: skip


def pick(task: str, ctx: TaskContext, suffixes: Sequence[str]) -> list[InputFile]:
    """Return the files of a kind that a task names; if it names none, those that came, else those that earlier tasks attached.

    Of a file that an earlier task attached anew this one is taken.

    Raises:
        DeclinedError: The task names files that came, and none of them is of this kind.
        InvalidInputError: The task names one of this kind that is not there.
    """
    there, names = at_hand(ctx), {file.name for file in ctx.inputs}
    named = named_in(task, there)
    if named and not with_suffix(named, suffixes):
        raise DeclinedError(f"{named[0].name} is not one of {', '.join(suffixes)}.", hint=came(ctx))
    if said := missing(task, suffixes, [file.name for file in there]):
        raise InvalidInputError(said, hint=came(ctx))
    return with_suffix(named or [file for file in there if file.name in names], suffixes) or of_results(ctx, suffixes)


def at_hand(ctx: TaskContext) -> list[InputFile]:
    """Return the files that came and those that earlier tasks attached, of each name the newest."""
    attached = [file for result in ctx.results for file in result.artifacts]
    return [*{file.name: file for file in (*ctx.inputs, *attached)}.values()]


def with_suffix(files: Iterable[InputFile], suffixes: Sequence[str]) -> list[InputFile]:
    """Keep the files whose name ends in one of `suffixes`, in any case."""
    return [file for file in files if file.name.lower().endswith(tuple(suffixes))]


def of_results(ctx: TaskContext, suffixes: Sequence[str]) -> list[InputFile]:
    """Return the files of a kind that earlier tasks attached, in order."""
    return [file for result in ctx.results for file in with_suffix(result.artifacts, suffixes)]


def named_in(text: str, files: Iterable[InputFile]) -> list[InputFile]:
    """Return the files whose whole name stands in a text, in any case; of two that differ by case alone the one that is said so.

    `out/x.csv` names `out-x.csv`, as a file is attached that code writes there, if there is one; else `x.csv`.
    """
    files = list(files)
    named = names_in(text, [file.name for file in files])
    return [file for file in files if file.name in named]


def missing(text: str, suffixes: Sequence[str], there: Iterable[str]) -> str:
    """Say that files of a kind whose names stand in a text did not come; empty if none does but in the names that are `there`."""
    there = list(there)
    words = [word.rstrip(".-") for word in _WORD.findall(composed(as_attached(text, there)))]
    names = [word for word in words if word.lower().endswith(tuple(suffixes))]
    known = words_in(there)
    lost = [name for name in names if comparable(name) not in known]
    return f"{', '.join(map(repr, lost))} did not come with the goal." if lost else ""


def came(ctx: TaskContext) -> str:
    """Say which files came with the goal: a hint for an error about them."""
    names = ", ".join(file.name for file in ctx.inputs)
    return f"The goal came with: {names}." if names else "The goal came with no files."


def format_of(file: InputFile, suffixes: Sequence[str]) -> str:
    """Say what a file is if it is no plain text, by its media type and its name, or by how it begins; empty if it is one."""
    is_text = file.media_type.startswith(("text/", "application/octet-stream")) and file.media_type != "text/html"
    if not is_text and not with_suffix([file], suffixes):
        return file.media_type
    with file.path.open("rb") as opened:
        found = _FORMATS.match(opened.read(_BEGINNING_BYTES))
    return f"written in {found.lastgroup}" if found else ""


def is_text(file: InputFile) -> bool:
    """Whether `ask_model` shows a model what is written in a file: it is UTF-8, as far as its beginning and its end tell."""
    from ioa.agent.model.task import ends_of_file  # what only a model needs

    return ends_of_file(file.path) is not None


def read_text(path: Path) -> str:
    r"""Return a file's text, with `\n` at the ends of its lines.

    It is UTF-8, or UTF-16 that says so, else Windows-1252, which fits most Western files: `read_and_tell` says so, as should you.

    Raises:
        InvalidInputError: It is empty, or no text in one of these.
    """
    return read_and_tell(path)[0]


def read_and_tell(path: Path, *, is_page: bool = False) -> tuple[str, str]:
    """Return a file's text, as `read_text` does, and the encoding that was assumed; none if it is UTF-8, or says what it is.

    In another encoding its letters are others: a reader should be told.

    Args:
        path: Where it lies.
        is_page: Whether it is the markup of a page, which may declare its encoding (HTML, section 4.2.5.4).

    Raises:
        InvalidInputError: It is empty, or no text.
    """
    data = path.read_bytes()
    text, assumed = decoded(data, path.name, is_page=is_page)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip("\x00 \n\t"):
        said = "has nothing but blanks" if data else "is empty"
        raise InvalidInputError(f"{path.name} {said}.", hint="Send a file with text in it.")
    if "\x00" in text:
        said = f"{path.name} is not a text file, or UTF-16 without the mark that says so: it has bytes that are zero."
        raise InvalidInputError(said, hint="If it is a text, save it as UTF-8.")
    return text, assumed


def decoded(data: bytes, name: str, *, is_page: bool = False) -> tuple[str, str]:
    """Return what bytes say, as `read_and_tell` does of a file, blank or not.

    Args:
        data: They.
        name: What they are called.
        is_page: As there.

    Raises:
        InvalidInputError: They are no text.
    """
    try:
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"), ""
    except UnicodeDecodeError:
        declared = _declared_in(data) if is_page else None
    try:
        return data.decode(declared or "cp1252"), "" if declared else "Windows-1252"
    except (UnicodeError, LookupError):
        other = declared or "Windows-1252"
        said = f"{name} is no text that can be read: it is neither UTF-8 nor UTF-16 nor {other}."
        raise InvalidInputError(said, hint="If it is a text, save it as UTF-8.") from None


def _declared_in(page: bytes) -> str | None:
    from bs4.dammit import EncodingDetector

    declared: str | None = EncodingDetector.find_declared_encoding(page[:_DECLARED_BYTES], is_html=True)
    return declared
