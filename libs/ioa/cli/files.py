"""Writes the files of a result into a new folder of the goal, under safe names. No file is replaced."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ioa.errors import ERRORS, ErrorRow, IoaError
from ioa.protocol.ids import GoalId

_MAX_NAME_BYTES = 200
_KEPT = frozenset("._- ")
_NAMELESS = "file"


class NotWrittenError(IoaError):
    """The files of a goal could not be written. They can be fetched again."""


ERRORS[NotWrittenError] = ErrorRow("not_written")


@dataclass(frozen=True)
class Produced:
    """A file of a result: the name from its agent, and its content."""

    name: str
    data: bytes


def check_writable(out: Path) -> None:
    """Reject a folder that cannot be made or written to.

    Raises:
        NotWrittenError: With the reason.
    """
    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if os.path.lexists(folder))
    if not there.is_dir():
        raise NotWrittenError(f"No files can be written to {out}: {there} is no folder.", hint="Name a folder with --out.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise NotWrittenError(f"No files can be written to {out}: you may not write to {there}.", hint="Name a folder with --out.")


def write_files(out: Path, goal_id: GoalId, files: Sequence[Produced]) -> list[Path]:
    """Write files into the new folder `<out>/<goal_id>`; return their paths in order.

    Raises:
        NotWrittenError: `out` is no folder, the goal's folder exists, or a file could not be written.
    """
    check_writable(out)
    folder = out / goal_id
    paths = [folder / name for name in _names(files)]
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        for path, file in zip(paths, files, strict=True):
            with path.open("xb") as written:
                written.write(file.data)
    except FileExistsError:
        raise NotWrittenError(
            f"{folder} is there already, and nothing in it is replaced.",
            hint=f"`ioa goal show {goal_id} --out DIR` writes the files to another folder.",
        ) from None
    except OSError as error:
        raise NotWrittenError(
            f"The files could not be written to {folder}: {error.strerror}.",
            hint=f"`ioa goal show {goal_id} --out DIR` writes them to another folder.",
        ) from None
    return paths


def file_name(name: str) -> str:
    """Make a file name from an agent safe: letters, digits and `._- `; not hidden, no option, no path."""
    last = PurePosixPath(name.replace("\\", "/")).name
    composed = unicodedata.normalize("NFC", last)
    kept = "".join(one if one in _KEPT or unicodedata.category(one)[0] in "LMN" else "_" for one in composed)
    return _cut(kept.lstrip("._- ").rstrip(". "), "") or _NAMELESS


def _names(files: Sequence[Produced]) -> Iterator[str]:
    """Yield names that differ, also on a file system that ignores case."""
    taken: set[str] = set()
    for file in files:
        name, number = file_name(file.name), 1
        free = name
        while free.casefold() in taken:
            number += 1
            free = _cut(name, f"-{number}")
        taken.add(free.casefold())
        yield free


def _cut(name: str, mark: str) -> str:
    """Insert a mark before the extension, and shorten the stem to the maximum length of a name."""
    ending = PurePosixPath(name).suffix if len(PurePosixPath(name).suffix.encode()) <= _MAX_NAME_BYTES // 4 else ""
    room = _MAX_NAME_BYTES - len((mark + ending).encode())
    stem = name.removesuffix(ending).encode()[:room].decode(errors="ignore")
    return f"{stem}{mark}{ending}"
