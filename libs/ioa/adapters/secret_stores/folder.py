"""Secrets in a folder of this machine that only its owner may enter: each Secret is a folder, each of its keys a file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ioa.adapters.system_folder import check_closed, check_own, write_private
from ioa.errors import UnavailableError

_LOCK = ".lock"
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_OTHERS_WRITE = 0o022
_RISK = "They could read or replace keys."


class FolderSecrets:
    """Secrets as folders. The name of a nested Secret contains `/`.

    Raises:
        InvalidInputError: Other users of the machine may write to the folder. Each method raises it if they may enter a Secret's
            folder, or own it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists():
            check_closed(folder, _RISK, forbidden=_OTHERS_WRITE)

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return the files of a Secret by name, or None if there is no such Secret."""
        folder = self._levels(name)[-1]
        if not folder.is_dir():
            return None
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")}

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Write keys of a Secret, each atomically, and create it if it is missing; its other keys stay."""
        *_, folder = levels = self._levels(name)
        try:
            self.folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            for level in levels:
                level.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
            for key, value in data.items():
                write_private(folder / key, value)
        except OSError as error:
            raise UnavailableError(f"{folder} cannot be written: {error.strerror}.") from None

    def remove(self, name: str, key: str) -> bool:
        """Remove a key of a Secret, and its folder if it is empty then; return whether the key existed."""
        folder = self._levels(name)[-1]
        try:
            (folder / key).unlink()
        except FileNotFoundError:
            return False
        if not any(folder.iterdir()):
            folder.rmdir()
        return True

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Lock a Secret against other commands while the block runs."""
        self.extend(name, {})
        folder = self._levels(name)[-1]
        try:
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise UnavailableError(f"{folder} cannot be locked: {error.strerror}.") from None
        try:
            yield
        finally:
            os.close(descriptor)

    def _levels(self, name: str) -> Sequence[Path]:
        """Return the folder of a Secret, after the folders that contain it."""
        parts = name.split("/")
        levels = [self.folder.joinpath(*parts[: depth + 1]) for depth in range(len(parts))]
        for level in filter(Path.exists, levels):
            check_closed(level, _RISK, hint="replace its keys with `ioa credentials rotate`, if others had access")
            check_own(level, _RISK)
        return levels
