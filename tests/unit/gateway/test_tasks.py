"""Goals as tasks of A2A: the same story as everywhere else."""

from __future__ import annotations

from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Artifact, ListTasksRequest, Task

from ioa.fair_semaphore import FairSemaphore
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.goals import GoalRecord
from ioa_gateway.a2a import handler
from ioa_gateway.a2a.tasks import Telling
from ioa_gateway.words import text_of
from tests.unit.client.golden_documents import AT, GOAL, documents
from tests.unit.gateway.golden_tasks import RECORD, told_by_a2a, written


def test_a_task_is_told_as_on_record() -> None:
    """To the byte, from the golden entries that the command line, HTTP and a page share."""
    assert written() == RECORD.read_text(encoding="utf-8"), "python -m tests.unit.gateway.golden_tasks"


def test_each_entry_is_told_once_and_each_file_too() -> None:
    """A subscriber hears of each entry of the log, in order, and of each file once; who reads the task sees the same files."""
    _, *live, read = told_by_a2a()
    seqs = [one["metadata"]["ioa.seq"] for one in live if "status" in one and "ioa.seq" in one["metadata"]]
    assert seqs == [str(entry["seq"]) for entry in documents()["entries"]]
    files = [one["artifact"]["artifactId"] for one in live if "artifact" in one]
    assert (sorted(files), len(set(files))) == (sorted(one["artifactId"] for one in read["artifacts"]), len(files))


def test_what_is_given_out_is_said_once() -> None:
    """Also by rules, which say nothing but the tasks, and of a task that asks its question is what it says."""
    task = {"assignee": "bob", "task_desc": "Count."}
    given = [{"sender": "ada", "body": {"content": said, "tasks": [task]}} for said in ("", "bob: Count.", "Off you go.")]
    asks = {"sender": "bob", "body": {"text": "How far?"}}
    assert [text_of(one) for one in (*given, asks)] == ["bob: Count.", "bob: Count.", "Off you go.\nbob: Count.", "How far?"]


def _naming(seq: int, files: range) -> dict[str, Any]:
    """An entry that names files."""
    named = [{"name": "f", "size_bytes": 1, "sha256": _digest(one), "media_type": "text/plain"} for one in files]
    return {**documents()["entries"][0], "seq": seq, "type": "inform_task_result", "body": {"artifacts": named}}


def _digest(file: int) -> str:
    return sha256(b"%d" % file).hexdigest()


def test_a_task_tells_of_its_last_files_each_once() -> None:
    """2 MB of entries may name 13,000, which took 1.3 s of the loop; also of one that is named again behind many others."""
    entries = [_naming(seq, range(100 * seq, 100 * seq + 100)) for seq in range(20)]
    status = GoalStatus(GoalRecord(goal=GOAL, accepted_at=AT, ticket_digest="0" * 64), None, None)
    task = Telling(GOAL, "https://ioa.example.com").task(status, [*entries, _naming(20, range(1))])
    assert [one.artifact_id for one in task.artifacts] == [_digest(file) for file in (*range(1_501, 2_000), 0)]
    few = Telling(GOAL, "https://ioa.example.com").task(status, entries[:5])
    assert (len(few.artifacts), [dict(one.metadata).get("ioa.more_files") for one in (task, few)]) == (500, [True, None])


async def test_a_list_of_tasks_tells_of_as_many_files_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fifty tasks that few bytes had named files for each would be told whole otherwise, in one step."""

    async def row(*_: object) -> tuple[Task, int]:
        return Task(id="t", artifacts=[Artifact(artifact_id=str(number)) for number in range(200)]), 0

    async def goals(**_: object) -> Any:
        return SimpleNamespace(goals=[None] * 4, before=None, looked_at=4)

    monkeypatch.setattr(handler, "_row", row)
    monkeypatch.setattr(handler, "_is_wanted", lambda *_: True)
    caller, limits = SimpleNamespace(labels={}, user="anna", owner="anna"), SimpleNamespace(pages=FairSemaphore(1))
    asked: Any = SimpleNamespace(call=SimpleNamespace(caller=caller, client=SimpleNamespace(goals=goals), limits=limits))
    told = await handler._listed(asked, ListTasksRequest())
    assert (len(told.tasks), told.total_size, told.next_page_token) == (2, 4, "t")
