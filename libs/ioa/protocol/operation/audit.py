"""Lines of the audit log: actor, action, target, and whether it was rejected. They contain no content of messages."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.protocol.codec import decode_value
from ioa.protocol.ids import is_token
from ioa.protocol.model import Model

MAX_LINE_BYTES = 1_024
MAX_NAME_CHARS = 150
_DIGEST_CHARS = 40
_NAMING = ("goal_id", "comm_id", "agent_id")
"""Fields of a request that name its target; the first one counts."""


class Deed(StrEnum):
    """An action. Each has its own subject."""

    CONNECTED = "connected"
    """Connections by tokens. Connections by keys appear in the log of nats-server only."""
    JOINED = "joined"
    LEFT = "left"
    REMOVED = "removed"
    ACCEPTED = "accepted"
    LAUNCHED = "launched"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"
    ANSWERED = "answered"
    ENDED = "ended"
    PRUNED = "pruned"
    DISCARDED = "discarded"
    UNWRITTEN = "unwritten"


class AuditLine(Model):
    """One line.

    Attributes:
        at: Time, by the clock of the service.
        deed: The action.
        who: The agent or user, as its key names it, or `admin` for an admin; empty if unknown.
        target: A goal, group or agent. Of an agent that joined: its pool. Of a connection by a token: the subject of the token.
        refused: Error code of a rejection; empty if the action was performed.
        why: Reason of a goal's end or of a rejection, or the role of a connection by a token.
        service: The service that writes the line.
        times: Number of repeats that this line counts.
    """

    at: datetime
    deed: Deed
    who: str = Field(default="", max_length=MAX_NAME_CHARS)
    target: str = Field(default="", max_length=MAX_NAME_CHARS)
    refused: str = ""
    why: str = ""
    service: str
    times: int = Field(default=1, ge=1)


def in_a_line(name: str) -> str:
    """Return a name, or, if it is too long, its beginning and a digest, which no other name has.

    Names of exactly `MAX_NAME_CHARS` characters are shortened too, so that no name equals a shortened one.
    """
    if len(name) < MAX_NAME_CHARS:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: MAX_NAME_CHARS - _DIGEST_CHARS - 1]}~{digest}"


def named_in(request: bytes) -> str:
    """Return the goal, group or agent that a request names; empty if there is none."""
    try:
        read = decode_value(request)
    except InvalidInputError:
        return ""
    names = [read.get(field) for field in _NAMING] if isinstance(read, dict) else []
    return next((name for name in names if isinstance(name, str) and is_token(name)), "")
