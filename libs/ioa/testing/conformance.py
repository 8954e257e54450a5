"""What every adapter to an agent of somebody else promises: one table of ten cases, of which each adapter's test runs all.

@pytest.mark.parametrize("case", CASES, ids=str)
async def test_my_adapter(case, tmp_path):
    fake = ForeignAgent(tmp_path)                  # does what its task says
    agent = adopt_mine("mine", my_framework_around(fake), description="Does what it is told")
    await case.check(agent, tmp_path)

The function of the agent is called as a running agent calls it, with a context that records. What the journal, leases and the log
make of it is the same for all functions, and is tested with them. The cases need no pytest: they run in an environment that has a
framework and nothing else, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ioa.agent.definition import AgentDefinition
from ioa.agent.worker_pool import WorkerPool
from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import TaskError
from ioa.testing.foreign_agent import ANSWER_TOKENS, CRASH, FILE, HALFWAY, TOKENS, ForeignAgent
from ioa.testing.task_context import RecordingContext

__all__ = ["CASES", "Case", "ForeignAgent"]

_WITHIN = timedelta(seconds=20)
_AT_ONCE = 4


class Trial:
    """An adopted agent, tried in one case."""

    def __init__(self, agent: AgentDefinition, folder: Path) -> None:
        self.foreign = ForeignAgent(folder)
        self._agent = agent
        self._folder = folder
        self._workers = WorkerPool(agent.agent_id, _AT_ONCE, _WITHIN)
        self._contexts = 0

    def context(self, task_key: str = "key-1", attempt: int = 1) -> RecordingContext:
        """Make the context of one attempt at a task, with a workspace of its own."""
        self._contexts += 1
        workspace = self._folder / f"workspace-{self._contexts}"
        workspace.mkdir()
        return RecordingContext(workspace, task_key=task_key, attempt=attempt)

    async def run(self, task: str, ctx: RecordingContext) -> str:
        """Run the agent's function as a running agent does: within a slot, in a thread if it is a plain one.

        Raises:
            TaskError: The answer is no text.
        """
        async with self._workers.slot(_WITHIN) as slot:
            answer = await slot.call(self._agent.function, self._agent.arguments(task, ctx), _WITHIN)
        if not isinstance(answer, str):
            raise TaskError(f"The agent's function returned {type(answer).__name__}, not text.")
        return answer

    async def until_ended(self) -> None:
        """Wait until all cancelled functions have ended."""
        await self._workers.until_ended(_WITHIN)

    async def until(self, *notes: str) -> None:
        """Wait until the other side has written these things down."""
        async with fail_after(_WITHIN.total_seconds()):
            while missing := set(notes) - set(self.foreign.noted()):
                assert missing
                await asyncio.sleep(0.002)


@dataclass(frozen=True)
class Case:
    """One promise.

    Attributes:
        name: What it is called.
        promise: What an adapter promises.
        attempt: Tries an agent; raises if the promise does not hold.
    """

    name: str
    promise: str
    attempt: Callable[[Trial], Awaitable[None]]

    def __str__(self) -> str:
        return self.name

    async def check(self, agent: AgentDefinition, folder: Path) -> None:
        """Try an agent that was adopted around a `ForeignAgent` of the same folder, which is empty.

        Raises:
            AssertionError: It does not keep the promise.
        """
        async with agent.opened() as opened:
            try:
                await self.attempt(Trial(opened, folder))
            except TimeoutError as error:
                raise AssertionError(f"{self.name}: {self.promise} It did not within {_WITHIN.total_seconds():g} s.") from error


async def _echo(trial: Trial) -> None:
    assert await trial.run("echo à bientôt, 世界", trial.context()) == "à bientôt, 世界"


async def _progress(trial: Trial) -> None:
    ctx = trial.context()
    await trial.run("step", ctx)
    assert any(HALFWAY in content for content, _ in ctx.reports), ctx.reports


async def _cancel(trial: Trial) -> None:
    ctx = trial.context()
    async with TaskGroup() as group:
        run = group.create_task(trial.run("wait", ctx))
        await trial.until("began")
        ctx.cancelled = True
        run.cancel()
    await trial.until("stopped")
    await trial.until_ended()


async def _crash(trial: Trial) -> None:
    try:
        answer = await trial.run("crash", trial.context())
    except Exception as error:  # noqa: BLE001 - whatever it is, it says what happened
        assert CRASH in str(error), error
    else:
        raise AssertionError(f"a crash was answered with {answer!r}")


async def _duplicate(trial: Trial) -> None:
    for task_key in ("the-same", "another"):  # of one id, in two groups
        for attempt in (1, 2):
            await trial.run("count", trial.context(task_key, attempt))
    assert trial.foreign.noted() == ["effect the-same", "effect another"]


async def _budget(trial: Trial) -> None:
    ctx = trial.context()
    await trial.run("spend", ctx)
    assert (ctx.usage.tokens_in, ctx.usage.tokens_out) == (TOKENS, ANSWER_TOKENS)


async def _artifact(trial: Trial) -> None:
    ctx = trial.context()
    await trial.run("file", ctx)
    assert [file.path.read_bytes() for file in ctx.artifacts] == [FILE]


async def _two(trial: Trial) -> None:
    async with TaskGroup() as group:
        runs = [group.create_task(trial.run(f"gate {name}", trial.context(f"task-{name}"))) for name in ("a", "b")]
        await trial.until("began a", "began b")
        trial.foreign.let_go()
    assert [run.result() for run in runs] == ["a", "b"]


async def _bad(trial: Trial) -> None:
    try:
        answer = await trial.run("bad", trial.context())
    except TaskError as error:
        assert str(error)
    else:
        raise AssertionError(f"no text at all was answered with {answer!r}")


async def _slow(trial: Trial) -> None:
    async with TaskGroup() as group:
        run = group.create_task(trial.run("gate slow", trial.context()))
        await trial.until("began slow")
        trial.foreign.let_go()  # which a loop that is held up never comes to
    assert run.result() == "slow"


CASES = (
    Case("echo", "The task's words go in, and the answer's words come out, as they are.", _echo),
    Case("progress", "What it tells of its steps is reported as progress.", _progress),
    Case("cancel", "Cancelling the task stops the work on the other side.", _cancel),
    Case("crash", "What goes wrong on the other side fails the task with its message.", _crash),
    Case(
        "duplicate",
        "The other side learns the task's key: a second attempt has no second effect, and another group's task its own.",
        _duplicate,
    ),
    Case("budget", "What a model has used is counted for the goal.", _budget),
    Case("artifact", "A file that it makes is attached byte for byte.", _artifact),
    Case("replicas", "Two tasks at once run side by side, and each gets its own answer.", _two),
    Case("bad-output", "An answer that is no text is a `TaskError`, never an empty result.", _bad),
    Case("slow", "While it works the event loop goes on, on which the agent's leases are kept.", _slow),
)
"""The promises."""
