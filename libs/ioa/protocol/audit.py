"""Lines of the audit log: who did what to whom or what, and whether it was let do so. Never what anybody said."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from ioa.protocol.codec import read_texts
from ioa.protocol.ids import is_token
from ioa.protocol.model import Model

MAX_LINE_BYTES = 1_024
MAX_NAME_CHARS = 150
CAME_AS_AGENT, CAME_AS_USER = "agent", "user"
_DIGEST_CHARS = 40
_NAMING = ("goal_id", "comm_id", "agent_id")
"""What tells what a request is about, the first of them that it has."""


class Deed(StrEnum):
    """What was done, or tried. Each is a subject of its own."""

    CONNECTED = "connected"
    """By a token; whoever comes with a key is the server's business alone."""
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
    SLOWED = "slowed"
    UNWRITTEN = "unwritten"


class AuditLine(Model):
    """One line.

    Attributes:
        at: When, by the clock of the service that writes it.
        deed: What.
        who: An agent or user, as its key says, or `_admin` for an admin, whom none can be called; empty where nothing says it.
        target: A goal, a group or an agent; of a pool's agent that joined, the pool; of who came by a token, its subject.
        refused: Why it was refused, by the error's code; empty if it was done.
        why: How a goal ended, why it was not taken in, or as what somebody came by a token (`CAME_AS_…`), in a word.
        service: Who writes this line.
        times: How often the same was counted into it, `target` aside, since it was last written.
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
    """Return a name as a line has it: itself, or, where it is too long, its beginning and a digest, which no other name has.

    Names of `MAX_NAME_CHARS` characters are digested too, so that none can be given out for a longer one.
    """
    if len(name) < MAX_NAME_CHARS:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: MAX_NAME_CHARS - _DIGEST_CHARS - 1]}~{digest}"


def named_in(request: bytes) -> str:
    """Return which goal, group or agent a request is about; nothing if it cannot be read, or names none."""
    read = read_texts(request, _NAMING)
    names = [read.get(field, "") for field in _NAMING]
    return next((name for name in names if is_token(name)), "")
