"""Recorded JSON documents of goals, groups, entries, agents and searches, and transcripts of golden logs.

`python -m tests.unit.client.golden_documents` writes the records. A member may be added, but not renamed or removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ioa.client.documents import (
    AgentDocument,
    EntryDocument,
    GoalDocument,
    GoalRow,
    GroupDocument,
    ProgressDocument,
    ResultDocument,
    SearchDocument,
    StateDocument,
    told,
)
from ioa.client.transcript import Transcript
from ioa.group.events import GroupLaunched, Said
from ioa.group.requests import GoalStatus, GroupSnapshot
from ioa.ports.group_log import StoredEntry
from ioa.protocol.agents.search import Hit, Need, NeedHits, SearchResult, Shift, Signal, SignalScore, Why
from ioa.protocol.cards import AgentCard, AgentStatus, Load
from ioa.protocol.goals import Artifact, Degraded, Goal, GoalRecord, GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, PoolId, TaskId, UserId
from ioa.protocol.messages import InformTaskProgress
from ioa.protocol.usage import Usage
from tests.unit.cli.logs import log_of
from tests.unit.client.test_costs import story
from tests.unit.group import golden

FOLDER = Path(__file__).parents[2] / "data" / "documents"
TRANSCRIPTS = FOLDER / "transcripts.txt"
AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
LOG = log_of(story())
FILE = Artifact(name="sales.csv", object_name="ab/sales.csv", size_bytes=3, sha256="0" * 64, media_type="text/csv")
GOAL = Goal(
    goal_id=GoalId("sum"),
    user=UserId("eva"),
    goal="Sum it.",
    inputs=(FILE,),
    max_tokens=1_000,
    labels={"team": "x"},
)
RESULT = GoalResult(
    goal_id=GOAL.goal_id,
    user=GOAL.user,
    reason=Reason.CONCLUDED,
    content="Ten.",
    artifacts=(FILE,),
    comm_id=CommId("room"),
    turns=3,
    usage=Usage(tokens_in=5, cost_micros=7),
    degraded=Degraded(lost=(AgentId("bob"),), tasks=(TaskId("t1-1"),)),
    finished_at=AT,
    limit=Reason.MAX_TURNS,
)
CARD = AgentCard(
    agent_id=AgentId("ada"),
    name="Ada",
    description="Counts what there is to count.",
    examples=("Count to ten.",),
    pool=PoolId("ada"),
)
STATUS = AgentStatus(card=CARD, online=True, registered_at=AT, load=Load(tasks=1, groups=2, slots=3))
HIT = Hit(
    card=CARD,
    score=0.75,
    similarity=0.5,
    matched_example="Count to ten.",
    why=Why(
        match=0.7,
        signals=(SignalScore(signal=Signal.EXAMPLES, raw=0.5, fused=0.7),),
        shifts=(Shift(cause="load", amount=0.05, reason="idle"),),
    ),
)
FOUND = SearchResult(by_need=(NeedHits(need=Need(text="who counts"), hits=(HIT,)),))


def snapshot(place: int) -> GroupSnapshot:
    """Return the state of the log's group at an entry."""
    launched = LOG[0].entry.event
    assert isinstance(launched, GroupLaunched)
    return GroupSnapshot(seq=LOG[place].seq, state=LOG[place].entry.state, charter=launched.charter)


def documents() -> Mapping[str, Any]:
    """All of them, by the name of their record."""
    record = GoalRecord(goal=GOAL, accepted_at=AT, ticket_digest="0" * 64)
    open_goal, ended = GoalStatus(record=record, standing=snapshot(5)), GoalStatus(record=record, result=RESULT)
    said = [stored.entry.event for stored in LOG if isinstance(stored.entry.event, Said)]
    report = next(one for one in said if isinstance(one.message.payload, InformTaskProgress))
    told_entries = [told(EntryDocument.of(stored)) for stored in LOG]
    return {
        "entries": told_entries,
        "progress": told(ProgressDocument.of(report)),
        "goals": [told(GoalRow.of(status)) for status in (open_goal, ended, GoalStatus(record=record))],
        "goal": told(GoalDocument.of(open_goal)),
        "result": told(ResultDocument.of(RESULT)),
        "states": [told(StateDocument.of(LOG[5].entry.state))],
        "groups": [told(GroupDocument.of_group(snapshot(place))) for place in (5, -1)],
        "agents": [told(AgentDocument.of(STATUS))],
        "search": told(SearchDocument.of(FOUND)),
    }


def transcripts() -> str:
    """Return the lines of the golden logs of stories, which contain every kind of line."""
    written = list[str]()
    for name, steps in golden.read().items():
        if name.startswith("story"):
            transcript = Transcript()
            written.append(f"# {name}")
            for seq, entry in enumerate(golden.accepted(steps), 1):
                for line in transcript.read(StoredEntry(seq, entry)):
                    text = " / ".join((line.text, *(file.name for file in line.files)))
                    written.append(f"{seq:>3} {'  ' * line.depth}{line.speaker} [{line.act}, {line.tone}] {text}".rstrip())
    return "\n".join(written) + "\n"


def main() -> None:
    """Write the records."""
    TRANSCRIPTS.write_text(transcripts(), encoding="utf-8")
    for name, document in documents().items():
        (FOLDER / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
