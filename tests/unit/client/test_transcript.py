"""Transcripts: lines of a log, and the status of its tasks."""

from __future__ import annotations

from typing import Any

from ioa.client.transcript import Transcript, who_decided
from ioa.group.events import Said
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import InformTaskProgress
from tests.unit.cli.logs import log_of
from tests.unit.client.golden_documents import TRANSCRIPTS, transcripts
from tests.unit.group.scenario import COMM, Scenario, launched


def _read(story: Scenario) -> Transcript:
    transcript = Transcript()
    for stored in log_of(story):
        transcript.read(stored)
    return transcript


def _report(story: Scenario, **fields: Any) -> Said:
    """A further report of the progress of the task t1-1."""
    last = story.log[-1]
    assert isinstance(last, Said)
    payload = InformTaskProgress(task_id=TaskId("t1-1"), **fields)
    return last.model_copy(update={"message": last.message.model_copy(update={"payload": payload})})


def test_lines_of_golden_logs_equal_the_record() -> None:
    """Each kind of message and event, and what the state machine did after it."""
    assert transcripts() == TRANSCRIPTS.read_text(encoding="utf-8")


def test_reports_outside_of_the_log_are_lines_until_the_task_closes() -> None:
    """A report of a closed or an unknown task is no line."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").progresses("t1-1")
    heard = _report(story, number=2, content="halfway", fraction=0.5)
    transcript, early = _read(story), Transcript().hear(heard)
    lines = [(line.speaker, line.act, line.text) for line in transcript.hear(heard)]
    (task,) = transcript.open_tasks()
    transcript.read(log_of(story.finishes("t1-1"))[-1])
    assert (early, lines, transcript.hear(heard)) == ([], [("bob", "progress", "t1-1 50% halfway")], [])
    assert (task.detail, task.fraction) == ("halfway", 0.5)


def test_tasks_have_status_description_and_times() -> None:
    """A task waits until the tasks that it uses are done; a rejected or cancelled task is closed."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob", "t1-2:bob", "t1-3:ada:t1-1,t1-2").progresses("t1-1")
    story = story.progresses("t1-2").after(4).finishes("t1-1")
    transcript = _read(story)
    assert [(task.assignee, task.status, task.task_desc, task.detail) for task in transcript.tasks(COMM)] == [
        ("bob", "done", "do t1-1", ""),
        ("bob", "open", "do t1-2", ""),
        ("ada", "waiting", "do t1-3", "for t1-1, t1-2"),
    ]
    done, running, waiting = transcript.tasks()
    assert done.started_at is not None and done.ended_at is not None
    assert ((done.ended_at - done.started_at).total_seconds(), waiting.started_at) == (4, None)
    assert transcript.open_tasks() == [running, waiting]
    rejected = _read(story.rejects("ada", "t1-1", to="bob").finishes("t1-2"))
    assert [task.status for task in rejected.tasks()] == ["rejected", "done", "cancelled"]


def test_deciders_are_listed_unless_only_rules_decided() -> None:
    """A model by its name, and rules in its place with the reason."""
    model, rules = DecidedBy(kind="model", name="large"), DecidedBy(kind="rules", instead_of="large", cause="too_slow")
    assert who_decided([Decisions(by=model, count=4), Decisions(by=rules, count=5)]) == [
        "decided by large, as members say: 4 of 9",
        "decided by rules instead of large (too_slow), as members say: 5 of 9",
    ]
    assert who_decided([Decisions(by=DecidedBy(kind="rules"), count=3)]) == []
