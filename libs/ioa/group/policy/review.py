"""What is reviewed before others hear it. A message is a draft first; once it is passed its author says it again, word for word.

So nobody's words are changed on the way, and what all hear stands in the log as its author has said it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from ioa.group.forms import Blank
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Course, Discussing, Draft, GroupState, Member
from ioa.protocol.codec import encode_value
from ioa.protocol.messages import Discussion
from ioa.protocol.policy import FieldValue, Guard, Node, Policy

PASS, REJECT = "pass", "reject"
"""What a reviewer chooses from."""


def is_reviewed(policy: Policy, node: Node, member: Member) -> bool:
    """Whether what a member says in a node is reviewed; what reviewers say there is not."""
    return node.review is not None and policy.role_numbers[node.review.by] not in member.roles


def is_draft(policy: Policy, state: GroupState, member: Member) -> bool:
    """Whether what a floor holder says next is a draft. The words that open a node are not, and neither is what was passed."""
    course = state.course
    if not policy.reviews or course is None or course.opening or not isinstance(state.stage, Discussing):
        return False
    is_passed = course.draft is not None and course.draft.passed
    return not is_passed and is_reviewed(policy, policy.nodes[course.node], member)


def drafted(node: Node, course: Course, by: int, said: Discussion) -> Draft:
    """Return a draft of a member; after a rejected draft it has the tries that are left."""
    assert node.review is not None
    tries = node.review.tries if course.draft is None else course.draft.tries
    return Draft(by=by, digest=digest_of(said), tries=tries)


def digest_of(said: Discussion) -> str:
    """Tell a message from all others, by its words and by all else that it says."""
    return hashlib.sha256(encode_value(said.model_dump(mode="json"))).hexdigest()[:32]


def check_again(digest: str, said: Discussion) -> None:
    """Refuse anything but the draft that was passed.

    Raises:
        IllegalEventError: It is another message.
    """
    if digest_of(said) != digest:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "Your draft was passed: say it again word for word, and nothing else.")


def check_guards(
    guards: Iterable[Guard],
    content: str,
    form: Iterable[Blank] = (),
    fields: Mapping[str, FieldValue] | None = None,
    written: Iterable[str] = (),
) -> None:
    """Refuse what a node does not let pass.

    Args:
        guards: The guards of the node.
        content: The words.
        form: What may be filled in. Only texts are held to the guards: options and names of members are not the speaker's words.
        fields: What is filled in.
        written: What is written on the board.

    Raises:
        IllegalEventError: It says what is wrong, to who has said it.
    """
    filled = () if fields is None else [fields.get(one.name) for one in form if one.kind == "text"]
    texts = [*(one for one in filled if isinstance(one, str)), *written]
    for guard in guards:
        if why := guard.objection(content, texts):
            raise IllegalEventError(RejectionCode.GUARDED, f"This cannot be said here: {why}.")
