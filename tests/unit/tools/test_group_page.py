"""The documentation of the machine: current, complete, and drawn from the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ioa.group.events import EventKind
from ioa.group.state import Limits
from ioa.group.table import TABLE
from ioa.protocol.messages import Phase
from tools import group_page as diagram

DOCUMENT = Path(__file__).parents[3] / "docs" / "group.md"


def test_the_document_is_current() -> None:
    """Whoever changes the table writes the document again."""
    assert DOCUMENT.read_text(encoding="utf-8") == diagram.render()


def test_a_stale_document_fails_the_check(tmp_path: Path) -> None:
    """The check names the command that mends it, and the command does."""
    file = tmp_path / "group.md"
    with pytest.raises(SystemExit, match="is stale"):
        diagram.main(["--check", str(file)])
    diagram.main([str(file)])
    diagram.main(["--check", str(file)])
    assert file.read_text(encoding="utf-8") == diagram.render()


def test_every_rules_meaning_is_told() -> None:
    """Each cell of the table has a line."""
    text = diagram.render()
    missing = [cell for cell, rule in TABLE.items() if f"| {diagram.SENDERS[cell[1]]} | {rule.meaning} |" not in text]
    assert missing == []


def test_every_word_is_explained() -> None:
    """Phases, events and limits of the code and of the document are the same."""
    assert (set(diagram.PHASES), set(diagram.SENDERS), set(diagram.LIMITS)) == (
        set(Phase),
        set(EventKind),
        set(Limits.model_fields),
    )


def test_the_picture_draws_arrows_of_the_table_only() -> None:
    """Between two phases there is an arrow exactly if a rule leads from one to the other."""
    picture = diagram.render().split("```mermaid")[1].split("```")[0]
    drawn = {(start, end) for start, end in re.findall(r"^ +(\w+) --> (\w+):", picture, re.MULTILINE) if start != end}
    everywhere = {end for start, end in drawn if start == "open"}
    drawn = {arrow for arrow in drawn if arrow[0] != "open"} | {(phase.name, end) for phase in diagram.OPEN for end in everywhere}
    possible = {(phase.name, end.name) for (phase, _), rule in TABLE.items() for end in rule.leads_to if end is not phase}
    assert drawn == possible
