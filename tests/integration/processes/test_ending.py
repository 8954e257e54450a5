"""A process ends when it is told to, whatever still runs in it."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from datetime import timedelta

import pytest

_MAIN = """
import asyncio, os, socket, sys, threading, time
from datetime import timedelta
from ioa.errors import ConflictError
from ioa.runtime import process
from ioa.runtime.process import StopSignal, run_process
from ioa.runtime.settings import ProcessSettings

class Settings(ProcessSettings):
    @property
    def stops_within(self):
        return timedelta(seconds=1)

async def swallowing():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

def spin():
    print("ready", flush=True)
    while True:
        pass

def block():
    print("ready", flush=True)
    while True:  # a signal that arrives just before a blocking call is handled after it
        time.sleep(1)

async def main(settings, stop):
    left = None
    if sys.argv[1] == "swallowing":
        left = asyncio.create_task(swallowing())
    if sys.argv[1] == "thread":
        threading.Thread(target=time.sleep, args=(60,)).start()
    if sys.argv[1] == "blocking":
        asyncio.get_running_loop().call_later(0.1, block)
    if sys.argv[1] == "spinning":
        asyncio.get_running_loop().call_later(0.1, spin)
    if sys.argv[1] in ("name", "error"):
        lost = asyncio.get_running_loop().create_future()
        lost.set_exception(socket.gaierror(-2, "Name or service not known") if sys.argv[1] == "name" else OSError("It broke."))
        del lost
    if sys.argv[1] == "executor":
        left = asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
    if sys.argv[1] not in ("blocking", "spinning"):
        asyncio.get_running_loop().call_soon(lambda: print("ready", flush=True))
    await stop.wait()
    if len(sys.argv) > 2:
        raise ConflictError("It is taken.")

run_process(Settings, main)
"""
_AT_MOST = timedelta(seconds=8)
"""A second until it is forced, or two after its main has ended, and what a busy machine adds."""


async def _end(*arguments: str) -> tuple[int | None, str, float]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", "-c", _MAIN, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert await process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        told = time.monotonic()
        _, errors = await process.communicate()
    return process.returncode, errors.decode(), time.monotonic() - told


@pytest.mark.parametrize("left", ["nothing", "swallowing", "thread", "executor"])
async def test_a_process_ends_whatever_its_main_leaves_behind(left: str) -> None:
    """A task that swallows its cancellation, a thread, a call in the executor: it ends in good order, and nothing complains."""
    code, errors, seconds = await _end(left)

    assert (code, "never" in errors, "Traceback" in errors) == (0, False, False), errors
    assert ("ended_by_force" in errors, seconds < _AT_MOST.total_seconds()) == (left != "nothing", True)


@pytest.mark.parametrize("left", ["blocking", "spinning"])
async def test_a_process_whose_loop_hangs_ends_by_force(left: str) -> None:
    """A coroutine that never awaits keeps everything in its process from ending in good order, and says so by the code 1."""
    code, errors, seconds = await _end(left)

    assert (code, "ended_by_force" in errors, seconds < _AT_MOST.total_seconds()) == (1, True, True), errors


async def test_an_error_that_ends_a_process_is_said_in_a_line() -> None:
    """An error of IoA is no traceback, wrapped as it may be by task groups, and its code is 2, whatever is left behind."""
    ends = [await _end(left, "error") for left in ("nothing", "swallowing")]

    assert [(code, errors.splitlines()[0]) for code, errors, _ in ends] == [(2, "error: It is taken.")] * 2


async def test_a_name_that_was_looked_up_in_vain_is_no_error_of_the_process() -> None:
    """Uvloop leaves the look-up of a connection that was given up; whatever else nobody waits for is told."""
    ends = [await _end(left) for left in ("name", "error")]

    assert [("never retrieved" in errors, code) for code, errors, _ in ends] == [(False, 0), (True, 0)]
