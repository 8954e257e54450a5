"""Golden tasks of A2A, from the log of the golden documents.

`python -m tests.unit.gateway.golden_tasks` writes the golden file.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.json_format import MessageToDict

from ioa.group.requests import GoalStatus
from ioa.protocol.goals import GoalRecord
from ioa_gateway.a2a.a2a_tasks import TaskWriter
from ioa_gateway.caller import Caller
from ioa_gateway.open_questions import CallerStatus
from ioa_gateway.pagination import EntryPage
from tests.unit.client.golden_documents import AT, FOLDER, GOAL, LOG, RESULT, documents

RECORD = FOLDER / "a2a.json"


def golden_events() -> list[dict[str, Any]]:
    """Return the events of a subscriber from before the golden log to its end, and the task as it is read afterwards."""
    entries = documents()["entries"]
    page = EntryPage([*LOG], entries, None)
    caller = Caller("key", GOAL.name.user, frozenset())
    live, read = (TaskWriter(GOAL, "https://ioa.example.com", caller) for _ in range(2))
    status = GoalStatus(record=GoalRecord(goal=GOAL, accepted_at=AT, ticket_digest="0" * 64))
    updates = [update for entry in entries for update in live.updates(entry)]
    events = [
        live.task(CallerStatus(status), EntryPage([], [], None)),
        *updates,
        *live.end(RESULT),
        read.task(CallerStatus(GoalStatus(record=status.record, result=RESULT)), page),
    ]
    return [MessageToDict(one) for one in events]


def content() -> str:
    """Return the content of the golden file."""
    return json.dumps(golden_events(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    RECORD.write_text(content(), encoding="utf-8")
