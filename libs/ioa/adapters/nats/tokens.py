"""Tokens of an identity provider, by which somebody connects who has no key here (auth callout, NATS ADR-26).

Who connects by a token reads answers at a place that follows from issuer and subject: the same for the next token of the same
holder, and nobody else's. The client reads both off its own token, the callout off the token that it has verified.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from ioa.errors import InvalidInputError

_DIGEST_CHARS = 40


def read_token(given: str | Path) -> str:
    """Return a token that is given as itself, or, as a path, by its file, which is read anew each time.

    Raises:
        InvalidInputError: The file cannot be read.
    """
    if isinstance(given, str):
        return given.strip()
    try:
        return given.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InvalidInputError(f"The token in {given} cannot be read: {why}.", hint="IOA_NATS_TOKEN_FILE names it.") from None


def inbox_owner_of(token: str) -> str:
    """Return at whose place the holder of a token reads answers. What the token says is taken as it is.

    Raises:
        InvalidInputError: It is no JWT with an issuer and a subject; it is not shown.
    """
    try:
        claims = claims_of(token)
        return inbox_owner(str(claims["iss"]), str(claims["sub"]))
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(
            "The token for NATS is no JWT with an issuer and a subject.", hint="IOA_NATS_TOKEN or IOA_NATS_TOKEN_FILE gives it."
        ) from None


def claims_of(token: str) -> Any:
    """Read what a JWT says, whoever has signed it.

    Raises:
        ValueError: It is none.
    """
    try:
        payload = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, RecursionError):
        raise ValueError("This is no JWT.") from None


def inbox_owner(issuer: str, subject: str) -> str:
    """Return at whose place an identity reads answers."""
    return "T" + hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()[:_DIGEST_CHARS]
