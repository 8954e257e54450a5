"""What is counted of the memory of commands, and which of them is ended where a container has too little left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from ioa.sandbox.memory import MemoryRoom, held
from ioa.sandbox.processes import members

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other kernels tell of no process's memory so")
MEGABYTE = 1_000_000
FILLED = "room = bytearray({bytes})\nfor place in range(0, len(room), 4096): room[place] = 1\n"
FORKED = "import os\nfor _ in range(9): os.fork() or (print('here', flush=True), input())\n"
WAITS = "print('here', flush=True); input()"


Started: TypeAlias = subprocess.Popen[bytes]


@contextmanager
def group(code: str, processes: int = 1) -> Iterator[Started]:
    """A group of processes, once each of them has said that it is there."""
    command = [sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(processes)] == [b"here\n"] * processes
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def container(folder: Path, *, taken: int, of_files: int = 0, of_processes: int = 0) -> Path:
    """What the kernel tells of a container of 500 MB."""
    (folder / "memory.max").write_text(f"{500 * MEGABYTE}\n")
    (folder / "memory.current").write_text(f"{taken}\n")
    (folder / "memory.stat").write_text(f"anon {of_processes}\nactive_file 0\ninactive_file {of_files}\nslab_reclaimable 0\n")
    return folder


def ended(room: MemoryRoom, *groups: Started) -> list[bool]:
    """Which of some groups are ended for their container, looked at one after the other."""
    return [room.overdrawn(one.pid, members(one.pid), 200 * MEGABYTE).startswith("took most of the memory that") for one in groups]


def test_what_forks_have_in_common_counts_once() -> None:
    """Ten processes that all hold the same 50 MB hold 50 MB, and a little of their own."""
    with group(FILLED.format(bytes=50 * MEGABYTE) + FORKED + WAITS, 10) as ten:
        assert 50 * MEGABYTE < held(members(ten.pid)) < 150 * MEGABYTE
        assert held(members(ten.pid), 10_000 * MEGABYTE) > 500 * MEGABYTE


def test_who_holds_most_of_a_full_container_is_ended(tmp_path: Path) -> None:
    """Each holds less than it may, and together they leave too little: one is ended, and what the kernel keeps of files is free."""
    with group(FILLED.format(bytes=60 * MEGABYTE) + WAITS) as large, group(WAITS) as small:
        room = MemoryRoom(container(tmp_path, taken=450 * MEGABYTE, of_processes=450 * MEGABYTE))
        with room.shared_by(lambda: small), room.shared_by(lambda: large):
            container(tmp_path, taken=450 * MEGABYTE, of_processes=350 * MEGABYTE, of_files=100 * MEGABYTE)
            assert ended(room, small, large) == [False, False]
            container(tmp_path, taken=450 * MEGABYTE, of_processes=450 * MEGABYTE)
            assert ended(room, small, large, small) == [False, True, False]


@pytest.mark.parametrize("limit", ["max\n", None])
def test_without_a_limit(limit: str | None, tmp_path: Path) -> None:
    """Where the kernel bounds no container, or tells of none, a command is looked at by itself."""
    if limit is not None:
        (container(tmp_path, taken=450 * MEGABYTE) / "memory.max").write_text(limit)
    room = MemoryRoom(tmp_path)
    with group(FILLED.format(bytes=50 * MEGABYTE) + WAITS) as one, room.shared_by(lambda: one):
        said = [room.overdrawn(one.pid, members(one.pid), most * MEGABYTE) for most in (100, 40)]
    assert said == ["", "took more than 40000000 bytes of memory in all"]
