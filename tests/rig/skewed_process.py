"""A process of the system whose clock a test may set: `python -m tests.rig.skewed_process FILE MODULE` runs the module.

FILE holds by how many seconds the process's clock is ahead, or behind if the number is negative. It is read when it has changed.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ioa.adapters.system_clock import SystemClock


def _skewed_by(path: Path) -> Callable[[SystemClock], datetime]:
    seen, ahead = 0, timedelta(0)

    def now(_: SystemClock) -> datetime:
        nonlocal seen, ahead
        try:
            changed = path.stat().st_mtime_ns
            if changed != seen:
                seen, ahead = changed, timedelta(seconds=float(path.read_text()))
        except FileNotFoundError:
            seen, ahead = 0, timedelta(0)
        return datetime.now(UTC) + ahead

    return now


if __name__ == "__main__":
    _file, _module = sys.argv[1:3]
    SystemClock.now = _skewed_by(Path(_file))  # type: ignore[method-assign,assignment]
    del sys.argv[1:3]
    sys.modules.pop(f"{_module}.__main__", None)
    runpy.run_module(_module, run_name="__main__", alter_sys=True)
