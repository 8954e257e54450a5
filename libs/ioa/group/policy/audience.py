"""The stamp of an entry under a policy: which members receive its event, and the links between the entries of each member."""

from __future__ import annotations

from ioa.group.events import (
    Entry,
    Event,
    MemberJoined,
    MessageRefused,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    SubgroupAsked,
    SubgroupClosed,
    SubgroupOpened,
)
from ioa.group.policy.hearing import hearing, hears_all, hides, sitting_apart, told_of_tasks
from ioa.group.policy.review import is_draft
from ioa.group.state import Asking, Awaiting, Concluding, Course, Ended, Gathering, GroupState, Member, OpenTask, Task
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    TASK_REPORTS,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Message,
    Pass,
    SyncTaskAssignment,
    TaskQuestion,
)
from ioa.protocol.policy import Policy


def audience(policy: Policy | None, state: GroupState, event: Event) -> tuple[AgentId, ...]:
    """Return the members that receive an event, in the order of joining; for a member that it removes it is the last event.

    All receive the launch, timers, members that join, are lost or return, and the conclusion. Members that hear all receive a
    decision and its rejection; members that heard a question receive its answer; members that know a task receive its reports.

    Args:
        policy: The policy of the group.
        state: The group before the event.
        event: The event.
    """
    if isinstance(event, MemberJoined):
        return (*state.hearing, event.card.agent_id)
    if policy is None or not policy.hides:
        return state.hearing
    if state.tasks and (task := _task_of(state, event)) is not None:
        return tuple([one for one in state.hearing if state.is_told_of(one, task)])
    match event:
        case Said(message=message):
            return _told(policy, state, message)
        case MessageRefused(by=by) | RepetitionRefused(by=by):
            return _besides(policy, state, by)
        case QuestionAnswered() if isinstance(state.stage, Awaiting):
            asker = state.members[state.number_of(state.stage.asker)]
            return tuple([one.agent_id for one in hearing(policy, state, asker, state.members)])
        case _:
            return state.hearing


def noticed(policy: Policy | None, before: GroupState, after: GroupState, told: tuple[AgentId, ...]) -> tuple[AgentId, ...]:
    """Return the members that do not receive an event but see its entry, because it changes their duties.

    It gives them the floor or takes it, takes a task from them, removes them, or ends the group.
    """
    if not hides(policy):
        return ()
    is_over = isinstance(after.stage, Ended)
    staying = set(after.hearing)
    return tuple(
        [
            agent_id
            for agent_id in before.hearing
            if agent_id not in told and (is_over or agent_id not in staying or _duty(before, agent_id) != _duty(after, agent_id))
        ]
    )


def chain_of(policy: Policy, state: GroupState, head: tuple[int, Entry] | None) -> tuple[int, ...]:
    """Return the links of the entry that leads to a state: the previous entry of each member, also of members that join later.

    Args:
        policy: The policy of the group.
        state: The state of the entry.
        head: The previous entry of the log with its sequence.
    """
    later = (0,) if policy.takes_in else ()
    if head is None:
        return (0,) * len(state.members) + later
    seq, entry = head
    members = entry.state.members
    known = [seq if entry.is_shown_to(member.agent_id) else link for member, link in zip(members, entry.chain, strict=False)]
    chain = (*known, *(seq if entry.is_open else link for link in entry.chain[len(members) :]))
    return chain + chain[-1:] * (len(state.members) + len(later) - len(chain))


def is_withheld(policy: Policy, state: GroupState, event: Event, agent_id: AgentId) -> bool:
    """Return True for a message of another member in a parallel turn in which the member has yet to speak.

    Args:
        policy: The policy of the group.
        state: The group now.
        event: The event that the member receives.
        agent_id: The member.
    """
    if not isinstance(event, Said) or not isinstance(event.message.payload, Discussion | Pass):
        return False
    header, stage = event.message.header, state.stage
    if header.sender == agent_id or not isinstance(stage, Gathering) or header.turn < (stage.begun or state.turn):
        return False
    return agent_id in sitting_apart(policy, state)


def _told(policy: Policy, state: GroupState, message: Message) -> tuple[AgentId, ...]:
    sender, payload, course = message.header.sender, message.payload, state.course
    if isinstance(payload, ConcludeGroupDiscussion | Conclusion) or isinstance(state.stage, Concluding) or course is None:
        return state.hearing
    speaker = state.members[state.number_of(sender)]
    if isinstance(state.stage, Asking):
        if state.stage.about == "review":
            return _reviewing(policy, state, course)
        hinted = payload.members if isinstance(payload, Decision) and payload.choice == "hint" else ()
        return _besides(policy, state, sender, *hinted)
    if is_draft(policy, state, speaker):
        return _reviewing(policy, state, course, speaker)
    if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
        return told_of_tasks(policy, state, message)
    told = hearing(policy, state, speaker, state.members)
    if only := payload.to if isinstance(payload, Discussion) else ():
        told = [one for one in told if one.agent_id in only or one is speaker or hears_all(policy, one)]
    return tuple([one.agent_id for one in told])


def _reviewing(policy: Policy, state: GroupState, course: Course, author: Member | None = None) -> tuple[AgentId, ...]:
    """Return the members that receive a draft and its review: author, reviewers, and members that hear all."""
    review = policy.nodes[course.node].review
    assert review is not None
    if author is None and course.draft is not None:
        author = state.members[course.draft.by]
    role = policy.role_numbers[review.by]
    return _besides(policy, state, *[one.agent_id for one in state.members if one is author or role in one.roles])


def _besides(policy: Policy, state: GroupState, *agents: AgentId) -> tuple[AgentId, ...]:
    """Return some members and the members that hear all."""
    heard = [one for one in state.members if one.agent_id in agents or hears_all(policy, one)]
    return tuple([one.agent_id for one in heard if not one.removed])


def _duty(state: GroupState, agent_id: AgentId) -> tuple[int, frozenset[TaskId]]:
    """Return the turn in which a member is to speak, 0 if it is not, and its open tasks."""
    turn = state.turn if agent_id in state.floor else 0
    return turn, frozenset([task.task_id for task in state.tasks if isinstance(task, OpenTask) and task.assignee == agent_id])


def _task_of(state: GroupState, event: Event) -> Task | None:
    """Return the task that an event is about."""
    match event:
        case Said(message=message):
            payload = message.payload
            task_id = payload.task_id if isinstance(payload, (*TASK_REPORTS, TaskQuestion, Decision)) else None
        case (
            SubgroupOpened(task_id=task_id)
            | SubgroupClosed(task_id=task_id)
            | SubgroupAsked(task_id=task_id)
            | QuestionAnswered(task_id=task_id)
        ):
            pass
        case _:
            return None
    return None if task_id is None else state.task(task_id)
