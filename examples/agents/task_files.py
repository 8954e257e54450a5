"""Which files a task is about: those it names, else all that fit, what earlier tasks attached included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ioa import DeclinedError, InputFile, InvalidInputError, TaskContext
from words import fold

TABLES = (".csv", ".tsv", ".tab", ".json")


def with_suffix(files: Iterable[InputFile], suffixes: Sequence[str]) -> list[InputFile]:
    """Keep the files whose name ends in one of `suffixes`."""
    return [file for file in files if file.name.lower().endswith(tuple(suffixes))]


def upstream_files(ctx: TaskContext, suffixes: Sequence[str]) -> list[InputFile]:
    """The fitting files that earlier tasks attached, in order."""
    return [file for result in ctx.results for file in with_suffix(result.artifacts, suffixes)]


def named_in(text: str, files: Iterable[InputFile]) -> list[InputFile]:
    """The files whose name stands in `text`."""
    folded = fold(text)
    return [file for file in files if fold(file.name) in folded]


def pick_inputs(task: str, ctx: TaskContext, suffixes: Sequence[str]) -> list[InputFile]:
    """The inputs with a fitting name that the task names; all fitting ones if it names none.

    Raises:
        DeclinedError: The task names an input of another kind and none that fits.
    """
    fitting = with_suffix(ctx.inputs, suffixes)
    named = named_in(task, ctx.inputs)
    if named and not with_suffix(named, suffixes):
        raise DeclinedError(f"{named[0].name} is not one of {', '.join(suffixes)}.", hint=have(ctx))
    return with_suffix(named, suffixes) or fitting


def have(ctx: TaskContext) -> str:
    """Say which inputs came with the goal."""
    names = ", ".join(file.name for file in ctx.inputs)
    return f"The goal came with: {names}." if names else "The goal came with no files."


def encoding_of(data: bytes) -> str:
    """Tell the encoding of a text: UTF-8, else Windows-1252, which fits all Western files."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def decode(data: bytes) -> str:
    """Decode text of unknown encoding."""
    return data.decode(encoding_of(data), errors="replace")


def read_text(path: Path) -> str:
    """Read a text file of any common encoding, with plain line ends.

    Raises:
        InvalidInputError: The file holds no text.
    """
    text = decode(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip("\x00 \n\t"):
        raise InvalidInputError(f"{path.name} is empty.", hint="Send a file with text in it.")
    if "\x00" in text:
        raise InvalidInputError(f"{path.name} is not a text file.")
    return text
