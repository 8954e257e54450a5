"""JSON documents: members may be added, but not removed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ioa.client.documents import EntryDocument
from ioa.group.events import Said
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId
from tests.unit.cli.logs import log_of
from tests.unit.client.golden_documents import FOLDER, documents
from tests.unit.group.scenario import launched


@pytest.mark.parametrize("name", documents())
def test_documents_of_recorded_objects_equal_the_record(name: str) -> None:
    """Programs depend on them. `python -m tests.unit.client.golden_documents` writes the records."""
    assert documents()[name] == json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def test_entry_contains_floor_budget_and_time_limit() -> None:
    """A program that shows a conversation knows the turn and the rest of the budget."""
    story = launched("ada", "bob")
    document = EntryDocument.of(log_of(story)[-1])
    state = log_of(story)[-1].entry.state
    assert document.floor_holder == "ada" and document.until == state.stage.until  # type: ignore[union-attr]
    assert (document.budget.max_turns, document.budget.turns_lent) == (state.limits.max_turns, 0)
    waiting = EntryDocument.of(log_of(story.assigns_and_waits("ada", "t1-1:bob"))[-1])
    assert (waiting.until, waiting.tasks[0].lease_until is not None) == (None, True)


def test_whose_word_it_is_that_a_person_decided() -> None:
    """For an agent it is the agent's own report; only the person of a seat is known to the system."""
    stored = log_of(launched("ada", "human-bob").says("ada", to="human-bob"))[-1]
    event = stored.entry.event
    assert isinstance(event, Said)

    def said_by(sender: AgentId) -> EntryDocument:
        header = event.message.header.model_copy(update={"sender": sender, "decided_by": DecidedBy(kind="human", name="anna")})
        said = event.model_copy(update={"message": event.message.model_copy(update={"header": header})})
        return EntryDocument.of(replace(stored, entry=stored.entry.model_copy(update={"event": said})))

    assert [said_by(AgentId(sender)).person for sender in ("ada", "human-bob")] == [None, None]
