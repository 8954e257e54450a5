"""What a session makes of a conclusion, for groups of tests that have no session and no files."""

from __future__ import annotations

from ioa.ports.brain_types import WholeConclusion
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Payload


def in_a_message(payload: Payload) -> Payload:
    """Say a conclusion as a member does, but as long as it is."""
    if isinstance(payload, ConcludeGroupDiscussion) and payload.conclusion is not None:
        return payload.model_copy(update={"conclusion": in_a_message(payload.conclusion)})
    return Conclusion.model_construct(**dict(payload)) if isinstance(payload, WholeConclusion) else payload
