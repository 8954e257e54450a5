"""Golden logs: events, and for each the machine's decision, state, effects and views, as one file of JSON lines.

`python -m tests.unit.group.golden` plays the recorded events again and writes the file anew. A commit that changes the file states
the intended differences. `python -m tests.unit.group.golden --stories` also replaces the events of the stories below.
A state is recorded as the fields that changed since the previous step, and so is each member's view.
"""

from __future__ import annotations

import json
import lzma
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ioa.group.effects import Effect
from ioa.group.events import Entry, Event, GroupLaunched, LaunchAbandoned, TimerFired
from ioa.group.machine import legal_kinds, step
from ioa.group.policy.audience import chain_of, view_for
from ioa.group.policy.let_pass import let_pass
from ioa.group.rejection import IllegalEventError
from ioa.group.state import ParentTask
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Decision, Discussion, PassCause, Phase
from ioa.protocol.policy import Exit, FormField, Node, Policy, Role
from ioa.protocol.usage import Usage
from tests.unit.group.scenario import COMM, GOAL, MAX_TOKENS, START, Scenario, launched, launched_under
from tests.unit.group.test_policy import Told, group
from tests.unit.group.walk import any_event, any_launch, any_time, is_legal

_STEPS = 40


FILE = Path(__file__).parents[2] / "data" / "golden" / "groups.jsonl.xz"

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_EFFECT: TypeAdapter[Effect] = TypeAdapter(Effect)

Json = dict[str, Any]


def read() -> Mapping[str, list[Json]]:
    """Return the recorded steps of each log by its name."""
    with lzma.open(FILE, "rt", encoding="utf-8") as lines:
        return {log["name"]: log["steps"] for log in map(json.loads, lines)}


def events_of(steps: Sequence[Json]) -> list[Event]:
    """Return the events of recorded steps, the rejected ones too."""
    return [_EVENT.validate_json(json.dumps(one["event"])) for one in steps]


def accepted(steps: Sequence[Json]) -> list[Entry]:
    """Return the entries that recorded steps lead to, with the machine of this version."""
    state, entries = None, list[Entry]()
    events = events_of(steps)
    policy = policy_of(events[0])
    for event, one in zip(events, steps, strict=True):
        if "refused" not in one:
            moved = step(state, let_pass(policy, state, event), policy)
            state = moved.state
            entries.append(Entry.of(event, state, moved.audience))
    return entries


def play(events: Sequence[Event]) -> Iterator[Json]:
    """Yield what the machine makes of each event, as it is recorded."""
    state, head, seq, policy = None, None, 0, policy_of(events[0])
    before: dict[str, Json] = {}
    for event in events:
        told: Json = {"event": event.model_dump(mode="json")}
        try:
            event = let_pass(policy, state, event)
            moved = step(state, event, policy)
        except IllegalEventError as refused:
            yield {**told, "refused": [refused.code, refused.message, list(refused.legal)]}
            continue
        state, seq = moved.state, seq + 1
        scoped = policy is not None and policy.is_scoped
        chain = chain_of(policy, state, head) if policy is not None and scoped else ()
        entry = Entry.of(event, state, moved.audience, moved.noticed, chain)
        head = (seq, entry)
        shown = [one.agent_id for one in state.members if scoped and entry.is_shown_to(one.agent_id)]
        views = {agent_id: view_for(policy, entry, agent_id).model_dump(mode="json") for agent_id in shown}
        now: dict[str, Json] = {"": state.model_dump(mode="json")}
        now |= {agent_id: view.pop("state") for agent_id, view in views.items()}
        yield {
            **told,
            "state": _changed(before.get("", {}), now[""]),
            "effects": [[type(one).__name__, _EFFECT.dump_python(one, mode="json")] for one in moved.effects],
            "stamp": [moved.audience, moved.noticed, chain],
            "legal": {one: [kind.__name__ for kind in legal_kinds(state, one, event.at, policy)] for one in state.living()},
            "views": {one: {**view, "state": _changed(before.get(one, {}), now[one])} for one, view in views.items()},
        }
        before |= now


def _changed(before: Json, after: Json) -> Json:
    gone: Json = {name: None for name in before if name not in after}
    return gone | {name: value for name, value in after.items() if name not in before or before[name] != value}


def record(logs: Mapping[str, Sequence[Event]]) -> None:
    """Write the file."""
    with lzma.open(FILE, "wt", encoding="utf-8", preset=9) as file:
        for name, events in logs.items():
            file.write(json.dumps({"name": name, "steps": list(play(events))}, separators=(",", ":")) + "\n")


def policy_of(launch: Event) -> Policy | None:
    """What leads the group that was launched."""
    return launch.charter.policy if isinstance(launch, GroupLaunched) else None


def stories() -> dict[str, Sequence[Event]]:
    """Every kind of event and every way to end, told on purpose; the walks add what nobody thought of."""
    nested = launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve").nests("t1-1", "sub1").nests("t1-2", "sub2")
    tasked = launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve").progresses("t1-1").progresses("t1-2", tokens=7)
    parent = ParentTask(comm_id=CommId("root"), task_id=TaskId("t1-1"))
    told = {
        "discussion": launched("ada", "bob").says("ada", to="bob").says("bob", to="ada").announces("ada").concludes("ada"),
        "sync": launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").progresses("t1-1").finishes("t1-1").announces("ada"),
        "pause": tasked.pauses("ada", "t1-1", "t1-2").finishes("t1-2", tokens=9).finishes("t1-1").announces("ada").concludes("ada"),
        "failed-task": tasked.pauses("ada", "t1-1").fails("t1-1").finishes("t1-2").announces("ada").concludes("ada", Reason.FAILED),
        "nesting": nested.nested_ends("t1-1", "sub1", turns=2, usage=Usage(tokens_in=5)).nested_ends("t1-2", "sub2", Reason.FAILED),
        "nested": launched("bob", "eve", parent=parent, depth=1).assigns("bob", "t1-1:eve").nests("t1-1").cancelled(),
        "cancelled-team": nested.finishes("t1-1").nested_ends("t1-1", "sub1", Reason.CANCELLED, turns=1).cancelled(),
        "cancel": tasked.cancelled(),
        "silence": launched("ada", "bob", "eve").says("ada", to="bob").timers(6),
        "silent-conclusion": launched("ada", "bob").announces("ada").timers(4),
        "handing-timeout": launched("ada", "bob").assigns("ada", "t1-1:bob").timers(4).timers(2),
        "pause-timeout": _keeps(tasked.pauses("ada", "t1-1"), 25),
        "lease": launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").timers(2).announces("ada").concludes("ada"),
        "outage": _late(launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").timer()).timer(),
        "deadline": _late(tasked, 100_000),
        "loss": tasked.loses("bob", "ada").regains("bob").finishes("t1-1").loses("eve").timers(3).regains("ada"),
        "all-lost": launched("ada", "bob").says("ada", to="bob").loses("ada", "bob").timers(4),
        "all-lost-returning": launched("ada", "bob", "eve")
        .loses("bob", "eve", "ada")
        .regains("eve")
        .announces("eve")
        .concludes("eve"),
        "concluded-without-a-member": tasked.finishes("t1-2")
        .pauses("ada", "t1-1")
        .loses("bob")
        .timer()
        .announces("ada")
        .concludes("ada"),
        "lost-speaker": launched("ada", "bob", "eve").announces("ada").loses("ada").concludes("bob"),
        "repetition-pause": tasked.repeats_itself("ada", "m1").repeats_itself("ada", "m2").finishes("t1-1").finishes("t1-2"),
        "repetition-conclusion": launched("ada", "bob")
        .says("ada", to="bob")
        .repeats_itself("bob", "m1")
        .repeats_itself("bob", "m2"),
        "max-turns": launched("ada", "bob", max_turns=2)
        .assigns("ada", "t1-1:bob")
        .progresses("t1-1")
        .says("ada", to="bob")
        .concludes("ada"),
        "budget": tasked.says("ada", to="bob", tokens=MAX_TOKENS).concludes("ada"),
        "task-budget": launched("ada", "bob").says("ada", to="bob", tokens=MAX_TOKENS).concludes("ada"),
        "many-tasks": _gives_out(36),
        "chain": launched("ada", "bob", "eve")
        .assigns_and_waits("ada", "t1-3:ada:t1-2", "t1-2:eve:t1-1", "t1-1:bob")
        .finishes("t1-1")
        .fails("t1-2"),
        "rejection": launched("ada", "bob")
        .assigns("ada", "t1-1:bob")
        .finishes("t1-1")
        .rejects("ada", "t1-1", to="bob")
        .speaks("bob", ConcludeGroupDiscussion(conclusion=Conclusion(content="Nothing.", reason=Reason.FAILED))),
        "reached-in-the-last-turn": launched("ada", "bob", max_turns=1).says("ada", to="bob").concludes("ada"),
        "passes": launched("ada", "bob", patient=["ada"])
        .passes("ada", cause=PassCause.MODEL_UNAVAILABLE)
        .says("bob", to="ada")
        .after(40)
        .thinks("ada")
        .passes("ada", "bob")
        .passes("ada", "bob", cause=PassCause.NO_USABLE_ANSWER),
        "joined": launched("ada", "bob")
        .invites("ada", "eve")
        .says("ada", to="eve")
        .says("eve", to="ada")
        .loses("eve")
        .announces("ada"),
        "dear-task": tasked.progresses("t1-1", tokens=10**15).finishes("t1-2", tokens=10**15).announces("ada").concludes("ada"),
        "dear-team": nested.nested_ends("t1-1", "sub1", usage=Usage(tokens_in=10**15, cost_micros=10**15)).finishes("t1-2"),
        "models-away": _stay_away(launched("ada", "bob", "eve", ruled=["eve"])),
    }
    told |= gathered_stories()
    told |= asking_stories()
    told |= tasked_stories()
    told |= {f"led-{name}": story for name, story in led_stories().items()}
    abandoned = LaunchAbandoned(
        at=START, comm_id=COMM, goal_id=GOAL, by=AgentId("ada"), reason=Reason.NO_AGENT, content="Nobody fits.", parent=parent
    )
    return {**{name: story.log for name, story in told.items()}, "abandoned": (abandoned,)}


def asking_stories() -> dict[str, Scenario]:
    """Questions out of the group, of tasks and of nested teams: answered, in time or not, by whom it was not, and never."""
    parent = ParentTask(comm_id=CommId("root"), task_id=TaskId("t1-1"))
    tasked = launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve").progresses("t1-1").progresses("t1-2")
    policy = policy_of_asking()
    return {
        "asked-answered": tasked.asks("ada").finishes("t1-1").finishes("t1-2").answered("yes").announces("ada"),
        "asked-nobody": _keeps(tasked.asks("ada"), 20),
        "asked-lost": launched("ada", "bob").asks("ada", options=()).loses("ada").answered("Ten, or so."),
        "asked-on-the-last-turn": launched("ada", "bob", max_turns=1).asks("ada").answered("no").concludes("ada"),
        "asked-of-the-parent": launched("bob", "eve", parent=parent, depth=1).asks("bob").answered("no"),
        "task-asks": tasked.task_asks("t1-1").speaks("ada", Decision(task_id=TaskId("t1-1"), choice="yes")).task_asks("t1-1"),
        "task-asks-a-user": tasked.task_asks("t1-1", role="operator").asks("ada").answered("yes", "t1-1").answered("no"),
        "team-asks": tasked.nests("t1-1").team_asks("t1-1", 3).answered("yes", "t1-1").nested_ends("t1-1"),
        "led-asked": launched_under(policy, {"a": ["ada"], "b": ["bob"]}, "ada", "bob").asks("ada").answered("yes").timers(3),
        "led-asked-lost": launched_under(policy, {"a": ["ada"], "b": ["bob"]}, "ada", "bob").asks("ada").loses("ada").timer(),
    }


def tasked_stories() -> dict[str, Scenario]:
    """Tasks under a policy: done, waiting for each other, timed out, of whoever is gone, unheard by some, and open at the end."""
    work = {"name": "work", "roles": ["a", "b"], "tasks": True, "max": 2, "then": "vote"}
    story = group(work, {"name": "vote", "roles": ["a", "c"], "turns": "together"})
    given = story.assigns("ada", "t1-1:bob", "t1-2:eve:t1-1", "t1-3:ada").progresses("t1-1").progresses("t1-3")
    scoped = group({**work, "heard_by": "a"}, {"name": "vote", "roles": ["a", "c"], "tasks": True, "max": 2})
    hidden = scoped.assigns_and_waits("ada", "t1-1:bob").nests("t1-1").nested_ends("t1-1")
    talking = Discussion(content="On.")
    return {
        "led-tasks": given.finishes("t1-1").pauses("ada", "t1-2").finishes("t1-2").speaks("ada", talking).speaks("bob", talking),
        "led-tasks-late": given.pauses("ada", "t1-1", "t1-3").timers(2).speaks("ada", talking).timers(4),
        "led-tasks-gone": story.assigns_and_waits("ada", "t1-1:eve")
        .loses("ada")
        .finishes("t1-1")
        .assigns("bob", "t2-1:eve")
        .timers(9),
        "led-tasks-unheard": hidden.assigns("ada", "t2-1:eve").progresses("t2-1").speaks("ada", talking).timers(4),
    }


def policy_of_asking() -> Policy:
    """Two in turn, who may ask out of the group."""
    node = Node(name="talk", roles=("a", "b"), max=6, asks=True, exits=(Exit(to="end"),))
    return Policy(roles=(Role(name="a"), Role(name="b")), nodes=(node,))


def gathered_stories() -> dict[str, Scenario]:
    """Free groups whose members speak side by side, answered, silent, lost, on the last turns and tokens."""
    question = (FormField(name="vote", kind="member"), FormField(name="size", kind="number", required=False))
    both = Discussion(content="Well?", next_speakers=(AgentId("bob"), AgentId("eve")), question=question)
    asked = launched("ada", "bob", "eve", patient=["eve"]).speaks("ada", both)
    voted = asked.speaks("eve", Discussion(content="Me.", fields={"vote": "eve", "size": 3}))
    last = launched("ada", "bob", "eve", max_turns=3).speaks("ada", both.model_copy(update={"question": ()}))
    return {
        "gather": voted.speaks("bob", Discussion(content="Ada.", fields={"vote": "ada"})).announces("ada").concludes("ada"),
        "gather-silent": asked.after(40).thinks("eve").timers(2).passes("ada").loses("bob"),
        "gather-lost": asked.passes("bob").loses("ada").loses("eve").regains("ada"),
        "gather-last-turns": last.speaks("bob", Discussion(content="Yes."))
        .speaks("eve", Discussion(content="No."))
        .concludes("ada"),
        "reserve": launched("ada", "bob").says("ada", to="bob", tokens=MAX_TOKENS // 2 + 1).concludes("ada"),
    }


def led_stories() -> dict[str, Scenario]:
    """Groups under a policy: every way to find the next speaker, each kind of exit, every way to take a turn and to end."""
    x = {"name": "x", "roles": ["a", "b", "c"]}
    y = {"name": "y", "roles": ["c"]}
    loop = group(
        {**x, "max": 2, "exits": [{"to": "y", "when": {"visits": 2}}, {"to": "x"}]}, y, roles={"a": {"at_most": 2, "timeout": 20}}
    )
    vote = {**x, "turns": "together", "form": {"vote": "member"}}
    hub = {**x, "turns": {"mode": "hub", "by": "a"}, "max": 9, "exits": [{"to": "end", "by": "speaker"}]}
    told = {
        "order": (group({**x, "opens": {"role": "b", "say": "Welcome."}, "then": "y"}, y), "opens:Welcome. says says says"),
        "nominate": (group({**x, "turns": "nominate", "max": 4}), "says:eve says says:eve passes"),
        "random": (group({**x, "turns": "random", "max": 5}, seed=7), "says says says says says"),
        "hub": (group(hub), "says:eve says says:bob says goes:end"),
        "follow": (group({**x, "turns": {"mode": "follow", "follow": {"a": "c", "c": "a"}}, "max": 4}), "says says says says"),
        "loop": (loop, "says says silent says says"),
        "again": (group({**x, "again": "continue", "max": 2, "then": ["y", "end"]}, {**y, "visits": 1, "then": "x"}), "says " * 4),
        "lost": (group({**x, "max": 5}), "-bob says +bob says -ada -bob -eve silent +eve says says"),
        "silence": (group({**x, "max": 50}), "silent passes silent passes silent passes"),
        "silent-end": (group(x, silent="end"), "says silent"),
        "last": (group(x, ends="last"), "says says says"),
        "ends": (group(hub), "ends"),
        "together": (group({**x, "turns": "together", "max": 5, "then": "y"}, y),
                     "says says@eve silent away@ada says@bob says@ada says"),
        "vote": (group({**vote, "exits": [{"to": "y", "remove": {"field": "vote"}}]}, {**y, "roles": ["b", "c"]}),
                 "says{vote=eve} says{vote=eve} says{vote=bob} says"),
        "form": (group({**vote, "turns": "order", "max": 9, "exits": [{"to": "y", "when": {"field": "vote", "equals": "bob"}}]}, y),
                 "says{vote=eve} says{vote=bob} says"),
        "ask": (group({**x, "turns": {"mode": "ask", "by": "a"}, "max": 5}),
                "decides:eve says errs decides:ada says errs errs says -ada says says"),
        "judge": (group({**x, "max": 9, "asked": "turn", "exits": [{"to": "end", "by": "c"}]}),
                  "says decides:stay says silent says away decides:end"),
        "hub-gather": (group({**hub, "max": 7}), "says:bob,eve says@eve says@bob says:bob,eve silent says"),
        "review": (group({**x, "roles": ["a", "b"], "review": {"by": "c", "tries": 2}, "guards": [{"longest": 99}], "max": 3}),
                   "says decides:reject says decides:pass again says errs errs says silent says decides:pass silent"),
        "review-end": (group({**x, "roles": ["a", "b"], "review": {"by": "c", "tries": 1, "then": "end"}}), "says decides:reject"),
        "watch": (group({**x, "turns": {"mode": "hub", "by": "a"}, "max": 9, "visits": 2}, watchers=[
            {"role": "c", "by": "a", "may": ["remove", "hint", "go"], "go": ["x"]}, {"role": "b", "every": 3, "may": ["end"]}]),
                  "says:bob,eve decides:hint/bob says@eve says@bob decides:nothing says:eve decides:x says:bob decides:remove/bob"),
        "person": (group({**x, "max": 5}, roles={"b": {"human": True, "timeout": 90}}), "says silent -eve says says"),
        "fork": (group({**x, "take": "all", "max": 9, "exits": [{"to": "y", "by": "speaker"}, {"to": "z", "by": "speaker"}]},
                       {**y, "then": "w"}, {"name": "z", "roles": ["b"], "then": "w"},
                       {"name": "w", "roles": ["a"], "join": "all", "visits": 2, "then": ["x", "end"]}),
                 "goes:z says says says goes:y silent says says"),
        "fork-closed": (group({**x, "take": "all", "max": 1, "exits": [{"to": "y"}, {"to": "z", "when": {"visits": 2}}]},
                              {**y, "then": "w"}, {"name": "z", "roles": ["b"], "then": "w"},
                              {"name": "w", "roles": ["a"], "join": "all"}), "says says"),
        "board": (group({**x, "writes": ["plot", "notes"], "max": 4}), "writes:plot says writes:plot writes:notes"),
        "invites": (group({**x, "roles": ["a", "b"], "invites": True, "max": 4}), "says invites:joe/b says says says"),
        "out-of-turns": (group({**x, "max": 9}, max_turns=2), "says says"),
    }  # fmt: skip
    ended = {name: _play(story, words) for name, (story, words) in told.items()}
    return {
        name: story if story.phase is not Phase.CONCLUDING or story.holder is None else story.concludes(story.holder)
        for name, story in ended.items()
    } | {"cancelled": group(x).cancelled()}


_LED = (Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING)


def _play(story: Scenario, words: str) -> Scenario:
    """Let members say these words, as `Told` reads them, while they discuss."""
    told = Told(story)
    for word in words.split():
        told = told.word(word) if told.story.phase in _LED else told
    return told.story


def walk(seed: int) -> Sequence[Event]:
    """What is accepted on a random walk."""
    choose, now = random.Random(seed).choice, START
    log: list[Event] = [any_launch(choose)]
    state = step(None, log[0]).state
    for _ in range(_STEPS):
        at = any_time(state, now, choose)
        event = any_event(state, at, choose)
        if is_legal(state, event):
            state, now = step(state, event).state, max(at, now)
            log.append(event)
    return log


def _keeps(story: Scenario, reports: int) -> Scenario:
    """Report progress every 25 s, and look at the deadlines in between."""
    for _ in range(reports):
        if story.phase != "paused":
            break
        story = story.after(25).progresses("t1-1").progresses("t1-2")
        due = story.state.next_deadline()
        if due is not None and due <= story.now:
            story = story.happens(TimerFired(at=story.now))
    return story


def _stay_away(story: Scenario) -> Scenario:
    """Both members that a model speaks for pass, again and again, until the group ends."""
    while story.holder is not None:
        story = story.after(30).passes(story.holder, cause=PassCause.MODEL_UNAVAILABLE)
    return story


def _late(story: Scenario, seconds: float = 3_600) -> Scenario:
    late = story.after(seconds)
    return late.happens(TimerFired(at=late.now))


def _gives_out(tasks: int) -> Scenario:
    story = launched("ada", "bob", "eve", max_turns=tasks + 2)
    for number in range(tasks):
        story = story.assigns_and_waits("ada", f"t{number + 1}-1:{('bob', 'eve')[number % 2]}").finishes(
            f"t{number + 1}-1", tokens=1
        )
    return story.announces("ada").concludes("ada")


def main() -> None:
    """Record the file again."""
    logs: dict[str, Sequence[Event]] = {name: events_of(steps) for name, steps in read().items()}
    if "--stories" in sys.argv:
        logs |= {f"story-{name}": events for name, events in stories().items()}
    record(logs)


if __name__ == "__main__":
    main()
