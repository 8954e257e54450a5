"""Tokens of an identity provider, by which somebody connects who has no key here (auth callout, NATS ADR-26).

Who connects by a token reads answers at a place that follows from issuer and subject: the same for the next token of the same
holder, and nobody else's. The client reads both off its own token, the callout off the token that it has verified.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from ioa.errors import InvalidInputError
from ioa.json_text import parse_json

MOST_CHARS = 7_500
"""How long a token may be. Identity providers keep theirs shorter, since HTTP servers take no head of more than 8 kB."""
_DIGEST_CHARS = 40


def read_token(given: str | Path) -> str:
    """Return a token that is given as itself, or, as a path, by its file, which is read anew each time.

    Raises:
        InvalidInputError: The file cannot be read, or the token is longer than servers take.
    """
    token = (given if isinstance(given, str) else _text_of(given)).strip()
    if len(token) > MOST_CHARS:
        raise InvalidInputError(
            f"The token for NATS has {len(token):,} characters, of which nats-server takes {MOST_CHARS:,}.",
            hint="Have the provider put less into tokens for this audience: groups and roles take the most room.",
        )
    return token


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InvalidInputError(f"The token in {path} cannot be read: {why}.", hint="IOA_NATS_TOKEN_FILE names it.") from None


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
        return parse_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except IndexError:
        raise ValueError("This is no JWT.") from None


def inbox_owner(issuer: str, subject: str) -> str:
    """Return at whose place an identity reads answers."""
    return "T" + hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()[:_DIGEST_CHARS]
