"""A fork is the same events through the same machine: it stands where the original stood, and what was changed keeps the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from ioa.errors import ConflictError, InvalidInputError, IoaError
from ioa.group.effects import owed_effects
from ioa.group.events import CancelRequested, Event, GroupLaunched, MemberJoined, Said, SubgroupClosed, SubgroupOpened, TimerFired
from ioa.group.forking import Copied, Forking, Past, charter_of, original_of
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.resuming import check_may_move
from ioa.group.state import Discussing, Ended, GroupState, OpenTask
from ioa.protocol.goals import Fork, Goal, Origin, Reason, Replacement
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId, comm_id_of_task
from ioa.protocol.messages import Decision, Discussion, Payload, Phase
from ioa.protocol.policy import FormField
from ioa.protocol.team import team_of
from ioa.repetition import sketches_of
from tests.unit.group import golden
from tests.unit.group.scenario import COMM, START, card, launched, launched_under, said
from tests.unit.group.test_policy import Told, group
from tests.unit.group.test_visibility import played


def _payload(event: Event) -> Payload:
    assert isinstance(event, Said)
    return event.message.payload


_OPTIONS = {"option": ("bob", "eve", "zoe")}


_JUDGED: Mapping[str, tuple[str, Mapping[str, object]]] = {"a way out": ("h", {}), "a draft": ("speaker", {"review": {"by": "h"}})}


LATER = START + timedelta(days=3)
STORIES = {
    name: events
    for name, events in golden.stories().items()
    if isinstance(events[0], GroupLaunched) and events[0].charter.parent is None
}


def fork_of(
    events: Sequence[Event], at: int, nested: Mapping[str, Sequence[Event]] | None = None, **changed: object
) -> tuple[list[Copied], GroupState]:
    """Fork a group at its entry of this number, from 1 on; nested teams that ended lie between their parents' entries."""
    logs = {COMM: [Past.of(COMM, 10 * number, event) for number, event in enumerate(events, 1)][:at]}
    for name, log in (nested or {}).items():
        logs[CommId(name)] = [Past.of(CommId(name), 10 + number, event) for number, event in enumerate(log, 1)]
    original = original_of(COMM, logs, [event.card for event in events if isinstance(event, MemberJoined)])
    fork = Fork.model_validate({"goal_id": "goal-1", "at": 10 * at, **changed})
    limits = original.charter.limits
    goal = Goal(
        goal_id=GoalId("again"),
        goal=original.charter.goal,
        max_turns=limits.max_turns,
        max_tokens=limits.max_tokens,
        max_cost_micros=limits.max_cost_micros,
        forked_from=fork,
    )
    cards = {AgentId("zoe"): card("zoe", description="Zoe helps too")}
    charter = charter_of(original.charter, goal, cards, LATER + timedelta(hours=1))
    counts: dict[CommId, int] = {}
    for copied in Forking(original, fork, goal, charter, cards, sketches_of).steps():
        counts[copied.comm_id] = counts.get(copied.comm_id, -1) + 1
    counts[goal.comm_id] += 1
    steps = [*Forking(original, fork, goal, charter, cards, sketches_of, counts).steps()]
    state = [one.transition.state for one in steps if one.comm_id == goal.comm_id][-1]
    return steps, state


def gone_on(state: GroupState, copied_until: datetime, at: datetime = LATER) -> GroupState:
    """The copy when it goes on."""
    return step(state, TimerFired(at=at, copied_until=copied_until)).state


def states_of(events: Sequence[Event]) -> list[GroupState]:
    """The states of the original."""
    state, states, policy = None, [], golden.policy_of(events[0])
    for event in events:
        state = step(state, event, policy).state
        states.append(state)
    return states


def as_the_original(state: GroupState, original: GroupState) -> GroupState:
    """A state of a copy, with what is the original's own."""
    names = ("comm_id", "goal_id", "user", "limits", "forked_from", "copying", "drawn_as")
    return state.model_copy(update={name: getattr(original, name) for name in names})


@pytest.mark.parametrize("name", STORIES)
def test_a_fork_stands_where_the_original_stood(name: str) -> None:
    """At each entry before the end, whatever had happened: only ids and the deadline differ, and teams at work are left out."""
    events = STORIES[name]
    forked = 0
    for at, before in enumerate(states_of(events), 1):
        left = any(isinstance(event, SubgroupOpened) for event in events[:at])
        if isinstance(before.stage, Ended) and before.stage.reason is Reason.DEADLINE:
            assert not fork_of(events, at)[1].phase.is_terminal  # whose time was up goes on, since the fork has time of its own
            continue
        if before.phase.is_terminal:
            with pytest.raises(ConflictError):
                fork_of(events, at)
            continue
        if left:
            continue
        _, state = fork_of(events, at)
        assert as_the_original(state, before) == before
        assert state.copying == 1 and state.forked_from == Origin(goal_id=GoalId("goal-1"), at=10 * at)
        forked += 1
    assert forked


@pytest.mark.parametrize("name", STORIES)
def test_a_fork_of_a_fork_stands_there_too(name: str) -> None:
    """What was copied is a log like any other, and so is what has it go on."""
    events = [event for event in STORIES[name] if not isinstance(event, SubgroupOpened | SubgroupClosed)]
    try:
        states = states_of(events)
    except IllegalEventError:
        return  # a story of nothing but nested teams
    at = max(number for number, state in enumerate(states, 1) if not state.phase.is_terminal)
    steps, state = fork_of(events, at)
    resumed = TimerFired(at=LATER, copied_until=events[at - 1].at)
    again = [*(copied.event.model_copy() for copied in steps), resumed]
    renamed = [_back(event) for event in again]
    _, twice = fork_of(renamed, len(renamed))
    assert as_the_original(twice, state) == as_the_original(step(state, resumed, golden.policy_of(events[0])).state, state)


def _back(event: Event) -> Event:
    """An event of the copy in a group of the first one's name."""
    match event:
        case GroupLaunched(charter=charter):
            told = {"comm_id": COMM, "goal_id": GoalId("goal-1")}
            return event.model_copy(update={"charter": charter.model_copy(update=told)})
        case Said(message=message):
            header = message.header.model_copy(update={"comm_id": COMM})
            return event.model_copy(update={"message": message.model_copy(update={"header": header})})
        case _:
            return event


def test_the_times_of_a_fork_go_on_from_where_they_stood() -> None:
    """A floor that had 20 of its 60 seconds left has 20 from now, and no lease has run out meanwhile."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").progresses("t1-1").after(20).says("ada", to="bob")
    _, state = fork_of(story.log, len(story.log))
    assert state.next_deadline() == LATER + timedelta(hours=1)  # as long as it is copied nothing else runs out
    on = gone_on(state, story.now + timedelta(seconds=40))
    task = on.task(TaskId("t1-1"))
    assert isinstance(task, OpenTask) and task.lease_until == LATER + timedelta(seconds=30)
    assert isinstance(on.stage, Discussing) and on.stage.until == LATER + timedelta(seconds=20)
    assert on.copying == 0 and on.turn == state.turn


def test_a_copy_is_moved_by_nothing_but_its_end() -> None:
    """No member, no timer and no lost lease gets in between; a cancellation and the deadline do."""
    story = launched("ada", "bob").says("ada", to="bob")
    steps, state = fork_of(story.log, 2)
    first = steps[0].transition.state
    assert first.copying == 2 and owed_effects(first) == ()
    speech = said("ada", Discussion(content="Me first.", next_speaker=AgentId("bob")), 1, LATER, comm_id=first.comm_id)
    for event, code in (
        (speech, RejectionCode.WRONG_PHASE),
        (TimerFired(at=LATER), RejectionCode.NOTHING_DUE),
        (TimerFired(at=LATER, copied_until=START), RejectionCode.NOTHING_DUE),
    ):
        with pytest.raises(IllegalEventError) as refused:
            check_may_move(first, event)
        assert refused.value.code is code
    for end in (CancelRequested(at=LATER), TimerFired(at=first.limits.deadline)):
        check_may_move(first, end)
        ended = step(first, end)
        assert ended.state.phase.is_terminal and ended.state.copying == 0 and ended.effects
    check_may_move(state, TimerFired(at=LATER, copied_until=START))
    with pytest.raises(IllegalEventError):
        step(gone_on(state, START), TimerFired(at=LATER, copied_until=START))


def test_each_is_told_in_the_copy_what_it_was_told_there() -> None:
    """What a policy keeps from members stays kept from them, entry by entry, by whatever policy."""
    scoped = 0
    for policy, story, log in played():
        at = max(number for number, entry in enumerate(log, 1) if not entry.state.phase.is_terminal)
        steps, _ = fork_of(story.log, at)
        told = [(entry.audience, entry.noticed) for entry in log[:at]]
        assert [(one.transition.audience, one.transition.noticed) for one in steps] == told
        scoped += any(len(entry.audience) < len(entry.state.members) for entry in log[:at])
        assert steps[0].policy == policy
    assert scoped


def test_a_message_is_changed_and_what_it_decided_stays() -> None:
    """Its sender, its kind and to whom the floor goes are as they were; what is said again is compared with the new words."""
    story = launched("ada", "bob").says("ada", to="bob")
    steps, state = fork_of(story.log, 2, say="Count in Roman numbers.")
    event = steps[-1].event
    assert isinstance(event, Said) and isinstance(event.message.payload, Discussion)
    assert (event.message.header.sender, event.message.payload.content) == ("ada", "Count in Roman numbers.")
    assert event.sketches == sketches_of(event.message.payload)
    assert (state.floor_holder, state.turn) == ("bob", 2)


def test_the_words_of_a_task_a_result_and_an_answer_can_be_others() -> None:
    """Each kind has words of its own that are meant."""
    tasked = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob")
    steps, _ = fork_of(tasked.log, 2, say="Do it backwards.")
    assert "Do it backwards." in steps[-1].event.model_dump_json()
    done = tasked.progresses("t1-1").finishes("t1-1")
    steps, state = fork_of(done.log, 4, say="Eleven.")
    assert "Eleven." in steps[-1].event.model_dump_json() and state.floor_holder == "ada"
    answered = launched("ada", "bob").asks("ada").answered("yes")
    steps, _ = fork_of(answered.log, 3, say="no")
    assert steps[-1].event.model_dump()["answer"] == "no"


def test_what_cannot_be_said_there_is_refused_by_the_machine() -> None:
    """An answer that is no option, an entry that nobody has said, and one that is not there."""
    answered = launched("ada", "bob").asks("ada").answered("yes")
    for log, at, say in ((answered.log, 3, "maybe"), (launched("ada", "bob").timer().log, 2, "x"), (answered.log[:1], 1, "x")):
        with pytest.raises(InvalidInputError):
            fork_of(log, at, say=say)


def test_another_agent_stands_in_ones_place_from_the_beginning() -> None:
    """It has the floor, the tasks and the card of its own; the one it stands for is not there."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").progresses("t1-1").says("ada", to="bob")
    steps, state = fork_of(story.log, 4, replace=[Replacement(old=AgentId("bob"), new=AgentId("zoe"))])
    launch = steps[0].event
    assert isinstance(launch, GroupLaunched)
    assert [one.description for one in launch.charter.team_members] == ["ada helps", "Zoe helps too"]
    task = state.task(TaskId("t1-1"))
    assert isinstance(task, OpenTask) and task.assignee == "zoe" and state.floor_holder == "zoe"
    assert not any('"bob"' in one.event.model_dump_json() for one in steps)


def test_nobody_speaks_for_a_person_or_stands_in_for_one() -> None:
    """Neither are a person's words put by who forks, nor is an agent seated in a person's place; those of agents may be."""
    node = {"name": "x", "roles": ["a", "b"], "max": 9, "exits": [{"to": "end"}]}
    told = Told(group(node, roles={"b": {"human": True}})).word("says").word("says").word("says")
    log = told.story.log
    with pytest.raises(InvalidInputError, match="is what a person said, whose words nobody else puts"):
        fork_of(log, 3, say="Yes, publish.")
    with pytest.raises(InvalidInputError, match="bob: nobody stands in for a person"):
        fork_of(log, 2, replace=[{"old": "bob", "new": "zoe"}])
    steps, _ = fork_of(log, 2, say="What else?")
    assert "What else?" in steps[-1].event.model_dump_json()


def test_a_person_stands_in_for_nobody() -> None:
    """What the agent had said would be the person's words, whom nobody has asked."""
    story = launched("ada", "bob").says("ada", to="bob").says("bob", to="ada")
    with pytest.raises(InvalidInputError, match="human-anna: a person stands in for nobody"):
        fork_of(story.log, 3, replace=[{"old": "bob", "new": "human-anna"}])


def test_who_is_replaced_is_a_member_and_who_stands_in_is_none() -> None:
    """Else it would be another group than the one that was forked."""
    story = launched("ada", "bob").says("ada", to="bob")
    for old, new in (("eve", "zoe"), ("bob", "ada")):
        with pytest.raises(IoaError):
            fork_of(story.log, 2, replace=[{"old": old, "new": new}])


def test_a_nested_team_that_has_ended_is_copied_in_its_place() -> None:
    """It bears the id that follows from the new goal, lies between the entries of its parent, and its usage counts once."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").nests("t1-1").nested_ends("t1-1", turns=1).says("ada", to="bob")
    root = launched("ada", "bob")  # the nested team: three entries between 20 and 30
    nested = root.says("ada", to="bob").announces("bob").concludes("bob")
    launch = nested.log[0]
    assert isinstance(launch, GroupLaunched)
    served = {"comm_id": CommId("sub"), "parent": {"comm_id": COMM, "task_id": "t1-1"}}
    log: list[Event] = [GroupLaunched.model_validate({**dict(launch), "charter": {**dict(launch.charter), **served}})]
    log += [event.model_validate({**dict(event), "message": _in_sub(event)}) for event in nested.log[1:] if isinstance(event, Said)]
    logs = {COMM: [Past.of(COMM, 10 * number, event) for number, event in enumerate(story.log, 1)]}
    logs[CommId("sub")] = [Past.of(CommId("sub"), 30 + number, event) for number, event in enumerate(log, 1)]
    original = original_of(COMM, logs)
    fork = Fork(goal_id=GoalId("goal-1"), at=50)
    goal = Goal(goal_id=GoalId("again"), goal="Count to ten.", max_turns=10, forked_from=fork)
    charter = charter_of(original.charter, goal, {}, LATER)
    steps = [*Forking(original, fork, goal, charter, {}, sketches_of, {goal.comm_id: 5, _sub(goal): 3}).steps()]
    assert [one.source_seq for one in steps] == [10, 20, 30, 31, 32, 33, 34, 40, 50]
    inner = [one for one in steps if one.comm_id == _sub(goal)]
    assert [one.transition.state.copying for one in inner] == [3, 2, 1, 0]
    assert inner[-1].transition.state.phase is Phase.CONCLUDED and not any(one.transition.effects for one in inner[:-1])
    assert steps[-1].transition.state.nested == (_sub(goal),) and steps[-1].transition.state.nested_turns == 1
    assert not any('"sub"' in one.event.model_dump_json() or '"room"' in one.event.model_dump_json() for one in steps)


def _sub(goal: Goal) -> CommId:
    return comm_id_of_task(goal.comm_id, TaskId("t1-1"))


def _in_sub(event: Said) -> object:
    header = event.message.header.model_copy(update={"comm_id": CommId("sub")})
    return event.message.model_copy(update={"header": header})


def test_a_nested_team_at_work_is_left_out_and_its_task_is_begun_anew() -> None:
    """With what it had asked: the task is open, has no team, and lends nothing, and may be served by a team again."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").nests("t1-1").team_asks("t1-1")
    story = story.answered("yes", "t1-1").says("ada", to="bob")
    _, copied = fork_of(story.log, len(story.log))
    state = gone_on(copied, story.now)
    task = state.task(TaskId("t1-1"))
    assert isinstance(task, OpenTask) and task.subgroup is None and not task.questions and state.loans == ()


@pytest.mark.parametrize("about", _JUDGED)
@pytest.mark.parametrize("new", ["publish", "pass", "zoe"])
def test_fork_keeps_a_decision_that_names_a_replaced_agent(about: str, new: str) -> None:
    """Replacing an agent does not change an option of the same name that a person chose."""
    rest = [{"name": name, "roles": ["a"], "max": 1, "exits": [{"to": "end"}]} for name in ("publish", "reject")]
    by, more = _JUDGED[about]
    ways = [{"to": name, "by": by} for name in ("publish", "reject")]
    draft = {"name": "draft", "roles": ["a"], "max": 8, "exits": ways, **more}
    roles = {"a": "ada", "w": "reject", "h": {"human": "anna"}}
    policy = team_of({"team": "t", "leader": "a", "roles": roles, "nodes": [draft, *rest]}).policy
    cast = {"a": ["ada"], "w": ["reject"], "h": ["human-anna"]}
    story = launched_under(policy, cast, "ada", "reject", "human-anna").speaks("ada", Discussion(content="Here it is."))
    story = story.speaks("human-anna", Decision(choice="reject", content="Never."))
    steps, state = fork_of(story.log, len(story.log), replace=[{"old": "reject", "new": new}])
    assert _payload(steps[-1].event) == Decision(choice="reject", content="Never.")
    assert state.course == story.state.course and state.is_member(AgentId(new))


def test_fork_replaces_only_member_fields() -> None:
    """Options, texts and exit conditions keep their values."""
    kinds = {"vote": "member", "verdict": "option", "why": "text"}
    form = [
        FormField.model_validate({"name": name, "kind": kind, "options": _OPTIONS.get(kind, ())}) for name, kind in kinds.items()
    ]
    ways = [{"to": "end", "when": {"field": name, "equals": "eve"}} for name in kinds]
    node = {"name": "x", "roles": ["a", "b", "c"], "form": [one.model_dump() for one in form], "exits": ways, "max": 9}
    filled = dict.fromkeys(kinds, "bob")
    free = launched("ada", "bob", "eve").speaks(
        "ada", Discussion(content="Well?", next_speakers=(AgentId("bob"), AgentId("eve")), question=tuple(form))
    )
    led = group(node)
    for story, by in ((free, "bob"), (led, "ada")):
        story = story.speaks(by, Discussion(content="So.", fields=filled))
        steps, _ = fork_of(story.log, len(story.log), replace=[{"old": "bob", "new": "zoe"}])
        answer = _payload(steps[-1].event)
        assert isinstance(answer, Discussion) and answer.fields == {**filled, "vote": "zoe"}
    steps, _ = fork_of(led.log, 1, replace=[{"old": "eve", "new": "zoe"}])
    policy = steps[0].policy
    assert policy is not None
    assert [way.when.equals for way in policy.nodes[0].exits if way.when is not None] == ["zoe", "eve", "eve"]
