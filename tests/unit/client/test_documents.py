"""What programs are told, as it was told before: members may be added, and none goes."""

from __future__ import annotations

import json

import pytest

from ioa.client.documents import EntryDocument
from ioa.protocol.ids import AgentId
from tests.unit.cli.logs import log_of
from tests.unit.client.golden_documents import FOLDER, documents
from tests.unit.group.scenario import launched


@pytest.mark.parametrize("name", documents())
def test_what_is_told_is_on_record(name: str) -> None:
    """To the byte: programs have been written against it, and a page is tested with it."""
    written = json.dumps(documents()[name], indent=1, ensure_ascii=False) + "\n"
    assert written == (FOLDER / f"{name}.json").read_text(encoding="utf-8"), "python -m tests.unit.client.golden_documents"


def test_an_entry_tells_who_may_say_what_by_when() -> None:
    """Whoever shows a conversation can tell whose turn it is, what would be legal, and what is left of the budget."""
    story = launched("ada", "bob")
    document = EntryDocument.of(log_of(story)[-1])
    state = log_of(story)[-1].entry.state
    assert document.floor_holder == "ada" and document.until == state.stage.until  # type: ignore[union-attr]
    assert document.legal is not None and list(document.legal) == ["ada"] and "DISCUSSION" in document.legal[AgentId("ada")]
    assert (document.budget.max_turns, document.budget.turns_lent) == (state.limits.max_turns, 0)
    waiting = EntryDocument.of(log_of(story.assigns_and_waits("ada", "t1-1:bob"))[-1])
    assert (waiting.legal, waiting.until, waiting.tasks[0].lease_until is not None) == ({}, None, True)
