"""Walk a group at random: any event at any time, mostly plausible, often not. The choices come from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from ioa.group.deadlines import next_deadline
from ioa.group.events import (
    CancelRequested,
    Event,
    GroupLaunched,
    Kind,
    MemberJoined,
    MemberLost,
    MemberReturned,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    SubgroupClosed,
    SubgroupOpened,
    TaskDecision,
    TaskHeard,
    TimerFired,
)
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError
from ioa.group.state import ClosedTask, Ended, Gathering, GroupState
from ioa.protocol.goals import Degraded, Reason
from ioa.protocol.ids import AgentId, CommId, MessageId, TaskId
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
    Phase,
    RejectedTask,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
    TaskSpec,
    Thinking,
)
from ioa.protocol.policy_parts import FormField
from ioa.protocol.usage import MICROS, NOTHING, Usage
from tests.unit.group.scenario import MAX_TOKENS, START, card, charter, limits, said

T = TypeVar("T")

AGENTS = tuple(AgentId(name) for name in ("ada", "bob", "eve"))
_ENDING = (Phase.CONCLUDING, Phase.CONCLUDED, Phase.FAILED, Phase.CANCELLED)
STRANGER = AgentId("mallory")
UNKNOWN_TASK = TaskId("t99")


class Choose(Protocol):
    """Choose one of several."""

    def __call__(self, options: Sequence[T], /) -> T:
        """Any of them, each with the same chance."""


def any_launch(choose: Choose) -> GroupLaunched:
    """A group of one to three members and one to twelve turns."""
    members = AGENTS[: choose((1, 2, 3))]
    rules = limits(
        max_turns=choose((1, 2, 3, 6, 12)),
        max_depth=choose((0, 1)),
        deadline=choose((timedelta(hours=1), timedelta(days=1))),
    )
    patient, ruled = choose(((), AGENTS[:1], AGENTS)), choose((None, None, AGENTS[1:]))
    return GroupLaunched(at=START, charter=charter(*members, limits=rules, patient=patient, ruled=ruled))


def any_time(state: GroupState, now: datetime, choose: Choose) -> datetime:
    """Now, a moment later, exactly when something is due, after an outage, or back in time."""
    due = next_deadline(state) or now
    seconds = choose((0, 1, 1, 1, 1, 20, 20, 20, -40, choose((700, 700, 700, 100_000))))
    return choose((now, now + timedelta(seconds=seconds), now if due == state.limits.deadline else max(now, due)))


def any_event(state: GroupState, at: datetime, choose: Choose) -> Event:
    """Any event, legal or not; most often one that carries the discussion on, if some attempts find one, so that walks get far."""
    event = arbitrary_event(state, at, choose)
    if choose((True, True, True, False)) and state.phase not in _ENDING:
        for _ in range(15):
            if is_legal(state, event) and step(state, event).state.phase not in _ENDING:
                break
            event = arbitrary_event(state, at, choose)
    return event


def is_legal(state: GroupState | None, event: Event) -> bool:
    """Whether the machine takes the event."""
    try:
        step(state, event)
    except IllegalEventError:
        return False
    return True


def arbitrary_event(state: GroupState, at: datetime, choose: Choose) -> Event:
    """Any event, legal or not; messages outnumber what the control plane reports."""
    if choose((True, True, True, False)):
        return _any_said(state, at, choose)
    if isinstance(state.stage, Gathering) and choose((True, False)):
        return _any_opening_of_a_team(state, at, choose)
    seldom = choose((_any_cancel, _any_invitation, *(_any_other_launch,) * 13))
    if state.question is not None and choose((True, False)):
        return _any_answer(state, at, choose)
    make = choose(
        (
            *(_any_timer, _any_loss, _any_opening_of_a_team, _any_end_of_a_team, _any_repetition) * 2,
            *(_any_return, _any_answer),
            seldom,
        )
    )
    return make(state, at, choose)


def _any_timer(state: GroupState, at: datetime, choose: Choose) -> Event:
    return TimerFired(at=at, heard=_any_heard(state, at, choose))


def _any_loss(state: GroupState, at: datetime, choose: Choose) -> Event:
    return MemberLost(at=at, agent_id=_anybody(state, choose))


def _any_return(state: GroupState, at: datetime, choose: Choose) -> Event:
    return MemberReturned(at=at, agent_id=_anybody(state, choose))


def _any_invitation(state: GroupState, at: datetime, choose: Choose) -> Event:
    holder = state.floor_holder or AGENTS[0]
    who = choose(("zoe", *(_anybody(state, choose),) * 9))  # a small group gets further
    return MemberJoined(at=at, card=card(who), by=choose((holder, holder, _anybody(state, choose))), turn=state.turn)


def _any_cancel(state: GroupState, at: datetime, choose: Choose) -> Event:
    return CancelRequested(at=at, why=choose(("", "enough")))


def _any_other_launch(state: GroupState, at: datetime, choose: Choose) -> Event:
    return any_launch(choose)


def _any_repetition(state: GroupState, at: datetime, choose: Choose) -> Event:
    holder = state.floor_holder or AGENTS[0]
    return RepetitionRefused(
        at=at,
        by=choose((holder, holder, holder, _anybody(state, choose))),
        turn=choose((state.turn, state.turn, state.turn, max(0, state.turn - 1))),
        message_id=MessageId(choose(("m1", "m2", "m3"))),
        repeats_turn=1,
    )


def _any_opening_of_a_team(state: GroupState, at: datetime, choose: Choose) -> Event:
    task_id, assignee, _ = _any_task(state, choose)
    return SubgroupOpened(at=at, task_id=task_id, by=assignee, subgroup=_subgroup(task_id, choose))


def _any_answer(state: GroupState, at: datetime, choose: Choose) -> Event:
    """An answer to who has asked out of the group, or to a task."""
    task_id, answer = _any_task(state, choose)[0], choose(("yes", "yes", "maybe"))
    number = getattr(state.task(task_id), "asked", 0)
    events = (
        QuestionAnswered(at=at, turn=choose((state.turn, state.turn, 0)), answer=answer, by="user"),
        QuestionAnswered(at=at, task_id=task_id, number=number, answer=answer, by="user"),
    )
    return choose(events)


def _any_heard(state: GroupState, at: datetime, choose: Choose) -> tuple[TaskHeard, ...]:
    """Progress on some tasks, seldom on ones that are closed or unknown."""
    if choose((True, False)):
        return ()
    heard = [task.task_id for task in choose((state.open_tasks, state.open_tasks, state.tasks)) if choose((True, False))]
    return tuple(
        TaskHeard(task_id=task_id, at=at - timedelta(seconds=choose((0, 1, 20, 40, -5)))) for task_id in (*heard, UNKNOWN_TASK)
    )


def _any_end_of_a_team(state: GroupState, at: datetime, choose: Choose) -> SubgroupClosed:
    """A nested team that took no more turns than it was lent, but perhaps a few tokens more."""
    task_id, _, _ = _any_task(state, choose)
    subgroup, reason = _subgroup(task_id, choose), choose((Reason.CONCLUDED, Reason.FAILED))
    loan = state.loan(subgroup)
    turns = choose((0, loan.turns)) if loan is not None else 0
    usage = choose((NOTHING, Usage(tokens_out=200), Usage(tokens_out=MAX_TOKENS)))
    degraded = choose((None, None, Degraded(lost=(AgentId("zoe"),), tasks=(UNKNOWN_TASK,))))
    return SubgroupClosed(
        at=at, task_id=task_id, subgroup=subgroup, reason=reason, content="…", turns=turns, usage=usage, degraded=degraded
    )


def _any_usage(choose: Choose) -> Usage | None:
    """Most often little, seldom enough to spend a budget at once."""
    small = choose((None, None, Usage(), Usage(tokens_in=3, tokens_out=1), Usage(cost_micros=MICROS)))
    return choose((small,) * 8 + (choose((Usage(tokens_in=MAX_TOKENS), Usage(cost_micros=10 * MICROS))),))


def _any_said(state: GroupState, at: datetime, choose: Choose) -> Said:
    holder = choose(state.floor or AGENTS[:1])
    reports_on_a_task = choose((True, False))
    if state.tasks and reports_on_a_task:
        task_id, assignee, turn = _any_task(state, choose)
        task = state.task(task_id)
        number = choose((1, 1 + (getattr(task, "progress", 0))))
        usage = choose((_any_usage(choose), _any_usage(choose), Usage(tokens_out=MAX_TOKENS)))
        reports: tuple[Payload, ...] = (
            InformTaskProgress(task_id=task_id, number=number, usage=usage),
            InformTaskResult(task_id=task_id, task_conclusion="…", usage=usage),
        )
        if choose((False,) * 5 + (True,)):
            return _any_word_on_a_task(state, task_id, assignee, turn, at, choose)
        return said(assignee, choose(reports), turn, at)
    sender = choose((holder, holder, holder, _anybody(state, choose)))
    turn = choose((state.turn, state.turn, state.turn, state.turn, state.turn + 1, max(0, state.turn - 1)))
    return said(sender, _any_speech(state, at, choose), turn, at, usage=_any_usage(choose))


def _any_word_on_a_task(state: GroupState, task_id: TaskId, assignee: AgentId, turn: int, at: datetime, choose: Choose) -> Said:
    """A task asks, or is answered."""
    task = state.task(task_id)
    number = getattr(task, "asked", 0) + choose((1, 1, 1, 0))
    asked = TaskQuestion(
        task_id=task_id, number=max(1, number), text="Well?", options=("yes", "no"), default="no", until=at + timedelta(seconds=40)
    )
    answer = Decision(task_id=task_id, choice=choose(("yes", "yes", "maybe")))
    return choose((said(assignee, asked, turn, at), said(getattr(task, "assigner", assignee), answer, state.turn, at)))


def _any_speech(state: GroupState, at: datetime, choose: Choose) -> Payload:
    all_tasks = choose((True, False, False))
    tasks = state.tasks if all_tasks else state.open_tasks
    triggers = tuple(task.task_id for task in tasks if choose((True, True, False))) or (UNKNOWN_TASK,)
    conclusion = Conclusion(content="Ten.", reason=choose((Reason.CONCLUDED, Reason.FAILED)))
    last_words: tuple[Payload, ...] = (
        conclusion,
        ConcludeGroupDiscussion(conclusion=choose((None, conclusion))),
        Discussion(content=_any_words(state, choose), next_speaker=_anybody(state, choose)),
        Pass(cause=choose(tuple(PassCause))),
        Thinking(),
        AskUser(text="Well?", options=choose(((), ("yes", "no"))), default="no", until=at + timedelta(seconds=choose((0, 5, 90)))),
    )
    rejects = _any_rejects(state, choose)
    speeches: tuple[Payload, ...] = (
        Discussion(content=_any_words(state, choose), next_speaker=_anybody(state, choose)),
        _any_call(state, choose),
        SyncTaskAssignment(tasks=_any_specs(state, choose)),
        AsyncTaskAssignment(tasks=_any_specs(state, choose)),
        Pause(triggers=triggers + triggers[:1]),
        choose(last_words),
    )
    if isinstance(state.stage, Gathering) and choose((True, True, True, False)):
        answer = Discussion(content=_any_words(state, choose), fields=_any_fields(state, choose))
        answers: tuple[Payload, ...] = (answer, answer, Thinking())
        return choose(answers)
    said = choose(speeches if not state.open_tasks else (*speeches, *speeches[3:5] * 3))
    return said.model_copy(update={"rejects": rejects}) if rejects else said


def _any_call(state: GroupState, choose: Choose) -> Discussion:
    """Name several, most often the others, and perhaps ask them something."""
    others = [member.agent_id for member in state.members if member.agent_id not in state.floor]
    named = choose((others, others, others[:1], [_anybody(state, choose)]))
    question = choose(((), _QUESTION))
    return Discussion(content=_any_words(state, choose), next_speakers=tuple(named), question=question)


_QUESTION = (FormField(name="vote", kind="member"), FormField(name="done", kind="yes_no", required=False))


def _any_fields(state: GroupState, choose: Choose) -> Mapping[str, str | int | bool]:
    """What is asked for, seldom not."""
    stage = state.stage
    if not isinstance(stage, Gathering) or not stage.form or choose((False,) * 9 + (True,)):
        return {}
    vote = state.members[0].agent_id
    return choose(({"vote": vote}, {"vote": vote, "done": choose((True, False))}))


def _any_rejects(state: GroupState, choose: Choose) -> tuple[RejectedTask, ...]:
    """Most often nothing, else a task that is done, seldom another one."""
    done = [task.task_id for task in state.tasks if isinstance(task, ClosedTask) and task.outcome is TaskOutcome.DONE]
    if not done or choose((True, True, False)):
        return ()
    others = [task.task_id for task in state.tasks]
    return (RejectedTask(task_id=choose((*done * 5, choose(others))), why="wrong"),)


def _any_words(state: GroupState, choose: Choose) -> str:
    """Most often something new."""
    return choose((f"Point {state.turn}.", f"Point {state.turn}.", "The first point again.", "Agreed!"))


def _anybody(state: GroupState, choose: Choose) -> AgentId:
    """Most often a member."""
    return choose((*(member.agent_id for member in state.members),) * 5 + (STRANGER,))


def _any_specs(state: GroupState, choose: Choose) -> tuple[TaskSpec, ...]:
    first = max(0, state.tasks_given + choose((0, 0, 0, 0, -1)))
    turn = state.turn + choose((0,) * 9 + (-1,))
    ids = [TaskId(f"t{turn}-{first + number}") for number in range(choose((1, 2, 2, 3)))]
    known = [task.task_id for task in state.tasks if choose((True, False, False))][:2]
    return tuple(
        TaskSpec(
            task_id=task_id,
            uses=tuple(dict.fromkeys((*known, *_uses_within(ids, number, choose)))),
            assignee=_anybody(state, choose),
            task_desc=choose(("do it", "count", f"count to {first}")),
        )
        for number, task_id in enumerate(ids)
    )


def _uses_within(ids: Sequence[TaskId], number: int, choose: Choose) -> Sequence[TaskId]:
    """Most often a task of the same message that was named before, seldom any of them."""
    earlier = [task_id for task_id in ids[:number] if choose((True, False))]
    return choose((earlier, earlier, earlier, earlier, earlier, [], [choose(ids)]))


def _any_task(state: GroupState, choose: Choose) -> tuple[TaskId, AgentId, int]:
    """A task with its assignee and turn, seldom the wrong ones."""
    only_open = choose((True, True, True, False))
    candidates = state.open_tasks if only_open else state.tasks
    if not candidates or choose((False,) * 9 + (True,)):
        return UNKNOWN_TASK, _anybody(state, choose), state.turn
    task = choose(candidates)
    assignee = choose((*(task.assignee,) * 7, _anybody(state, choose)))
    return task.task_id, assignee, choose((task.turn,) * 7 + (state.turn,))


def _subgroup(task_id: TaskId, choose: Choose) -> CommId:
    return CommId(choose((f"sub-{task_id}",) * 5 + ("elsewhere",)))


def best_messages(state: GroupState, agent_id: AgentId, at: datetime) -> dict[Kind, tuple[Said, ...]]:
    """For each kind of message the attempts of a member that does its best to have it accepted."""
    colleagues = [member.agent_id for member in state.members]
    news = 1_000 + state.turn  # a number that nothing else in a walk has
    fresh = tuple(
        (TaskSpec(task_id=TaskId(f"t{state.turn}-fresh"), assignee=colleague, task_desc=f"fresh {news}"),)
        for colleague in colleagues
    )
    attempts: dict[Kind, tuple[Payload, ...]] = {
        Discussion: (
            *(Discussion(content=f"Fresh {news}.", next_speaker=other) for other in colleagues),
            Discussion(content=f"Fresh {news}.", fields=_any_fields(state, lambda options: options[0])),
        ),
        SyncTaskAssignment: tuple(SyncTaskAssignment(tasks=tasks) for tasks in fresh),
        AsyncTaskAssignment: tuple(AsyncTaskAssignment(tasks=tasks) for tasks in fresh),
        Pause: tuple(Pause(triggers=(task.task_id,)) for task in state.open_tasks),
        ConcludeGroupDiscussion: (ConcludeGroupDiscussion(),),
        Decision: (Decision(choice="bob"),),
        Conclusion: (Conclusion(content="Ten."),),
        Pass: (Pass(cause=PassCause.NOTHING_TO_ADD),),
        Thinking: (Thinking(),),
        AskUser: (AskUser(text="Well?", default="no", until=at + timedelta(microseconds=1)),),
        TaskDecision: tuple(
            Decision(task_id=task.task_id, choice=task.question.default) for task in state.open_tasks if task.question is not None
        ),
    }
    messages = {kind: tuple(said(agent_id, payload, state.turn, at) for payload in payloads) for kind, payloads in attempts.items()}
    messages[InformTaskProgress] = tuple(
        said(agent_id, InformTaskProgress(task_id=task.task_id, number=task.progress + 1), task.turn, at)
        for task in state.open_tasks
    )
    messages[TaskQuestion] = tuple(
        said(
            agent_id,
            TaskQuestion(
                task_id=task.task_id, number=task.asked + 1, text="Well?", default="no", until=at + timedelta(microseconds=1)
            ),
            task.turn,
            at,
        )
        for task in state.open_tasks
    )
    messages[InformTaskResult] = tuple(
        said(agent_id, InformTaskResult(task_id=task.task_id, task_conclusion="…"), task.turn, at) for task in state.open_tasks
    )
    return messages


def run_timers(state: GroupState) -> tuple[GroupState, int]:
    """Let nothing happen but timers until the group has ended; say how many fired."""
    fired = 0
    while (due := next_deadline(state)) is not None:
        state, fired = step(state, TimerFired(at=due)).state, fired + 1
    return state, fired


def talk_to_the_end(state: GroupState, at: datetime) -> GroupState:
    """Reach the end by messages alone: report every task, announce, conclude."""
    while not isinstance(state.stage, Ended):
        state = step(state, _word_towards_the_end(state, at)).state
    return state


def _word_towards_the_end(state: GroupState, at: datetime) -> Event:
    if state.open_tasks:
        task = state.open_tasks[0]
        return said(task.assignee, InformTaskResult(task_id=task.task_id, task_conclusion="…"), task.turn, at)
    if isinstance(state.stage, Gathering):
        return said(state.floor[0], Pass(cause=PassCause.NOTHING_TO_ADD), state.turn, at)
    if state.question is not None:
        answer = QuestionAnswered(at=at, turn=state.turn, answer=state.question.default, by="user")
        return answer if at < state.question.until else TimerFired(at=at)
    holder = state.floor_holder
    assert holder is not None, "no task is open and nobody has the floor"
    announced = state.phase == "concluding"
    return said(holder, Conclusion(content="Ten.") if announced else ConcludeGroupDiscussion(), state.turn, at)
