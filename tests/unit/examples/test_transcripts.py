"""The tools over stored transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from transcripts import Line, Transcripts, store

LINES = [
    Line("council-3", 0, "Ada Brome", "We open the meeting on the harbour."),
    Line("council-3", 754, "Ivo Lund", 'The mill was sold for 12,400 crowns, "as seen".'),
    Line("council-3", 3_725, "Ada Brome", "The meeting is closed."),
    Line("radio-1", 61, "Cy Venn", "Nobody sells mills any more."),
]


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    """A database with two of them."""
    store(tmp_path / "lines.sqlite", LINES)
    return Transcripts(tmp_path / "lines.sqlite")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("sold mill", [1, 3]),  # lines with both words come first, in any form
        ("harbour", [0]),
        ("Lund", [1]),
        ("12,400", [1]),
        ('closed" OR text:NEAR(', [2]),
        ("ferry", []),
    ],
)
def test_find_returns_lines_with_the_words(words: str, found: list[int], transcripts: Transcripts) -> None:
    """Lines are found by words in any form and by speakers, the best first; no sign of a query language means anything."""
    expected = "\n".join(str(LINES[index]) for index in found) or "Nobody says any of these words."
    assert transcripts.find(words) == expected


def test_read_returns_lines_between_two_times(transcripts: Transcripts) -> None:
    """From one time mark to another; an empty passage returns the length of the transcript."""
    assert transcripts.read("council-3", "12:00", "1:02:05").splitlines() == [
        'council-3 0:12:34 Ivo Lund: The mill was sold for 12,400 crowns, "as seen".',
        "council-3 1:02:05 Ada Brome: The meeting is closed.",
    ]
    assert transcripts.read("radio-1", "2:00") == "Nothing is said between 0:02:00 and 99:59:59; the last line is at 0:01:01."
