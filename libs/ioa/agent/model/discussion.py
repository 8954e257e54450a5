"""From what a model says to a message of the discussion, and whether that is what its group offers it now."""

from __future__ import annotations

import re

from ioa.agent.model.answers import Discuss, DiscussInPart
from ioa.errors import InvalidInputError
from ioa.group.forms import check_fields
from ioa.group.gathering import check_answer, check_names, check_question
from ioa.group.policy.offer import check_discussion, check_writes
from ioa.group.rejection import IllegalEventError
from ioa.group.state import Gathering
from ioa.ports.brain import GroupView
from ioa.protocol.codec import validate
from ioa.protocol.messages import Discussion
from ioa.protocol.policy import FieldKind, FieldValue
from ioa.protocol.team import field_of

_WHOLE = re.compile(r"-?[0-9]{1,16}")


def discussion_of(said: Discuss, view: GroupView) -> Discussion:
    """Build what is said; fields that nobody asks for are left as texts, which the check refuses.

    Raises:
        InvalidInputError: A question makes no sense.
    """
    kinds = {} if view.offer is None else {blank.name: blank.kind for blank in view.offer.form}
    fields = {one.name: _value(one.value.strip(), kinds.get(one.name, "text")) for one in said.fields if one.value.strip()}
    return validate(
        Discussion,
        {
            "content": said.content.strip(),
            "next_speaker": said.next_speaker or None,
            "next_speakers": tuple(said.next_speakers),
            "question": tuple([field_of(one.name, one.answer) for one in said.question]),
            "fields": fields,
            "go": (said.go or None) if isinstance(said, DiscussInPart) else None,
            "writes": {one.name: one.text.strip() for one in said.writes} if isinstance(said, DiscussInPart) else {},
        },
    )


def _value(written: str, kind: FieldKind) -> FieldValue:
    """Read a value off a text; what cannot be one of its kind stays a text."""
    if kind == "yes_no":
        return {"yes": True, "true": True, "no": False, "false": False}.get(written.casefold(), written)
    return int(written) if kind == "number" and _WHOLE.fullmatch(written) else written


def objection_to_discussion(said: Discuss, view: GroupView) -> str | None:
    """Say why a message is not what the sender may say now, by what routers hold it to; None if it is."""
    try:
        payload = discussion_of(said, view)
        if isinstance(view.state.stage, Gathering):
            check_answer(payload)
            check_fields(view.offer.form if view.offer is not None else (), payload.fields)
            if view.offer is not None:
                check_writes(view.offer, payload)
        elif view.part is not None and view.offer is not None:
            check_discussion(view.offer, payload)
        else:
            check_question(payload)
            check_fields((), payload.fields)
            if payload.next_speakers:
                check_names(view.state, view.me, payload)
    except (InvalidInputError, IllegalEventError) as error:
        return error.message
    return None
