"""A child that computes: it answers, ends when it is idle, and is killed with what never returns."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.errors import InvalidInputError, TaskError
from ioa.idle_child import IdleChildren
from tests.rig.deadline import eventually

WORK = """\
import os, time
from ioa.errors import InvalidInputError

def who():
    return os.getpid()

def add(a, b):
    return a + b

def refuse():
    raise InvalidInputError("No.", hint="Say yes.")

def hoard(mebibytes):
    return len(bytearray(mebibytes * 1024**2))

def say(size):
    return "x" * size

def fail(size):
    raise InvalidInputError("x" * size)

def lambda_():
    return lambda: None

def for_ever(begun):
    open(begun, "w").write(str(os.getpid()))
    while True:
        time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "childs_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("childs_work", None)


@contextmanager
def _held(child: IdleChildren, begun: Path) -> Iterator[None]:
    """Have one process compute for as long as the block."""
    over, told = threading.Event(), list[str]()

    def hold() -> None:
        with pytest.raises(TaskError) as error:
            child.call("childs_work.for_ever", str(begun), cancelled=over.is_set)
        told.append(error.value.message)

    holding = threading.Thread(target=hold)
    holding.start()
    try:
        while not (begun.exists() and begun.read_text()):
            time.sleep(0.01)
        yield
        still_held = holding.is_alive()
    finally:
        over.set()
        holding.join()
    assert (still_held, told) == (True, ["The task was cancelled."])


def test_nothing_of_the_folder_it_is_started_in_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user may have written there, in the name of a module of the library's."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "selectors.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path / "shared")
    assert IdleChildren().call("childs_work.add", 1, 2) == 3


def test_it_answers_in_another_process_which_stays_for_the_next_call() -> None:
    """Nothing is loaded in the caller, and a second call starts nothing."""
    child = IdleChildren()
    first, second = child.call("childs_work.who"), child.call("childs_work.who")
    assert (first == second, first != os.getpid(), "childs_work" in sys.modules) == (True, True, False)
    assert child.call("childs_work.add", 2, 3) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels bound no memory so")
def test_what_takes_too_much_memory_fails_and_the_next_call_is_answered() -> None:
    """A file that fills the memory takes that of nobody else on the machine."""
    child = IdleChildren(memory_bytes=200 * 1024**2)
    with pytest.raises(TaskError, match="takes more than 200 MiB of memory"):
        child.call("childs_work.hoard", 300)
    assert child.call("childs_work.hoard", 50) == 50 * 1024**2


@pytest.mark.parametrize("function", ["say", "fail"])
def test_an_answer_that_is_too_long_is_not_read(function: str) -> None:
    """It would fill the memory of its caller, which nothing bounds; the next call is answered."""
    child = IdleChildren(answer_bytes=1_000)
    with pytest.raises(TaskError, match="more than 1,000 bytes"):
        child.call(f"childs_work.{function}", 2_000)
    assert child.call("childs_work.say", 900) == "x" * 900


def test_where_no_process_can_be_started_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error of the call, which its caller handles as others; the next call tries again."""

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    child = IdleChildren()
    with monkeypatch.context() as patched:
        patched.setattr("ioa.idle_child.subprocess.Popen", refuse)
        with pytest.raises(TaskError, match=r"No process can be started .* Resource temporarily unavailable"):
            child.call("childs_work.add", 2, 3)
    assert child.call("childs_work.add", 2, 3) == 5


def test_an_answer_that_cannot_be_sent_is_an_error_of_its_function() -> None:
    """And not an end of the process."""
    child = IdleChildren()
    with pytest.raises(Exception, match="pickle"):
        child.call("childs_work.lambda_")
    assert child.call("childs_work.add", 2, 3) == 5


async def test_who_waits_on_a_loop_holds_no_thread_of_the_loop(tmp_path: Path) -> None:
    """Those are everybody's; and what nobody waits for any more is ended."""
    child, begun = IdleChildren(at_once=1), tmp_path / "begun"
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    asked = [asyncio.create_task(child.ask("childs_work.for_ever", str(begun))) for _ in range(3)]
    await eventually(begun.exists)
    assert await asyncio.to_thread(lambda: 1) == 1
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    assert await child.ask("childs_work.add", 2, 3) == 5


def test_what_takes_too_long_is_killed_and_the_next_call_is_answered(tmp_path: Path) -> None:
    """A file that takes for ever to read keeps nobody waiting who comes behind it."""
    child = IdleChildren(longest=timedelta(seconds=3))
    with pytest.raises(TaskError, match="within 3 s"):
        child.call("childs_work.for_ever", str(tmp_path / "begun"))
    assert child.call("childs_work.add", 2, 3) == 5


def test_what_it_raises_the_caller_raises() -> None:
    """With its hint, and it answers on."""
    child = IdleChildren()
    with pytest.raises(InvalidInputError) as error:
        child.call("childs_work.refuse")
    assert (error.value.message, error.value.hint) == ("No.", "Say yes.")
    assert child.call("childs_work.add", 2, 3) == 5


def test_it_ends_when_it_is_idle_and_is_started_again() -> None:
    """Its memory is given back; who calls does not notice."""
    child = IdleChildren(idle=timedelta(0))
    first = child.call("childs_work.who")
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert child.call("childs_work.who") != first


def test_it_is_killed_where_the_task_is_cancelled(tmp_path: Path) -> None:
    """What never returns goes with it, and the next call has a new one."""
    child, begun = IdleChildren(), tmp_path / "begun"
    with pytest.raises(TaskError, match="cancelled"):
        child.call("childs_work.for_ever", str(begun), cancelled=lambda: begun.exists() and begun.read_text() != "")
    assert child.call("childs_work.who") != int(begun.read_text())


def test_who_is_cancelled_while_it_waits_for_another_ends_at_once(tmp_path: Path) -> None:
    """Else its agent would have functions that were told to stop and still run, and with nine of them takes no work any more."""
    child, begun = IdleChildren(at_once=1), tmp_path / "begun"
    with _held(child, begun), pytest.raises(TaskError) as error:
        child.call("childs_work.who", cancelled=begun.exists)
    assert error.value.message == "The task was cancelled."


def test_who_is_killed_is_said_to_be(tmp_path: Path) -> None:
    """As by the kernel, where memory runs out."""
    child, begun = IdleChildren(), tmp_path / "begun"

    def looked() -> bool:
        if begun.exists() and (pid := begun.read_text()):
            os.kill(int(pid), signal.SIGKILL)
        return False

    with pytest.raises(TaskError, match="was killed"):
        child.call("childs_work.for_ever", str(begun), cancelled=looked)
    assert child.call("childs_work.add", 2, 3) == 5
