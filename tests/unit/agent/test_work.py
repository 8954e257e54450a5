"""Tasks are done once, their leases kept, and whatever an author's function does stays the task's own affair."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ioa.agent.task_context import TaskContext
from ioa.errors import InvalidInputError, NotFoundError, StoreFullError, UnavailableError
from ioa.group.events import EncodedEntry, GroupLaunched
from ioa.group.requests import Entries, Sync
from ioa.ports.brain_types import TeamLaunch
from ioa.protocol.agents.search import Filters, Need, Search, SearchResult
from ioa.protocol.cards import Load
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    InformTaskProgress,
    InformTaskResult,
    SyncTaskAssignment,
    TaskOutcome,
)
from ioa.protocol.teams.stored_teams import PutTeam
from ioa.protocol.teams.team_file import team_of
from ioa.testing.scripted_brain import ScriptedBrain
from tests.rig.deadline import eventually
from tests.unit.agent.company import GOAL, T1, Company, idle, leading, one_task, open_company, task, working

ROOM = comm_id_of_goal(GOAL.goal_id)


class Running:
    """A function that waits until a test lets it go, and remembers each run."""

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self.cancelled: list[int] = []
        self.began = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, words: str, ctx: TaskContext) -> str:
        """Wait, then say which attempt this was."""
        self.attempts.append(ctx.attempt)
        self.began.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(ctx.attempt)
            raise
        return f"done in attempt {ctx.attempt}"

    def function(self) -> Callable[..., Any]:
        """The function itself, as an author would write it."""

        async def work(words: str, ctx: TaskContext) -> str:
            return await self(words, ctx)

        return work


@pytest.mark.parametrize(("forgetful", "attempts"), [(False, [1, 2]), (True, [1, 1])], ids=["its memory", "an empty one"])
async def test_a_task_whose_process_dies_runs_again(company: Company, forgetful: bool, attempts: list[int]) -> None:
    """The store counts the attempts, and the log contains one result."""
    run = Running()
    await company.give_task(run.function())
    await run.began.wait()
    await company.crash("worker")
    run.let_go.set()
    await company.restart("worker", forgetful=forgetful)
    result = await company.task_result(ROOM)
    assert (result.task_conclusion, run.attempts) == (f"done in attempt {attempts[-1]}", attempts)
    assert ((await company.result()).reason, await company.have_left(("lead", "worker"))) == (Reason.CONCLUDED, True)


async def test_search_of_a_function_returns_agents(company: Company) -> None:
    """A function in a thread waits for the answer, an async one awaits it; a need in words does not find the agent that asks."""
    asked: list[Search] = []
    search = company.network.search

    async def noted(request: Search) -> SearchResult:
        asked.append(request)
        return await search(request)

    def work(words: str, ctx: TaskContext) -> str:
        return ",".join(hit.card.agent_id for hit in ctx.search("somebody").result().merged)

    async def work_async(words: str, ctx: TaskContext) -> str:
        await ctx.search("somebody")
        return str(ctx.search("somebody").result())

    company.network.search = noted  # type: ignore[assignment,method-assign]
    given = SyncTaskAssignment(tasks=(task(), task("t2", "other")))
    await company.start(working(work_async, "other"))
    await company.give_task(work, leading(given, members=("worker", "other")))
    assert (await company.task_result(ROOM)).task_conclusion.split(",")[:2] == ["lead", "other"]
    assert "Write: await ctx.search(…)" in (await company.task_result(ROOM, task("t2").task_id)).task_conclusion
    need = Need(text="somebody", filters=Filters(not_self=True))
    about = {one.by: (one.needs, one.purpose) for one in asked if one.needs == (need,)}
    assert about == {"worker": ((need,), "t1-t1"), "other": ((need,), "t1-t2")}


async def test_renewal_reports_the_load(company: Company) -> None:
    """Tasks, groups and slots."""
    run, worker = Running(), AgentId("worker")
    await company.give_task(run.function())
    await run.began.wait()
    at_work = await eventually(lambda: company.network.load(worker), until=lambda load: load.tasks > 0)
    run.let_go.set()
    await company.result()
    after = await eventually(lambda: company.network.load(worker), until=lambda load: load.groups == 0)
    assert (at_work, after) == (Load(tasks=1, groups=1, slots=4), Load(slots=4))


async def test_a_task_that_was_cancelled_while_away_is_not_begun_again(company: Company) -> None:
    """An agent reads the log after a restart, and removes the folder of an ended group."""
    run = Running()
    await company.give_task(run.function())
    await run.began.wait()
    await company.crash("worker")
    await company.network.cancel(ROOM)
    await company.restart("worker")

    assert await company.have_left(("worker",))
    assert run.attempts == [1]
    assert await eventually(lambda: not (company.folder / "worker" / ROOM).exists())


async def test_cancelled_sync_function_sees_it_in_its_context(company: Company) -> None:
    """Its late result is not reported."""
    began, returned = threading.Event(), threading.Event()

    def work(words: str, ctx: TaskContext) -> str:
        began.set()
        while not ctx.cancelled:
            pass
        returned.set()
        return "too late"

    await company.give_task(work)
    await eventually(began.is_set)
    await company.network.cancel(ROOM)
    await eventually(returned.is_set)
    await eventually(lambda: company.sessions("worker") == 0)

    assert [one for one in company.network.said if isinstance(one.payload, InformTaskResult)] == []


def _raises(error: BaseException) -> Callable[[str], NoReturn]:
    def work(words: str) -> NoReturn:
        raise error

    return work


def _raises_async(error: BaseException) -> Callable[[str], Any]:
    async def work(words: str) -> NoReturn:
        raise error

    return work


class _WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_raises(ValueError("wrong")), "ValueError: wrong"),
        (_raises(InvalidInputError("Not like this.", hint="Like that.")), "Not like this. Like that."),
        (_raises(SystemExit(3)), "SystemExit: 3"),
        (_raises(asyncio.CancelledError()), "CancelledError"),
        (_raises_async(SystemExit(3)), "SystemExit: 3"),
        (_raises(_WordlessError()), "_WordlessError: <exception str() failed>"),
        (lambda words: 42, "The agent's function returned int, not text."),
        (lambda words, ctx: str(ctx.artifact("../x", "y")), "'../x' is no plain file name. Use a short name without folders."),
    ],
)
async def test_invalid_answer_or_exception_fails_the_task(company: Company, function: Callable[..., Any], told: str) -> None:
    """Also an exception that would end a process."""
    await company.give_task(function)

    result = await company.task_result(ROOM)

    running = company.members["worker"].running
    assert running is not None
    assert (result.outcome, told in result.task_conclusion, running.done()) == (TaskOutcome.FAILED, True, False)


@pytest.mark.parametrize(
    "error", [KeyError("chunks"), InvalidInputError("It has changed."), NotFoundError("It is gone.")], ids=["a bug", "bomb", "gone"]
)
async def test_a_file_that_cannot_be_fetched_fails_its_task(
    company: Company, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The task ends with the error before the deadline of the goal."""

    def fail(*_: object) -> AsyncGenerator[bytes, None]:
        raise error

    monkeypatch.setattr(company.network, "stream_file", fail)
    given = await company.network.artifacts.put("shared/rows", "rows.csv", b"1,2", "text/csv")
    monkeypatch.setattr("tests.unit.agent.company.GOAL", GOAL.model_copy(update={"inputs": (given,)}))
    await company.give_task(lambda words: "done")

    result = await company.task_result(ROOM)

    assert (result.outcome, str(error.args[0]) in result.task_conclusion) == (TaskOutcome.FAILED, True)


async def test_result_without_free_space_is_reported_later(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result whose file finds no room is reported as soon as there is some."""
    put, refused = company.network.put_file, list[str]()

    async def put_later(agent_id: AgentId, comm_id: CommId, place: str, name: str, *file: Any) -> Artifact:
        if not refused:
            refused.append(name)
            raise StoreFullError("No room.")
        return await put(agent_id, comm_id, place, name, *file)

    monkeypatch.setattr(company.network, "put_file", put_later)
    await company.give_task(lambda words, ctx: ctx.artifact("sum.txt", "3").name)

    result = await company.task_result(ROOM)

    assert (refused, [file.name for file in result.artifacts], result.outcome) == (["sum.txt"], ["sum.txt"], TaskOutcome.DONE)


async def test_long_answer_of_a_task_is_attached_as_a_file(company: Company) -> None:
    """The message contains its beginning."""
    answer = "äöü€𝄞 " * 60_000
    await company.give_task(lambda words: answer)

    result = await company.task_result(ROOM)
    whole = await company.network.artifacts.get(result.artifacts[0])

    assert (result.outcome, result.artifacts[0].name, whole.decode() == answer, answer.startswith(result.task_conclusion[:-4])) == (
        TaskOutcome.DONE,
        "t1-t1.txt",
        True,
        True,
    )
    assert (await company.result()).reason == Reason.CONCLUDED


@pytest.mark.parametrize("fails", [False, True])
async def test_workspace_of_a_finished_task_is_removed(company: Company, fails: bool) -> None:
    """Before its result is reported; attached files are uploaded."""
    there = []

    def work(words: str, ctx: TaskContext) -> str:
        there.append(sorted(path.name for path in ctx.workspace.parent.iterdir()))
        (ctx.workspace / "copy.bin").write_bytes(b"x" * 1_000)
        ctx.artifact("made.txt", words)
        if fails:
            raise ValueError(words)
        return words

    given = SyncTaskAssignment(tasks=(task(),)), SyncTaskAssignment(tasks=(task("t2", turn=2),))
    await company.give_task(work, leading(*given))

    await company.result()

    results = [message.payload for message in await company.messages(ROOM) if isinstance(message.payload, InformTaskResult)]
    made = [artifact.name for result in results for artifact in result.artifacts]
    assert (there, made) == ([["t1-t1-1"], ["t2-t2-1"]], ["made.txt", "made.txt"])


class _Clueless(ScriptedBrain):
    """A brain that cannot say how."""

    async def approach(self, *_: object) -> NoReturn:
        """Fail."""
        raise KeyError("no idea")


@pytest.mark.parametrize("brain", [_Clueless(), ScriptedBrain(approaches=[TeamLaunch(members=(AgentId("gone"),))])])
async def test_a_task_for_which_no_team_is_opened_is_done_alone(company: Company, brain: ScriptedBrain) -> None:
    """Whether the brain fails or group setup refuses the team, the function does the task in its own words."""
    await company.start(working(lambda words: f"alone: {words}"), brain)
    await company.start(idle("lead"), one_task())
    await company.network.offer(GOAL)
    assert (await company.task_result(ROOM)).task_conclusion == "alone: do t1"


@pytest.mark.parametrize(
    ("team", "why"),
    [("parnel", "The team parnel cannot serve the task (not_found). No team of local is called parnel"), ("panel", "(no_agent)")],
)
async def test_without_its_stored_team_a_task_fails_with_the_reason(company: Company, team: str, why: str) -> None:
    """Also if a role of the team finds no agent; the function is not called."""
    roles = {"chair": "worker", "critic": "helper"}
    panel = team_of({"team": "panel", "roles": roles, "nodes": [{"name": "talk", "roles": [*roles], "max": 2}]})
    await company.network.plane.teams.put(LOCAL, PutTeam(team=panel))
    runs: list[str] = []
    await company.give_task(runs.append, leading(SyncTaskAssignment(tasks=(task().model_copy(update={"team": team}),))))
    failed = await company.task_result(ROOM)
    assert (failed.outcome, why in failed.task_conclusion, runs) == (TaskOutcome.FAILED, True, [])
    assert (await company.result()).reason is Reason.CONCLUDED


def _delegating() -> tuple[ScriptedBrain, ScriptedBrain]:
    """A worker that has its task done by a helper in a nested team, and the helper."""
    worker = ScriptedBrain(
        approaches=[TeamLaunch(members=(AgentId("helper"),))],
        utterances=[SyncTaskAssignment(tasks=(task("s1", "helper"),)), ConcludeGroupDiscussion()],
        conclusions=[Conclusion(content="The helper did it.")],
    )
    return worker, ScriptedBrain()


async def test_a_nested_team_does_a_task(company: Company) -> None:
    """The conclusion of a nested team is the result of its task, and its members' records are complete."""
    worker, helper = _delegating()
    await company.start(idle("helper"), helper)
    await company.start(idle("worker"), worker)
    await company.start(idle("lead"), one_task())

    result = await company.has_done()
    nested = comm_id_of_task(ROOM, T1)
    state = await company.state(nested)

    assert state is not None
    assert (
        result.reason,
        state.phase.is_terminal,
        state.depth,
        await company.have_left(("worker", "helper")),
    ) == (
        Reason.CONCLUDED,
        True,
        1,
        True,
    )


async def test_a_nested_team_that_was_announced_but_never_opened_is_opened_after_all(company: Company) -> None:
    """An agent that died between the parent's entry and the nested group opens it after its restart."""
    worker, helper = _delegating()
    worker.approaches.append(TeamLaunch(members=(AgentId("helper"),)))
    append, announced = company.network.log.append, asyncio.Event()

    async def fail_to_open(comm_id: CommId, entry: EncodedEntry, *, expected_seq: int, **counted: Any) -> int:
        if isinstance(entry.entry.event, GroupLaunched) and entry.entry.event.charter.parent is not None and not announced.is_set():
            announced.set()
            raise UnavailableError("The log does not answer.")
        return await append(comm_id, entry, expected_seq=expected_seq, **counted)

    company.network.log.append = fail_to_open  # type: ignore[method-assign]
    await company.start(idle("helper"), helper)
    await company.start(idle("worker"), worker)
    await company.start(idle("lead"), one_task())
    await company.network.offer(GOAL)
    await announced.wait()
    await company.crash("worker")
    await company.restart("worker")

    assert (await company.result()).reason == Reason.CONCLUDED


async def test_a_restart_leaves_a_nested_team_to_its_work(company: Company) -> None:
    """An agent whose nested team is at work does not do the task itself after its restart."""
    run = Running()
    worker, helper = _delegating()
    runs: list[str] = []
    await company.start(working(run.function(), "helper"), helper)
    await company.start(working(runs.append), worker)
    await company.start(idle("lead"), one_task())
    await company.network.offer(GOAL)
    await run.began.wait()
    await company.crash("worker")
    await company.restart("worker")
    run.let_go.set()

    result = await company.result()

    assert (result.reason, runs, run.attempts) == (Reason.CONCLUDED, [], [1])


async def test_progress_is_reported_at_most_once_a_second(company: Company) -> None:
    """However much a function reports, the group hears the acknowledgement and the latest news."""
    began, let_go = threading.Event(), threading.Event()

    def work(words: str, ctx: TaskContext) -> str:
        for number in range(10_000):
            ctx.progress(f"step {number}", number / 10_000)
        began.set()
        let_go.wait(20)
        return "done"

    await company.give_task(work)
    await eventually(began.is_set)

    await eventually(lambda: _reports(company), until=lambda heard: bool(heard) and heard[-1].content == "step 9999")
    let_go.set()
    await company.result()

    assert [report.number for report in _reports(company)] in ([1], [1, 2])


async def test_invalid_progress_and_text_are_replaced(company: Company) -> None:
    """News that is too long or no text is made to fit, and half a character, as names from a file system hold, is replaced."""

    def work(words: str, ctx: TaskContext) -> str:
        ctx.progress("€" * 300_000)
        ctx.progress({"not": "text", "half": "\udce9"}, 1)  # type: ignore[arg-type]
        return "caf\udce9"

    await company.give_task(work)
    result = await company.task_result(ROOM)
    assert (result.outcome, result.task_conclusion) == (TaskOutcome.DONE, "caf?")


async def test_running_task_renews_its_lease(tmp_path: Path) -> None:
    """A task goes on for many leases as long as its agent lives."""
    lease = timedelta(milliseconds=300)
    async with open_company(tmp_path, task_lease=lease) as company:
        run = Running()
        await company.give_task(run.function())
        await run.began.wait()

        for reports in range(1, 8):
            await eventually(partial(_has_reported, company, reports))
            await company.network.advance(lease * 0.9)
        run.let_go.set()

        result = await company.result()
    assert (result.reason, run.attempts) == (Reason.CONCLUDED, [1])


async def test_a_task_that_its_group_has_closed_ends_without_a_report(tmp_path: Path) -> None:
    """A member that missed the end learns it from the answer to its next report: its function is cancelled, and not run again."""
    async with open_company(tmp_path, task_lease=timedelta(milliseconds=300), silence=timedelta(hours=1)) as company:
        run, sync = Running(), company.network.sync
        await company.give_task(run.function())
        await run.began.wait()

        async def read_once_cancelled(request: Sync) -> Entries:
            await eventually(lambda: run.cancelled)
            return await sync(request)

        company.network.sync = read_once_cancelled  # type: ignore[method-assign]
        company.network.deliver_pushes(lambda to, entry: [] if to == "worker" else [entry])
        await company.network.cancel(ROOM)
        assert await company.have_left(("worker",))
        assert (run.attempts, run.cancelled) == ([1], [1])
        assert [one for one in company.network.said if isinstance(one.payload, InformTaskResult)] == []


def _has_reported(company: Company, times: int) -> bool:
    return len(_reports(company)) >= times


def _reports(company: Company) -> list[InformTaskProgress]:
    """Return all progress reports that were sent."""
    payloads = [message.payload for message in company.network.said]
    return [one for one in payloads if isinstance(one, InformTaskProgress)]


async def test_a_stop_waits_for_running_tasks(company: Company) -> None:
    """A task that ends within the drain time is reported before the agent goes offline."""
    run = Running()
    await company.give_task(run.function())
    await run.began.wait()
    asyncio.get_running_loop().call_soon(run.let_go.set)

    await company.stop("worker")

    result = await company.task_result(ROOM)
    assert (result.task_conclusion, company.network.is_online(AgentId("worker"))) == ("done in attempt 1", False)


async def test_a_stop_waits_no_longer_than_the_drain_time(tmp_path: Path) -> None:
    """A sync function that never looks whether it should stop holds up neither the stop nor the loop's end."""
    async with open_company(tmp_path, drain=timedelta(milliseconds=50)) as company:
        began, let_go = threading.Event(), threading.Event()

        def work(words: str) -> str:
            began.set()
            let_go.wait(60)
            return "at last"

        await company.give_task(work)
        await eventually(began.is_set)

        worker = company.members["worker"].client
        assert worker is not None
        async with asyncio.timeout(5):
            await company.stop("worker")
        let_go.set()
        await worker._runner.until_ended(timedelta(seconds=5))

        assert [one for one in company.network.said if isinstance(one.payload, InformTaskResult)] == []
