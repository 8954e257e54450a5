"""Writing files that agents named: safe names, in a folder of the goal's own, over and through nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.cli.output.results import NotWrittenError, create_folder, write_files
from ioa.protocol.ids import GoalId

GOAL = GoalId("goal-1")


def test_files_have_different_names_in_a_folder_of_the_goal(tmp_path: Path) -> None:
    """The folder is created with its parents. No name is hidden, an option, or has a control character."""
    names = ["a.txt", "A.TXT", "a.txt", "Überblick 2024 (neu).csv", ".bashrc", "-rf", "txt.\u202eexe", "..."]
    files = [(name, name.encode()) for name in names]
    paths = write_files(tmp_path / "new" / "out", GOAL, files)
    assert [path.relative_to(tmp_path / "new" / "out" / GOAL).as_posix() for path in paths] == [
        *("a.txt", "A-2.TXT", "a-3.txt", "Überblick 2024 (neu).csv", "bashrc", "rf", "txt.\ufffdexe", "file"),
    ]
    assert [path.read_bytes() for path in paths] == [data for _, data in files]


@pytest.mark.parametrize("kind", ["folder", "file", "link to a folder", "link to nothing"])
def test_existing_file_or_folder_is_not_changed(kind: str, tmp_path: Path) -> None:
    """No file is written into or through a folder, file or link with the goal's name; the error contains the fix."""
    elsewhere, taken = tmp_path / "elsewhere", tmp_path / "out" / GOAL
    (taken if kind == "folder" else taken.parent).mkdir(parents=True)
    if kind == "link to a folder":
        elsewhere.mkdir()
    if kind.startswith("link"):
        taken.symlink_to(elsewhere)
    else:
        (taken / "a.txt" if kind == "folder" else taken).write_text("mine")
    with pytest.raises(NotWrittenError, match="is there already, and nothing in it is replaced") as rejected:
        write_files(tmp_path / "out", GOAL, [("a.txt", b"theirs")])
    held = [path.read_text() for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert (set(held) <= {"mine"}, f"`ioa goal show {GOAL} --out DIR`" in rejected.value.hint) == (True, True)
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []


def test_file_in_place_of_the_folder_is_rejected_before_there_is_anything_to_write(tmp_path: Path) -> None:
    """So it costs no goal."""
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotWrittenError, match=r"cannot be used: (File exists|Not a directory)"):
            create_folder(out)
