"""Goals as tasks of A2A: the same story as everywhere else."""

from __future__ import annotations

from ioa_gateway.sse import text_of
from tests.unit.client.golden_documents import documents
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
