"""The file search: names, contents, and what lies outside is never read."""

from __future__ import annotations

from pathlib import Path

import pytest

import file_search
from file_search import create_agent
from ioa.errors import InvalidInputError
from tests.unit.examples.agent_run import Run


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with text, code, a binary file, a hidden file and a link that leads out."""
    folder = tmp_path / "space"
    (folder / "src").mkdir(parents=True)
    (folder / ".secret").write_text("needle in a hidden file\n")
    (folder / "notes.md").write_text("# Notes\nA needle in the hay.\nÜber NEEDLES.\n", encoding="utf-8")
    (folder / "src" / "tool.py").write_text("needle = 1\n")
    (folder / "image.bin").write_bytes(b"\x00needle\x00")
    outside = tmp_path / "outside.txt"
    outside.write_text("needle outside\n")
    (folder / "link.txt").symlink_to(outside)
    return folder


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("find files named *.py", ["src/tool.py"]),
        ("find all markdown files", ["notes.md"]),
        (
            "which files mention 'needle'?",
            ["notes.md:2: A needle in the hay.", "notes.md:3: Über NEEDLES.", "src/tool.py:1: needle = 1"],
        ),
        ("search for 'needle' in *.py", ["src/tool.py:1: needle = 1"]),
        ("in which line of notes.md does “hay” occur", ["notes.md:2: A needle in the hay."]),
        ("grep `über` in *.md", ["notes.md:3: Über NEEDLES."]),
        ("list all files", ["image.bin", "notes.md", "src/tool.py"]),
        ("find files called *tool*", ["src/tool.py"]),
    ],
)
def test_hits(task: str, expected: list[str], run: Run, workspace: Path) -> None:
    """Hits come as `path:line: text`, in order, from visible text files inside the folder."""
    text = run(create_agent(workspace), task).text
    assert [line.removeprefix("- ") for line in text.splitlines()[1:]] == expected


def test_no_hit(run: Run, workspace: Path) -> None:
    """No hit is an answer, not an error."""
    assert run(create_agent(workspace), "which files mention 'haystack'?").text == "No line with 'haystack' found in 3 files."


def test_inputs(run: Run, data: Path) -> None:
    """The task's inputs are searched without a workspace, and the hits are attached as a table."""
    done = run(create_agent(None), "where is the word 'willows' mentioned", [data / "notes.txt", data / "page.html"])
    assert done.text.splitlines()[0] == "'willows': 2 lines in 1 of 2 files:"
    assert done.files["search-hits.csv"].startswith(b"path,line,text\nnotes.txt,5,")


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("search", "not clear what to look for"),
        ("find it", "'it' is not understood"),
        ("what is in notes.md?", "not clear what to look for"),
        ("which files mention needle", "'needle' is not understood.*in quotes"),
        ("which files do not mention 'needle'", "'not' is not understood"),
        ("which files mention 'needle' and 'hay'", "one text"),
        ("find 'needle' and count the files", "'and', 'count' are not understood"),
        ("find the longest file", "'longest' is not understood"),
    ],
)
def test_refusals(task: str, said: str, run: Run, workspace: Path) -> None:
    """A task with a word that is not accounted for is refused by that word, and so is one that says nothing to look for."""
    with pytest.raises(InvalidInputError, match=said):
        run(create_agent(workspace), task)


def test_too_many_files(run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not searched to its end is refused, rather than answered from its beginning."""
    monkeypatch.setattr(file_search, "MAX_FILES", 2)
    with pytest.raises(InvalidInputError, match="more than 2 files"):
        run(create_agent(workspace), "list all files")


def test_no_files(run: Run) -> None:
    """Without files the error says how to give some."""
    with pytest.raises(InvalidInputError, match="IOA_WORKSPACE"):
        run(create_agent(None), "list all files")
