"""Launch tickets: whoever opens a goal's group, or ends the goal without one, shows that the goal was given to it.

Ids of goals are no secrets. A ticket is told with the goal to whoever takes it off its queue, and to nobody else; the goal's record
keeps only its digest. It follows from the goal's id and a key, so that a goal which is offered again, by whichever replica of group
setup, comes with the ticket it had.
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
"""A ticket, 128 bits in hexadecimal digits, or none. No log shows it with the rest of a request."""


def ticket_of(key: bytes, goal: GoalName) -> str:
    """Return a goal's ticket: HMAC-SHA-256 of its name, cut to 128 bits."""
    return hmac.new(key, goal.key.encode(), hashlib.sha256).hexdigest()[:_TICKET_CHARS]


def seal_of(key: bytes, words: str) -> str:
    """Return the seal of words: HMAC-SHA-256 of them with a mark before them that no goal's id can begin with."""
    return hmac.new(key, f"seal {words}".encode(), hashlib.sha256).hexdigest()


def is_seal(shown: str, seal: str) -> bool:
    """Whether what was shown is the seal, in a time that tells nothing of it."""
    return hmac.compare_digest(shown.encode(), seal.encode())


def digest_of_ticket(ticket: str) -> str:
    """Return the digest of a ticket for the goal's record."""
    return hashlib.sha256(ticket.encode()).hexdigest()


def is_ticket(shown: str | None, digest: str) -> bool:
    """Whether what was shown is the ticket with this digest, in a time that tells nothing of it."""
    return hmac.compare_digest(digest_of_ticket(shown or ""), digest)
