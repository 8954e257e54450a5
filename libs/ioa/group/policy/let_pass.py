"""Admission checks of messages, before the machine judges them.

Their rejections and removals are in no entry: a log contains messages as members hear them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.group.events import Event, MemberJoined, Said
from ioa.group.joining import invited_as, invited_by
from ioa.group.policy.hearing import sitting_apart
from ioa.group.policy.offer import offer
from ioa.group.policy.review import check_guards, is_draft, is_reviewed
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Discussing, Gathering, GroupState, OpenTask
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    InformTaskProgress,
    Pass,
    RejectedTask,
    Thinking,
    rejects_of,
)
from ioa.protocol.policy import Policy

_MOST_REPORTS = 1_000_000_000
"""How many reports may come between two that are on record: one in a second, for thirty years."""


def let_pass(policy: Policy | None, state: GroupState | None, event: Event) -> Event:
    """Return what happens as members are to hear of it.

    Args:
        policy: What leads the group; None if nothing does.
        state: Where the group stands; None before it is launched.
        event: What happens.

    Raises:
        IllegalEventError: It has somebody join who would hear more, rejects results where that is not to be, asks a question in
            words that a guard refuses, answers what a task asks although its sender was removed, or leaves no number to who reports
            on a task after it.
    """
    _check_number(state, event)
    if policy is None or state is None:
        return event
    if isinstance(event, MemberJoined):
        _check_role(policy, state, event)
        return event if _may_be_heard(policy, state, event.by, event.why) else event.model_copy(update={"why": ""})
    if not isinstance(event, Said) or not state.is_member(event.message.header.sender):
        return event
    sender, payload = event.message.header.sender, event.message.payload
    if isinstance(payload, Decision) and payload.task_id is not None and sender not in state.hearing:
        why = f"{sender} was removed, and answers nothing that task {payload.task_id} asks."
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, why)
    if isinstance(payload, Pass):
        is_heard = _may_be_heard(policy, state, sender, payload.content, drafted=_speaks_draft(policy, state, sender))
        return event if is_heard else _without_words(event, content="")
    if isinstance(payload, Thinking) and payload.note:
        is_heard = sender not in sitting_apart(policy, state) and _may_be_heard(policy, state, sender, payload.note)
        return event if is_heard else _without_words(event, note="")
    states_conclusion = isinstance(payload, ConcludeGroupDiscussion) and payload.conclusion is not None
    if rejects := rejects_of(payload):
        _check_rejects(policy, state, sender, rejects, concludes=states_conclusion)
    if isinstance(payload, Discussion) and payload.question and (offered := offer(policy, state, sender)) is not None:
        for option in [option for field in payload.question for option in field.options]:
            check_guards(offered.guards, option)
    return event


def _check_number(state: GroupState | None, event: Event) -> None:
    """Reject a progress report whose number is too far after the previous one.

    A report of another member than the assignee is not checked: the error would reveal that the task exists.
    """
    if state is None or not isinstance(event, Said) or not isinstance(report := event.message.payload, InformTaskProgress):
        return
    task = state.task(report.task_id)
    if not isinstance(task, OpenTask) or task.assignee != event.message.header.sender:
        return
    if report.number > task.progress + _MOST_REPORTS:
        why = f"Report {report.number} of task {task.task_id} cannot follow report {task.progress}: they are counted one by one."
        raise IllegalEventError(RejectionCode.STALE_PROGRESS, why)


def _check_role(policy: Policy, state: GroupState, joined: MemberJoined) -> None:
    """Have nobody join who hears more than who invites it: it might be the same one's agent, and tell."""
    if state.course is None or joined.by not in state.floor or joined.role not in invited_as(policy, state):
        return  # the machine says so
    able = invited_by(policy, state, joined.by)
    if joined.role not in able:
        other = f"; it may be: {', '.join(able)}" if able else ""
        why = f"{joined.role} hears what {joined.by} does not, who has nobody join as that{other}."
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)


def _check_rejects(policy: Policy, state: GroupState, sender: AgentId, rejects: Sequence[RejectedTask], *, concludes: bool) -> None:
    """Have results rejected with the conclusion, or where tasks are given out, in words that the node lets pass.

    Who only talks strikes nobody's work.
    """
    offered = offer(policy, state, sender)
    if offered is None:  # it states the conclusion, or has no floor, as the machine will say
        return
    if not offered.lets_reject(concludes=concludes):
        why = "No result is rejected here: the node lacks `tasks`. Say what is wrong with it."
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)
    for one in rejects:
        check_guards(offered.guards, one.why)


def _speaks_draft(policy: Policy, state: GroupState, sender: AgentId) -> bool:
    """Whether what a member says is a draft, which its reviewer alone hears."""
    return state.course is not None and is_draft(policy, state, state.members[state.number_of(sender)])


def _may_be_heard(policy: Policy, state: GroupState, sender: AgentId, words: str, *, drafted: bool = False) -> bool:
    """Whether something may be said beside the turns: not what a guard refuses, nor what is to be reviewed and would be heard."""
    if state.course is None or not words or not state.is_member(sender):
        return True
    node, member = policy.nodes[state.course.node], state.members[state.number_of(sender)]
    is_said_to_all = isinstance(state.stage, Discussing | Gathering) and not drafted
    if is_said_to_all and is_reviewed(policy, node, member):
        return False
    return not any(guard.objection(words, ()) for guard in node.guards)


def _without_words(said: Said, **words: str) -> Said:
    """Return what was said without its words. It is not refused for them: who is refused again and again passes, and says why."""
    message = said.message.model_copy(update={"payload": said.message.payload.model_copy(update=words)})
    return said.model_copy(update={"message": message})
