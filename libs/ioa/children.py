"""Signals for child processes of asyncio.

`Process.terminate` and `Process.kill` of the standard library look first whether the child has ended. Where it just has, they take
its exit code away from the one who waits for it: he then warns and says 255 (CPython 3.11, `Popen.send_signal`). It happens where
all processes of a group are told to end at once, as systemd and Docker do.
"""

from __future__ import annotations

import os
from asyncio.subprocess import Process
from contextlib import suppress
from signal import Signals


def send_signal(process: Process, signal: Signals) -> None:
    """Send a signal to a child, if it is still there."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal)
