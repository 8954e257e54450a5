"""What a transcript says about a log."""

from __future__ import annotations

from typing import Any

from ioa.client.documents import EntryDocument, StateDocument
from ioa.client.transcript import Transcript, who_decided
from ioa.group.events import Said
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
)
from ioa.protocol.team import team_of
from tests.unit.cli.logs import log_of
from tests.unit.group.scenario import COMM, Scenario, launched, launched_under, said
from tests.unit.group.test_policy import REVIEWED, Told, X, group


def _read(story: Scenario) -> Transcript:
    transcript = Transcript()
    for stored in log_of(story):
        transcript.read(stored)
    return transcript


def _report(story: Scenario, **told: Any) -> Said:
    """A further report of the progress of the task t1-1."""
    last = story.log[-1]
    assert isinstance(last, Said)
    payload = InformTaskProgress(task_id=TaskId("t1-1"), **told)
    return last.model_copy(update={"message": last.message.model_copy(update={"payload": payload})})


def _said(story: Scenario) -> list[tuple[str, str, str]]:
    transcript = Transcript()
    return [(line.speaker, line.act, line.text) for stored in log_of(story) for line in transcript.read(stored)]


def test_each_message_is_one_line_in_order() -> None:
    """Speaker, act and content of a whole conversation, a task after the other."""
    story = launched("ada", "bob").says("ada", to="bob").says("bob", to="ada").assigns_and_waits("ada", "t3-1:bob")
    story = story.progresses("t3-1").finishes("t3-1").announces("ada").concludes("ada")
    assert _said(story) == [
        ("ada", "team", "leads a team with bob"),
        ("ada", "discussion", "to bob: Point 1."),
        ("bob", "discussion", "to ada: Point 2."),
        ("ada", "sync task", "t3-1 → bob: do t3-1"),
        ("bob", "progress", "t3-1 started"),
        ("bob", "result", "t3-1 done: done"),
        ("ada", "conclude", ""),
        ("ada", "conclusion", "Ten."),
    ]


def test_reports_that_are_no_entries_are_lines_too() -> None:
    """A report that was only heard is a line, and the task shows how far it is; of a closed or unknown one nothing is said."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").progresses("t1-1")
    heard = _report(story, number=2, content="halfway", fraction=0.5)
    transcript, early = _read(story), Transcript().hear(heard)
    lines = [(line.speaker, line.act, line.text) for line in transcript.hear(heard)]
    (task,) = transcript.open_tasks()
    transcript.read(log_of(story.finishes("t1-1"))[-1])
    assert (early, lines, transcript.hear(heard)) == ([], [("bob", "progress", "t1-1 50% halfway")], [])
    assert (task.detail, task.fraction) == ("halfway", 0.5)


def test_a_draft_is_no_line() -> None:
    """While a model writes, the task shows the end of its text, until it writes no more; what is printed stays as it is."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").progresses("t1-1")
    transcript, shown, lines = _read(story), list[str](), list[int]()
    for number, draft, content in [(2, "Once", "step 1"), (3, "Once upon", "step 1"), (4, "", "step 1"), (5, "", "step 1")]:
        lines.append(len(transcript.hear(_report(story, number=number, content=content, draft=draft))))
        shown += [task.draft for task in transcript.open_tasks()]
    assert (shown, lines) == (["Once", "Once upon", "", ""], [1, 0, 0, 1])


def test_what_a_rule_did_is_said() -> None:
    """A floor that passed on, a lost member's task and a cancelled group are told, though no member said them."""
    silent = _said(launched("ada", "bob").timer())
    lost = _said(launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").loses("bob").timers(2))
    cancelled = _said(launched("ada", "bob").cancelled())
    assert silent[-1] == ("·", "timer", "ada was silent; bob has the floor")
    assert ("·", "lost", "bob is gone: its lease ran out") in lost
    assert [act for _, act, _ in lost if act == "task failed"] == ["task failed"]
    assert cancelled[-1][:2] == ("·", "cancelled")


def test_why_a_group_ends_is_told_whatever_ends_it() -> None:
    """Also where a message or a decision led to it, and is about something else."""
    review = {**REVIEWED, "review": {"by": "c", "tries": 1, "then": "end"}, "max": 4}
    silent = Told(group(X, silent="end")).word("silent").story
    rejected = Told(group(review)).word("says").word("decides:reject").story
    for story, why in ((silent, "no_speaker: "), (rejected, "refused: ")):
        speaker, act, text = _said(story)[-1]
        assert (speaker, act, text.startswith(why)) == ("·", "failed", True)
    ended = _said(launched("ada", "bob").announces("ada").concludes("ada"))
    assert [act for _, act, _ in ended].count("conclusion") == 1 and ended[-1][1] == "conclusion"


def test_who_is_removed_is_told() -> None:
    """A vote says whom each has named, and not what came of it."""
    node = {"name": "x", "roles": ["a", "b"], "turns": "together", "form": {"out": "b"}}
    ways = {"exits": [{"to": "y", "remove": {"field": "out"}}]}
    roles = {"a": "ada", "b": {"agents": ["bob", "eve"]}}
    team = team_of({"team": "t", "roles": roles, "nodes": [{**node, **ways}, {"name": "y", "roles": ["a"]}]})
    story = launched_under(team.policy, {"a": ["ada"], "b": ["bob", "eve"]}, "ada", "bob", "eve")
    for name, out in (("ada", "eve"), ("bob", "eve"), ("eve", "bob")):
        story = story.happens(said(name, Discussion(content="Out!", fields={"out": out}), story.state.turn, story.now))
    assert _said(story)[-1] == ("·", "removed", "eve was removed")
    document = EntryDocument.of(log_of(story)[-1])
    assert (document.removed, [one.agent_id for one in StateDocument.of(story.state).members if one.removed]) == (("eve",), ["eve"])


def test_tasks_are_known_with_their_status_and_times() -> None:
    """The task list tells assignee, status, description and how long each took; only open ones are running."""
    story = launched("ada", "bob", "cleo").assigns("ada", "t1-1:bob", "t1-2:cleo").progresses("t1-1").progresses("t1-2")
    transcript = _read(story.after(2).finishes("t1-1"))
    tasks = {task.task_id: (task.assignee, task.status, task.task_desc) for task in transcript.tasks(COMM)}
    assert tasks == {TaskId("t1-1"): ("bob", "done", "do t1-1"), TaskId("t1-2"): ("cleo", "open", "do t1-2")}
    first = transcript.tasks()[0]
    assert first.started_at is not None and first.ended_at is not None
    assert ((first.ended_at - first.started_at).total_seconds(), [task.task_id for task in transcript.open_tasks()]) == (
        2,
        ["t1-2"],
    )


def test_what_waits_and_what_is_rejected_is_told() -> None:
    """A task waits until those it uses are done; a rejection is a line, and so is what it cancels; one message concludes."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob", "t1-2:bob", "t1-3:ada:t1-1,t1-2").progresses("t1-1")
    story = story.progresses("t1-2").after(4).finishes("t1-1")
    assert [(task.status, task.detail, task.started_at is None) for task in _read(story).tasks()] == [
        ("done", "", False),
        ("open", "", False),
        ("waiting", "for t1-1, t1-2", True),
    ]
    story = story.rejects("ada", "t1-1", to="bob").finishes("t1-2")
    story = story.speaks("bob", ConcludeGroupDiscussion(conclusion=Conclusion(content="Ten.")))
    assert _said(story)[-5:] == [
        ("ada", "reject", "t1-1: t1-1 is wrong"),
        ("ada", "discussion", "to bob: Point 2."),
        ("·", "task cancelled", "t1-3 of ada: t1-1 was rejected"),
        ("bob", "result", "t1-2 done: done"),
        ("bob", "conclusion", "Ten."),
    ]
    assert [task.status for task in _read(story).tasks()] == ["rejected", "done", "cancelled"]


def test_a_conclusion_without_lost_members_says_what_is_missing() -> None:
    """Whoever reads the answer learns that it may lack something, and what."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").loses("bob").timer().announces("ada").concludes("ada")
    assert _said(story)[-1] == ("·", "degraded", "bob was lost when this was concluded; not done: t1-1")


def test_who_decided_is_told_at_the_end() -> None:
    """The model by its name, and what rules did in its place with the reason; rules alone are not worth a line."""
    model, rules = DecidedBy(kind="model", name="large"), DecidedBy(kind="rules", instead_of="large", cause="too_slow")
    both = [Decisions(by=model, count=4), Decisions(by=rules, count=5)]
    assert who_decided(both) == [
        ("decided by large, as members say: 4 of 9", False),
        ("by rules instead of large, as members say: 5 of 9, too_slow", True),
    ]
    assert who_decided([Decisions(by=DecidedBy(kind="rules"), count=3)]) == []
