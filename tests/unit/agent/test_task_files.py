"""Files of tasks: names, limits and read-only copies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from ioa.agent.send import MAX_TEXT_BYTES
from ioa.agent.task_context import TaskContext
from ioa.agent.tasks.chat_question import ChatAnswer, ChatQuestion
from ioa.agent.tasks.task_files import GroupFiles
from ioa.errors import InvalidInputError, NotFoundError
from ioa.ports.brain_types import WholeConclusion
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, SessionId, TaskId
from ioa.protocol.messages import MAX_ARTIFACTS, Conclusion
from ioa.testing import RecordingContext
from ioa.testing.manual_clock import ManualClock
from tests.rig.memory_network import MemoryNetwork
from tests.rig.told_files import files_of_group

T1 = TaskId("t1")


@pytest.fixture
def running(tmp_path: Path) -> TaskContext:
    """A task that runs in an empty workspace."""
    (tmp_path / "work").mkdir()
    return RecordingContext(tmp_path / "work")


async def test_cancelled_task_cancels_its_questions(running: TaskContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question to the model ends, whether the function awaits it or waits in a thread, asked before or after."""
    began, ended, loop = asyncio.Event(), list[str](), asyncio.get_running_loop()

    async def silent(_question: ChatQuestion) -> ChatAnswer:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        raise AssertionError("unreachable")

    monkeypatch.setattr(running, "_chat", silent)
    monkeypatch.setattr(running, "_begin", lambda request: asyncio.run_coroutine_threadsafe(request, loop))
    waiting = asyncio.create_task(asyncio.to_thread(running.chat("Hello?").result))
    await began.wait()
    running.cancel()
    for asked in (waiting, running.chat("Hello?")):
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert ended == ["cancelled"] * 2


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "/a", "a\0b", "x" * 201])
def test_names_that_are_no_file_names_are_refused(running: TaskContext, name: str) -> None:
    """A name that leads elsewhere, or that no file can have, is refused, and nothing is written."""
    with pytest.raises(InvalidInputError, match="is no plain file name"):
        running.artifact(name, "content")

    assert (running.made, list(running.workspace.rglob("*"))) == ((), [])


def test_a_task_attaches_a_bounded_number_of_files(running: TaskContext) -> None:
    """What would not fit into the report of the result is refused when it is attached."""
    for number in range(MAX_ARTIFACTS):
        running.artifact(f"{number}.txt", "x")

    with pytest.raises(InvalidInputError, match=f"may attach {MAX_ARTIFACTS} files"):
        running.artifact("one-more.txt", "x")
    running.artifact("0.txt", "again")
    assert len(running.made) == MAX_ARTIFACTS


def test_progress_is_returned_once(running: TaskContext) -> None:
    """The latest report replaces earlier ones; an invalid fraction is rejected."""
    for fraction in (0.1, 1):
        TaskContext.progress(running, "half way", fraction)
    assert (running.take_progress(), running.take_progress()) == (("half way", 1.0), None)
    for fraction in (-0.1, 1.1, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            TaskContext.progress(running, "half way", fraction)
    assert running.take_progress() is None


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("../../etc/passwd", "passwd"),
        ("..", "file"),
        ("a\\b.csv", "b.csv"),
        ("x" * 300, "x" * 200),
        ("資" * 120 + ".csv", "資" * 65 + ".csv"),
    ],
)
async def test_fetched_file_with_any_name_stays_in_its_folder(tmp_path: Path, name: str, local: str) -> None:
    """The copy is in the group's folder."""
    files, [artifact] = await files_of_group(tmp_path / "group", ("rows.csv", b"data"))

    [fetched] = await files.fetch([artifact.model_copy(update={"name": name})])

    assert (fetched.path.name, fetched.path.is_relative_to(tmp_path / "group"), fetched.path.read_bytes()) == (local, True, b"data")
    assert (fetched.name, fetched.plain_name) == (name, local)


async def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    """Tasks that want a file at the same time share one copy, which none of them can write."""
    files, [artifact] = await files_of_group(tmp_path, ("a.csv", b"1,2"))

    copies = await asyncio.gather(*(files.fetch([artifact]) for _ in range(5)))
    paths = {copy.path for [copy] in copies}

    assert (len(paths), oct(paths.pop().stat().st_mode)[-3:]) == (1, "444")


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"object_name": "elsewhere"}])
async def test_file_that_differs_from_its_reference_is_rejected(tmp_path: Path, wrong: dict[str, str]) -> None:
    """Nothing is stored."""
    files, [artifact] = await files_of_group(tmp_path, ("a.csv", b"1,2"))
    with pytest.raises((InvalidInputError, NotFoundError)):
        await files.fetch([artifact.model_copy(update=wrong)])
    assert not _files_in(tmp_path)


async def test_each_attempt_has_an_empty_folder(tmp_path: Path) -> None:
    """Files of a killed attempt are removed."""
    files, _ = await files_of_group(tmp_path)
    first = await files.create_workspace(T1, 1)
    (first / "left.txt").write_text("left")
    again, second = await files.create_workspace(T1, 1), await files.create_workspace(T1, 2)

    assert (again == first, again == second, list(again.iterdir()), list(second.iterdir())) == (True, False, [], [])


async def test_folders_are_removed_with_their_content(tmp_path: Path) -> None:
    """A closed folder and a link are removed as well; the target of the link stays."""
    files, [artifact] = await files_of_group(tmp_path / "group", ("a.csv", b"1,2"))
    await files.fetch([artifact])
    (tmp_path / "outside").mkdir()
    first = await files.create_workspace(T1, 1)
    (first / "closed" / "inner").mkdir(parents=True)
    (first / "closed").chmod(0)
    (first / "link").symlink_to(tmp_path / "outside")
    await files.remove_workspace(first)
    assert not first.exists()
    await files.remove()
    assert (list((tmp_path / "group").iterdir()), (tmp_path / "outside").exists()) == ([], True)


async def test_uploading_again_stores_once(tmp_path: Path, running: TaskContext) -> None:
    """A file of the same name with another content is another object."""
    files, _ = await files_of_group(tmp_path)
    stored: list[Artifact] = []
    for content in ("1,2", "1,2", "3,4"):
        running.artifact("a.csv", content)
        stored += await files.upload(T1, running.made)

    names = [file.object_name for file in stored]
    assert (names[0] == names[1], names[1] == names[2], {file.name for file in stored}) == (True, False, {"a.csv"})
    store = cast(MemoryNetwork, files.network).artifacts
    assert [await store.get(file) for file in stored] == [b"1,2", b"1,2", b"3,4"]


@pytest.mark.parametrize(
    "text",
    ["a" * 10_242, "line\n" * 200_000, "字" * 333_333],
    ids=["10k", "1M", "CJK"],
)
async def test_a_conclusion_arrives_whole(text: str, tmp_path: Path) -> None:
    """A longer conclusion is attached as a file, which the message names."""
    files, [other] = await files_of_group(tmp_path, ("a.txt", b"1"))
    said = await files.fit(WholeConclusion(content=text, artifacts=(other,)), 7)
    names = [file.name for file in said.artifacts]
    assert (type(said), len(said.content.encode()) <= MAX_TEXT_BYTES, names[-1]) == (Conclusion, True, "a.txt")
    if len(text.encode()) <= MAX_TEXT_BYTES:
        assert (said.content, names) == (text, ["a.txt"])
    else:
        whole = await cast(MemoryNetwork, files.network).artifacts.get(said.artifacts[0])
        assert (whole.decode(), names, "are in the file answer.md]" in said.content) == (text, ["answer.md", "a.txt"], True)


async def test_task_key_is_unique_over_groups_and_folders(tmp_path: Path) -> None:
    """It is the same in all attempts, and differs between groups and tenants."""

    def key(*place: str) -> str:
        network = MemoryNetwork(ManualClock())
        return GroupFiles(network, AgentId("me"), CommId("c1"), tmp_path.joinpath(*place), SessionId("s1")).task_key(T1)

    own = key("star", "groups", "g1")
    assert (
        own == key("star", "groups", "g1") and len({own, key("star", "groups", "g2"), key("of.two", "star", "groups", "g1")}) == 3
    )
