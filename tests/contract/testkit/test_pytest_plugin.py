"""The plugin in the pytest of people who use it, by whatever runs their async tests, and of people who do not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_AGENT = """
import asyncio
import pytest
from ioa import Agent

agent = Agent("greeter", description="Greets people", examples=["say hello to Ada"])

@agent.task
def greet(task):
    return "Hello!"
"""
# Without the plugins that a bare installation of this package and pytest does not have; anyio's comes with httpx.
_BARE = ("-p", "no:asyncio", "-p", "no:xdist", "-p", "no:timeout", "-p", "no:hypothesispytest")

_PLAIN = """
import sys

def test_plain():
    assert "ioa_testkit.pytest_plugin" in sys.modules
    assert not {"ioa_testkit.system", "pydantic", "nats", "structlog"} & sys.modules.keys()
"""


def run(folder: Path, source: str, *options: str, environment: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a file of tests in a pytest of its own, without this project's settings and with warnings as errors."""
    (folder / "test_it.py").write_text(_AGENT + source)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "filterwarnings=error",
        f"--rootdir={folder}",
        *options,
    ]
    return subprocess.run([*command, str(folder)], cwd=folder, capture_output=True, text=True, check=False)


def test_a_run_without_the_fixture_imports_nothing(tmp_path: Path) -> None:
    """A run without the fixture imports only small modules."""
    (tmp_path / "test_plain.py").write_text(_PLAIN)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-o",
        "filterwarnings=error",
        "--strict-markers",
        f"--rootdir={tmp_path}",
        *_BARE,
    ]
    done = subprocess.run([*command, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.nightly
def test_a_failing_script_shows_the_line_and_the_reason(tmp_path: Path) -> None:
    """Not the inside of the kit's event loop, nor a group of exceptions."""
    source = """
def test_refused(ioa_system):
    async def conversation():
        async with ioa_system.group("Greet", agent=agent, members=["lead", "cook"]) as group:
            await group["cook"].says("Me first!", to="lead")
    asyncio.run(conversation())
"""
    done = run(tmp_path, source, *_BARE)
    assert "ScriptError: The router refused cook's DISCUSSION: lead holds the floor, not cook." in done.stdout
    assert ('await group["cook"].says' in done.stdout, "ExceptionGroup" in done.stdout) == (True, False), done.stdout
