"""Copies on this machine of the files that an agent was told of: one of each, however many of its groups read it.

Whoever sends a file with a goal sends it once, and may send a hundred goals with it: what these take of the disk is what the store
holds, and not as much again for each. Nor is a file ever in memory as a whole. A copy is of one stored file, and not of all of
which the same digest is told: the store takes a writer's word for that, and who knew another's would be given it, or waited for.

What the store holds is bounded by who runs it, and for an agent that tenants share that may be a stranger. So the copies of an
agent never take more of a disk than they leave to all else; and those that groups of one user read no more than they leave to
copies of others, so that who has filled what is there finds no room while others do.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from itertools import count
from pathlib import Path
from weakref import WeakValueDictionary

from ioa.errors import TaskError
from ioa.fair_turns import FairTurns
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import LOCAL, CommId, UserId

_READ_ONLY = 0o444
"""Other tasks read it as well."""
_ASKED_AT_ONCE = 8
_OF_ONE = 4
"""How many pieces are asked for at a time, for one user; the store bounds what an agent may have of it."""


class LocalCopies:
    """The copies of one agent, in a folder of their own; each group that reads one has a link to it.

    A copy counts for each user in whose groups it is read, and for `LOCAL`, who is everybody, not at all.

    Args:
        folder: Where they lie, on the same disk as the folders of the groups.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at_work: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._numbers = count()
        self._sizes: dict[str, int] = {}
        """How large those are that lie there, and how much has come of those that are on their way, by their names."""
        self._read: dict[CommId, set[str]] = defaultdict(set)
        """The names of those that each group reads."""
        self._users: dict[CommId, UserId] = {}
        """Whose goal it works for."""
        self._coming = 0
        """How many bytes are being written, for which room is still free, or was a moment ago."""
        self._turns = FairTurns(_ASKED_AT_ONCE, _OF_ONE)
        self._whole: dict[str, tuple[int, int]] = {}
        """Of each copy, by its name, what it looks like that was changed by nobody: when it was written, and its size."""

    def stands(self, artifact: Artifact, path: Path) -> bool:
        """Whether a file lies at `path` as it was fetched: a task that may write there may have changed what is others', too."""
        return path.exists() and self._whole.get(copy_of(artifact)) == _looks(path)

    async def place(
        self, artifact: Artifact, pieces: AsyncGenerator[bytes, None], path: Path, reader: CommId, user: UserId
    ) -> None:
        """Have a file at `path`.

        What another group has fetched is not fetched again, but for its first piece, which is told only to whom the file was told.

        Args:
            artifact: The reference, which `pieces` is held to.
            pieces: Its bytes, as they come; what they raise is raised.
            path: Where it shall lie; its folder is made.
            reader: The group whose path that is.
            user: Whose goal that group works for.

        Raises:
            TaskError: The disk has no room for it, or the user has filled what there is.
        """
        name = copy_of(artifact)
        copy = self._folder / name
        async with self._lock(name), aclosing(self._in_turns(pieces, user)) as coming:
            first = await anext(coming, b"")
            self._read[reader].add(name)
            self._users[reader] = user
            if not await asyncio.to_thread(self.stands, artifact, copy):
                self._whole[name] = await self._write(artifact, copy, first, coming, user)
            await asyncio.to_thread(_link, copy, path)

    async def release(self, reader: CommId) -> None:
        """Delete those copies that a group had links to, and no group has any more."""
        self._users.pop(reader, None)
        for name in self._read.pop(reader, ()):
            async with self._lock(name):
                if await asyncio.to_thread(_delete_unread, self._folder / name):
                    self._whole.pop(name, None)
                    self._sizes.pop(name, None)

    async def _in_turns(self, pieces: AsyncGenerator[bytes, None], user: UserId) -> AsyncGenerator[bytes, None]:
        """Ask for each piece in a turn of its user: however many files come for one, another's come as fast as all of his."""
        async with aclosing(pieces):
            while True:
                async with self._turns.turn(user):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece

    def _lock(self, name: str) -> asyncio.Lock:
        return self._at_work.setdefault(name, asyncio.Lock())

    async def _write(
        self, artifact: Artifact, copy: Path, first: bytes, others: AsyncGenerator[bytes, None], user: UserId
    ) -> tuple[int, int]:
        self._sizes.pop(copy.name, None)  # it is written anew, in the place of what was changed
        await self._see_that_it_fits(artifact, artifact.size_bytes, user)
        self._sizes[copy.name] = 0
        # Of its own: a thread that writes for who has given up goes on, and may do so when the file is fetched anew.
        part = copy.with_name(f"{copy.name}.{next(self._numbers)}.part")
        try:
            await self._take(artifact, copy.name, first, user, partial(_begin, part))
            async for piece in others:
                await self._take(artifact, copy.name, piece, user, partial(_append, part))
            return await asyncio.to_thread(_end, part, copy)
        except BaseException:
            part.unlink(missing_ok=True)
            self._sizes.pop(copy.name, None)
            raise

    async def _take(self, artifact: Artifact, name: str, piece: bytes, user: UserId, write: Callable[[bytes], None]) -> None:
        """Write a piece, if there is room for it. No room is kept for what is only said to come: a stranger says what he likes."""
        size = len(piece)
        await self._see_that_it_fits(artifact, size, user)
        self._sizes[name] += size
        self._coming += size
        try:
            await asyncio.to_thread(write, piece)
        finally:
            self._coming -= size

    async def _see_that_it_fits(self, artifact: Artifact, size: int, user: UserId) -> None:
        """See that so many more bytes leave as much of the disk as copies take, and to copies of others as much as the user's take.

        Raises:
            TaskError: They do not.
        """
        free = await asyncio.to_thread(_free_bytes, self._folder)
        taken = sum(self._sizes.values())
        left = (free - self._coming - taken) // 2 - size
        if left < 0:
            raise TaskError(
                f"The disk has no room for {artifact.name!r} with {artifact.size_bytes:,} bytes: {free:,} are free, and files of"
                f" other tasks take {taken:,}.",
                hint="Copies of files may take half of what is free. Make room, or give a smaller file.",
            )
        held = self._held(user)
        if user != LOCAL and held + size > left:
            raise TaskError(
                f"Others need the room for {artifact.name!r} with {artifact.size_bytes:,} bytes: files of goals of {user!r} take"
                f" {held:,} on this disk, and {left + size:,} are left for copies.",
                hint="Copies of one user's files may take half of that. Let other goals end, or give a smaller file.",
            )

    def _held(self, user: UserId) -> int:
        """Return how many bytes groups of a user read or fetch."""
        names = set[str]().union(*(self._read[reader] for reader, whose in self._users.items() if whose == user))
        return sum(self._sizes.get(name, 0) for name in names)


def copy_of(artifact: Artifact) -> str:
    """Return what the copy of a file is called: as no other stored file's, whatever its writer says that it is."""
    return hashlib.sha256(f"{artifact.sha256} {artifact.size_bytes} {artifact.object_name}".encode()).hexdigest()


def _free_bytes(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(folder).free


def _begin(part: Path, data: bytes) -> None:
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(data)


def _append(part: Path, data: bytes) -> None:
    with part.open("r+b") as file:  # which makes none where it was given up
        file.seek(0, os.SEEK_END)
        file.write(data)


def _end(part: Path, copy: Path) -> tuple[int, int]:
    part.chmod(_READ_ONLY)
    part.replace(copy)
    return _looks(copy)


def _looks(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _link(copy: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    try:
        os.link(copy, path)
    except OSError:  # a disk that has no links
        shutil.copy2(copy, path)


def _delete_unread(copy: Path) -> bool:
    """Delete a copy that has no other link; whether there is none now."""
    if copy.exists() and copy.stat().st_nlink == 1:
        copy.unlink()
    return not copy.exists()
