"""What members of a group hear and see under a policy that keeps something from them: laws over policies made at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache, partial

import pytest

from ioa.group.events import Entry, Event, GroupLaunched, QuestionAnswered, Said, SubgroupClosed, encode_entry, name_of
from ioa.group.legality import legal_kinds, offer
from ioa.group.machine import step
from ioa.group.policy.hearing import is_withheld
from ioa.group.policy.visibility import seen_by, shares_view, view_for
from ioa.group.rejection import IllegalEventError
from ioa.group.state import Discussing, GroupState
from ioa.group.tasks import KEPT
from ioa.protocol.codec import decode
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskQuestion,
)
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import Exit, Node, Role
from tests.unit.group.scenario import Scenario, launched_under, said
from tests.unit.group.test_policy_laws import MEMBERS, cast, run
from tests.unit.protocol.policies import Choose, any_scoped_policy

GROUPS = 160


def entries(log: Sequence[Event], policy: Policy) -> list[Entry]:
    """The entries that routers make of a log."""
    made: list[Entry] = []
    for event in log:
        after = step(made[-1].state if made else None, event, policy)
        made.append(Entry(event=event, audience=after.audience, state=after.state))
    return made


@cache
def played() -> Sequence[tuple[Policy, Scenario, Sequence[Entry]]]:
    """Groups under such policies, from their launch to their end."""
    return [_played(random.Random(seed).choice) for seed in range(GROUPS)]


def _played(choose: Choose) -> tuple[Policy, Scenario, Sequence[Entry]]:
    *_, last = run(cast(any_scoped_policy(choose), choose), choose)
    assert last.policy is not None
    return last.policy, last, entries(last.log, last.policy)


def record(policy: Policy, log: Sequence[Entry], agent_id: AgentId) -> list[Entry]:
    """What a member has seen of a group in the end, up to the entry that removed it."""
    roles = next(member.roles for member in log[-1].state.members if member.agent_id == agent_id)
    shown = list[Entry]()
    for entry in log:
        shown.append(view_for(policy, entry, agent_id, roles))
        if any(member.agent_id == agent_id and member.removed for member in entry.state.members):
            break
    return shown


def members_of(log: Sequence[Entry]) -> Sequence[AgentId]:
    """All who were in a group in the end, also those who have joined on the way."""
    return [member.agent_id for member in log[-1].state.members]


def is_told(entry: Entry, agent_id: AgentId, *, hears_all: bool) -> bool:
    """Whether a member knows what happened, be it that all were told before it joined, or that it sees all since."""
    then = {member.agent_id for member in entry.state.members}
    return agent_id in entry.audience or (agent_id not in then and (hears_all or then <= {*entry.audience}))


def test_a_task_does_not_tell_who_else_is_told_of_it_where_a_secret_role_hears_it() -> None:
    """Neither who gives it out nor who does it learns who holds that role, be the task open, closed or folded."""
    roles = (Role(name="chair"), Role(name="chief"), Role(name="spy", secret=True), Role(name="crowd"))
    plan = Node(name="plan", roles=("chief",), heard_by=("spy",), max=9, tasks=True, exits=(Exit(to="talk"),))
    talk = Node(name="talk", roles=("crowd",), max=9, exits=(Exit(to="end"),))
    policy = Policy(roles=roles, nodes=(plan, talk))
    names = ("ada", "bob", "eve", "zoe", "kim")

    def seen(spy: str, agent_id: str) -> Sequence[GroupState]:
        story = launched_under(policy, {"chair": ["ada"], "chief": ["bob"], "spy": [spy], "crowd": ["zoe", "kim", "eve"]}, *names)
        opened = story.assigns("bob", "t1-1:zoe", "t1-2:bob")
        closed = opened
        for turn in range(1, KEPT):
            given = (f"t{turn}-1", f"t{turn}-2")
            closed = closed if turn == 1 else closed.assigns("bob", f"{given[0]}:zoe", f"{given[1]}:bob")
            closed = closed.progresses(given[0]).progresses(given[1]).finishes(given[0]).finishes(given[1])
        assert closed.state.folded and opened.state.tasks[0].earshot
        return [seen_by(policy, one.state, AgentId(agent_id)) for one in (opened, closed)]

    for agent_id in ("bob", "zoe"):
        assert seen("eve", agent_id) == seen("kim", agent_id)


def test_what_is_said_outside_of_a_members_hearing_changes_nothing_that_it_sees() -> None:
    """Whatever others say and ask, are answered, and call what they decide by: its record is the same to the byte."""
    changed = 0
    asked = set[bool]()
    joined = 0
    for policy, _, log in played():
        for agent_id in members_of(log):
            joined += agent_id not in MEMBERS
            asked |= {agent_id in entry.audience for entry in log if isinstance(entry.event, QuestionAnswered)}
            held = next(member.roles for member in log[-1].state.members if member.agent_id == agent_id)
            is_known = partial(is_told, agent_id=agent_id, hears_all=not policy.hearing_all.isdisjoint(held))
            heard = [_words(entry.event) for entry in log if is_known(entry)]
            others = [
                entry.event if is_known(entry) or _words(entry.event) in heard else _with_other_words(entry.event) for entry in log
            ]
            changed += others != [entry.event for entry in log]
            seen = [encode_entry(view).data for view in record(policy, log, agent_id)]
            assert seen == [encode_entry(view).data for view in record(policy, entries(others, policy), agent_id)]
    assert changed and joined and asked == {True, False}


def _words(event: Event) -> str:
    """What is said, which of a draft that is passed is said twice."""
    payload = event.message.payload if isinstance(event, Said) else None
    return payload.content if isinstance(payload, Discussion) else ""


def _with_other_words(event: Event) -> Event:
    if isinstance(event, Said) and isinstance(event.message.payload, Decision) and event.message.payload.content:
        decided = event.message.payload  # a hint, or why a draft is rejected
        payload: Payload = decided.model_copy(update={"content": f"canary {decided.content}"})
        return event.model_copy(update={"message": event.message.model_copy(update={"payload": payload})})
    if isinstance(event, Said) and isinstance(event.message.payload, AskUser):
        asked = event.message.payload
        payload = asked.model_copy(update={"text": f"canary {asked.text}"})
        return event.model_copy(update={"message": event.message.model_copy(update={"payload": payload})})
    if (told := _with_other_words_of_a_task(event)) is not None:
        return told
    if isinstance(event, QuestionAnswered) and event.answer.startswith("Answer"):  # any words, and no option
        return event.model_copy(update={"answer": f"canary {event.answer}"})
    if not isinstance(event, Said) or not isinstance(event.message.payload, Discussion):
        return event
    message, words = event.message, event.message.payload.content
    if words.startswith("Welcome"):
        return event  # a node opens with these words and no others
    header = message.header.model_copy(update={"decided_by": DecidedBy(kind="model", name="canary")})
    changed: dict[str, object] = {"content": f"canary {words}", "writes": {}}
    payload = message.payload.model_copy(update=changed)
    return event.model_copy(update={"message": message.model_copy(update={"header": header, "payload": payload}), "sketches": ()})


def _with_other_words_of_a_task(event: Event) -> Event | None:
    """The same about a task, in other words, and at another cost; None if it is about none."""
    if isinstance(event, SubgroupClosed):
        return event.model_copy(update={"content": f"canary {event.content}"})
    if not isinstance(event, Said):
        return None
    match event.message.payload:
        case SyncTaskAssignment() | AsyncTaskAssignment() as given:
            tasks = [one.model_copy(update={"task_desc": f"canary {one.task_desc}"}) for one in given.tasks]
            payload: Payload = given.model_copy(update={"content": "canary", "tasks": tuple(tasks)})
        case InformTaskResult() as result:
            payload = result.model_copy(update={"task_conclusion": f"canary {result.task_conclusion}"})
        case InformTaskProgress() as progress:
            payload = progress.model_copy(update={"draft": "canary"})
        case TaskQuestion() as question:
            payload = question.model_copy(update={"text": f"canary {question.text}"})
        case Pause() as pause:
            payload = pause.model_copy(update={"content": "canary"})
        case _:
            return None
    sketches = ("canary",) * len(event.sketches)
    return event.model_copy(update={"message": event.message.model_copy(update={"payload": payload}), "sketches": sketches})


def test_tasks_of_which_a_member_was_told_nothing_are_in_nothing_that_it_is_shown() -> None:
    """Neither their ids, in whatever the state tells of them, nor who does them; and nothing is said of them when it asks."""
    hidden = 0
    for policy, story, log in played():
        for number, agent_id in enumerate(map(AgentId, MEMBERS)):
            mine = record(policy, log, agent_id)
            told = {task.task_id for entry in mine for task in entry.state.tasks}
            all_tasks = {task.task_id: task for entry in log for task in entry.state.tasks}
            untold = {task_id for task_id, task in all_tasks.items() if task.earshot and number not in task.earshot}
            hidden += len(untold)
            assert told.isdisjoint(untold)
            shown = b"".join(encode_entry(entry).data for entry in mine)
            mentioned = {one for one in untold for event in _heard_by(log, agent_id) if one in str(event)}
            assert not [one for one in untold - mentioned if f'"{one}"'.encode() in shown or _packed(one) in shown]
        refusals = {_asked_about(policy, story, entry, agent_id, task_id) for entry in log for agent_id, task_id in _untold(entry)}
        assert refusals <= {"unknown_task", "task_closed", "group_ended", "wrong_phase", None}
    assert hidden


def _heard_by(log: Sequence[Entry], agent_id: AgentId) -> Sequence[Event]:
    return [entry.event for entry in log if agent_id in entry.audience]


def _packed(task_id: str) -> bytes:
    """An id as it is encoded."""
    return bytes([0xA0 | len(task_id)]) + task_id.encode()


def _untold(entry: Entry) -> Iterator[tuple[AgentId, TaskId]]:
    for number, agent_id in enumerate(map(AgentId, MEMBERS)):
        for task in entry.state.tasks:
            if task.earshot and number not in task.earshot:
                yield agent_id, task.task_id


def _asked_about(policy: Policy, story: Scenario, entry: Entry, agent_id: AgentId, task_id: TaskId) -> str | None:
    """What a member is told that reports on a task of which it was told nothing: the same as of one that there never was."""
    codes = []
    for named in (task_id, TaskId(task_id.replace("-", "-no", 1))):
        result = InformTaskResult(task_id=named, task_conclusion="Mine.")
        with pytest.raises(IllegalEventError) as refusal:
            step(entry.state, said(agent_id, result, 1, story.now), policy)
        codes.append((refusal.value.code, refusal.value.message.replace("-no", "-"), refusal.value.legal))
    assert codes[0] == codes[1]
    return codes[0][0]


def test_secret_roles_and_words_of_others_are_in_nothing_that_a_member_is_shown() -> None:
    """Neither who holds them, nor what they are told, nor what is to be said where it hears nothing."""
    hidden = 0
    for policy, story, _ in played():
        marked = policy.model_copy(
            update={"roles": tuple([role.model_copy(update={"prompt": f"canary-{role.name}-"}) for role in policy.roles])}
        )
        launch = story.log[0]
        assert isinstance(launch, GroupLaunched)
        launch = launch.model_copy(update={"charter": launch.charter.model_copy(update={"policy": marked})})
        log = entries([launch], marked)
        for number, agent_id in enumerate(map(AgentId, MEMBERS)):
            held = log[0].state.members[number].roles
            knows = any(marked.roles[role].hears_all for role in held)
            data = encode_entry(view_for(marked, log[0], agent_id)).data
            view = decode(Entry, data)
            for role, name in enumerate(one.name for one in marked.roles):
                is_open = knows or role in held or not marked.roles[role].secret
                hidden += not is_open
                assert (f"canary-{name}-".encode() in data) is is_open
                for member, real in zip(view.state.members, log[0].state.members, strict=True):
                    assert (role in member.roles) == (role in real.roles and is_open)
    assert hidden


def test_offer_of_the_floor_holder_by_its_view_is_the_routers() -> None:
    """What the floor holder may say by its own view is what the router accepts."""
    offers = 0
    for policy, _, log in played():
        for entry in log:
            for agent_id in map(AgentId, MEMBERS):
                seen = seen_by(policy, entry.state, agent_id)
                assert (agent_id in seen.floor) == (agent_id in entry.state.floor)
                if agent_id in seen.floor and isinstance(seen.stage, Discussing):
                    offers += 1
                    mine, real = offer(policy, seen, agent_id), offer(policy, entry.state, agent_id)
                    assert mine is not None and real is not None
                    concludes = mine.may_conclude if _leads_in_secret(policy) else real.may_conclude
                    assert mine._replace(form=()) == real._replace(form=(), may_conclude=concludes)
    assert offers


def _leads_in_secret(policy: Policy) -> bool:
    """Whether members do not know who leads, and so neither who states the conclusion."""
    return policy.leader is not None and policy.role_numbers[policy.leader] in policy.secrets


def test_refolding_gives_the_same_audiences_through_the_encoding() -> None:
    """A router that reads the group from its log goes on as the other one did."""
    for policy, _, log in played():
        state: GroupState | None = None
        for entry in log:
            read = decode(Entry, encode_entry(entry).data)
            after = step(state, read.event, policy)
            assert (after.state, after.audience) == (read.state, read.audience)
            state = read.state


def test_who_hears_nothing_learns_nothing_by_being_refused() -> None:
    """The rejection has the same words, whichever member has the floor."""
    refused = set()
    for policy, story, log in played():
        for entry in log[:-1:3]:
            for agent_id in map(AgentId, MEMBERS):
                seen = seen_by(policy, entry.state, agent_id)
                if seen.stage.phase == "elsewhere":
                    known = tuple(map(name_of, legal_kinds(seen, agent_id, story.now, policy)))  # of its own tasks
                    with pytest.raises(IllegalEventError) as refusal:
                        step(entry.state, said(agent_id, Discussion(content="Me."), entry.state.turn, story.now), policy)
                    refused.add((agent_id, refusal.value.message, refusal.value.legal == known))
    assert len(refused) == len(MEMBERS)


def test_who_is_to_speak_beside_others_is_not_shown_what_they_said() -> None:
    """Until it has spoken itself, or its time is up; then it may read all of it."""
    withheld = 0
    for policy, _, log in played():
        for now, entry in enumerate(log):
            for agent_id in map(AgentId, MEMBERS):
                hidden = [one for one in log[: now + 1] if is_withheld(policy, entry.state, one.event, agent_id)]
                withheld += len(hidden)
                assert not hidden or agent_id in entry.state.floor
        assert not any(is_withheld(policy, log[-1].state, one.event, AgentId(name)) for one in log for name in MEMBERS)
    assert withheld


def test_members_with_a_shared_view_receive_equal_entries() -> None:
    """One encoding is sent to all members with the same key, so their views must be equal."""
    for policy, _, free in played():
        for entry in free:
            views: dict[object, Entry] = {}
            for agent_id in dict.fromkeys((*entry.audience, *entry.state.hearing)):
                view = view_for(policy, entry, agent_id)
                assert views.setdefault(shares_view(policy, entry, agent_id), view) == view
