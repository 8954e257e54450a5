"""The board of a group under a policy, built from the messages that a member has read.

Versions count only these messages, so that they do not reveal others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ioa.group.policy.hearing import hears_all, is_draft
from ioa.group.state import GroupState
from ioa.ports.brain_types import Posted
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion, Message
from ioa.protocol.policy import Policy


class Drafts:
    """The messages that were drafts when they were sent, for members that read drafts; they write nothing on the board."""

    def __init__(self) -> None:
        self._reviewers: dict[tuple[int, AgentId], int | None] = {}
        """The role that reviews each draft, by turn and sender; None if only drafts are read."""

    def note(self, policy: Policy | None, before: GroupState, message: Message) -> None:
        """Note a message, and the state before it that this member knows."""
        if policy is None or not policy.reviews or not isinstance(message.payload, Discussion) or not message.payload.writes:
            return
        sender = before.members[before.number_of(message.header.sender)]
        if before.course is None:
            self._reviewers[message.header.turn, message.header.sender] = None
        elif is_draft(policy, before, sender):
            review = policy.nodes[before.course.node].review
            assert review is not None, "only what is reviewed is a draft"
            self._reviewers[message.header.turn, message.header.sender] = policy.role_numbers[review.by]

    def is_draft(self, message: Message, policy: Policy, state: GroupState, me: AgentId) -> bool:
        """Return True if a message was a draft for a member; members that do not read drafts read the passed message."""
        said = message.header.turn, message.header.sender
        if said not in self._reviewers:
            return False
        reviewer, member = self._reviewers[said], state.members[state.number_of(me)]
        return reviewer is None or message.header.sender == me or reviewer in member.roles or hears_all(policy, member)


def board_of(messages: Iterable[Message], is_struck: Callable[[Message], bool]) -> tuple[Posted, ...]:
    """Return the last version of each item, in the order of their first versions.

    Args:
        messages: The messages, without drafts.
        is_struck: Returns True for a deleted message; its version is counted, and not shown.
    """
    versions: dict[str, int] = {}
    posted: dict[str, Posted] = {}
    for message in messages:
        payload, header = message.payload, message.header
        writes: Mapping[str, str] = payload.writes if isinstance(payload, Discussion) else {}
        for name, text in writes.items():
            versions[name] = versions.get(name, 0) + 1
            if not is_struck(message) and isinstance(payload, Discussion):
                words = text or payload.content
                posted[name] = Posted(name, versions[name], header.sender, header.turn, words, header.message_id)
    return tuple(posted.values())
