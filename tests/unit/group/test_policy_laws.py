"""What holds under every policy that the checker passes: those that ship, and many made at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import product

import pytest

from ioa.group.deadlines import next_deadline
from ioa.group.events import (
    Entry,
    Event,
    MemberJoined,
    MemberLost,
    MemberReturned,
    MessageRefused,
    QuestionAnswered,
    SubgroupClosed,
    SubgroupOpened,
    TimerFired,
    encode_entry,
)
from ioa.group.floor import ROUNDS_OF_SILENCE
from ioa.group.legality import Offer, offer
from ioa.group.machine import step
from ioa.group.policy.deciding import ADD
from ioa.group.questions import MAX_QUESTIONS
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Asking, Discussing, Gathering, GroupState, OpenTask
from ioa.protocol.ids import AgentId, MessageId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pass,
    PassCause,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
)
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import END, MAX_FIELD_CHARS, FieldValue, FormField
from ioa.protocol.teams.checker import state_bytes
from ioa.protocol.teams.team_file import read_toml
from tests.unit.group.scenario import Scenario, card, launched_under, said, specs
from tests.unit.group.test_policy import last_draft
from tests.unit.protocol.policies import SHIPPED, Choose, any_forked_policy, any_policy

MEMBERS = ("ada", "bob", "eve", "joe")


def any_group(seed: int) -> Scenario:
    """A group of four under a policy made at random, cast at random."""
    choose = random.Random(seed).choice
    return cast(any_policy(choose), choose)


def shipped_groups() -> Iterator[Scenario]:
    """A group under each policy that ships."""
    for file in sorted(SHIPPED.glob("*.toml")):
        yield cast(read_toml(file.read_text()).policy, random.Random(file.stem).choice)


def groups(made: int) -> Iterator[Scenario]:
    """Those that ship and so many others."""
    yield from shipped_groups()
    yield from map(any_group, range(made))


def cast(policy: Policy, choose: Choose) -> Scenario:
    """A group of four under a policy, cast at random."""
    holders = {role.name: [one for one in MEMBERS if choose((True, False))] or [choose(MEMBERS)] for role in policy.roles}
    return launched_under(policy, holders, *MEMBERS, max_turns=choose((3, 30)), patient=choose(((), ("bob",))))


def offered_messages(offered: Offer, story: Scenario) -> list[Payload]:
    """One message for each thing that an offer holds."""
    if offered.again:
        return [last_draft(story)]
    if offered.options:
        return [_decision(option, offered, story) for option in offered.options if option != ADD]
    if offered.say is not None:
        return [Discussion(content=offered.say)]
    fields = filled(offered.form, random.Random(len(offered.form)).choice)
    told: list[Payload] = [Discussion(content="Mine.", fields=fields)]
    told += [Discussion(content="Yours.", next_speaker=agent, fields=fields) for agent in offered.next_speakers]
    told += [Discussion(content="On.", go=node, fields=fields) for node in offered.go]
    if offered.asks:
        told.append(_question(story))
    if offered.tasks:
        told += _tasks_offered(story)
    if offered.most_named > 1:
        several = offered.next_speakers[: offered.most_named]
        told.append(Discussion(content="All.", next_speakers=several, fields=fields))
        told += [Discussion(content="All?", next_speakers=several, question=QUESTION)] if offered.may_ask else []
    if END in offered.go and not offered.reviewed:
        told.append(ConcludeGroupDiscussion())
        told += [ConcludeGroupDiscussion(conclusion=Conclusion(content="Done."))] if offered.may_conclude else []
    return told


def _tasks_offered(story: Scenario) -> list[Payload]:
    """Tasks for any members, one that waits for another, and what is open already to wait for."""
    state, holder = story.state, story.state.floor_holder
    assert holder is not None
    able = [one.agent_id for one in state.members if one.takes_part and not one.human] or [holder]
    turn, left = state.turn, [task.task_id for task in state.tasks_left(holder)]
    known = [one for one in left[-1:] if all(state.task_told_to(agent, one) for agent in able)]
    one, both = f"t{turn}-1:{able[-1]}:{','.join(known)}", (f"t{turn}-1:{able[0]}", f"t{turn}-2:{able[-1]}:t{turn}-1")
    if state.members[state.number_of(able[-1])].human:
        return []
    told: list[Payload] = [SyncTaskAssignment(tasks=specs((one,))), AsyncTaskAssignment(tasks=specs(both))]
    return [*told, Pause(triggers=tuple(left))] if left else told


def _decision(option: str, offered: Offer, story: Scenario) -> Decision:
    others = tuple([one for one in offered.members if one != story.state.owner])
    members = others[:1] if option == "remove" else offered.members[-1:] if option == "hint" else ()
    return Decision(choice=option, content="So be it.", members=members)


def _question(story: Scenario) -> AskUser:
    options = ("yes", "no") if len(story.log) % 2 else ()
    told = {"text": f"Well, {len(story.log)}?", "options": options, "default": "no", "until": story.now + timedelta(minutes=5)}
    return AskUser.model_validate(told)


QUESTION = (FormField(name="size", kind="number", lowest=1, highest=3), FormField(name="who", kind="member", required=False))


def filled(form: Sequence[FormField], choose: Choose, text: str | None = None) -> Mapping[str, FieldValue]:
    """A form filled in as it asks for it; with `text` where it asks for one, if that is told."""
    able = [blank for blank in form if blank.kind != "member" or blank.options]
    return {blank.name: _value(blank, choose, text) for blank in able if blank.required or choose((True, False))}


def _value(blank: FormField, choose: Choose, text: str | None) -> FieldValue:
    match blank.kind:
        case "text":
            return text or choose(("mine", "yours, 1"))
        case "number":
            return choose((blank.lowest or 1, 3))
        case "yes_no":
            return choose((True, False))
        case _:
            return choose(blank.options)


def garbage(policy: Policy, offered: Offer, story: Scenario) -> Iterator[Payload]:
    """Messages that are not in an offer."""
    names, ways = (None, *MEMBERS, "zoe"), (None, END, "nowhere", *(node.name for node in policy.nodes))
    held, turn = offered_messages(offered, story), story.state.turn
    fields = filled(offered.form, lambda options: options[0])
    for name, go, content in product(names, ways, ("Mine.", "Yours.", "On.", *filter(None, (offered.say,)))):
        wild = Discussion(content=content, next_speaker=None if name is None else AgentId(name), go=go, fields=fields)
        if not any(isinstance(one, Discussion) and (one.next_speaker, one.go) == (wild.next_speaker, wild.go) for one in held) or (
            (offered.say is not None and content != offered.say) or offered.again
        ):
            yield wild
    yield Discussion(content="Mine.", fields={**fields, "surplus": 1})
    yield Discussion(content="Mine.", fields=fields, question=QUESTION)
    yield Discussion(content="Mine.", fields=fields, writes={"surplus": "Hm."})
    if not offered.options:
        yield Decision(choice="end")
    yield Decision(choice="nowhere")
    too_late = story.state.limits.deadline + timedelta(seconds=1)
    wrong: Sequence[dict[str, object]] = ({"options": ("perhaps",)}, {"until": too_late}, {"until": story.now})
    yield from (_question(story).model_copy(update=more) for more in ({}, *wrong) if more or not offered.asks)
    for guard in offered.guards:
        yield Discussion(content=next(words for kind, words in _FORBIDDEN.items() if getattr(guard, kind)), fields=fields)
    for blank in offered.form:
        others = {name: value for name, value in fields.items() if name != blank.name}
        if blank.required:
            yield Discussion(content="Mine.", fields=others)
        yield from (Discussion(content="Mine.", fields={**others, blank.name: value}) for value in _WRONG[blank.kind])
    if offered.most_named < len(offered.next_speakers) or offered.most_named == 1:
        yield Discussion(content="All.", next_speakers=tuple(map(AgentId, MEMBERS)), fields=fields)
    yield from _wrong_tasks(offered, turn)
    yield Conclusion(content="Done.")
    if END not in offered.go or offered.reviewed:
        yield ConcludeGroupDiscussion()
    if not offered.may_conclude or END not in offered.go:
        yield ConcludeGroupDiscussion(conclusion=Conclusion(content="Done."))


def _wrong_tasks(offered: Offer, turn: int) -> Iterator[Payload]:
    if not offered.tasks:
        yield SyncTaskAssignment(tasks=specs((f"t{turn}-1:ada",)))
    yield AsyncTaskAssignment(tasks=specs((f"t{turn}-1:zoe",)))
    yield AsyncTaskAssignment(tasks=specs((f"t{turn + 1}-1:ada",)))
    yield AsyncTaskAssignment(tasks=specs((f"t{turn}-1:ada:t{turn}-9",)))
    yield Pause(triggers=(TaskId(f"t{turn}-1"),))


_FORBIDDEN = {"not_empty": " ", "longest": "x" * 201, "without": "CanaRies"}

_WRONG: Mapping[str, Sequence[FieldValue]] = {
    "text": (1, True, " "),
    "number": (0, "1", True, 11**9 * -1),
    "yes_no": (1, "yes"),
    "member": ("zoe", 1),
    "option": ("none of them", 0, False),
}


def run(story: Scenario, choose: Choose, *, text: str | None = None) -> Iterator[Scenario]:
    """Let the members say at random what they are offered, pass, fall silent, and go and come, until the group has ended.

    They fill in `text` wherever a form asks for one, if it is told.
    """
    yield story
    while not story.state.phase.is_terminal:
        story = story.happens(_anything(story, choose, text))
        yield story


def _anything(story: Scenario, choose: Choose, text: str | None = None) -> Event:
    state = story.state
    if state.open_tasks and choose(("of a task", "else")) == "of a task":
        return _of_a_task(story, choose(state.open_tasks), choose)
    if state.question is not None and choose((True, True, False)):
        answer = choose(state.question.options or (f"Answer {len(story.log)}.",))
        return QuestionAnswered(at=story.now, turn=state.turn, answer=answer, by="user")
    holder = choose(state.floor or (state.owner,))
    assert story.policy is not None
    due = next_deadline(state)
    assert due is not None
    kind = choose(("says", "says", "says", "says", "passes", "silent", "lost", "returned"))
    lost = [member.agent_id for member in state.members if member.lost]
    able = [member.agent_id for member in state.members if member.takes_part and not member.human]
    if kind == "lost" and able:
        return MemberLost(at=story.now, agent_id=choose(able))
    if kind == "returned" and lost:
        return MemberReturned(at=story.now, agent_id=choose(lost))
    if kind == "silent" or not state.floor:
        return TimerFired(at=due)
    if kind == "passes":
        return said(holder, Pass(cause=choose((PassCause.NOTHING_TO_ADD, PassCause.NO_USABLE_ANSWER))), state.turn, story.now)
    offered = offer(story.policy, state, AgentId(holder))
    if offered is not None and offered.invites and choose((True, False, False)):
        return joining(story, holder, choose(offered.invites))
    payload = Conclusion(content="Done.") if offered is None else choose(offered_messages(offered, story))
    if isinstance(payload, Discussion) and offered is not None and offered.say is None and not offered.again:
        writes = {name: choose(("", f"Thing {len(story.log)}.")) for name in offered.writes if choose((True, False))}
        changed = {"content": f"Point {len(story.log)}.", "fields": filled(offered.form, choose, text), "writes": writes}
        payload = payload.model_copy(update=changed)
    if isinstance(payload, Decision) and choose((True, False, False)):
        code = RejectionCode.BAD_DECISION
        message_id = MessageId(f"m{len(story.log)}")
        return MessageRefused(at=story.now, by=AgentId(holder), turn=state.turn, message_id=message_id, code=code)
    return said(holder, payload, state.turn, story.now)


def _of_a_task(story: Scenario, task: OpenTask, choose: Choose) -> Event:
    """Something that comes of an open task: reports, questions and answers, and what a nested team does."""
    number = len(story.log)
    kind = choose(("progress", "done", "done", "failed", "asks", "nests", "times out"))
    about = {"at": story.now, "task_id": task.task_id}
    report = InformTaskResult(task_id=task.task_id, task_conclusion=f"Result {number}.")
    if task.question:
        told = {"turn": 0, "number": task.question.number, "answer": "yes", "by": "user"}
        return QuestionAnswered.model_validate({**about, **told})
    if task.subgroup is not None:
        ended = {"subgroup": task.subgroup, "reason": choose(("concluded", "failed")), "content": f"Answer {number}."}
        return SubgroupClosed.model_validate({**about, **ended, "turns": choose((0, 1))})
    match kind:
        case "progress":
            payload: Payload = InformTaskProgress(task_id=task.task_id, number=task.progress + 1)
        case "failed":
            payload = report.model_copy(update={"outcome": TaskOutcome.FAILED})
        case "asks" if task.asked < MAX_QUESTIONS:
            asked = {
                "text": f"Well, {number}?",
                "options": ("yes", "no"),
                "default": "no",
                "until": story.now + timedelta(minutes=1),
            }
            payload = TaskQuestion.model_validate({"task_id": task.task_id, "number": task.asked + 1, **asked})
        case "nests" if story.state.turns_left > 1:
            opened = {**about, "by": task.assignee, "subgroup": f"n{number}"}
            return SubgroupOpened.model_validate(opened)
        case "times out":
            due = next_deadline(story.state)
            assert due is not None
            return TimerFired(at=due)
        case _:
            payload = report
    return said(task.assignee, payload, task.turn, story.now)


def joining(story: Scenario, by: str, role: str) -> MemberJoined:
    """Somebody new joins, whom a member has invited or added."""
    newcomer = card(f"new-{len(story.state.members)}")
    told = {"at": story.now, "card": newcomer, "by": by, "turn": story.state.turn, "role": role}
    return MemberJoined.model_validate(told)


def test_what_is_offered_is_taken_and_all_else_is_refused() -> None:
    """A refusal changes nothing, says why, and one member at most has the floor."""
    for seed, story in enumerate(groups(60)):
        choose = random.Random(seed).choice
        for number, here in enumerate(run(story, choose)):
            if not isinstance(here.state.stage, Discussing | Gathering | Asking) or number % 8:
                continue
            assert here.policy is not None
            holder = choose(here.state.floor)
            offered = offer(here.policy, here.state, holder)
            assert offered is not None
            fresh = here.state.model_copy(update={"monologue": None})
            for payload in offered_messages(offered, here):
                step(fresh, said(holder, payload, fresh.turn, here.now), here.policy)
            for role in offered.invites:
                step(fresh, joining(here, holder, role), here.policy)
            for role in [one.name for one in here.policy.roles if one.name not in offered.invites]:
                with pytest.raises(IllegalEventError):
                    step(fresh, joining(here, holder, role), here.policy)
            before = encode_entry(Entry(event=here.log[-1], state=here.state, audience=())).data
            for payload in garbage(here.policy, offered, here):
                with pytest.raises(IllegalEventError):
                    step(fresh, said(holder, payload, fresh.turn, here.now), here.policy)
            for other in [one for one in MEMBERS if one not in here.state.floor]:
                assert offer(here.policy, here.state, AgentId(other)) is None
            assert encode_entry(Entry(event=here.log[-1], state=here.state, audience=())).data == before


def test_every_policy_ends_by_timers_alone_from_wherever_it_is() -> None:
    """However silent its members are, and whether they live or not; while tasks run or wait, their leases run out."""
    waited = 0
    for seed, story in enumerate(groups(150)):
        rng = random.Random(seed)
        for number, here in enumerate(run(story, rng.choice)):
            if number % 7 or here.state.phase.is_terminal:
                continue
            waited += bool(here.state.open_tasks)
            able = [member.agent_id for member in here.state.members if member.takes_part and not member.human]
            silent = here.loses(*(one for one in able if rng.choice((True, False, False))))
            fired = 0
            while not silent.state.phase.is_terminal:
                silent, fired = silent.timer(), fired + 1
            assert fired <= 4 * ROUNDS_OF_SILENCE * len(here.state.members)
    assert waited


def test_every_policy_ends_by_garbage_answers() -> None:
    """Whoever is asked uses up its tries, and whoever is to speak its time."""
    for story in groups(300):
        steps = 0
        while not story.state.phase.is_terminal:
            stage, steps = story.state.stage, steps + 1
            if isinstance(stage, Asking):
                about = {"by": stage.asked, "turn": story.state.turn, "code": RejectionCode.BAD_DECISION}
                story = story.happens(MessageRefused(at=story.now, message_id=MessageId(f"m{steps}"), **about))
            else:
                story = story.timer()
        assert steps <= 14 * ROUNDS_OF_SILENCE * len(MEMBERS)


def test_every_policy_ends_and_no_cap_is_exceeded() -> None:
    """Whatever its members choose: turns of the group, of a node and of a role, and visits are never more than allowed."""
    for seed, story in enumerate(groups(300)):
        steps = 0
        for here in run(story, random.Random(seed).choice):
            steps += 1
            _check_caps(here.state, here.policy)
        assert steps < 3_000


def _check_caps(state: GroupState, policy: Policy | None) -> None:
    course = state.course
    assert policy is not None and course is not None
    seats = len(state.floor) if isinstance(state.stage, Gathering) else 0
    assert state.turns_taken + seats <= state.limits.max_turns
    for node, visits in zip(policy.nodes, course.visits, strict=True):
        assert node.visits is None or visits <= node.visits
    node = policy.nodes[course.node]
    if node.max is not None and node.again == "anew":
        assert course.turns + seats + isinstance(state.stage, Discussing) <= node.max
    for number, total in enumerate(course.total):
        held = [policy.roles[role].at_most for role in state.members[number].roles]
        assert any(cap is None for cap in held) or total <= max(filter(None, held), default=0)


def test_a_join_opens_when_all_nodes_that_it_waits_for_are_done() -> None:
    """The present node and the nodes of the agenda are not done."""
    joined = 0
    for seed in range(20):
        choose = random.Random(seed).choice
        story = cast(any_forked_policy(choose), choose)
        before = story.state
        for here in run(story, choose):
            course, was, policy = here.state.course, before.course, here.policy
            before = here.state
            assert course is not None and was is not None and policy is not None
            assert {*course.done}.isdisjoint(course.agenda)
            if isinstance(here.state.stage, Discussing | Gathering | Asking):
                assert course.node not in (*course.done, *course.agenda)
            is_entered = course.visits[course.node] > was.visits[course.node] and course.struck == was.struck
            if is_entered and course.node in policy.awaited:
                assert policy.awaited[course.node] <= {*course.done}
                joined += len(policy.awaited[course.node]) > 1
    assert joined


def test_who_is_removed_hears_nothing_more_and_has_no_part() -> None:
    """From the next entry on; the owner stays."""
    seen = 0
    for seed, story in enumerate(groups(300)):
        state: GroupState | None = None
        gone: set[str] = set()
        *_, last = run(story, random.Random(seed).choice)
        for event in last.log:
            transition = step(state, event, last.policy)
            assert gone.isdisjoint(transition.audience)
            assert (last.policy is not None and last.policy.hides) or set(transition.audience) == {*_ids(transition.state)} - gone
            state = transition.state
            gone = {member.agent_id for member in state.members if member.removed}
            assert gone.isdisjoint({*state.floor, state.owner})
        seen += len(gone)
    assert seen


def _ids(state: GroupState) -> Iterator[AgentId]:
    return (member.agent_id for member in state.members)


def added_bytes(story: Scenario) -> int:
    """What the policy adds to each entry of a group, as it stands."""
    without = tuple([one.model_copy(update={"roles": ()}) for one in story.state.members])
    free = story.state.model_copy(update={"course": None, "members": without})
    event: Event = TimerFired(at=story.now)
    here, there = (len(encode_entry(Entry(event=event, state=state, audience=())).data) for state in (story.state, free))
    return here - there


def test_a_state_is_small() -> None:
    """A course takes less than 420 bytes of each entry under the policies that ship."""
    for story in shipped_groups():
        for here in run(story, random.Random(1).choice):
            assert added_bytes(here) <= 420


def test_a_state_is_never_larger_than_the_checker_says() -> None:
    """Whatever members fill in, be it as long as it may be; the checker refuses what might come to more than 16 KB."""
    for seed in range(300):
        for here in run(any_group(seed), random.Random(seed).choice, text="\N{PLAYING CARD BACK}" * MAX_FIELD_CHARS):
            assert here.policy is not None
            held = {
                role.name: sum(number in one.roles for one in here.state.members) for number, role in enumerate(here.policy.roles)
            }
            assert added_bytes(here) <= state_bytes(here.policy, held)
