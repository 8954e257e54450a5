"""End a command whose agent has ended without doing so: `python -I -S heir.py AGENT`, a process beside each command.

The kernel ends what an agent has started itself when the agent ends, and not what that has started in turn. So somebody outside of
the sandbox has to be left. It reads on stdin which process group it is about, and then nothing, until the agent has ended: whoever
ends alive ends this process first. It imports little, so that it starts in milliseconds.
"""

from __future__ import annotations

import os
import select
import signal
import sys

_STDIN, _SEVERAL = 0, 64
_LOOK_SECONDS = 1.0
"""How often it looks whose child it is: what the agent has forked holds the other end of stdin, too."""


def outlive(agent: int) -> None:
    """Wait for the end of the process that has started this one, and end what it has left."""
    for told_to_all in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # the agent has to end, and may take its time
        signal.signal(told_to_all, signal.SIG_IGN)
    group = _told_until_its_end(agent)
    try:
        if group:
            os.killpg(int(group), signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nothing is left
        pass


def _told_until_its_end(agent: int) -> bytes:
    told = b""
    while True:
        if select.select((_STDIN,), (), (), _LOOK_SECONDS)[0]:
            if not (more := os.read(_STDIN, _SEVERAL)):
                return told
            told += more
        elif os.getppid() != agent:
            return told


if __name__ == "__main__":
    outlive(int(sys.argv[1]))
