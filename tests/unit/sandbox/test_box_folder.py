"""The folder that a command works in."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from ioa.disk_room import DiskRoom
from ioa.errors import TaskError
from ioa.sandbox import box_folder, lay


def test_boxes_leave_as_much_of_the_disk_as_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tasks there are: what finds no room has no box, and does once another one is removed."""
    (given := tmp_path / "given").write_bytes(b"x" * 20)
    boxes = [tmp_path / f"box-{number}" for number in range(4)]
    monkeypatch.setattr(box_folder, "ROOM_OF_TASKS", DiskRoom())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100 - 20 * sum(map(Path.exists, boxes))))
    for box in boxes[:2]:
        lay({"a/one.bin": given}, box)
    with pytest.raises(TaskError, match=r"no room for copies of 1 files with 20 bytes: 60 are free, and files that .* take 40"):
        lay({"a/one.bin": given}, boxes[2])
    assert not boxes[2].exists()
    shutil.rmtree(boxes[0])
    lay({"a/one.bin": given}, boxes[3])
    assert (boxes[3] / "a" / "one.bin").read_bytes() == b"x" * 20
    assert given.stat().st_ino != (boxes[3] / "a" / "one.bin").stat().st_ino
