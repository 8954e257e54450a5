"""The plugin in the pytest of people who use it, by whatever runs their async tests, and of people who do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Without the plugins that a bare installation of this package and pytest does not have; anyio's comes with httpx.
_BARE = "-p no:asyncio -p no:xdist -p no:timeout -p no:hypothesispytest".split()

_PLAIN = """
import sys

def test_plain():
    assert "ioa_testkit.pytest_plugin" in sys.modules
    assert not {"ioa_testkit.system", "pydantic", "nats", "structlog"} & sys.modules.keys()
"""


def test_a_run_without_the_fixture_imports_nothing(tmp_path: Path) -> None:
    """A run without the fixture imports only small modules."""
    (tmp_path / "test_plain.py").write_text(_PLAIN)
    options = "-m pytest -q -o filterwarnings=error --strict-markers".split()
    command = [sys.executable, *options, f"--rootdir={tmp_path}", *_BARE]
    done = subprocess.run([*command, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr
