"""Conformance suite for adapters of foreign agents: ten cases, which the test of each adapter runs.

@pytest.mark.parametrize("case", CASES, ids=str)
async def test_my_adapter(case, tmp_path):
    fake = ForeignAgent(tmp_path)                  # executes the words of its task
    agent = adopt_mine("mine", my_framework_around(fake), description="Executes words")
    await case.check(agent, tmp_path)

The function of the agent is called as in a running agent, with a recording context. The cases need no pytest, so they run
in an environment that contains only a framework.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ioa.agent.definition import AgentDefinition
from ioa.concurrency import TaskGroup, fail_after
from ioa.errors import TaskError
from ioa.testing.foreign_agent import ANSWER_TOKENS, CRASH, FILE, HALFWAY, TOKENS, ForeignAgent
from ioa.testing.recording_context import RecordingContext

__all__ = ["CASES", "Case", "ForeignAgent"]

_WITHIN = timedelta(seconds=20)


class Trial:
    """An adopted agent, tried in one case."""

    def __init__(self, agent: AgentDefinition, folder: Path) -> None:
        self.foreign = ForeignAgent(folder)
        self._agent = agent
        self._folder = folder
        self._contexts = 0

    def context(self, task_key: str = "key-1", attempt: int = 1) -> RecordingContext:
        """Return the context of an attempt at a task, with its own workspace."""
        self._contexts += 1
        workspace = self._folder / f"workspace-{self._contexts}"
        workspace.mkdir()
        return RecordingContext(workspace, task_key=task_key, attempt=attempt)

    async def run(self, task: str, ctx: RecordingContext) -> str:
        """Run the agent's function, in a thread if it is not async.

        Raises:
            TaskError: The answer is no text.
        """
        function, arguments = self._agent.function, self._agent.arguments(task, ctx)
        async with fail_after(_WITHIN.total_seconds()):
            if inspect.iscoroutinefunction(function):
                answer = await function(*arguments)
            else:
                answer = await asyncio.to_thread(function, *arguments)
        if not isinstance(answer, str):
            raise TaskError(f"The agent's function returned {type(answer).__name__}, not text.")
        return answer

    async def until(self, *notes: str) -> None:
        """Wait until the other side has written these notes."""
        async with fail_after(_WITHIN.total_seconds()):
            while missing := set(notes) - set(self.foreign.noted()):
                assert missing
                await asyncio.sleep(0.002)


@dataclass(frozen=True)
class Case:
    """One promise of an adapter.

    Attributes:
        name: The case's name.
        attempt: Tries an agent, and raises an error if the promise, its docstring, does not hold.
    """

    name: str
    attempt: Callable[[Trial], Awaitable[None]]

    def __str__(self) -> str:
        return self.name

    async def check(self, agent: AgentDefinition, folder: Path) -> None:
        """Try an agent that was adopted around a `ForeignAgent` of the same, empty folder.

        Raises:
            AssertionError: The promise does not hold.
        """
        async with agent.opened() as opened:
            try:
                await self.attempt(Trial(opened, folder))
            except TimeoutError as error:
                raise AssertionError(f"{self.name}: no end within {_WITHIN.total_seconds():g} s. {self.attempt.__doc__}") from error


async def _echo(trial: Trial) -> None:
    """Pass the task and the answer on unchanged."""
    assert await trial.run("echo à bientôt, 世界", trial.context()) == "à bientôt, 世界"


async def _progress(trial: Trial) -> None:
    """Report the agent's steps as progress."""
    ctx = trial.context()
    await trial.run("step", ctx)
    assert any(HALFWAY in content for content, _ in ctx.reports), ctx.reports


async def _cancel(trial: Trial) -> None:
    """Stop the work of the other side when the task is cancelled."""
    ctx = trial.context()
    async with TaskGroup() as group:
        run = group.create_task(trial.run("wait", ctx))
        await trial.until("began")
        ctx.cancel()
        run.cancel()
    await trial.until("stopped")


async def _crash(trial: Trial) -> None:
    """Fail the task with the message of an error of the other side."""
    try:
        answer = await trial.run("crash", trial.context())
    except Exception as error:  # noqa: BLE001 - of any class
        assert CRASH in str(error), error
    else:
        raise AssertionError(f"a crash was answered with {answer!r}")


async def _duplicate(trial: Trial) -> None:
    """Send the task's key: a second attempt has no second effect, and a task of another group has its own."""
    for task_key in ("the-same", "another"):  # the same id, in two groups
        for attempt in (1, 2):
            await trial.run("count", trial.context(task_key, attempt))
    assert trial.foreign.noted() == ["effect the-same", "effect another"]


async def _budget(trial: Trial) -> None:
    """Count the usage of a model for the goal."""
    ctx = trial.context()
    await trial.run("spend", ctx)
    assert (ctx.usage.tokens_in, ctx.usage.tokens_out) == (TOKENS, ANSWER_TOKENS)


async def _artifact(trial: Trial) -> None:
    """Attach a file byte for byte."""
    ctx = trial.context()
    await trial.run("file", ctx)
    assert [file.path.read_bytes() for file in ctx.artifacts] == [FILE]


async def _two(trial: Trial) -> None:
    """Run two tasks concurrently, and return its own answer for each."""
    async with TaskGroup() as group:
        runs = [group.create_task(trial.run(f"gate {name}", trial.context(f"task-{name}"))) for name in ("a", "b")]
        await trial.until("began a", "began b")
        trial.foreign.let_go()
    assert [run.result() for run in runs] == ["a", "b"]


async def _bad(trial: Trial) -> None:
    """Raise a `TaskError` for an answer without text, and return no empty result."""
    try:
        answer = await trial.run("bad", trial.context())
    except TaskError as error:
        assert str(error)
    else:
        raise AssertionError(f"no text at all was answered with {answer!r}")


async def _slow(trial: Trial) -> None:
    """Do not block the event loop, which renews the agent's leases."""
    async with TaskGroup() as group:
        run = group.create_task(trial.run("gate slow", trial.context()))
        await trial.until("began slow")
        trial.foreign.let_go()  # which a loop that is held up never comes to
    assert run.result() == "slow"


CASES = tuple(
    Case(name, attempt)
    for name, attempt in {
        "echo": _echo,
        "progress": _progress,
        "cancel": _cancel,
        "crash": _crash,
        "duplicate": _duplicate,
        "budget": _budget,
        "artifact": _artifact,
        "replicas": _two,
        "bad-output": _bad,
        "slow": _slow,
    }.items()
)
"""The promises."""
