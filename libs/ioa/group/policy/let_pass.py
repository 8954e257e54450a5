"""What routers hold a message to under a policy before the machine judges it, whatever the level of its group.

A level holds for a whole group, and a member that says a lower one on its card would have its group do without. What is held back
here is in no entry, so that logs of before are read by the rules under which they were written.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.group.events import Event, Said
from ioa.group.policy.offer import offer
from ioa.group.policy.review import check_guards, is_draft, is_reviewed
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Discussing, Gathering, GroupState
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import ConcludeGroupDiscussion, Discussion, Pass, RejectedTask, rejects_of
from ioa.protocol.policy import Policy


def let_pass(policy: Policy | None, state: GroupState | None, event: Event) -> Event:
    """Return what happens as members are to hear of it.

    Args:
        policy: What leads the group; None if nothing does.
        state: Where the group stands; None before it is launched.
        event: What happens.

    Raises:
        IllegalEventError: It rejects results where that is not to be, or asks a question in words that a guard refuses.
    """
    if policy is None or state is None or not isinstance(event, Said) or not state.is_member(event.message.header.sender):
        return event
    sender, payload = event.message.header.sender, event.message.payload
    if isinstance(payload, Pass):
        return event if _may_be_heard(policy, state, sender, payload.content) else _without_words(event, payload)
    states_conclusion = isinstance(payload, ConcludeGroupDiscussion) and payload.conclusion is not None
    if rejects := rejects_of(payload):
        _check_rejects(policy, state, sender, rejects, concludes=states_conclusion)
    if isinstance(payload, Discussion) and payload.question and (offered := offer(policy, state, sender)) is not None:
        for option in [option for field in payload.question for option in field.options]:
            check_guards(offered.guards, option)
    return event


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


def _may_be_heard(policy: Policy, state: GroupState, sender: AgentId, words: str) -> bool:
    """Whether a pass may say something: not what a guard refuses, nor what is to be reviewed and would be heard before."""
    if state.course is None or not words:
        return True
    node, member = policy.nodes[state.course.node], state.members[state.number_of(sender)]
    is_said_to_all = isinstance(state.stage, Discussing | Gathering) and not is_draft(policy, state, member)
    if is_said_to_all and is_reviewed(policy, node, member):
        return False
    return not any(guard.objection(words, ()) for guard in node.guards)


def _without_words(said: Said, payload: Pass) -> Said:
    """Return a pass without its words. It is not refused for them: who is refused again and again passes, and says why."""
    message = said.message.model_copy(update={"payload": payload.model_copy(update={"content": ""})})
    return said.model_copy(update={"message": message})
