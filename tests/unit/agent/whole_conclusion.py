"""What a session makes of a conclusion, for groups of tests that have no session and no files."""

from __future__ import annotations

from ioa.ports.brain import WholeConclusion
from ioa.protocol.messages import Conclusion, Payload


def in_a_message(payload: Payload) -> Payload:
    """Say a conclusion as a member does, but as long as it is."""
    return Conclusion.model_construct(**dict(payload)) if isinstance(payload, WholeConclusion) else payload
