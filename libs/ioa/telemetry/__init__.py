"""Logs, metrics and health of a process, and the fault points of tests.

structlog is imported here without rich, which `structlog.dev` imports for tracebacks: rich takes 0.2 s and 8 MB of each process.
Programs import this package before any other part of IoA.
"""

from __future__ import annotations

import sys

if sys.modules.keys().isdisjoint({"structlog", "rich"}):
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog  # noqa: F401

    del sys.modules["rich"]
