"""Run agents in one process: `python -m ioa.hosting FILE.py:ATTR…`, as `ioa up` does.

The command line, which people use, would take 3 MB more for each process.
"""

from __future__ import annotations

import ioa.telemetry  # noqa: F401  # before structlog

# isort: split

import sys

from ioa.errors import IoaError
from ioa.hosting.host import serve_targets
from ioa.runtime.process import report_error


def main(targets: list[str]) -> int:
    """Serve the agents until SIGTERM; returns the exit code if it cannot."""
    try:
        serve_targets(targets)
    except IoaError as error:
        return report_error(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
