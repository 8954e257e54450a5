"""The board of a group under a policy, as a member reads it off the messages that it has heard.

Versions are counted by what it has heard: a number that counted more would tell that something was written elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ioa.group.policy.hearing import hears_all
from ioa.group.policy.review import is_draft
from ioa.group.state import Charter, GroupState
from ioa.ports.brain import Posted
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion, Message
from ioa.protocol.policy import Policy


class Drafts:
    """Which messages were drafts when they were said, to those that hear drafts; what they write is on no board."""

    def __init__(self) -> None:
        self._reviewers: dict[tuple[int, AgentId], int | None] = {}
        """The role that reviews each, by its turn and sender; None where only drafts are heard."""

    def note(self, charter: Charter | None, before: GroupState | None, message: Message) -> None:
        """Take in a message, and where the group stood before it as this member was shown it."""
        policy = None if charter is None else charter.policy
        if policy is None or not policy.reviews or before is None:
            return
        if not isinstance(message.payload, Discussion) or not message.payload.writes:
            return
        sender = before.members[before.number_of(message.header.sender)]
        if before.course is None:
            self._reviewers[message.header.turn, message.header.sender] = None
        elif is_draft(policy, before, sender):
            review = policy.nodes[before.course.node].review
            assert review is not None, "only what is reviewed is a draft"
            self._reviewers[message.header.turn, message.header.sender] = policy.role_numbers[review.by]

    def is_one(self, message: Message, policy: Policy, state: GroupState, me: AgentId) -> bool:
        """Whether a message was a draft to a member: who does not hear drafts has heard it when it was passed."""
        said = message.header.turn, message.header.sender
        if said not in self._reviewers:
            return False
        reviewer, member = self._reviewers[said], state.members[state.number_of(me)]
        return reviewer is None or message.header.sender == me or reviewer in member.roles or hears_all(policy, member)


def board_of(messages: Iterable[Message], is_struck: Callable[[Message], bool]) -> tuple[Posted, ...]:
    """Return the last version of each thing that messages have written, in the order in which it was written first.

    Args:
        messages: What was said, without drafts.
        is_struck: Whether a message is to be shown no more; what it has written is a version, and is not shown either.
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
