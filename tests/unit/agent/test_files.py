"""Selection and reading of a task's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.errors import DeclinedError, InvalidInputError
from ioa.files import pick, read_text
from ioa.testing import RecordingContext, input_file, upstream

TABLES = (".csv", ".tsv")


def _context(folder: Path, *names: str, made: str = "") -> RecordingContext:
    for name in (*names, *filter(None, [made])):
        (folder / name).write_text("a,b\n")
    results = [upstream("make a table", "made", folder / made)] if made else []
    return RecordingContext(folder, inputs=[input_file(folder / name) for name in names], results=results)


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("total a in Año.CSV", ["Año.CSV"]),
        ("total a in año.csv.", ["Año.CSV"]),
        ("total a in my-b.tsv", ["Año.CSV", "b.tsv"]),
        ("total a", ["Año.CSV", "b.tsv"]),
        ("total a in made.csv", ["made.csv"]),
    ],
)
def test_named_files_are_picked_otherwise_those_of_the_goal(task: str, names: list[str], tmp_path: Path) -> None:
    """A name counts as a whole word, in any case."""
    found = pick(task, _context(tmp_path, "Año.CSV", "b.tsv", "c.txt", made="made.csv"), TABLES)
    assert sorted(file.name for file in found) == sorted(names)


def test_files_of_results_are_picked_if_the_goal_has_none(tmp_path: Path) -> None:
    """A named file of another kind is declined."""
    context = _context(tmp_path, "c.txt", made="made.csv")
    assert [file.name for file in pick("total a", context, TABLES)] == ["made.csv"]
    with pytest.raises(DeclinedError, match=r"c\.txt is not one of \.csv, \.tsv"):
        pick("count c.txt", context, TABLES)


def test_text_is_read_without_mark_and_with_plain_line_ends(tmp_path: Path) -> None:
    """The text is UTF-8."""
    (tmp_path / "t.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\rc")
    assert read_text(tmp_path / "t.txt") == "a\nb\nc"


@pytest.mark.parametrize(("data", "error"), [(b" \r\n", "is empty"), (b"\x89PNG\x9d", "is not a text")])
def test_file_without_text_is_rejected(data: bytes, error: str, tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "t.txt").write_bytes(data)
    with pytest.raises(InvalidInputError, match=f"t.txt {error}"):
        read_text(tmp_path / "t.txt")
