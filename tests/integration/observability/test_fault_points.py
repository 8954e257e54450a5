"""A process ends at an armed fault point only."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ioa.telemetry import fault_points

_PASSES = """
import sys
from ioa.telemetry.fault_points import arm, fault_point
arm(sys.argv[1])
for number in range(3):
    fault_point("router.before_append")
    fault_point("router.after_append")
    print(number, flush=True)
"""


@pytest.mark.parametrize(("written", "passed"), [("router.before_append", ""), ("router.after_append:3", "0\n1\n")])
def test_process_ends_at_the_nth_visit_of_a_fault_point(written: str, passed: str) -> None:
    """A point kills by SIGKILL at the visit that was named, the first one by default, and other points never do."""
    done = subprocess.run([sys.executable, "-c", _PASSES, written], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, passed)


def test_every_point_is_reached_somewhere() -> None:
    """The list names exactly the points in the code."""
    root = Path(fault_points.__file__).parents[3]
    sources = [
        path.read_text(encoding="utf-8") for folder in ("libs", "services", "tests/rig") for path in (root / folder).rglob("*.py")
    ]
    named = {name for source in sources for name in re.findall(r'\bfault_point\("([a-z_.]+)"\)', source)}
    assert named == set(fault_points.POINTS)
