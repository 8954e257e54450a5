"""The files of tasks: odd names, bounds, and copies that nobody can spoil for others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ioa.agent.chatting import CHAT, ChatAnswer, ChatQuestion, Chatting
from ioa.agent.conversation import GivenOut
from ioa.agent.outbox import MAX_TEXT_BYTES
from ioa.agent.searching import Searching
from ioa.agent.workspace import Circumstances, GroupFiles, RunningTask
from ioa.errors import InvalidInputError, NotFoundError
from ioa.ports.brain import WholeConclusion
from ioa.ports.chat_model import Hear
from ioa.ports.meter import Meter
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId
from ioa.protocol.messages import MAX_ARTIFACTS, Conclusion
from ioa.protocol.object_names import object_name
from ioa.protocol.search import Need
from ioa.testing.manual_clock import ManualClock
from tests.rig.memory_network import MemoryNetwork

T1 = TaskId("t1")
AROUND = Circumstances("the goal", GoalId("g1"), CommId("c1"), GivenOut(AgentId("boss")))


def _nobody_searches(needs: Sequence[str | Need], budget: int | None) -> Searching:
    raise AssertionError("no test here searches")


def _nobody_asks(question: ChatQuestion, hear: Hear) -> Chatting:
    raise AssertionError("no test here asks a model")


@pytest.fixture
def running(tmp_path: Path) -> RunningTask:
    """A task that runs in an empty workspace."""
    return RunningTask(T1, 1, AROUND, (), (), tmp_path / "work", Meter(), _nobody_searches, _nobody_asks)


@pytest.fixture
def files(tmp_path: Path) -> GroupFiles:
    """The files of a group, none of which is here yet."""
    return GroupFiles(MemoryNetwork(ManualClock()), tmp_path / "group")


async def test_cancelling_a_task_gives_up_what_it_asked_for(tmp_path: Path) -> None:
    """The question to the model ends, whether the function awaits it or waits in a thread, asked before or after."""
    began, ended = asyncio.Event(), list[str]()

    async def silent() -> ChatAnswer:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        raise AssertionError("it waits for ever")

    loop = asyncio.get_running_loop()
    running = RunningTask(
        T1, 1, AROUND, (), (), tmp_path, Meter(), _nobody_searches, lambda *_: Chatting.start(silent(), loop, CHAT)
    )
    waiting = asyncio.create_task(asyncio.to_thread(running.chat("Hello?").result))
    await began.wait()
    running.cancel()
    for asked in (waiting, running.chat("Hello?")):
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert ended == ["cancelled"] * 2


@pytest.mark.parametrize("name", ["a.txt", "möbel & co.csv", "名前.png", ".hidden", "a b", "x" * 200, "Q1\u202freport.csv"])
def test_plain_names_are_taken(running: RunningTask, name: str) -> None:
    """Whatever a file system takes as one name is a name."""
    path = running.artifact(name, "content")

    assert (path.name, path.read_text(), [made.name for made in running.made]) == (name, "content", [name])


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", " ", "../a", "a/b", "/a", "a\\b", "a\0b", "a\nb", "x" * 201, "é" * 101, "\udce9"]
)
def test_names_that_are_no_file_names_are_refused(running: RunningTask, name: str) -> None:
    """A name that leads elsewhere, or that no file can have, is refused, and nothing is written."""
    with pytest.raises(InvalidInputError, match="is no plain file name"):
        running.artifact(name, "content")

    assert (running.made, list(running.workspace.parent.rglob("*"))) == ((), [])


def test_the_same_name_again_replaces_the_file(running: RunningTask) -> None:
    """A second file of a name is the one that counts."""
    running.artifact("a.txt", "first")
    path = running.artifact("a.txt", b"second", "text/x-special")

    assert (path.read_text(), [(made.name, made.media_type) for made in running.made]) == ("second", [("a.txt", "text/x-special")])


def test_a_task_attaches_a_bounded_number_of_files(running: RunningTask) -> None:
    """What would not fit into the report of the result is refused when it is attached."""
    for number in range(MAX_ARTIFACTS):
        running.artifact(f"{number}.txt", "x")

    with pytest.raises(InvalidInputError, match=f"may attach {MAX_ARTIFACTS} files"):
        running.artifact("one-more.txt", "x")
    running.artifact("0.txt", "again")
    assert len(running.made) == MAX_ARTIFACTS


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_fraction_lies_between_0_and_1(running: RunningTask, fraction: float) -> None:
    """What is no fraction is refused and not told."""
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        running.progress("half way", fraction)

    assert running.take_progress() is None


def test_news_is_taken_once(running: RunningTask) -> None:
    """Only the latest report counts, and only until it is taken."""
    running.progress("a", 0.1)
    running.progress("b", 1)

    assert (running.take_progress(), running.take_progress()) == (("b", 1.0), None)


@pytest.mark.parametrize(
    ("name", "local"), [("../../etc/passwd", "passwd"), ("..", "file"), ("a\\b.csv", "b.csv"), ("x" * 300, "x" * 200)]
)
async def test_files_of_others_stay_in_their_folder(files: GroupFiles, tmp_path: Path, name: str, local: str) -> None:
    """However a file is named by whoever sent it, its copy lies in the group's folder."""
    artifact = (await files._network.put_file("o", "n", b"data", "text/plain")).model_copy(update={"name": name})

    [fetched] = await files.fetch([artifact])

    assert (fetched.path.name, fetched.path.is_relative_to(tmp_path / "group"), fetched.path.read_bytes()) == (local, True, b"data")


async def test_a_file_is_fetched_once(files: GroupFiles) -> None:
    """Tasks that want a file at the same time share one copy, which none of them can write."""
    artifact = await files._network.put_file("o", "a.csv", b"1,2", "text/csv")

    copies = await asyncio.gather(*(files.fetch([artifact]) for _ in range(5)))
    paths = {copy.path for [copy] in copies}

    assert (len(paths), oct(paths.pop().stat().st_mode)[-3:]) == (1, "444")


async def test_a_file_that_is_gone_is_reported(files: GroupFiles) -> None:
    """An input that nobody stores any more is an error of its own."""
    artifact = await files._network.put_file("o", "a.csv", b"1,2", "text/csv")

    with pytest.raises(NotFoundError):
        await files.fetch([artifact.model_copy(update={"object_name": "elsewhere"})])


async def test_each_attempt_has_an_empty_folder(files: GroupFiles) -> None:
    """What an attempt that was killed left behind is not seen by the next."""
    first = await files.create_workspace(T1, 1)
    (first / "left.txt").write_text("left")
    again, second = await files.create_workspace(T1, 1), await files.create_workspace(T1, 2)

    assert (again == first, again == second, list(again.iterdir()), list(second.iterdir())) == (True, False, [], [])


async def test_uploading_again_stores_under_the_same_names(files: GroupFiles, running: RunningTask) -> None:
    """A repeated upload replaces and does not add."""
    running.artifact("a.csv", "1,2")

    once = await files.upload(CommId("g1"), T1, running.made)
    twice = await files.upload(CommId("g1"), T1, running.made)

    assert (once, [artifact.object_name for artifact in twice]) == (twice, [object_name(CommId("g1"), "t1", "a.csv")])


@pytest.mark.parametrize(
    "text",
    ["a" * 10_242, "a" * 160_000, "line\n" * 200_000, "字" * 333_333, "a" * 159_999 + "é"],
    ids=["10k", "160k", "1M", "CJK", "over"],
)
async def test_a_conclusion_arrives_whole(text: str, tmp_path: Path) -> None:
    """What fits into a message is the message; of what does not, the file holds all, and the message names it."""
    network = MemoryNetwork(ManualClock())
    files = GroupFiles(network, tmp_path / "group")
    other = await network.put_file("comm/t1/a.txt", "a.txt", b"1", "text/plain")
    said = await files.fitting(WholeConclusion(content=text, artifacts=(other,)), CommId("comm"), 7)
    names = [file.name for file in said.artifacts]
    assert (type(said), len(said.content.encode()) <= MAX_TEXT_BYTES, names[-1]) == (Conclusion, True, "a.txt")
    if len(text.encode()) <= MAX_TEXT_BYTES:
        assert (said.content, names) == (text, ["a.txt"])
    else:
        whole = await network.get_file(said.artifacts[0])
        assert (whole.decode(), names, "are in the file answer.md]" in said.content) == (text, ["answer.md", "a.txt"], True)


async def test_a_conclusion_keeps_its_name_on_every_attempt(tmp_path: Path) -> None:
    """A process that starts anew within a turn stores the same file once."""
    files = GroupFiles(MemoryNetwork(ManualClock()), tmp_path / "group")
    said = WholeConclusion(content="a" * 200_000, artifacts=())
    assert await files.fitting(said, CommId("comm"), 7) == await files.fitting(said, CommId("comm"), 7)
