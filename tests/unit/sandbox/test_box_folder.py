"""The folder that a command works in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from ioa.disk import remove_folder
from ioa.errors import TaskError
from ioa.sandbox import SandboxLimits, lay
from ioa.sandbox.box_folder import give, overfull
from tests.rig.hostile_folders import as_an_ordinary_user, dig


def test_copies_of_a_box_need_free_disk_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No box is created if the copies would take more than half of the free space; a copy is a separate file."""
    (given := tmp_path / "given").write_bytes(b"x" * 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=39))
    with pytest.raises(TaskError, match=r"no room for copies of 1 files with 20 bytes: 39 bytes are free"):
        lay({"a/one.bin": given}, tmp_path / "box")
    assert not (tmp_path / "box").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=40))
    lay({"a/one.bin": given}, tmp_path / "box")
    assert (tmp_path / "box" / "a" / "one.bin").read_bytes() == b"x" * 20
    assert given.stat().st_ino != (tmp_path / "box" / "a" / "one.bin").stat().st_ino


def test_content_of_a_box_is_counted(tmp_path: Path) -> None:
    """Files, bytes and depth are limited."""
    box, limits = tmp_path / "box", SandboxLimits(files=100, box_bytes=1_000_000)
    dig(box, 18)
    assert overfull(box, 0, limits) == ""
    assert overfull(box, 0, SandboxLimits(files=18)) == "made more than 18 files"
    give(box, os.geteuid())
    remove_folder(box)
    dig(box, 18, size=2_000_000)
    assert overfull(box, 0, limits) == "wrote more than 1000000 bytes"
    remove_folder(box)
    dig(box, 40)
    assert overfull(box, 0, limits) == "made folders more than 32 deep"


def test_a_closed_folder_is_one_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what is in a folder that may be entered and written, and not listed: it counted as empty."""
    with as_an_ordinary_user(tmp_path, monkeypatch):
        (folder := Path("box/hidden")).mkdir(parents=True)
        (folder / "large").write_bytes(bytes(2_000_000))
        folder.chmod(0o300)
        assert overfull(Path("box"), 0, SandboxLimits(box_bytes=1_000_000)) == "closed a folder"
