"""Whatever a member, a card or a goal says: the group goes on by what can be read, and ends at its deadline at the latest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from math import inf, nan
from typing import Any

import pytest

from ioa.adapters.otlp import _nanoseconds
from ioa.agent.history import GroupHistory
from ioa.cli.goals import call_table, cost_table
from ioa.client.calls import calls_of
from ioa.client.costs import costs_of
from ioa.client.documents import EntryDocument, StateDocument, told
from ioa.client.questions import questions_of
from ioa.client.spans import GoalTrace
from ioa.client.transcript import Transcript
from ioa.errors import IoaError
from ioa.group.effects import PublishResult, owed_effects
from ioa.group.events import Entry, GroupLaunched, Said, TaskHeard, TimerFired, encode_entry
from ioa.group.machine import legal_kinds, step
from ioa.group.policy.audience import view_for
from ioa.group.rejection import IllegalEventError
from ioa.group.requests import SequencedEntry
from ioa.group.state import Charter, GroupState, Limits
from ioa.ports.group_log import StoredEntry
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import MAX_MESSAGE_BYTES, decode, encode, receive
from ioa.protocol.goal_order import parse_goal
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import LOCAL, AgentId, GoalId, GoalName
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pass,
    PassCause,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskQuestion,
    Thinking,
)
from ioa.protocol.model_calls import ModelCall
from ioa.protocol.results import decode_result, encode_result
from ioa.protocol.team import document_of, team_of
from ioa.protocol.usage import Overhead, Usage
from ioa.runtime.group_metrics import count_entry
from ioa.runtime.ledger import entry_of
from tests.unit.extremes.places import EXTREMES, Whole, changed, packed
from tests.unit.group.scenario import COMM, START, WELL, Scenario, card, charter, launched, limits, said, specs

_MOST_TIMERS, _REPORTED = 40, 3
_FIELDS: Sequence[Mapping[str, Any]] = (
    {"name": "sum", "kind": "number", "lowest": -(2**53), "highest": 2**53},
    {"name": "why", "kind": "text"},
)
_USAGE = Usage(tokens_in=3, tokens_out=2, cost_micros=1, fallbacks=1, tokens_cached=1)


def _patient() -> Scenario:
    return launched("ada", "bob", "eve", patient=("ada", "bob"))


def _asked() -> Scenario:
    question = Discussion.model_validate({"content": "Well?", "next_speakers": ["bob", "eve"], "question": _FIELDS})
    return _patient().speaks("ada", question)


def _at_work() -> Scenario:
    return _patient().assigns_and_waits("ada", "t1-1:bob", "t1-2:eve:t1-1").progresses("t1-1")


_STORIES: Mapping[str, tuple[Callable[[], Scenario], str, Payload]] = {
    "says": (_patient, "ada", Discussion(content="Well.", next_speaker=AgentId("bob"))),
    "asks side by side": (
        _patient,
        "ada",
        Discussion.model_validate({"content": "Well?", "next_speakers": ["bob", "eve"], "question": _FIELDS}),
    ),
    "fills in": (_asked, "bob", Discussion.model_validate({"content": "So.", "fields": {"sum": 1, "why": "so"}})),
    "gives out": (_patient, "ada", SyncTaskAssignment(content="Go.", tasks=specs(("t1-1:bob", "t1-2:eve:t1-1")))),
    "gives out beside": (_patient, "ada", AsyncTaskAssignment(content="Go.", tasks=specs(("t1-1:bob",)))),
    "reports": (_at_work, "bob", InformTaskProgress(task_id="t1-1", number=2, fraction=0.5, usage=_USAGE)),
    "has done": (
        _at_work,
        "bob",
        InformTaskResult.model_validate(
            {
                "task_id": "t1-1",
                "task_conclusion": "Done.",
                "artifacts": [{"name": "a.csv", "object_name": "o", "size_bytes": 1, "sha256": "a" * 64}],
                "usage": _USAGE,
                "approach_usage": _USAGE,
                "calls": [ModelCall(purpose="task", milliseconds=1, usage=_USAGE)],
            }
        ),
    ),
    "asks of its task": (_at_work, "bob", TaskQuestion.model_validate({**WELL, "task_id": "t1-1", "number": 1})),
    "asks out": (_patient, "ada", AskUser.model_validate(WELL)),
    "pauses": (lambda: _patient().assigns("ada", "t1-1:bob").progresses("t1-1"), "ada", Pause(triggers=("t1-1",))),
    "passes": (_patient, "ada", Pass(cause=PassCause.MODEL_UNAVAILABLE)),
    "thinks": (lambda: _patient().after(40), "ada", Thinking()),
    "concludes": (
        _patient,
        "ada",
        ConcludeGroupDiscussion.model_validate({"conclusion": Conclusion(content="Ten.").model_dump(mode="json")}),
    ),
}
"""A story, who says something in it, and what, all of which is legal."""


@pytest.mark.parametrize("story", _STORIES)
def test_whatever_is_said_can_be_read(story: str) -> None:
    """Each message is taken or refused as not legal; what is taken is read, shown, counted, traced and followed by a timer."""
    begin, sender, payload = _STORIES[story]
    before = begin()
    honest = _message(before, sender, payload)
    count = 0
    for place, message in _messages(honest, ("header", "payload") if story == "says" else ("payload",)):
        event = Said(at=before.now, message=message)
        try:
            after = before.happens(event)
        except IllegalEventError:
            continue
        with _telling(place):
            _check(after)
        count += 1
    assert count


@pytest.mark.parametrize("number", EXTREMES, ids=repr)
def test_whatever_stands_on_a_card_ends_no_group(number: object) -> None:
    """A member with such a card does a task, and its group comes to its end."""
    for name in ("patience", "name", "description", "version", "tags", "speaks", "leads"):
        try:
            other = receive(AgentCard, packed({**card("bob").model_dump(mode="json"), name: number}) or b"")
        except IoaError:
            continue
        free = charter("ada", "bob", limits=limits())
        team = (free.team_members[0], other)
        story = _launched(free.model_copy(update={"team_members": team, "limits": limits()}))
        with _telling(name):
            working = story.assigns_and_waits("ada", "t1-1:bob").progresses("t1-1")
            _check(working)
            heard = TaskHeard(task_id="t1-1", at=working.now + timedelta(seconds=1))
            _check(working.after(1).happens(TimerFired(at=working.now + timedelta(seconds=1), heard=(heard,))))


@pytest.mark.parametrize("number", EXTREMES, ids=repr)
def test_whatever_a_goal_may_use_up_its_group_ends(number: object) -> None:
    """Limits that a goal can have are limits by which its group goes on, and ends."""
    for name in ("max_turns", "max_tokens", "max_cost", "timeout"):
        try:
            order = parse_goal(json.dumps({"goal": "Count.", name: number}).encode())
        except (IoaError, TypeError):
            continue
        goal = order.accepted(GoalName(LOCAL, GoalId("g1")), ())
        record = GoalRecord(goal=goal, accepted_at=START)
        assert decode(GoalRecord, encode(record)) == record
        rules = Limits(
            max_turns=goal.max_turns,
            max_tokens=goal.max_tokens,
            max_cost_micros=goal.max_cost_micros,
            deadline=record.deadline,
        )
        story = _launched(charter("ada", "bob", limits=rules))
        with _telling(name):
            _check(story.speaks("ada", Discussion(content="Well.", next_speaker=AgentId("bob")), usage=_USAGE))


_OF_TEAMS: Sequence[Any] = (
    *(0, 1, 10_000, 10**15, 5e-7, 2_592_000, nan, inf),
    *(None, True, "", "a", "*", "9" * 400, [], {}),
)
"""What stands in the fields of a team."""
_TEAM: Mapping[str, Any] = {
    "team": "panel",
    "goal": "Decide.",
    "max_turns": 9,
    "version": 1,
    "leader": "chair",
    "ends": "leader",
    "seed": 5,
    "silent": "skip",
    "heard_by": "all",
    "watchers": [{"role": "guard", "node": "talk", "by": "peer", "every": 2, "may": ["hint", "end", "go"], "go": ["talk"]}],
    "roles": {
        "chair": {"agent": "ada", "prompt": "Lead.", "at_most": 5, "timeout": 30, "hears_all": True, "silent": "…"},
        "peer": {"agents": ["bob", "eve"], "memory": {"window": 3, "last": {"chair": 2}, "summary": 2, "relevant": 2}},
        "guard": {"agent": "dan", "secret": True, "timeout": 10},
    },
    "nodes": [
        {
            "name": "talk",
            "roles": ["chair", "peer"],
            "turns": {"mode": "hub", "by": "chair", "repeat": True, "peers": "after"},
            "opens": {"role": "chair", "say": "Well?"},
            "prompt": "Talk.",
            "max": 6,
            "again": "continue",
            "visits": 3,
            "form": {
                "sum": {"kind": "number", "lowest": -5, "highest": 5, "required": False},
                "who": "member?",
                "so": "this|that?",
            },
            "heard_by": {"peer": ["chair", "peer"]},
            "guards": [{"longest": 500}, {"without": ["apple"]}],
            "review": {"by": "guard", "tries": 2, "then": "drop"},
            "writes": ["plan"],
            "exits": [
                {"to": "vote", "when": {"turns": 2, "rounds": 1, "visits": 1, "says": "*go*", "of": "chair"}},
                {"to": "vote", "when": {"field": "sum", "by": "most", "of": "peer", "equals": 3}},
                {"to": "end", "when": {"left": "peer", "at_most": 0}},
            ],
        },
        {"name": "vote", "roles": ["peer"], "max": 4, "asked": "turn", "tasks": True, "asks": True, "then": ["talk"]},
    ],
}
"""A team that says something of nearly all that can be said of one."""


def test_whatever_a_team_says_its_group_ends() -> None:
    """What is wrong is told; a group that what is left leads begins, goes on with time, and ends, and all of it can be read."""
    count = 0
    for place, document in changed(_TEAM, _OF_TEAMS):
        with _telling(place):
            try:
                team = team_of(document)
            except IoaError:
                continue
            assert team_of(document_of(team)) == team
            json.dumps(document_of(team), allow_nan=False)
            cast = [{"role": one.role, "members": [*one.agents] or ["ada"]} for one in team.fillings]
            names = dict.fromkeys(["ada", "bob", "eve", "dan", *(name for one in cast for name in one["members"])])
            free = charter(*names, limits=limits(max_turns=team.max_turns))
            opened = Charter.model_validate({**dict(free), "policy": team.policy, "cast": cast})
            event = GroupLaunched(at=START, charter=opened)
            story = Scenario(step(None, event).state, (event,), policy=team.policy)
            for sender in (story.state.floor * 2)[:2]:
                with suppress(IllegalEventError):
                    story = story.speaks(sender, Discussion(content="go", fields={"sum": 3}))
            _check(story)
        count += 1
    assert count


def _launched(opened: Charter) -> Scenario:
    event = GroupLaunched(at=START, charter=opened)
    return Scenario(step(None, event).state, (event,))


def _message(before: Scenario, sender: str, payload: Payload) -> Message:
    """What is said, with all that a header may hold."""
    task = before.state.task(payload.task_id) if isinstance(payload, InformTaskProgress | InformTaskResult | TaskQuestion) else None
    overhead = Overhead(read=_USAGE, repair=_USAGE, refused=_USAGE)
    calls = (ModelCall(purpose="speak", about="x", milliseconds=1, usage=_USAGE),)
    turn = before.state.turn if task is None else task.turn
    return said(sender, payload, turn, before.now, usage=_USAGE, overhead=overhead, calls=calls).message


def _messages(honest: Message, parts: Sequence[str]) -> Iterator[tuple[str, Message]]:
    """Yield what can be read of all that the message becomes."""
    yield "as it is", honest
    extremes = (*EXTREMES, *Whole(Message).bounds())
    for place, value in changed(honest.model_dump(mode="json"), extremes, parts):
        data = packed(value)
        if data is not None and len(data) <= MAX_MESSAGE_BYTES:
            try:
                yield place, receive(Message, data)
            except IoaError:
                continue


class _telling:  # noqa: N801 - it reads as a word
    """Says at which place it was that something failed."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            error.add_note(self._place)


def _check(after: Scenario) -> None:
    """See that what has happened can be stored, read, told and followed, and that time brings the group to its end."""
    entries = _entries(after)
    for number, stored in enumerate(entries):
        event, state = stored.entry.event, stored.entry.state
        count_entry(entries[number - 1].entry.state if number else None, event, state)
        json.dumps(told(EntryDocument.of(stored)), allow_nan=False)
    json.dumps(told(StateDocument.of(after.state)), allow_nan=False)
    transcript, history = Transcript(), GroupHistory(COMM)
    for stored in entries:
        transcript.read(stored)
        history.apply(SequencedEntry(seq=stored.seq, previous_seq=stored.seq - 1, entry=stored.entry))
    history.outcomes()
    for span in GoalTrace().of(entries):
        assert 0 <= _nanoseconds(span.start) <= _nanoseconds(span.end) < 2**64
        assert all(-(2**63) <= value < 2**63 for value in span.attributes.values() if isinstance(value, int))
    log = [stored.entry for stored in entries]
    cost_table(costs_of(log))
    call_table([*calls_of(log)])
    questions_of(after.state)
    for member in after.state.members:
        legal_kinds(after.state, member.agent_id, after.now)
    _run_out(after)


def _entries(story: Scenario) -> list[StoredEntry]:
    """What the log holds of a story, read as it is stored."""
    state: GroupState | None = None
    found: list[StoredEntry] = []
    for number, event in enumerate(story.log, 1):
        transition = step(state, event, story.policy)
        state = transition.state
        entry = encode_entry(entry_of(found[-1] if found else None, event, transition, story.policy))
        read = decode(Entry, entry.data)
        assert read == entry.entry
        for member in (*read.audience, *read.noticed) if read.chain else ():
            decode(Entry, encode_entry(view_for(story.policy, read, member)).data)
        found.append(StoredEntry(number, read, len(entry.data)))
    return found


def _run_out(story: Scenario) -> None:
    """Let time pass, at first with reports on all tasks, until the group ends; that comes no later than at its deadline."""
    state, now = story.state, story.now
    for fired in range(_MOST_TIMERS):
        due = state.next_deadline()
        if due is None:
            break
        now = max(now, due) if fired < _MOST_TIMERS - 1 else state.limits.deadline
        reported = state.open_tasks if fired < _REPORTED else ()
        event = TimerFired(at=now, heard=tuple([TaskHeard(task_id=task.task_id, at=now) for task in reported]))
        transition = step(state, event, story.policy)
        state = transition.state
        entry = encode_entry(Entry.of(event, state, transition.audience))
        assert decode(Entry, entry.data) == entry.entry
    assert state.phase.is_terminal
    for effect in owed_effects(state):
        if isinstance(effect, PublishResult):
            assert decode_result(encode_result(effect.result)) == effect.result
