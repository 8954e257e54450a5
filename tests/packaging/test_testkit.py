"""What authors of agents test with, in an environment that has the wheel and pytest and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import Environment

pytestmark = pytest.mark.package

_TESTS = """
import asyncio

import pytest

from ioa import Agent, TaskContext
from ioa_testkit import FinishedGoal, RunningSystem, System

agent = Agent("greeter", description="Greets people", examples=["say hello to Ada"])


@agent.task
def greet(task: str, ctx: TaskContext) -> str:
    ctx.progress("smiling")
    return "Hello!"


def test_a_goal(ioa_system: System) -> None:
    goal = asyncio.run(ioa_system.run("say hello to Ada", agents=[agent]))
    assert goal.succeeded and "Hello!" in goal.content


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask(running: RunningSystem) -> FinishedGoal:
    return await running.run("say hello to Ada")


@pytest.mark.anyio
async def test_a_running_system(ioa_system: System) -> None:
    async with ioa_system.serve(agent) as running:
        assert "Hello!" in (await ask(running)).content
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """A folder with an author's file of tests."""
    (tmp_path / "test_greeter.py").write_text(_TESTS, encoding="utf-8")
    return tmp_path


def test_an_authors_tests_pass_on_the_extra_server_and_pytest(environment_with: Callable[..., Environment], tests: Path) -> None:
    """Without an engine, a model or a plugin of another package, and without a warning."""
    done = environment_with("server", "pytest").run("pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=tests)
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_without_a_server_the_tests_fail_with_the_name_of_the_extra(with_pytest: Environment, tests: Path) -> None:
    """The error says how to install nats-server."""
    done = with_pytest.run("pytest", "-q", "-p", "no:cacheprovider", cwd=tests)
    assert ("2 failed" in done.stdout, "internet-of-agents[server]" in done.stdout) == (True, True), done.stdout + done.stderr


def test_an_authors_tests_are_typed(with_pytest: Environment, tests: Path) -> None:
    """`mypy --strict` finds nothing in them, and knows what the fixture gives."""
    (tests / "test_wrong.py").write_text(
        "from ioa_testkit import System\n\n\ndef test_wrong(ioa_system: System) -> None:\n    ioa_system.run(7)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(with_pytest.scripts / "python")]
    done = subprocess.run([*command, "."], cwd=tests, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert ({line.partition(":")[0] for line in errors}, "[call-arg]" in done.stdout) == ({"test_wrong.py"}, True), done.stdout
