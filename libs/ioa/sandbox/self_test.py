"""Whether a level holds on this machine, found out by running what it has to stop: versions and files promise, kernels decide."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import timedelta
from errno import EAGAIN
from pathlib import Path

from ioa.sandbox import trespasses
from ioa.sandbox.confined_process import is_open_to_all, run
from ioa.sandbox.landlock import Abi
from ioa.sandbox.levels import Level
from ioa.sandbox.limits import SandboxLimits

_LIMITS = SandboxLimits(wall_clock=timedelta(seconds=20))
_LAST_CHARS = 300


def failure(level: Level, python: str = sys.executable, kernel: Abi | None = None) -> str:
    """Say why a level does not hold here, as the end of a sentence; nothing if it does, and programs still work in it.

    Args:
        level: The level to test.
        python: The interpreter that tries.
        kernel: What Landlock is asked for; all that this kernel has if nothing is said.
    """
    if level is Level.BWRAP and os.geteuid() == 0 and not is_open_to_all(str(Path(python).resolve())):
        return f"bubblewrap cannot start {Path(python).resolve()}, which only root reaches"
    with ExitStack() as stack:
        # Nobody else passes the first folder. What the sandbox, and not its user's rights, has to keep from code is named from the
        # box, for which nobody has to pass that one; and where it lies only what is in `writable` can be replaced.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ioa-sandbox-")))
        outside = folder / "outside"
        box, secret, shared, writable = (outside / name for name in ("box", "secret", "shared", trespasses.WRITABLE))
        for made in (outside, box, writable):
            made.mkdir()
        for path in (secret, shared):
            path.write_text("text")
            path.chmod(0o666)
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        for one, name in ((listener, "socket"), (datagrams, "socket-2")):
            one.bind(str(outside / name))
            (outside / name).chmod(0o777)
        listener.listen()
        writable.chmod(0o777)
        outside.chmod(0o755)
        victim, owner = (
            stack.enter_context(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)) for _ in range(2)
        )
        seen = (Path("..") / path.name for path in (outside / "socket", secret, shared))
        arguments = map(str, (os.getpid(), victim.pid, owner.pid, server.getsockname()[1], *seen))
        output = folder / "output"
        source = Path(trespasses.__file__).read_text(encoding="utf-8")
        command = [python, "-I", "-S", "-c", source, *arguments]
        reason = run(command, box, _LIMITS, level, output=output, readable=[shared], kernel=kernel)
        told = output.read_text(errors="replace").splitlines()
        if told and os.strerror(EAGAIN) in told[-1]:  # of the launcher, bubblewrap or what tries
            return f"{level} cannot be tested while its user has as many processes and threads on this machine as it may"
        if os.getpriority(os.PRIO_PROCESS, victim.pid) != os.getpriority(os.PRIO_PROCESS, 0):
            told.insert(0, trespasses.SLOW_DOWN)
        for ended, how in ((owner, trespasses.STOP_BY_FILE), (victim, trespasses.STOP)):
            if ended.poll() is not None:
                told.insert(0, how)
        if reason or told[-1:] != [trespasses.ALL_TRIED] or not (box / "own").exists():
            return f"{level} does not work here ({' '.join(told)[-_LAST_CHARS:] or reason})"
        return f"{level} does not stop code that wants to {', '.join(told[:-1])}" if told[:-1] else ""
