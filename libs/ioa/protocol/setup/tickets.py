"""Launch tickets: the proof of an agent that a goal was given to it, to open the goal's group or to end the goal.

Ids of goals are no secrets. Only the agent that takes a goal from its queue receives the ticket; the goal's record contains its
digest. The ticket is derived from the goal's name and a key, so every replica of group setup offers a goal with the same ticket.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated

from pydantic import Field

from ioa.protocol.ids import GoalName

KEY_BYTES = 32
_TICKET_CHARS = 32

ShownTicket = Annotated[Annotated[str, Field(pattern=rf"^[0-9a-f]{{{_TICKET_CHARS}}}$")] | None, Field(repr=False)]
"""A ticket, 128 bits in hexadecimal digits, or none. No log shows it."""


def ticket_of(key: bytes, goal: GoalName) -> str:
    """Return a goal's ticket: HMAC-SHA-256 of its name, cut to 128 bits."""
    return hmac.new(key, goal.key.encode(), hashlib.sha256).hexdigest()[:_TICKET_CHARS]


def seal_of(key: bytes, words: str) -> str:
    """Return the seal of a text: HMAC-SHA-256 with a prefix that no name of a goal has."""
    return hmac.new(key, f"seal {words}".encode(), hashlib.sha256).hexdigest()


def is_seal(shown: str, seal: str) -> bool:
    """Whether a text is the seal, in constant time."""
    return hmac.compare_digest(shown.encode(), seal.encode())


def digest_of_ticket(ticket: str) -> str:
    """Return the digest of a ticket for the goal's record."""
    return hashlib.sha256(ticket.encode()).hexdigest()


def is_ticket(shown: str | None, digest: str) -> bool:
    """Whether a text is the ticket with this digest, in constant time."""
    return hmac.compare_digest(digest_of_ticket(shown or ""), digest)
