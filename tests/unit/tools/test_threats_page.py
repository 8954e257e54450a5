"""The page of what is open of the threats: off the pages of the topics, of which each number stands on one, with tests that are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import threats_page
from tools.threats_page import topics

_TEST = "`unit/tools/test_threats_page.py`"


def _page(folder: Path, name: str, *rows: str) -> None:
    table = ("| | what was achieved | what tries it | state |", "|---|---|---|---|", *rows, "")
    (folder / f"{name}.md").write_text("\n".join((f"# Threats: {name.capitalize()}", "", "What this is about.", "", *table)))


def test_the_page_is_current_and_tells_of_all_that_is_open() -> None:
    """Whatever a row says behind the word Open stands on it, and a row that says nothing of the kind does not."""
    threats_page.main(["--check", "docs/threats.md"])
    pages = [path for path in threats_page.FOLDER.glob("*.md") if path.stem != "bounds"]
    rows = [
        line for path in pages for line in path.read_text().splitlines() if line.startswith("| ") and "**open**" in line.lower()
    ]
    assert sum(topic.count_open() for topic in topics()) == len(rows)
    shown = Path("docs/threats.md").read_text()
    assert all(one.open in shown for topic in topics() for one in topic.threats)


def test_what_is_open_is_what_stands_behind_the_word(tmp_path: Path) -> None:
    """A row below another one without a number is of that number."""
    _page(
        tmp_path,
        "keys",
        f"| T1 | all: keys of everybody | {_TEST} | refused |",
        f"| | some | {_TEST} | slowed down. **Open**: the first second |",
    )
    [topic] = topics(tmp_path)
    assert [(one.number, one.achieved, one.open) for one in topic.threats] == [
        ("T1", "all: keys of everybody", ""),
        ("T1", "some", "the first second"),
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((f"| T1 | a | {_TEST} | b |", f"| T1 | c | {_TEST} | d |"), "stand twice: T1"),
        (("| T1 | a | `unit/nowhere/test_nothing_at_all.py` | b |",), "test_nothing_at_all.py of T1 is not there"),
        (("| T1 | a | b |",), "no row of number"),
    ],
)
def test_a_number_that_stands_twice_or_a_test_that_is_not_there_is_refused(
    tmp_path: Path, rows: tuple[str, ...], said: str
) -> None:
    """Two people who put a row each under one number, or both versions of a row, are told."""
    _page(tmp_path, "keys", *rows)
    with pytest.raises(SystemExit, match=said):
        topics(tmp_path)


def test_one_number_on_two_pages_is_refused(tmp_path: Path) -> None:
    """A number is on the page of one topic alone."""
    for name in ("keys", "files"):
        _page(tmp_path, name, f"| T1 | a | {_TEST} | b |")
    with pytest.raises(SystemExit, match="stand twice: T1"):
        topics(tmp_path)
