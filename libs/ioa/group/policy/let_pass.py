"""Removes words that members must not hear from passes, notes and invitations, before the machine judges the events.

They are legal without their words: a log contains them as members hear them.
"""

from __future__ import annotations

from ioa.group.events import Event, MemberJoined, Said
from ioa.group.policy.hearing import sitting_apart
from ioa.group.policy.review import is_draft, is_reviewed
from ioa.group.state import Discussing, Gathering, GroupState
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Pass, Thinking
from ioa.protocol.policy import Policy


def let_pass(policy: Policy | None, state: GroupState | None, event: Event) -> Event:
    """Return an event without the words that a guard rejects, or that would be heard without their review.

    Args:
        policy: The policy of the group, if it has one.
        state: The state of the group; None before its launch.
        event: The event.
    """
    if policy is None or state is None or state.course is None:
        return event
    match event:
        case MemberJoined(by=by, why=why) if not _may_be_heard(policy, state, by, why):
            return event.model_copy(update={"why": ""})
        case Said(message=message):
            sender, payload = message.header.sender, message.payload
            match payload:
                case Pass(content=words) if not _may_be_heard(policy, state, sender, words, is_pass=True):
                    without: Pass | Thinking = payload.model_copy(update={"content": ""})
                case Thinking(note=note) if sender in sitting_apart(policy, state) or not _may_be_heard(
                    policy, state, sender, note
                ):
                    without = payload.model_copy(update={"note": ""})
                case _:
                    return event
            return event.model_copy(update={"message": message.model_copy(update={"payload": without})})
    return event


def _may_be_heard(policy: Policy, state: GroupState, sender: AgentId, words: str, *, is_pass: bool = False) -> bool:
    """Return True if the guards of the node accept some words, and no review is due before other members hear them."""
    if not words or state.course is None or not state.is_member(sender):
        return True
    node, member = policy.nodes[state.course.node], state.members[state.number_of(sender)]
    is_heard = isinstance(state.stage, Discussing | Gathering) and not (is_pass and is_draft(policy, state, member))
    if is_heard and is_reviewed(policy, node, member):
        return False
    return not any(guard.objection(words) for guard in node.guards)
