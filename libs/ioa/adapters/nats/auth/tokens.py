"""Tokens of an identity provider, which replace a key (auth callout, NATS ADR-26).

The reply inbox is derived from issuer and subject, so that it is the same for each token of one holder. The client reads both from
its token, the callout from the verified token.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from ioa.errors import InvalidInputError
from ioa.json_text import parse_json

MOST_CHARS = 7_500
"""Longest token, in characters. HTTP servers accept at most 8 kB of headers, so that providers issue shorter tokens."""
_DIGEST_CHARS = 40


def read_token(given: str | Path) -> str:
    """Return a token, or the content of its file.

    Raises:
        InvalidInputError: The file cannot be read, or the token is too long.
    """
    try:
        token = (given if isinstance(given, str) else given.read_text(encoding="ascii")).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not ASCII"
        raise InvalidInputError(f"The token in {given} cannot be read: {why}.", hint="IOA_NATS_TOKEN_FILE names it.") from None
    if len(token) > MOST_CHARS:
        raise InvalidInputError(
            f"The token for NATS has {len(token):,} characters; nats-server accepts at most {MOST_CHARS:,}.",
            hint="Configure the provider to add fewer claims for this audience, such as groups and roles.",
        )
    return token


def inbox_owner_of(token: str) -> str:
    """Return the owner of the inbox for a token, which is not verified.

    Raises:
        InvalidInputError: The token is no JWT with an issuer and a subject.
    """
    try:
        claims = claims_of(token)
        return inbox_owner(str(claims["iss"]), str(claims["sub"]))
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(
            "The token for NATS is no JWT with an issuer and a subject.", hint="Check IOA_NATS_TOKEN or IOA_NATS_TOKEN_FILE."
        ) from None


def claims_of(token: str) -> Any:
    """Return the claims of a JWT without verifying it.

    Raises:
        ValueError: It is no JWT.
    """
    _, _, rest = token.partition(".")
    payload = rest.partition(".")[0]
    return parse_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def inbox_owner(issuer: str, subject: str) -> str:
    """Return the owner of the inbox for an issuer and subject."""
    return "T" + hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()[:_DIGEST_CHARS]
