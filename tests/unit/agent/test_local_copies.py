"""Files that groups read: one copy of each on the disk, and no more of one in memory than a piece."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ioa.agent import local_copies
from ioa.agent.local_copies import LocalCopies, copy_of
from ioa.agent.workspace import GroupFiles
from ioa.errors import InvalidInputError, NotFoundError, TaskError, UnavailableError
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import LOCAL, AgentId, CommId, SessionId, UserId
from tests.rig.deadline import eventually

PIECES = (b"one", b"two", b"three")
ONE, TWO = CommId("one"), CommId("two")


def _artifact() -> Artifact:
    data = b"".join(PIECES)
    return Artifact(name="a.csv", object_name="o", size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


class _Store:
    """Tells a file in pieces, and counts them; before piece `fails_at` it raises `error`."""

    def __init__(self, error: Exception | None = None, fails_at: int = 0) -> None:
        self.told = 0
        self._error, self._fails_at = error, fails_at

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        for number, piece in enumerate(PIECES):
            if self._error is not None and number == self._fails_at:
                raise self._error
            self.told += 1
            yield piece


async def test_however_many_groups_read_a_file_it_lies_there_once(tmp_path: Path) -> None:
    """The second group asks for the first piece alone; the copy stays until neither reads it."""
    copies, first, second = LocalCopies(tmp_path / "copies"), _Store(), _Store()
    paths = [tmp_path / group / "a.csv" for group in ("one", "two")]

    await copies.place(_artifact(), first.pieces(), paths[0], ONE, LOCAL)
    await copies.place(_artifact(), second.pieces(), paths[1], TWO, LOCAL)

    assert [path.read_bytes() for path in paths] == [b"onetwothree"] * 2
    assert ((first.told, second.told), len({path.stat().st_ino for path in paths})) == ((3, 1), 1)
    left = []
    for path, reader in zip(paths, (ONE, TWO), strict=True):
        path.unlink()
        await copies.release(reader)
        left.append(len(list((tmp_path / "copies").iterdir())))
    assert left == [1, 0]


async def test_a_copy_is_given_to_nobody_who_may_not_read_the_file(tmp_path: Path) -> None:
    """That another group has it opens nothing."""
    copies, path = LocalCopies(tmp_path / "copies"), tmp_path / "two" / "a.csv"
    await copies.place(_artifact(), _Store().pieces(), tmp_path / "one" / "a.csv", ONE, LOCAL)

    with pytest.raises(NotFoundError):
        await copies.place(_artifact(), _Store(NotFoundError("It was not told.")).pieces(), path, ONE, LOCAL)

    assert not path.exists()


def _another(**said: object) -> Artifact:
    """A stored file of which its writer says the same as of that one."""
    return _artifact().model_copy(update={"object_name": "another", **said})


@pytest.mark.parametrize("first", [b"x", b"one", b"onetwo"])
async def test_a_copy_is_given_to_nobody_who_knows_what_it_is(tmp_path: Path, first: bytes) -> None:
    """The store takes a writer's word for a digest: whoever knew another's had an agent take the other's copy for his own file."""
    copies, path = LocalCopies(tmp_path / "copies"), tmp_path / "two" / "a.csv"
    await copies.place(_artifact(), _Store().pieces(), tmp_path / "one" / "a.csv", ONE, LOCAL)

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield first
        raise InvalidInputError("It is not what its writer said.")

    with pytest.raises(InvalidInputError):
        await copies.place(_another(), pieces(), path, ONE, LOCAL)

    assert not path.exists()


async def test_a_file_waits_for_no_other_one_of_which_the_same_is_said(tmp_path: Path) -> None:
    """Who knew the digest of another's had whoever read that wait until his own was there, and then for the next one."""
    copies, goes_on = LocalCopies(tmp_path / "copies"), asyncio.Event()

    async def slow() -> AsyncGenerator[bytes, None]:
        yield b"one"
        await goes_on.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(copies.place(_another(), slow(), tmp_path / "two" / "a.csv", ONE, LOCAL))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(10):
            await copies.place(_artifact(), _Store().pieces(), tmp_path / "one" / "a.csv", ONE, LOCAL)
        goes_on.set()
    assert (tmp_path / "one" / "a.csv").read_bytes() == b"onetwothree"


async def test_what_a_task_has_changed_is_given_to_no_other(tmp_path: Path) -> None:
    """A function that runs as root may write into its input: other users' goals have the file as it was sent."""
    copies, paths = LocalCopies(tmp_path / "copies"), [tmp_path / group / "a.csv" for group in ("one", "two", "three")]
    for path in paths[:2]:
        await copies.place(_artifact(), _Store().pieces(), path, ONE, LOCAL)
    paths[0].chmod(0o644)
    paths[0].write_bytes(b"mine now")
    stood = copies.stands(_artifact(), paths[1])
    for path in paths[1:]:
        await copies.place(_artifact(), _Store().pieces(), path, ONE, LOCAL)

    assert (stood, [path.read_bytes() for path in paths]) == (False, [b"mine now", b"onetwothree", b"onetwothree"])
    assert (copies.stands(_artifact(), paths[1]), copies.stands(_artifact(), tmp_path / "none")) == (True, False)


async def test_what_was_fetched_in_part_leaves_nothing(tmp_path: Path) -> None:
    """It is fetched anew."""
    copies, path = LocalCopies(tmp_path / "copies"), tmp_path / "one" / "a.csv"

    with pytest.raises(UnavailableError):
        await copies.place(_artifact(), _Store(UnavailableError("It is away."), 2).pieces(), path, ONE, LOCAL)
    left = _files(tmp_path)
    await copies.place(_artifact(), _Store().pieces(), path, ONE, LOCAL)

    assert (left, path.read_bytes()) == ([], b"onetwothree")


async def test_what_is_written_for_who_has_given_up_gets_into_no_other_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that wrote goes on when the file is fetched anew, and what it writes is nobody's."""
    begun, goes_on = threading.Event(), threading.Event()
    appended, append = list[Path](), local_copies._append

    def slow(part: Path, data: bytes) -> None:
        appended.append(part)
        if len(appended) == 1:
            begun.set()
            goes_on.wait()
        try:
            append(part, data)
        finally:
            ended.set()

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield PIECES[0]
        goes_on.set()
        await asyncio.to_thread(ended.wait)
        for piece in PIECES[1:]:
            yield piece

    ended = threading.Event()
    monkeypatch.setattr(local_copies, "_append", slow)
    copies, path = LocalCopies(tmp_path / "copies"), tmp_path / "two" / "a.csv"
    given_up = asyncio.ensure_future(copies.place(_artifact(), _Store().pieces(), tmp_path / "one" / "a.csv", ONE, LOCAL))
    await asyncio.to_thread(begun.wait)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    await copies.place(_artifact(), pieces(), path, ONE, LOCAL)

    assert path.read_bytes() == b"onetwothree"
    assert [one.name for one in (tmp_path / "copies").iterdir()] == [copy_of(_artifact())]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_copies_take_no_more_of_a_disk_than_they_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tells of files, and however large he says that they are; what is released makes room."""
    files = {name: name.encode() * 4 for name in "abc"}
    told = {
        name: Artifact(name=name, object_name=name, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in files.items()
    }
    copies, folder = LocalCopies(tmp_path / "copies"), tmp_path / "groups"
    monkeypatch.setattr(local_copies, "_free_bytes", lambda folder: 20 - sum(f.stat().st_size for f in folder.glob("*")))

    async def place(artifact: Artifact) -> None:
        async def pieces() -> AsyncGenerator[bytes, None]:
            yield files[artifact.name]

        await copies.place(artifact, pieces(), folder / artifact.name, CommId(artifact.name), LOCAL)

    with pytest.raises(TaskError, match="no room for 'a' with 10,000,000,000 bytes"):
        await place(told["a"].model_copy(update={"size_bytes": 10**10}))
    for name in "ab":
        await place(told[name])
    with pytest.raises(TaskError, match="files of other tasks take 8"):
        await place(told["c"])
    await place(told["b"])  # it lies there
    (folder / "a").unlink()
    await copies.release(CommId("a"))
    await place(told["c"])
    assert (folder / "c").read_bytes() == files["c"]


async def test_copies_that_come_at_once_leave_as_much_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has come of those that are on their way counts, and what is just being written: who comes last has no room."""
    copies, begun = LocalCopies(tmp_path / "copies"), asyncio.Semaphore(0)
    goes_on, coming, ends = {name: asyncio.Event() for name in "abcd"}, dict[str, asyncio.Task[None]](), dict[str, bool]()
    monkeypatch.setattr(local_copies, "_free_bytes", lambda folder: 60 - sum(f.stat().st_size for f in folder.glob("*")))

    async def place(name: str) -> None:
        async def pieces() -> AsyncGenerator[bytes, None]:
            yield name.encode() * 5
            begun.release()
            await goes_on[name].wait()
            yield name.encode() * 5

        told = Artifact(name=name, object_name=name, size_bytes=10, sha256=hashlib.sha256(name.encode() * 10).hexdigest())
        await copies.place(told, pieces(), tmp_path / "groups" / name, ONE, LOCAL)

    for name in "abcd":
        coming[name] = asyncio.create_task(place(name))
        await begun.acquire()
    for name, placing in coming.items():
        goes_on[name].set()
        with suppress(TaskError):
            await placing
        ends[name] = (tmp_path / "groups" / name).exists()

    assert ends == {"a": True, "b": True, "c": False, "d": True}  # what had come of the third makes room for the fourth
    with pytest.raises(TaskError, match="30 are free, and files of other tasks take 30"):
        await place("e")


async def test_nobody_keeps_room_by_saying_how_large_a_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who said half of what was free, of any file of his, had all tasks of others fail that read one, until his had come."""
    copies, begun, goes_on = LocalCopies(tmp_path / "copies"), asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(local_copies, "_free_bytes", lambda folder: 10**9 - sum(f.stat().st_size for f in folder.glob("*")))
    large = _artifact().model_copy(update={"object_name": "large", "size_bytes": 5 * 10**8})

    async def slow() -> AsyncGenerator[bytes, None]:
        yield b"one"
        begun.set()
        await goes_on.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(copies.place(large, slow(), tmp_path / "one" / "a.csv", ONE, LOCAL))
        await begun.wait()
        await copies.place(_artifact(), _Store().pieces(), tmp_path / "two" / "a.csv", ONE, LOCAL)
        goes_on.set()
    assert (tmp_path / "two" / "a.csv").read_bytes() == b"onetwothree"


class _Reading:
    """A group of a user that reads files of 500 bytes, each as it is named."""

    def __init__(self, folder: Path, copies: LocalCopies, user: UserId | None, group: str) -> None:
        self._told: dict[tuple[str, str], int] = {}
        charter = SimpleNamespace(user=user)
        history: Any = SimpleNamespace(comm_id=CommId(group), charter=charter, told=self._told)
        network: Any = SimpleNamespace(stream_file=lambda *asked: self._pieces(asked[-1]))
        self._files = GroupFiles(network, AgentId("reader"), history, folder / group, copies, SessionId("s1"))

    async def _pieces(self, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        yield _data(artifact.name)

    async def reads(self, *names: str) -> int:
        """Read files until one is refused; how many were not."""
        for number, name in enumerate(names):
            told = Artifact(name=name, object_name=name, size_bytes=500, sha256=hashlib.sha256(_data(name)).hexdigest())
            self._told[name, told.sha256] = 1
            try:
                await self._files.fetch([told])
            except TaskError:
                return number
        return len(names)

    async def ends(self) -> None:
        await self._files.remove()


def _data(name: str) -> bytes:
    return name.encode().ljust(500)


async def test_a_users_files_take_no_more_than_they_leave_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who had a goal wait for a person with as many files as fit had each new file of others refused, of a byte, for days."""
    monkeypatch.setattr(local_copies, "_free_bytes", lambda folder: 8_000 - sum(f.stat().st_size for f in folder.glob("*")))
    copies, names = LocalCopies(tmp_path / "copies"), {whose: [f"{whose}{n}" for n in range(9)] for whose in ("eve", "ann", "bob")}
    eve, again = (_Reading(tmp_path, copies, UserId("eve"), group) for group in ("eve-1", "eve-2"))
    ann, bob = (_Reading(tmp_path, copies, UserId(user), user) for user in ("ann", "bob"))

    had = [await eve.reads(*names["eve"]), await again.reads(*names["eve"]), await ann.reads(*names["ann"])]
    had.append(await bob.reads(*names["bob"]))
    await eve.ends()
    still = await again.reads(*names["eve"]), await ann.reads(*names["ann"])
    await again.ends()

    assert (had, still, await ann.reads(*names["ann"])) == ([4, 4, 2, 1], (4, 2), 3)


async def test_who_is_everybody_has_all_the_room_for_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a laptop, where nobody else is, and in groups of a version that knew no users."""
    monkeypatch.setattr(local_copies, "_free_bytes", lambda folder: 8_000 - sum(f.stat().st_size for f in folder.glob("*")))
    copies = LocalCopies(tmp_path / "copies")
    local, older = _Reading(tmp_path, copies, LOCAL, "one"), _Reading(tmp_path, copies, None, "two")

    assert (await local.reads(*"abcdefg"), await older.reads("h"), await local.reads("i")) == (7, 1, 0)


async def test_however_many_files_come_for_one_user_anothers_comes_as_fast_as_all_of_his(tmp_path: Path) -> None:
    """The store tells an agent so many pieces a second, one after the other: behind forty files a piece waited for forty."""
    copies, asked, told = LocalCopies(tmp_path / "copies"), list[tuple[str, asyncio.Event]](), list[str]()

    async def pieces(whose: str) -> AsyncGenerator[bytes, None]:
        for piece in PIECES:
            come = asyncio.Event()
            asked.append((whose, come))
            await come.wait()
            yield piece

    async def fetch(name: str, whose: UserId) -> None:
        file = _artifact().model_copy(update={"object_name": name})
        await copies.place(file, pieces(whose), tmp_path / name / "a.csv", CommId(name), whose)

    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(fetch(f"eve-{number}", UserId("eve")))
        bobs = group.create_task(fetch("bob-1", UserId("bob")))
        while not bobs.done():
            await eventually(lambda: bobs.done() or any(whose == "bob" for whose, _ in asked))
            if not bobs.done():
                whose, come = asked.pop(0)
                told.append(whose)
                come.set()
        before = told.count("eve")
        for _ in range(120 - before):
            await eventually(lambda: asked)
            asked.pop(0)[1].set()
    assert (told.count("bob"), before <= 12) == (3, True)
