"""Child processes of asyncio: signals for them, and their end when their parent ends."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from signal import Signals

from ioa.concurrency import fail_after

# Runs in the child before it becomes the program: requests a signal from the kernel when its parent dies (PR_SET_PDEATHSIG, 1),
# and exits if the parent died before that. The request survives execv, and the process id stays. A `preexec_fn` is
# 20 ms faster, but may deadlock in a process that has threads.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, int(sys.argv[2]))
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this program is gone")
os.execv(sys.argv[3], sys.argv[3:])
"""


def ending_with_parent(command: Sequence[str], signal: Signals) -> list[str]:
    """Return a command that runs `command`, and that the kernel sends the signal when this process dies (Linux)."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), str(signal.value), *command]


def send_signal(process: Process, signal: Signals) -> None:
    """Send a signal to a child that still runs.

    `Process.terminate` and `Process.kill` take the exit code of a child that has just ended away from the task that waits for it
    (CPython 3.11, `Popen.send_signal`).
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal)


async def stop_process(process: Process, grace_seconds: float) -> None:
    """End a child by SIGTERM, and after a while, or if this task is cancelled, by SIGKILL."""
    send_signal(process, Signals.SIGTERM)
    try:
        async with fail_after(grace_seconds):
            await process.wait()
    except TimeoutError:
        send_signal(process, Signals.SIGKILL)
        await process.wait()
    except asyncio.CancelledError:
        send_signal(process, Signals.SIGKILL)
        raise
