"""Writing the files of a result: what an agent named them decides nothing about where on this machine something is written.

They go into a folder of the goal that is made for them, so that none lands among files that are there already. Each is made by
this process: none replaces another, and none is written through a link.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ioa.errors import ERRORS, ErrorRow, Fault, IoaError, Retry
from ioa.protocol.ids import GoalId

_MAX_NAME_BYTES = 200
_KEPT = frozenset("._- ")
_NAMELESS = "file"


class NotWrittenError(IoaError):
    """The files of a goal could not be written where they were wanted. They can be fetched again."""


ERRORS[NotWrittenError] = ErrorRow("not_written", Fault.CALLER, Retry.BOUNDED, "info")


@dataclass(frozen=True)
class Produced:
    """A file of a result: what its agent calls it, and what is in it."""

    name: str
    data: bytes


def check_writable(out: Path) -> None:
    """Refuse a folder that cannot be made or written to, before there is anything to write.

    Raises:
        NotWrittenError: It cannot; the message says why.
    """
    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if os.path.lexists(folder))
    if not there.is_dir():
        raise NotWrittenError(f"No files can be written to {out}: {there} is no folder.", hint="Name a folder with --out.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise NotWrittenError(f"No files can be written to {out}: you may not write to {there}.", hint="Name a folder with --out.")


def write_files(out: Path, goal_id: GoalId, files: Sequence[Produced]) -> list[Path]:
    """Write files into the new folder `<out>/<goal_id>`; returns where they lie, in their order.

    Raises:
        NotWrittenError: `out` is no folder, the goal's own is there already, or something could not be written.
    """
    check_writable(out)
    folder, names = out / goal_id, list(_names(files))
    try:
        with ExitStack() as stack:
            out.mkdir(parents=True, exist_ok=True)
            into = _opened(stack, out)
            os.mkdir(goal_id, dir_fd=into)
            into = _opened(stack, goal_id, dir_fd=into)
            for name, file in zip(names, files, strict=True):
                descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=into)
                with os.fdopen(descriptor, "wb") as written:
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
    return [folder / name for name in names]


def file_name(name: str) -> str:
    """Make a safe name of what an agent calls a file: letters, digits and `._- `, nothing hidden, no option, no path."""
    last = PurePosixPath(name.replace("\\", "/")).name
    composed = unicodedata.normalize("NFC", last)
    kept = "".join(one if one in _KEPT or unicodedata.category(one)[0] in "LMN" else "_" for one in composed)
    return _cut(kept.lstrip("._- ").rstrip(". "), "") or _NAMELESS


def _names(files: Sequence[Produced]) -> Iterator[str]:
    """Names that differ, on a file system that tells no capitals from small letters too."""
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
    """Put a mark before the name's ending, and shorten what is before it until all is no longer than a name may be."""
    ending = PurePosixPath(name).suffix if len(PurePosixPath(name).suffix.encode()) <= _MAX_NAME_BYTES // 4 else ""
    room = _MAX_NAME_BYTES - len((mark + ending).encode())
    stem = name.removesuffix(ending).encode()[:room].decode(errors="ignore")
    return f"{stem}{mark}{ending}"


def _opened(stack: ExitStack, folder: Path | str, dir_fd: int | None = None) -> int:
    """Open a folder until the block ends; the goal's own one is never a link, since it is looked up where it was just made."""
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if dir_fd is None else os.O_NOFOLLOW)
    descriptor = os.open(folder, flags, dir_fd=dir_fd)
    stack.callback(os.close, descriptor)
    return descriptor
