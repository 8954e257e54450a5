"""The fork_server starts programs as forks, beside the event loop, and loses track of none."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ioa.local.fork_server import ForkServer, Program, title_of
from tests.rig import forks
from tests.rig.deadline import eventually

STARTS = """
import asyncio, os, pathlib
from ioa.local.fork_server import ForkServer, Program
async def main():
    process = await ForkServer(pathlib.Path("logs"), {"GIVEN": "x"}, ["ioa.errors"]).start(Program("told", "told"))
    print(await process.wait(), os.environ.get("PYTHONSAFEPATH"))
if __name__ == "__main__":
    asyncio.run(main())
"""
TOLD = "import os, sys; print(os.environ['GIVEN'], os.environ.get('PYTHONSAFEPATH'), sys.path == os.environ['PATHS'].split(':'))"
SERVER = Program("server", "http.server", ["0", "--bind", "127.0.0.1"])


@pytest.fixture
def fork_server(tmp_path: Path) -> ForkServer:
    """A fork_server that has started nothing."""
    return forks.fork_server(tmp_path, {})


async def test_a_killed_program_says_so(fork_server: ForkServer) -> None:
    """Who waits for a program learns the signal that ended it, and may ask again."""
    server = await fork_server.start(SERVER)
    os.kill(server.pid, signal.SIGKILL)
    assert [await server.wait(), await server.wait()] == [-signal.SIGKILL] * 2


async def test_a_program_is_told_apart_in_ps(fork_server: ForkServer) -> None:
    """A dozen forks of one process show what each of them is, to `ps` as to `top`."""
    program = Program("agent-text-analyst", SERVER.module, SERVER.arguments)
    server = await fork_server.start(program)

    def shown() -> str:
        listed = subprocess.run(["ps", "-o", "args=", "-p", str(server.pid)], capture_output=True, text=True, check=True)
        return listed.stdout.strip()

    assert await eventually(lambda: asyncio.to_thread(shown), lambda title: title == title_of(program)) == "ioa: agent text-analyst"
    assert title_of(Program("ioa_router", "ioa_router")) == "ioa: router"
    await server.stop(grace_seconds=5)


async def test_programs_that_end_while_others_start_are_told_apart(fork_server: ForkServer) -> None:
    """However starts, ends and stops fall together, each program's end is its own."""

    async def live(number: int) -> int:
        program = await fork_server.start(Program(f"server-{number}", SERVER.module, SERVER.arguments))
        os.kill(program.pid, signal.SIGKILL if number % 2 else signal.SIGTERM)
        code = await program.wait()
        await program.stop(grace_seconds=5)
        return -code

    codes = await asyncio.gather(*(live(number) for number in range(12)))
    assert (codes, multiprocessing.active_children()) == ([signal.SIGTERM, signal.SIGKILL] * 6, [])


async def test_a_start_that_is_cancelled_leaves_nothing(fork_server: ForkServer) -> None:
    """Whoever stops waiting for a fork need not look for it."""
    await (await fork_server.start(SERVER)).stop(grace_seconds=5)
    starting = asyncio.create_task(fork_server.start(SERVER))
    await asyncio.sleep(0)  # it has begun to fork
    starting.cancel()
    [ended] = await asyncio.gather(starting, return_exceptions=True)
    if not isinstance(ended, asyncio.CancelledError):  # it had started just before
        assert not isinstance(ended, BaseException)
        await ended.stop(grace_seconds=5)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("safe", [None, "1"])
def test_nothing_of_the_folder_it_is_started_in_is_run(safe: str | None, tmp_path: Path) -> None:
    """Another user may have written there, in the name of a library's module; programs see their starter's path."""
    shared, modules = tmp_path / "shared", tmp_path / "modules"
    for folder in (shared, shared / "logs", modules):
        folder.mkdir()
    (shared / "selectors.py").write_text("open('run', 'a').write('x')\nraise SystemExit(1)")
    (modules / "told.py").write_text(TOLD)
    (modules / "starts.py").write_text(f"import os, sys\nos.environ['PATHS'] = ':'.join(sys.path)\n{STARTS}")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    env |= {"PYTHONPATH": f"{modules}:{env.get('PYTHONPATH', '')}".strip(":")} | ({} if safe is None else {"PYTHONSAFEPATH": safe})
    command = [sys.executable, str(modules / "starts.py")]
    ended = subprocess.run(command, cwd=shared, env=env, capture_output=True, text=True, check=False, timeout=60)
    told = (shared / "logs" / "told.log").read_text()
    assert ((shared / "run").exists(), ended.stdout, told) == (False, f"0 {safe}\n", f"x {safe} True\n"), ended.stderr
