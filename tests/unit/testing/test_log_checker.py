"""The checker accepts what the system leaves behind, and finds every single thing that was taken away, doubled or changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ioa.group.events import GroupLaunched, MemberLost, Said
from ioa.group.requests import SequencedEntry
from ioa.group.state import Ended, GroupState, OpenTask
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Artifact, Degraded, Reason
from ioa.protocol.ids import LOCAL, AgentId, GoalId, GoalName, TaskId, comm_id_of_goal
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskResult,
    Payload,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.team import read_toml
from ioa.testing.log_checker import (
    Absence,
    Acceptance,
    Evidence,
    TaskRun,
    check,
    check_answers,
    check_courses,
    check_failures,
    check_hearing,
    check_losses,
    check_reviews,
    check_uses,
    check_watchers,
    recovery_after,
)
from tests.contract.agent_store.stories import sequenced
from tests.unit.group.scenario import COMM, launched, launched_under, rejected, specs
from tests.unit.group.test_policy import REVIEWED, Told, X, group, watched
from tests.unit.protocol.policies import SHIPPED
from tests.unit.runtime.plane import ADA, BOB, GOAL, ROOM, Plane

_RUNS = [TaskRun(BOB, f"work {ROOM}/t1-1", 1, returned=False), TaskRun(BOB, f"work {ROOM}/t1-1", 1, returned=True)]


async def _whole() -> Evidence:
    """A goal with one task, from its launch to its end, as seen by everybody."""
    plane = Plane()
    await plane.open(ADA, BOB)
    task = TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc=f"work {ROOM}/t1-1")
    await plane.says(ADA, SyncTaskAssignment(tasks=(task,)))
    plane.clock.advance(timedelta(seconds=2))
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="done in attempt 1"))
    await plane.says(ADA, ConcludeGroupDiscussion())
    await plane.says(ADA, Conclusion(content="Ten."))
    result = await plane.results.get(GoalName(LOCAL, GOAL))
    assert result is not None
    log = await plane.entries()
    said = [stored for stored in log if stored.entry.event.type == "said"]
    return Evidence(
        goals=[GOAL],
        results=[result],
        logs={ROOM: log},
        records={agent_id: {ROOM: list(plane.inboxes.of(agent_id))} for agent_id in (ADA, BOB)},
        accepted=[Acceptance(ROOM, stored.entry.event.message.header.message_id, stored.seq) for stored in said],  # type: ignore[union-attr]
        runs=_RUNS,
        answers={GOAL: "Ten."},
        absences=[],
    )


def _log(evidence: Evidence, change: Callable[[list[StoredEntry]], list[StoredEntry]]) -> Evidence:
    return replace(evidence, logs={ROOM: change(list(evidence.logs[ROOM]))})


def _record(evidence: Evidence, change: Callable[[list[SequencedEntry]], list[SequencedEntry]]) -> Evidence:
    return replace(evidence, records={**evidence.records, BOB: {ROOM: change(list(evidence.records[BOB][ROOM]))}})


def _run_again(evidence: Evidence) -> Evidence:
    return replace(evidence, runs=[*_RUNS, replace(_RUNS[0], attempt=2)])


def _ended(evidence: Evidence, **changed: object) -> Evidence:
    """With another end of the goal, in its result alone."""
    return replace(evidence, results=[evidence.results[0].model_copy(update=changed)])


async def _with_a_loss() -> Evidence:
    """A group that was told that a member is lost."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.ledgers[0].record(ROOM, MemberLost(agent_id=BOB, at=plane.clock.now()))
    return Evidence(goals=[GOAL], results=[], logs={ROOM: await plane.entries()}, absences=[])


_WRONGS: dict[str, tuple[Callable[[Evidence], Evidence], str]] = {
    "a goal without result": (lambda e: replace(e, results=[]), "has 0 results"),
    "a goal with two": (lambda e: replace(e, results=[*e.results, *e.results]), "has 2 results"),
    "a result of nobody's": (lambda e: replace(e, goals=[]), "nobody published"),
    "another result": (
        lambda e: replace(e, results=[e.results[0].model_copy(update={"content": "Nine."})]),
        "is not what its group",
    ),
    "another answer": (lambda e: replace(e, answers={GOAL: "Nine."}), "was concluded with 'Ten.', not 'Nine.'"),
    "another answer, excused by somebody who was there": (
        lambda e: _ended(replace(e, answers={GOAL: "Nine."}), degraded=Degraded(lost=(BOB,))),
        "none of whom was away",
    ),
    "a failure for want of members who were there": (lambda e: _ended(e, reason=Reason.MEMBER_LOST), "nobody was away"),
    "a failure for want of agents who were there": (lambda e: _ended(e, reason=Reason.NO_AGENT), "nobody was away"),
    "no goal": (lambda e: Evidence(goals=[], results=[], logs={}), "nothing to judge"),
    "no log": (lambda e: replace(e, logs={}), "and no log"),
    "no run": (lambda e: replace(e, runs=[]), "nobody has run one"),
    "a lost message": (lambda e: _log(e, lambda log: log[:2] + log[3:]), "was accepted into"),
    "a hole in a log": (lambda e: replace(_log(e, lambda log: log[:2] + log[3:]), accepted=()), "is not legal"),
    "a doubled message": (lambda e: _log(e, lambda log: [*log, log[-1]]), "is 2 times in"),
    "an acceptance elsewhere": (
        lambda e: replace(e, accepted=[replace(e.accepted[0], seq=e.accepted[0].seq + 1)]),
        "is not there",
    ),
    "a member that missed the end": (lambda e: _record(e, lambda record: record[:-1]), "another record of"),
    "a member with a gap": (lambda e: _record(e, lambda record: record[:1] + record[2:]), "has a gap"),
    "a member out of order": (lambda e: _record(e, lambda record: record[::-1]), "another record of"),
    "a member that knows nothing": (lambda e: replace(e, records={**e.records, BOB: {}}), "has no record"),
    "a task run after its result": (_run_again, "was run again after it had finished"),
    "two runs in one attempt": (lambda e: replace(e, runs=[*_RUNS, *_RUNS]), "was begun twice in one attempt: [1, 1]"),
    "an open group": (lambda e: replace(_log(e, lambda log: log[:-1]), accepted=(), records={}), "no timer is armed"),
    "a group that outlived its goal": (
        lambda e: replace(_log(e, lambda log: log[:-1]), accepted=(), records={}, timers=frozenset({ROOM})),
        "though its goal",
    ),
}


async def test_what_the_system_leaves_behind_is_right() -> None:
    """There is nothing to find in a whole conversation; in one whose timer is still to come, only that it has no result yet."""
    whole = await _whole()
    running = replace(_log(whole, lambda log: log[:2]), results=[], records={}, accepted=(), timers=frozenset({ROOM}))
    assert (check(whole), check(running)) == ([], ["Goal goal-1 has 0 results, not one."])


async def test_result_of_a_goal_that_was_lost_with_the_store_is_accepted() -> None:
    """Its group had decided it before the loss: the result is kept without a log and without a record."""
    whole = await _whole()
    late = whole.results[0].model_copy(update={"goal_id": GoalId("before"), "comm_id": comm_id_of_goal(GoalId("before"))})
    kept = replace(whole, results=[*whole.results, late])
    assert check(replace(kept, lost=frozenset({GoalId("before")}))) == []
    assert "There is a result of before, which nobody published." in check(kept)


@pytest.mark.parametrize("wrong", _WRONGS)
async def test_each_wrong_is_found(wrong: str) -> None:
    """Whatever is taken away, doubled or changed is named."""
    change, said = _WRONGS[wrong]
    assert any(said in found for found in check(change(await _whole())))


def _used() -> Evidence:
    """A draft was rejected, made again, and illustrated after that."""
    draft, second = (Artifact(name="a.txt", object_name=f"room/{one}/a.txt", size_bytes=1, sha256="0" * 64) for one in ("t1", "t2"))
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-x:bob")
    story = story.speaks("bob", InformTaskResult(task_id=TaskId("t1-x"), task_conclusion="…", artifacts=(draft,)))
    again = SyncTaskAssignment(tasks=specs(("t2-y:bob:t2-x", "t2-x:bob")), rejects=rejected("t1-x"))
    story = story.speaks("ada", again)
    story = story.speaks("bob", InformTaskResult(task_id=TaskId("t2-x"), task_conclusion="…", artifacts=(second,))).finishes("t2-y")
    story = story.speaks("ada", ConcludeGroupDiscussion(conclusion=Conclusion(content="Ten.", artifacts=(second,))))
    log = [StoredEntry(seq=one.seq, entry=one.entry) for one in sequenced(story)]
    return Evidence(goals=[], results=[], logs={COMM: log})


def _with_state(evidence: Evidence, at: int, change: Callable[[GroupState], GroupState]) -> Evidence:
    log = list(evidence.logs[COMM])
    log[at] = replace(log[at], entry=log[at].entry.model_copy(update={"state": change(log[at].entry.state)}))
    return replace(evidence, logs={COMM: log})


def _begun_early(state: GroupState) -> GroupState:
    waiting, other = state.tasks[-2:]
    assert isinstance(other, OpenTask)
    return state.model_copy(update={"tasks": (*state.tasks[:-2], other.model_copy(update={"task_id": waiting.task_id}), other)})


def _with_the_rejected_file(state: GroupState) -> GroupState:
    assert isinstance(state.stage, Ended)
    first = Artifact(name="a.txt", object_name="room/t1/a.txt", size_bytes=1, sha256="0" * 64)
    return state.model_copy(update={"stage": state.stage.model_copy(update={"artifacts": (first,)})})


def test_each_wrong_use_is_found() -> None:
    """A task that begins too early, one that is left waiting, and an answer that holds what was rejected; else nothing."""
    whole = _used()
    log = whole.logs[COMM]
    at = next(place for place, stored in enumerate(log) if len(stored.entry.state.unfinished_tasks) == 2)
    ended = log[at + 1].entry.state
    left = ended.model_copy(update={"tasks": tuple(log[at].entry.state.tasks[-2:-1]) + ended.tasks[-1:]})
    found = [
        list(check_uses(one))
        for one in (
            whole,
            _with_state(whole, at, _begun_early),
            _with_state(whole, at + 1, lambda state: left),
            _with_state(whole, len(log) - 1, _with_the_rejected_file),
        )
    ]
    assert [
        [words in " ".join(told) for told in found] for words in ("began before t2-x", "t2-y of room waits", "was rejected")
    ] == [
        [False, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    ]
    assert found[0] == []


def _debated() -> Evidence:
    """Two members of three debated under the policy that ships, until both had spoken."""
    policy = read_toml((SHIPPED / "debate.toml").read_text()).policy
    story = launched_under(policy, {"for": ["ada"], "against": ["bob"], "chair": ["eve"]}, "ada", "bob", "eve")
    story = story.speaks("ada", Discussion(content="I open the case for the motion.")).speaks("bob", Discussion(content="No."))
    return Evidence(goals=[], results=[], logs={COMM: [StoredEntry(seq=one.seq, entry=one.entry) for one in sequenced(story)]})


def _by(evidence: Evidence, at: int, sender: str) -> Evidence:
    log = list(evidence.logs[COMM])
    event = log[at].entry.event
    assert isinstance(event, Said)
    header = event.message.header.model_copy(update={"sender": AgentId(sender)})
    said = event.model_copy(update={"message": event.message.model_copy(update={"header": header})})
    log[at] = replace(log[at], entry=log[at].entry.model_copy(update={"event": said}))
    return replace(evidence, logs={COMM: log})


def _entered(state: GroupState, times: int) -> GroupState:
    assert state.course is not None
    return state.model_copy(update={"course": state.course.model_copy(update={"visits": (times, 0)})})


def test_each_step_off_a_policys_course_is_found() -> None:
    """Who speaks in another's turn, or where it plays nothing; two messages in one turn; a node that is entered too often."""
    whole = _debated()
    log = whole.logs[COMM]
    launch = log[0].entry.event
    assert isinstance(launch, GroupLaunched) and launch.charter.policy is not None
    once = launch.charter.policy.model_copy(update={"nodes": (launch.charter.policy.nodes[0].model_copy(update={"visits": 1}),)})
    bounded = launch.model_copy(update={"charter": launch.charter.model_copy(update={"policy": once})})
    first = replace(log[0], entry=log[0].entry.model_copy(update={"event": bounded}))
    twice = _with_state(replace(whole, logs={COMM: [first, *log[1:]]}), len(log) - 1, lambda state: _entered(state, 2))
    doubled = replace(whole, logs={COMM: [*log[:2], log[1], *log[2:]]})
    told = [" ".join(check_courses(one)) for one in (whole, _by(whole, 1, "bob"), _by(whole, 1, "eve"), doubled, twice)]
    another = "spoke in debate of room in turn 1, which is another's."
    assert told[:3] == ["", f"bob {another}", f"eve {another}"]
    assert ("Turn 1 of room has 2 messages of ada." in told[3], told[4]) == (
        True,
        "Node debate of room was entered 2 times, and 1 are the most.",
    )


async def test_a_memory_that_was_taken_away_is_forgiven() -> None:
    """An agent whose memory was wiped may lack groups that had ended and run a task again, and still have no wrong record."""
    whole = replace(_run_again(await _whole()), forgetful=frozenset({BOB}))
    lacking = replace(whole, records={**whole.records, BOB: {}})
    assert (check(lacking), check(_record(whole, lambda record: record[:-1])) != []) == ([], True)


async def test_what_was_really_away_is_forgiven() -> None:
    """A wrong answer that says who was lost, a failure for want of a member, and a loss are explained by an absence."""
    whole = await _whole()
    at = whole.results[0].finished_at
    away = [Absence(BOB, at - timedelta(seconds=60), at - timedelta(seconds=30))]
    lacking = _ended(replace(whole, answers={GOAL: "Nine."}, absences=away), degraded=Degraded(lost=(BOB,)))
    failed = _ended(replace(whole, absences=away), reason=Reason.MEMBER_LOST)
    assert (list(check_answers(lacking)), list(check_failures(failed))) == ([], [])


@pytest.mark.parametrize(("since", "until", "told"), [(-60, -30, True), (-60, -1, False), (-1, 1, False), (1, 2, True)])
async def test_a_loss_is_told_of_those_who_are_away(since: int, until: int, told: bool) -> None:
    """A group that is told of a loss is right while the agent is away and shortly after, and wrong before and long after."""
    lost = await _with_a_loss()
    at = lost.logs[ROOM][-1].entry.event.at
    away = Absence(BOB, at + timedelta(seconds=since), at + timedelta(seconds=until))
    assert [bool(list(check_losses(replace(lost, absences=[one])))) for one in (away, replace(away, agent_id=ADA))] == [told, True]


async def test_recovery_is_the_longest_wait_of_an_open_group() -> None:
    """The time until the next entry counts for groups that were open, and for no others."""
    whole = await _whole()
    second, third = (whole.logs[ROOM][place].entry.event.at for place in (1, 2))
    ended = whole.logs[ROOM][-1].entry.event.at
    assert recovery_after(whole.logs, second) == third - second
    assert recovery_after(whole.logs, ended) == timedelta(0)
    assert recovery_after({**whole.logs}, second - timedelta(hours=1)) == timedelta(0)
    assert GoalId("goal-1") in whole.goals


def _led(words: str, *nodes: Mapping[str, Any], **top: Any) -> Evidence:
    """What three members left behind whom a policy led."""
    told = Told(group(*nodes, **top))
    for word in words.split():
        told = told.word(word)
    log = [StoredEntry(seq=one.seq, entry=one.entry) for one in sequenced(told.story)]
    return Evidence(goals=[], results=[], logs={COMM: log})


def _changed(evidence: Evidence, at: int, **fields: object) -> Evidence:
    log = list(evidence.logs[COMM])
    log[at] = replace(log[at], entry=log[at].entry.model_copy(update=fields))
    return replace(evidence, logs={COMM: log})


def _said_otherwise(evidence: Evidence, at: int, payload: Payload) -> Evidence:
    event = evidence.logs[COMM][at].entry.event
    assert isinstance(event, Said)
    return _changed(evidence, at, event=event.model_copy(update={"message": event.message.model_copy(update={"payload": payload})}))


def test_each_wrong_review_is_found() -> None:
    """Another message than the one that was passed, and a draft that strangers were told of; else nothing."""
    whole = _led("says decides:reject says decides:pass again", REVIEWED)
    last = len(whole.logs[COMM]) - 1
    other = _said_otherwise(whole, last, Discussion(content="Quite another thing."))
    leaked = _changed(whole, 1, audience=("ada", "bob", "eve"))
    assert [list(check_reviews(one)) for one in (whole, other, leaked)] == [
        [],
        ["Turn 5 of room is another message than the draft that was passed."],
        ["The draft in turn 1 of room was told to bob."],
    ]


def test_a_watcher_that_is_passed_over_is_found() -> None:
    """Somebody else has the floor after a message that it watches."""
    whole = _led("says decides:nothing says", {**X, "max": 9}, **watched("b"))
    hasty = _with_state(whole, 1, lambda state: whole.logs[COMM][2].entry.state)
    assert [list(check_watchers(one)) for one in (whole, hasty)] == [[], ["b was not asked about turn 1 of room."]]


def test_each_wrong_hearing_is_found() -> None:
    """Of somebody who was removed, of a form that is not filled in, and of a person who counts as lost."""
    gone = _led("says decides:remove/eve says", {**X, "max": 9}, **watched("a"))
    asked = _led("says{agrees=yes}", {**X, "form": {"agrees": "yes/no"}})
    person = _led("says", {**X, "roles": ["a", "b"]}, roles={"b": {"human": "bob"}})
    heard = _changed(gone, 3, audience=("ada", "bob", "eve"))
    unfilled = _said_otherwise(asked, 1, Discussion(content="Yes."))
    lost = MemberLost(at=asked.logs[COMM][0].entry.event.at, comm_id=COMM, agent_id=BOB)
    assert [list(check_hearing(one)) for one in (gone, asked, person, heard, unfilled, _changed(person, 1, event=lost))] == [
        [],
        [],
        [],
        ["Entry 28 of room was told to eve, who had been removed."],
        ["Turn 1 of room lacks agrees."],
        ["bob, a person, counts as lost in room."],
    ]
