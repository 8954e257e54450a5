"""The command `ioa` as a user has it: real processes in a folder of their own, and a small pool of agents that start quickly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.rig.forks import run_module

TIMEOUT_SECONDS = 120

AGENTS = """
import asyncio
import os
from pathlib import Path

from ioa import Agent

greeter = Agent("greeter", description="Greets people politely", examples=["greet Ada", "say hello to somebody"], may_team_up=False)


@greeter.task
def greet(task, ctx):
    names = ", ".join(file.name for file in ctx.inputs) or "nobody in particular"
    ctx.artifact("greeting.txt", f"Hello from a file, {names}!")
    ctx.trace({"greeted": names})
    return f"Hello, {names}!"


waiter = Agent("waiter", description="Waits for a signal file", examples=["wait for the signal", "wait until the signal comes"])


@waiter.task
async def wait(task, ctx):
    signal = Path(os.environ["SIGNAL_FILE"])
    while not signal.exists():
        await asyncio.sleep(0.05)
    return f"The signal was: {signal.read_text()}"


breaker = Agent("breaker", description="Breaks vases", examples=["break a vase", "smash the vase"], may_team_up=False)


@breaker.task
def smash(task):
    raise ValueError("the vase is made of steel")
"""


@dataclass(frozen=True)
class CommandLine:
    """Run `ioa` in `folder`, with nothing of the surrounding environment that concerns it."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of each command."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("IOA_", "OPENAI_", "COLUMNS"))}
        return {**kept, "SIGNAL_FILE": str(self.folder / "signal"), "IOA_DRAIN": "0.2", **self.variables}

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a command as a user does."""
        return subprocess.Popen(
            [sys.executable, "-m", "ioa.cli", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with its standard input, as a fork of a process that has imported the command."""
        told = tuple(map(str, arguments))
        return run_module(
            "ioa.cli", told, folder=self.folder, env=self.environment, given=given or "", timeout_seconds=TIMEOUT_SECONDS
        )

    def document(self, *arguments: str | Path) -> Any:
        """Run a command with `--json` that must succeed, and read its document."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def lines(self, *arguments: str | Path) -> list[dict[str, Any]]:
        """Run a command with `--json` that goes on, and read its lines."""
        return [json.loads(line) for line in self.run(*arguments, "--json").stdout.splitlines()]

    def write_pool(self, *names: str) -> Path:
        """Write the agents of these names and a pool file for them."""
        (self.folder / "agents.py").write_text(AGENTS, encoding="utf-8")
        pool = self.folder / "pool.toml"
        pool.write_text("".join(f'[[agents]]\ntarget = "agents.py:{name}"\n' for name in names), encoding="utf-8")
        return pool


@dataclass(frozen=True)
class Running:
    """An `ioa up --json` that is ready."""

    process: subprocess.Popen[str]
    url: str
    pids: dict[str, int]
    metrics: dict[str, str]
    data: Path
    page: str = ""

    @property
    def private_url(self) -> str:
        """The URL for programs that know nothing of IoA, with the password in it."""
        return (self.data / "private-url").read_text(encoding="ascii").strip()

    def stop(self) -> int:
        """End it with SIGTERM and return its exit code."""
        self.process.terminate()
        return self.process.wait(TIMEOUT_SECONDS)


@contextmanager
def running_system(command: CommandLine, *options: str | Path) -> Iterator[Running]:
    """Run `ioa up` until the block ends."""
    process = command.start("up", "--port", "0", "--json", *options)
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        ready = json.loads(line)
        yield Running(
            process, ready["url"], ready["pids"], ready.get("metrics", {}), command.folder / ready["data"], ready.get("page", "")
        )
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(TIMEOUT_SECONDS)
        process.stdout.close()
        process.stderr.close()


def is_alive(pid: int) -> bool:
    """Whether a process runs. A process that has ended does not run, also before its exit code is read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
