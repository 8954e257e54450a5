"""The documentation of the machine: current, complete, and drawn from the table."""

from __future__ import annotations

import re
from pathlib import Path

from ioa.group.state import Limits
from ioa.group.table import STATE_RULES, TABLE
from ioa.protocol.messages import Phase
from tools import group_page as diagram

DOCUMENT = Path(__file__).parents[3] / "docs" / "group.md"


def test_every_rule_is_documented() -> None:
    """Each cell of the table has a line that names its phase, and each rule of the state has a line."""
    text = diagram.render()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [
        (str((cell.phase and cell.phase.name) or "no group"), cell.meaning) for row in TABLE.values() for cell in row.cells.values()
    ]
    assert [cell for cell in cells if not any(cell[0] in line and f"| {cell[1]} |" in line for line in lines)] == []
    assert [row.name for row in TABLE.values() if f"| `{row.name}` | {row.sender} |" not in text] == []
    assert [rule.name for rule in STATE_RULES if f"| *{rule.name}* |" not in text or rule.meaning not in text] == []


def test_every_word_is_explained() -> None:
    """Phases and limits of the code and of the document are the same."""
    assert (set(diagram.PHASES), set(diagram.LIMITS)) == (set(Phase), set(Limits.model_fields))


def test_the_picture_draws_arrows_of_the_table_only() -> None:
    """Between two phases there is an arrow exactly if an event or the state leads from one to the other, with the name of each."""
    picture = diagram.render().split("```mermaid")[1].split("```")[0]
    drawn = {
        (start, end, name)
        for start, end, names in re.findall(r"^ +(\S+) --> (\w+): (.*)$", picture, re.MULTILINE)
        for name in names.split("<br/>")
    }
    everywhere = {arrow for arrow in drawn if arrow[0] == "open"}
    drawn = (drawn - everywhere) | {(phase.name, end, name) for phase in diagram.OPEN for _, end, name in everywhere}
    events = {
        (cell.phase.name if cell.phase else "[*]", end.name, row.name)
        for row in TABLE.values()
        for cell in row.cells.values()
        for end in cell.to
        if end is not cell.phase
    }
    assert drawn == events | {(phase.name, rule.target.name, rule.name) for rule in STATE_RULES for phase in rule.phases}
