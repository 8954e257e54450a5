"""Logs of processes stay bounded, and whoever writes them goes on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ioa.local.log_rotation import keep_logs_bounded, put_aside
from ioa.runtime.process import background
from tests.rig.deadline import eventually


def test_a_process_writes_on_while_its_log_is_put_aside(tmp_path: Path) -> None:
    """What was written before is beside the log, once; what comes after is in it."""
    path = tmp_path / "router.log"
    with path.open("ab", buffering=0) as log:
        for line in (b"first\n", b"second\n"):
            log.write(line)
            put_aside(path)
        log.write(b"third\n")
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"router.log": b"third\n", "router.log.1": b"second\n"}


def test_a_log_that_cannot_be_put_aside_stays(tmp_path: Path) -> None:
    """Nothing is emptied that was not copied."""
    (tmp_path / "router.log").write_bytes(b"kept")
    (tmp_path / "router.log.part").mkdir()
    with pytest.raises(IsADirectoryError):
        put_aside(tmp_path / "router.log")
    assert (tmp_path / "router.log").read_bytes() == b"kept"


def _sizes(folder: Path) -> dict[str, int]:
    return {one.name: one.stat().st_size for one in folder.iterdir()}


async def test_only_large_logs_are_put_aside(tmp_path: Path) -> None:
    """Those within the bound, and what is no log, stay as they are."""
    for name in ("large.log", "data.bin"):
        (tmp_path / name).write_bytes(b"x" * 11)
    (tmp_path / "small.log").write_bytes(b"x" * 10)
    async with background(keep_logs_bounded(tmp_path, max_bytes=10, every=timedelta(milliseconds=1))):
        await eventually((tmp_path / "large.log.1").exists)
        await eventually(lambda: (tmp_path / "large.log").stat().st_size == 0)
    assert _sizes(tmp_path) == {"large.log": 0, "large.log.1": 11, "small.log": 10, "data.bin": 11}
