"""A worker answers one request after the other, dies, comes back, and keeps nobody waiting for nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.errors import InvalidInputError, UnavailableError
from ioa_discovery.workers.worker_pipe import WorkerDiedError, WorkerFailedError
from ioa_discovery.workers.worker_process import MAX_URGENT, ChildWorker, open_worker
from tests.rig.deadline import eventually

WORKER = "tests.unit.discovery.echo_worker"
SOON = timedelta(seconds=30)


@pytest.fixture
async def worker() -> AsyncIterator[ChildWorker]:
    """A worker that does what it is asked to."""
    async with open_worker(WORKER, "hello") as opened:
        yield opened


async def test_a_worker_answers(worker: ChildWorker) -> None:
    """It says what it opened, and answers each request with what belongs to it, in order."""
    answers = await asyncio.gather(*(worker.ask(("echo", number)) for number in range(50)))
    assert (worker.state, answers, worker.backlog) == ("hello", list(range(50)), 0)


async def test_nothing_of_the_folder_it_is_started_in_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user may have written there, in the name of a module of the library's."""
    (tmp_path / "selectors.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    async with open_worker(WORKER, "hello") as opened:
        assert await opened.ask(("echo", 1)) == 1


async def test_what_is_urgent_goes_first(worker: ChildWorker) -> None:
    """Of the requests that wait, urgent ones are answered before the others."""
    order: list[str] = []

    async def ask(name: str, *, urgent: bool) -> None:
        await worker.ask(("echo", name), urgent=urgent)
        order.append(name)

    await asyncio.gather(ask("first", urgent=False), ask("second", urgent=False), ask("urgent", urgent=True))
    assert order == ["urgent", "first", "second"]


async def test_a_failed_request_leaves_the_worker_alive(worker: ChildWorker) -> None:
    """An error of one request is told to who asked, with what the worker said, and the next one is answered by the same process."""
    pid = worker.pid
    with pytest.raises(WorkerFailedError, match="ZeroDivisionError: division by zero"):
        await worker.ask(("fail", None))
    assert (await worker.ask(("echo", 1)), worker.pid) == (1, pid)


async def test_a_worker_that_dies_comes_back(worker: ChildWorker) -> None:
    """Who asked, who waited, and who asks before there is another process are told at once; then all goes on."""
    pid = worker.pid
    asked = [asyncio.create_task(worker.ask((what, None))) for what in ("die", "echo", "echo")]
    told = await asyncio.gather(*asked, return_exceptions=True)
    await eventually(lambda: worker.pid not in (None, pid), within=SOON)
    assert ([type(error) for error in told], await worker.ask(("echo", 2))) == ([WorkerDiedError, *[UnavailableError] * 2], 2)


async def test_an_idle_worker_that_is_killed_comes_back(worker: ChildWorker) -> None:
    """Its death is noticed although nobody asks anything."""
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: worker.pid not in (None, pid), within=SOON)
    assert await worker.ask(("echo", 3)) == 3


async def test_too_many_urgent_requests_are_refused(worker: ChildWorker) -> None:
    """The queue is bounded: who comes beyond it is told so, and those in it are answered."""
    asked = [asyncio.create_task(worker.ask(("echo", number), urgent=True)) for number in range(MAX_URGENT + 1)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert ([type(answer) for answer in answers[-1:]], answers[:-1]) == ([UnavailableError], list(range(MAX_URGENT)))


async def test_a_cancelled_request_harms_no_other(worker: ChildWorker) -> None:
    """Who gives up while the worker computes does not get the next one's answer."""
    given_up = asyncio.create_task(worker.ask(("echo", "given up")))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await worker.ask(("echo", "kept")) == "kept"


async def test_what_a_worker_prints_harms_nothing(worker: ChildWorker) -> None:
    """A library that prints does not spoil the messages."""
    assert [await worker.ask(("print", "to standard output")), await worker.ask(("echo", 4))] == [None, 4]


async def test_a_worker_that_refuses_to_open_says_why() -> None:
    """Its error comes out as the error that it is, and no process is left."""
    with pytest.raises(InvalidInputError, match=r"No such model\. Name another\."):
        async with open_worker(WORKER, "refuse"):
            pass


async def test_a_module_that_is_none_is_unavailable() -> None:
    """A process that ends before it is ready is an error, not a wait."""
    with pytest.raises(WorkerDiedError, match="died"):
        async with open_worker("tests.unit.discovery.no_such_module", "hello"):
            pass
