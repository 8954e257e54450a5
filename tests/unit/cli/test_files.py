"""Writing files that agents named: safe names, in a folder of the goal's own, over and through nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ioa.cli.files import NotWrittenError, Produced, check_writable, file_name, write_files
from ioa.protocol.ids import GoalId

GOAL = GoalId("goal-1")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.txt", "a.txt"),
        ("Überblick 2024 (neu).csv", "Überblick 2024 _neu_.csv"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\y.csv", "y.csv"),
        ("a/", "a"),
        ("..", "file"),
        ("/", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        (". .-rf", "rf"),
        ("a\nb\x1b]52;c;x\x07.txt", "a_b__52_c_x_.txt"),
        ("txt.\u202eexe", "txt._exe"),
        ("a\x00b\ud800", "a_b_"),
        ("*?<>|\"'`!", "file"),
    ],
)
def test_a_name_is_safe(name: str, safe: str) -> None:
    """Only the last part counts; nothing is hidden, an option, or a sign that a shell or a terminal reads."""
    assert file_name(name) == safe


@pytest.mark.parametrize("name", ["\U0001f600" * 255 + "x.csv", "ä" * 300 + ".csv", "a." + "b" * 400, "x" * 300])
def test_a_name_is_short(name: str) -> None:
    """It fits into what file systems allow, with its ending where that is one."""
    safe = file_name(name)
    assert (0 < len(safe.encode()) <= 200, safe.endswith(".csv")) == (True, name.endswith(".csv"))


def test_files_lie_in_a_folder_of_the_goal(tmp_path: Path) -> None:
    """The folder is made with all above it, and two files of one name both stay, whatever their capitals."""
    files = [Produced("a.txt", b"1"), Produced("x/A.TXT", b"2"), Produced("../a.txt", b"3")]
    paths = write_files(tmp_path / "new" / "out", GOAL, files)
    folder = tmp_path / "new" / "out" / GOAL
    assert {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths} == {
        "a.txt": b"1",
        "A-2.TXT": b"2",
        "a-3.txt": b"3",
    }


def test_a_numbered_name_of_full_length_is_no_longer(tmp_path: Path) -> None:
    """The number takes its room from the stem."""
    paths = write_files(tmp_path, GOAL, [Produced("x" * 300 + ".csv", b""), Produced("x" * 300 + ".csv", b"")])
    assert [(len(path.name), path.name.endswith(end)) for path, end in zip(paths, (".csv", "-2.csv"), strict=True)] == [
        (200, True),
        (200, True),
    ]


@pytest.mark.parametrize("kind", ["folder", "file", "link to a folder", "link to nothing"])
def test_nothing_that_is_there_is_touched(kind: str, tmp_path: Path) -> None:
    """What bears the goal's name already is neither written into nor through, and the refusal says what to do."""
    elsewhere, taken = tmp_path / "elsewhere", tmp_path / "out" / GOAL
    taken.parent.mkdir()
    match kind:
        case "folder":
            taken.mkdir()
            (taken / "a.txt").write_text("mine")
        case "file":
            taken.write_text("mine")
        case "link to a folder":
            elsewhere.mkdir()
            taken.symlink_to(elsewhere)
        case _:
            taken.symlink_to(elsewhere)
    with pytest.raises(NotWrittenError, match="is there already, and nothing in it is replaced") as refused:
        write_files(tmp_path / "out", GOAL, [Produced("a.txt", b"theirs")])
    held = [path.read_text() for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert (set(held) <= {"mine"}, f"`ioa goal show {GOAL} --out DIR`" in refused.value.hint) == (True, True)
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []


def test_a_folder_that_is_a_file_is_refused_before_there_is_anything_to_write(tmp_path: Path) -> None:
    """So it costs no goal."""
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotWrittenError, match="is no folder"):
            check_writable(out)
        with pytest.raises(NotWrittenError, match="is no folder"):
            write_files(out, GOAL, [Produced("a.txt", b"")])
    check_writable(tmp_path / "new" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    """The message names the folder."""
    tmp_path.chmod(0o500)
    with pytest.raises(NotWrittenError, match="you may not write to"):
        check_writable(tmp_path / "new")
    with pytest.raises(NotWrittenError, match="you may not write to"):
        write_files(tmp_path / "new", GOAL, [Produced("a.txt", b"")])
