"""The documentation of the machine: current, complete, and drawn from the table."""

from __future__ import annotations

from ioa.group.table import STATE_RULES, TABLE
from ioa.protocol.messages import Phase
from ioa.protocol.setup.charter import Limits
from tools import group_page as diagram


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
