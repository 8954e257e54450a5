"""The folder that a command works in: how much it may hold, and how it goes in and out of a disk of its own.

What a command leaves there is hostile: links, closed folders, thousands of folders in each other. Nothing here follows a link.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO

from ioa.disk import check_free_space, remove_folder
from ioa.sandbox.limits import SandboxLimits

BLOCK_BYTES = 512
_DEEPEST = 32
"""How many folders may lie in each other: thousands would be too much for whoever goes through them."""


def lay(files: Mapping[str, Path], box: Path) -> None:
    """Make a box with copies of files, which a command may change: whoever else reads these has links to the same ones.

    Args:
        files: Where they lie, by what they are called in the box, `/` between folders.
        box: The folder, on the disk where boxes lie.

    Raises:
        TaskError: The disk has no room for the copies.
    """
    size = sum(path.stat().st_size for path in files.values())
    check_free_space(box.parent, size, f"copies of {len(files)} files with {size:,} bytes")
    box.mkdir()
    for name, path in files.items():
        (box / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, box / name)


def give(box: Path, user: int) -> None:
    """Make a user the owner of a box and of all that is in it."""
    os.chown(box, user, user, follow_symlinks=False)
    for _, folders, files, handle in os.fwalk(box):
        for name in (*folders, *files):
            os.chown(name, user, user, dir_fd=handle, follow_symlinks=False)


def contents(box: Path, limits: SandboxLimits) -> tuple[int, int, int]:
    """Count the files in a box, the bytes they take on the disk, and how deep it is; no further than is allowed.

    Raises:
        PermissionError: The command has closed a folder, so that nobody knows what is in it.
    """
    files, size, deepest = 0, 0, 1
    for path, folders, others, handle in os.fwalk(box, onerror=_raise_if_closed):
        deepest = max(deepest, len(Path(path).relative_to(box).parts) + 1 + bool(folders))
        files += len(folders) + len(others)
        if files > limits.files or deepest > _DEEPEST:
            break
        for name in (*folders, *others):
            with suppress(FileNotFoundError):  # removed during the walk
                size += os.stat(name, dir_fd=handle, follow_symlinks=False).st_blocks * BLOCK_BYTES
    return files, size, deepest


def _raise_if_closed(error: OSError) -> None:
    if isinstance(error, PermissionError):
        raise error


def overfull(box: Path, before: int, limits: SandboxLimits) -> str:
    """Say what of a box is beyond its limits, or nothing; `before` are the bytes that were in it."""
    try:
        files, size, deepest = contents(box, limits)
    except PermissionError:
        return "closed a folder"
    if files > limits.files:
        return f"made more than {limits.files} files"
    if deepest > _DEEPEST:
        return f"made folders more than {_DEEPEST} deep"
    return f"wrote more than {limits.box_bytes} bytes" if size - before > limits.box_bytes else ""


def pack(box: Path, into: IO[bytes]) -> int:
    """Write the box as an archive; return the bytes it takes."""
    with tarfile.open(fileobj=into, mode="w") as archive:
        for path in sorted(box.iterdir()):
            archive.add(path, path.name)
    size = into.tell()
    into.seek(0)
    return size


def unpack(packed: IO[bytes], box: Path, limits: SandboxLimits, cancelled: Callable[[], bool] = lambda: False) -> str:
    """Replace the box by an archive, of which every byte may be a lie; say what is wrong with it, or nothing.

    What is left out counts as well: reading it takes as long, and the kernel may count it nowhere.
    """
    if not packed.seek(0, os.SEEK_END):  # it was killed before it could hand anything out
        return ""
    packed.seek(0)
    remove_folder(box)
    box.mkdir(exist_ok=True)
    try:
        with tarfile.open(fileobj=packed, mode="r:") as archive:
            for count, member in enumerate(archive):
                archive.members = []  # type: ignore[attr-defined]  # else it keeps all that it has read
                if cancelled():
                    return "was cancelled"
                if count > limits.files:
                    return f"made more than {limits.files} files"
                if not _is_plain(member):
                    continue
                if len(PurePosixPath(member.name).parts) > _DEEPEST:
                    return f"made folders more than {_DEEPEST} deep"
                target = box / member.name
                if member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                source = archive.extractfile(member)
                assert source is not None
                with target.open("xb") as file:
                    shutil.copyfileobj(source, file)
    except (OSError, ValueError, tarfile.TarError):
        return "left a box that cannot be read"
    return ""


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Whether something in an archive is a file or folder that lies in it; no link, device or hole."""
    path = PurePosixPath(member.name)
    return (member.isdir() or (member.isreg() and not member.issparse())) and not path.is_absolute() and ".." not in path.parts
