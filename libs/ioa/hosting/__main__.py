"""Run one agent: `python -m ioa.hosting FILE.py:ATTR [REPLICA]`.

`ioa up` starts each agent of its pool so. The command line, which people use, would take 3 MB more for each of them.
"""

from __future__ import annotations

import sys

from ioa.errors import IoaError
from ioa.hosting.host import serve_target
from ioa.runtime.process import report_error


def main(target: str, replica: str | None = None) -> int:
    """Serve the agent until SIGTERM; returns the exit code if it cannot."""
    try:
        serve_target(target, None if replica is None else int(replica))
    except IoaError as error:
        return report_error(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
