"""The folder that a command works in: how much it may hold, and how it goes in and out of a disk of its own.

What a command leaves there is hostile: links, closed folders, thousands of folders in each other. Nothing here follows a link.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from ioa.disk_room import ROOM_OF_TASKS
from ioa.sandbox.limits import SandboxLimits

BLOCK_BYTES = 512
_DEEPEST = 32
"""How many folders may lie in each other: removing thousands would be too much for whoever has to."""


def lay(files: Mapping[str, Path], box: Path) -> None:
    """Make a box with copies of files, which a command may change: whoever else reads these has links to the same ones.

    Args:
        files: Where they lie, by what they are called in the box, `/` between folders.
        box: The folder, on the disk where boxes lie.

    Raises:
        TaskError: The copies in all boxes, and what tasks have attached, would take more of the disk than they leave.
    """
    size = sum(path.stat().st_size for path in files.values())
    with ROOM_OF_TASKS.taken(box, size, f"copies of {len(files)} files with {size:,} bytes"):
        box.mkdir()
        for name, path in files.items():
            (box / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, box / name)


def give(box: Path, user: int) -> None:
    """Make a user the owner of a box and of all that is in it."""
    for path in (box, *box.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def contents(box: Path, limits: SandboxLimits) -> tuple[int, int, int]:
    """Count the files in a box, the bytes they take on the disk, and how deep it is; no further than is allowed.

    A folder that the command has closed counts as empty.
    """
    files = size = deepest = 0
    folders = [(box, 1)]
    while folders and files <= limits.files and deepest <= _DEEPEST:
        folder, depth = folders.pop()
        deepest = max(deepest, depth)
        for entry in _entries(folder):
            files += 1
            with contextlib.suppress(OSError):  # it is gone meanwhile
                size += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
            if entry.is_dir(follow_symlinks=False):
                folders.append((Path(entry.path), depth + 1))
    return files, size, deepest


def overfull(box: Path, before: int, limits: SandboxLimits) -> str:
    """Say what of a box is beyond its limits, or nothing; `before` are the bytes that were in it."""
    files, size, deepest = contents(box, limits)
    if files > limits.files:
        return f"made more than {limits.files} files"
    if deepest > _DEEPEST:
        return f"made folders more than {_DEEPEST} deep"
    return f"wrote more than {limits.box_bytes} bytes" if size - before > limits.box_bytes else ""


def empty(box: Path) -> None:
    """Remove what is in a box, however deep, which is more than `shutil.rmtree` can."""
    reopen(box)
    subprocess.run(["rm", "-rf", "--", *(entry.path for entry in _entries(box))], check=False)


def reopen(box: Path) -> None:
    """Open folders that the command has closed, so that the caller can remove them; root can anyway."""
    folders = [box] if os.geteuid() != 0 else []
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):  # a path that is too long
            folder.chmod(0o700)
        folders += [Path(entry.path) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """List a folder; one that is gone, closed or too deep is empty."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def pack(box: Path, into: IO[bytes]) -> int:
    """Write the box as an archive; return the bytes it takes."""
    with tarfile.open(fileobj=into, mode="w") as archive:
        for path in sorted(box.iterdir()):
            archive.add(path, path.name)
    size = into.tell()
    into.seek(0)
    return size


def unpack(packed: IO[bytes], box: Path, limits: SandboxLimits) -> str:
    """Replace the box by an archive, of which every byte may be a lie; say what is wrong with it, or nothing."""
    if not packed.seek(0, os.SEEK_END):  # it was killed before it could hand anything out
        return ""
    packed.seek(0)
    empty(box)
    try:
        with tarfile.open(fileobj=packed, mode="r:") as archive:
            for count, member in enumerate(_plain(archive)):
                if count > limits.files:
                    return f"made more than {limits.files} files"
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


def _plain(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Take the files and folders of an archive that lie in it; no links, devices or holes."""
    for member in archive:
        path = PurePosixPath(member.name)
        if (member.isdir() or (member.isreg() and not member.issparse())) and not path.is_absolute() and ".." not in path.parts:
            yield member
