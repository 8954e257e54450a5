"""An agent's folder belongs to one process, until that process is gone, however it went."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ioa.adapters.folder_lock import locked_folder
from ioa.errors import AlreadyRunningError, UnavailableError
from ioa.protocol.ids import SessionId
from ioa.protocol.registry import Session

SESSION = Session(session=SessionId("s-1"), host="here", pid=1, since=datetime(2026, 1, 1, tzinfo=UTC))
_HOLDER = """
import asyncio, os, sys
from pathlib import Path
from ioa.adapters.folder_lock import locked_folder
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session

async def main():
    async with locked_folder(Path(sys.argv[1]), new_session(SystemClock(), RandomIds())):
        if os.fork() == 0:
            print(os.getpid(), flush=True)  # it has let go of what it inherited before it gets here
            os.read(0, 1)  # a worker that outlives its parent, as those of a process pool do
            os._exit(0)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def _start_holder(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that holds the folder and has forked another one, which ends with its standard input.

    It is no process of asyncio: that one waits until the pipes are closed too, and the forked process keeps them open.
    """
    command = (sys.executable, "-W", "ignore", "-c", _HOLDER, str(folder))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and int(process.stdout.readline())
    return process


@asynccontextmanager
async def _holder(folder: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    with await asyncio.to_thread(_start_holder, folder) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_held_folder_is_refused_with_who_holds_it(tmp_path: Path) -> None:
    """The second process learns which one was first, where, and since when."""
    async with _holder(tmp_path) as holder:
        with pytest.raises(AlreadyRunningError) as told:
            async with locked_folder(tmp_path, SESSION):
                pass

    assert told.value.message.startswith(f"The folder {tmp_path} is in use by process {holder.pid} on ")
    assert "since 20" in told.value.message


async def test_a_folder_whose_holder_was_killed_is_free_at_once(tmp_path: Path) -> None:
    """The kernel lets go, although a process that the holder had forked lives on."""
    async with _holder(tmp_path) as holder:
        holder.kill()
        await asyncio.to_thread(holder.wait)
        async with locked_folder(tmp_path, SESSION):
            said = Session.model_validate_json((tmp_path / "folder.lock").read_bytes())

    assert said == SESSION


async def test_a_folder_is_let_go_at_the_end(tmp_path: Path) -> None:
    """One process may hold it again, but not twice at once."""
    async with locked_folder(tmp_path / "new", SESSION):
        with pytest.raises(AlreadyRunningError, match="process 1 on here, since 2026-01-01 00:00:00 UTC"):
            async with locked_folder(tmp_path / "new", SESSION):
                pass
    async with locked_folder(tmp_path / "new", SESSION):
        pass


async def test_only_its_owner_enters_it(tmp_path: Path) -> None:
    """What an agent remembers is not told to other users of the machine."""
    before = os.umask(0o022)
    async with locked_folder(tmp_path / "agents" / "new", SESSION):
        os.umask(before)
        modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("agents", "agents/new")]
    assert modes == [0o700, 0o700]


async def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    """A file in its place is an error that names it."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot be locked"):
        async with locked_folder(tmp_path / "file", SESSION):
            pass
