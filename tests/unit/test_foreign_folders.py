"""Folders of strangers are gone through and removed whole, however they were left, and nothing beside them is touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ioa.foreign_folders import empty, remove, walk
from tests.rig.hostile_folders import as_an_ordinary_user, dig, few_handles


@pytest.mark.parametrize("name", ["d", "n" * 250])
def test_what_is_deep_is_removed_with_few_handles(name: str, tmp_path: Path) -> None:
    """Neither the stack, nor a path, nor how many files may be open is a bound; names like those given on the way harm nothing."""
    dig(tmp_path / "box", name=name)
    for number in range(20):
        dig(tmp_path / "box" / str(number), 3, str(number))

    with few_handles():
        empty(tmp_path / "box")
    assert list((tmp_path / "box").iterdir()) == []

    remove(tmp_path / "box")
    assert list(tmp_path.iterdir()) == []


def test_what_is_deep_is_walked_with_few_handles(tmp_path: Path) -> None:
    """Each thing is met once, with how many folders it is in."""
    dig(tmp_path / "box", 100, "n" * 250)
    dig(tmp_path / "box" / "beside", 1)

    with few_handles():
        found = sorted((depth, entry.name[:6]) for _, depth, entry in walk(tmp_path / "box"))

    chain = [(depth, "nnnnnn") for depth in range(1, 101)]
    assert found == sorted([*chain, (101, "end"), (1, "beside"), (2, "d"), (3, "end")])


def test_closed_folders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their owner may open them: those that cannot be listed, entered, changed, or moved, in each other, and the outermost."""
    with as_an_ordinary_user(tmp_path, monkeypatch):
        box = Path("box")
        for mode in (0, 0o100, 0o200, 0o300, 0o400, 0o500):
            dig(folder := box / str(mode), 2)
            (folder / "d").chmod(mode)
            folder.chmod(mode)
        box.chmod(0o300)
        with pytest.raises(PermissionError):
            list(walk(box))
        remove(box)
        assert list(Path().iterdir()) == []


def test_links_are_removed_and_followed_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that was there, nor one that comes into a folder's place once it was seen to be a folder."""
    box, outside = tmp_path / "box", tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    outside.chmod(0o750)
    for name in ("folder", "inner/folder"):
        (box / name).mkdir(parents=True)
    (box / "link").symlink_to(outside)
    change = os.chmod

    def swapped(path: Any, *how: Any, dir_fd: int | None = None, **more: Any) -> None:
        if path == "folder":
            os.rmdir(path, dir_fd=dir_fd)
            os.symlink(outside, path, dir_fd=dir_fd)
        change(path, *how, dir_fd=dir_fd, **more)

    monkeypatch.setattr(os, "chmod", swapped)
    remove(box)
    assert (box.exists(), oct(outside.stat().st_mode)[-3:], list(outside.iterdir())) == (False, "750", [outside / "kept"])


def test_what_cannot_be_removed_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays, all else goes, and whoever wanted it removed goes on; what is not there is no matter."""
    unlink = os.unlink

    def refused(path: Any, **more: Any) -> None:
        if path == "stays":
            raise PermissionError
        unlink(path, **more)

    dig(tmp_path / "box", 2)
    (tmp_path / "box" / "d" / "stays").touch()
    (tmp_path / "link").symlink_to(tmp_path / "box")
    monkeypatch.setattr(os, "unlink", refused)
    with capture_logs() as logs:
        for name in ("box", "link", "nothing"):
            remove(tmp_path / name)

    left = [path.name for path in (tmp_path / "box").rglob("*") if path.is_file()]
    assert ([(log["event"], Path(log["folder"]).name) for log in logs], left) == (
        [("folder_not_removed", "box"), ("folder_not_removed", "link")],
        ["stays"],
    )
