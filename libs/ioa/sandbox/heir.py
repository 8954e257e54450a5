"""End a command whose agent has ended without doing so: `python -I -S heir.py`, a process beside each command.

The kernel ends what an agent has started itself when the agent ends, and not what that has started in turn. So somebody outside of
the sandbox has to be left. It reads on stdin which process group it is about, and then nothing, until the agent has ended: whoever
ends alive ends this process first. It imports little, so that it starts in milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys


def outlive() -> None:
    """Wait for the end of whoever holds the other end of stdin, and end what he has left."""
    for told_to_all in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # the agent has to end, and may take its time
        signal.signal(told_to_all, signal.SIG_IGN)
    group = sys.stdin.readline()
    sys.stdin.read()
    try:
        if group:
            os.killpg(int(group), signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nothing is left
        pass


if __name__ == "__main__":
    outlive()
