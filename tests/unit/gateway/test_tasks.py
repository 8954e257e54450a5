"""Goals as tasks of A2A."""

from __future__ import annotations

from ioa_gateway.sse import text_of
from tests.unit.client.golden_documents import documents
from tests.unit.gateway.golden_tasks import RECORD, content, golden_events


def test_events_are_as_recorded() -> None:
    """The golden entries have the golden events."""
    assert content() == RECORD.read_text(encoding="utf-8"), "python -m tests.unit.gateway.golden_tasks"


def test_each_entry_and_file_has_one_event() -> None:
    """Events have the order of the log; the task that is read has the same files."""
    _, *live, read = golden_events()
    seqs = [one["metadata"]["ioa.seq"] for one in live if "status" in one and "ioa.seq" in one["metadata"]]
    assert seqs == [str(entry["seq"]) for entry in documents()["entries"]]
    files = [one["artifact"]["artifactId"] for one in live if "artifact" in one]
    assert (sorted(files), len(set(files))) == (sorted(one["artifactId"] for one in read["artifacts"]), len(files))


def test_text_of_an_entry_names_each_task_once() -> None:
    """Rules repeat the tasks in the content; the text of a question is its words."""
    task = {"assignee": "bob", "task_desc": "Count."}
    given = [{"sender": "ada", "body": {"content": said, "tasks": [task]}} for said in ("", "bob: Count.", "Off you go.")]
    asks = {"sender": "bob", "body": {"text": "How far?"}}
    assert [text_of(one) for one in (*given, asks)] == ["bob: Count.", "bob: Count.", "Off you go.\nbob: Count.", "How far?"]
