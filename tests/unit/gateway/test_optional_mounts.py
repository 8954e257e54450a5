"""Imports of optional protocols."""

from __future__ import annotations

import subprocess
import sys

_LISTED = "import sys, ioa_gateway.__main__; print(*{name.partition('.')[0] for name in sys.modules})"


def test_libraries_of_a2a_and_mcp_are_not_imported_at_start() -> None:
    """A gateway starts without the libraries of A2A and MCP, which take seconds."""
    done = subprocess.run([sys.executable, "-c", _LISTED], capture_output=True, text=True, check=True)
    assert {"a2a", "google", "mcp", "sse_starlette"} & set(done.stdout.split()) == set()
