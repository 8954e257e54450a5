"""One process to a folder: whoever holds the lock on an agent's folder is the one that may use its memory.

The kernel gives the lock back when its holder dies, however that happens. A process that the holder forks does not share it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import ValidationError

from ioa.adapters.system_folder import make_closed
from ioa.errors import AlreadyRunningError, UnavailableError
from ioa.protocol.registry import Session

LOCK = "memory.lock"

_held: set[int] = set()


@asynccontextmanager
async def locked_folder(folder: Path, holder: Session) -> AsyncIterator[None]:
    """Hold a folder, which is made and closed to other users if need be, until the block ends; the lock's file says who does.

    Raises:
        AlreadyRunningError: Another process holds it; the message says which, where, and since when.
        UnavailableError: The folder cannot be locked.
    """
    try:
        descriptor = await asyncio.to_thread(_lock, folder, holder)
    except BlockingIOError:
        raise AlreadyRunningError(
            f"The folder {folder} is in use by {_holder_of(folder)}.",
            hint="End that process first, or give this one another folder.",
        ) from None
    except OSError as error:
        raise UnavailableError(f"The folder {folder} cannot be locked: {error.strerror}.", hint="Is it writable?") from error
    _held.add(descriptor)
    try:
        yield
    finally:
        _held.discard(descriptor)
        os.close(descriptor)


def _lock(folder: Path, holder: Session) -> int:
    make_closed(folder)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, holder.model_dump_json().encode())
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _holder_of(folder: Path) -> str:
    try:
        holder = Session.model_validate_json((folder / LOCK).read_bytes())
    except (OSError, ValidationError):  # it has not said so yet
        return "another process"
    return f"process {holder.pid} on {holder.host}, since {holder.since:%Y-%m-%d %H:%M:%S} UTC"


def _let_go() -> None:
    """Close what a fork has inherited: it would keep the folder after the holder's death."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
