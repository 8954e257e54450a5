"""Lock of a folder, such as the folder of an agent or of nats-server: one process at a time uses it.

The kernel releases the lock when its holder ends, also after SIGKILL. Forks of the holder do not share the lock. A holder that was
asked to stop writes into the lock's file how long it may take, so that its successor waits instead of failing.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import structlog
from pydantic import ValidationError

from ioa.adapters.system_folder import make_closed
from ioa.errors import AlreadyRunningError, UnavailableError
from ioa.protocol.registry import Session

LOCK = "folder.lock"
_RETRY_SECONDS = 0.05
_CHILD_SECONDS = 45.0
"""How long a child with the lock's descriptor may outlive a holder that was killed."""

_held: set[int] = set()
_log = structlog.get_logger(__name__)


class LockHolder(Session):
    """Content of the lock's file: the process that holds the lock, and in how many seconds it ends, once it was asked to stop."""

    ends_within: float | None = None


class FolderLock:
    """A lock that this process holds. A child that inherits the descriptor holds it too."""

    def __init__(self, descriptor: int, holder: Session) -> None:
        self.descriptor = descriptor
        self._holder = holder

    def note_stopping(self, within: timedelta) -> None:
        """Write into the lock's file that this process releases the lock within this time."""
        _write_holder(self.descriptor, LockHolder(**dict(self._holder), ends_within=within.total_seconds()))


@asynccontextmanager
async def locked_folder(folder: Path, holder: Session, *, patience: timedelta = timedelta(0)) -> AsyncIterator[FolderLock]:
    """Create a folder if it is missing, close it to other users, and hold its lock while the block runs.

    While another process holds the lock, wait for `patience`. If that process is stopping or was killed, wait as long as it, or a
    child of it, may take to end.

    Args:
        folder: The folder.
        holder: This process, for the error messages of others.
        patience: How long another process may hold the lock without stopping.

    Raises:
        AlreadyRunningError: Another process holds the lock; the message names the process, its host and its start.
        UnavailableError: The folder cannot be locked.
    """
    loop, waits = asyncio.get_running_loop(), False
    begin = loop.time()
    while True:
        try:
            descriptor = await asyncio.to_thread(_lock, folder, holder)
            break
        except BlockingIOError:
            other = await asyncio.to_thread(_read_holder, folder)
            ends_within = None if other is None else _CHILD_SECONDS if _has_ended(other) else other.ends_within
            allowed = patience.total_seconds() + (ends_within or 0.0)
            if loop.time() >= begin + allowed:
                raise AlreadyRunningError(
                    f"The folder {folder} is in use by {_named(other)}.",
                    hint="End that process first, or give this one another folder.",
                ) from None
            if ends_within is not None and not waits:
                waits = True
                _log.warning("waits_for_folder", folder=str(folder), holder=_named(other), at_most_seconds=round(allowed, 1))
        except OSError as error:
            raise UnavailableError(f"The folder {folder} cannot be locked: {error.strerror}.", hint="Is it writable?") from error
        await asyncio.sleep(_RETRY_SECONDS)
    _held.add(descriptor)
    try:
        yield FolderLock(descriptor, holder)
    finally:
        _held.discard(descriptor)
        os.close(descriptor)


def _lock(folder: Path, holder: Session) -> int:
    make_closed(folder)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write_holder(descriptor, holder)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write_holder(descriptor: int, holder: Session) -> None:
    data = holder.model_dump_json().encode()
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def _read_holder(folder: Path) -> LockHolder | None:
    try:
        return LockHolder.model_validate_json((folder / LOCK).read_bytes())
    except (OSError, ValidationError):  # the holder is writing it
        return None


def _has_ended(holder: Session) -> bool:
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return holder.host == socket.gethostname()[:255]
    except PermissionError:  # it runs as another user
        pass
    return False


def _named(holder: Session | None) -> str:
    if holder is None:
        return "another process"
    return f"process {holder.pid} on {holder.host}, since {holder.since:%Y-%m-%d %H:%M:%S} UTC"


def _close_in_child() -> None:
    """Close inherited locks in a fork, which would otherwise hold them after their holder's end."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)
