"""Goals as tasks of A2A."""

from __future__ import annotations

from ioa_gateway.sse_encoding import text_of
from tests.unit.gateway.golden_tasks import RECORD, content


def test_events_are_as_recorded() -> None:
    """The golden entries have the golden events."""
    assert content() == RECORD.read_text(encoding="utf-8"), "python -m tests.unit.gateway.golden_tasks"


def test_text_of_an_entry_names_each_task_once() -> None:
    """Rules repeat the tasks in the content; the text of a question is its words."""
    task = {"assignee": "bob", "task_desc": "Count."}
    given = [{"sender": "ada", "body": {"content": said, "tasks": [task]}} for said in ("", "bob: Count.", "Off you go.")]
    asks = {"sender": "bob", "body": {"text": "How far?"}}
    assert [text_of(one) for one in (*given, asks)] == ["bob: Count.", "bob: Count.", "Off you go.\nbob: Count.", "How far?"]
