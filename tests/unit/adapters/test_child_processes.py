"""Signals to child processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

import pytest

from ioa.adapters.child_processes import send_signal


async def test_child_that_ends_at_the_same_time_keeps_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is sent before asyncio has read the exit code, which CPython 3.11 reads in a thread and newer ones in the loop."""
    waitpid, sent = os.waitpid, threading.Event()

    def late(pid: int, options: int) -> tuple[int, int]:
        assert sent.wait(timeout=60)
        return waitpid(pid, options)

    monkeypatch.setattr(os, "waitpid", late)
    process = await asyncio.create_subprocess_exec("sh", "-c", "read line; exit 7", stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"\n")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not read the exit code
    send_signal(process, signal.SIGTERM)
    sent.set()
    assert await process.wait() == 7
    send_signal(process, signal.SIGTERM)  # has no effect


async def test_running_child_receives_the_signal() -> None:
    """And ends."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
    send_signal(process, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
