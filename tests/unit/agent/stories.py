"""A short story as log entries."""

from __future__ import annotations

from ioa.agent.groups.group_history import GroupHistory
from ioa.group.events import Entry
from ioa.group.machine import step
from ioa.group.requests import SequencedEntry
from ioa.group.state import GroupState
from ioa.protocol.ids import AgentId, CommId, MessageId
from ioa.protocol.messages import Discussion, Message
from tests.unit.group.scenario import COMM, Scenario, launched, said

ENDED: Scenario = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").finishes("t1-1").announces("ada").concludes("ada")
"""A whole conversation: launched, a task, its result, the announcement and the conclusion."""


def sequenced(story: Scenario = ENDED, *, gap: int = 7) -> list[SequencedEntry]:
    """A story as its log entries, with sequences that have gaps, as in a stream shared by many groups."""
    state: GroupState | None = None
    entries: list[SequencedEntry] = []
    for number, event in enumerate(story.log, 1):
        state, _, _, audience = step(state, event, story.policy)
        entry = Entry(event=event, state=state, audience=audience)
        entries.append(SequencedEntry(seq=number * gap, previous_seq=(number - 1) * gap, entry=entry))
    return entries


def folded(story: Scenario = ENDED) -> GroupHistory:
    """What a member knows that reads the whole log."""
    history = GroupHistory(COMM)
    for entry in sequenced(story):
        history.apply(entry)
    return history


def message(message_id: str, content: str = "Hello.", comm_id: CommId = COMM) -> Message:
    """A message with an id of its own."""
    spoken = said("ada", Discussion(content=content, next_speaker=AgentId("bob")), 1, comm_id=comm_id).message
    return spoken.model_copy(update={"header": spoken.header.model_copy(update={"message_id": MessageId(message_id)})})
