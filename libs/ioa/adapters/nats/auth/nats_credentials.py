"""Credentials of a connection: an nkey seed, a token of an identity provider, or the password of a system on this machine.

The inbox of replies is named after the holder, so that it stays the same when a key or token is replaced. For a token it is derived
from issuer and subject: the client reads both from its token, the auth callout (NATS ADR-26) from the verified token.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from nats.aio.client import DEFAULT_INBOX_PREFIX

from ioa.adapters.secret_stores.nkeys import read_key
from ioa.errors import InvalidInputError
from ioa.json_text import parse_json
from ioa.protocol.subjects import inbox_prefix_of

_MAX_TOKEN_CHARS = 7_500
"""Longest token, in characters. HTTP servers accept at most 8 kB of headers, so that providers issue shorter tokens."""
_DIGEST_CHARS = 40
_JSON_IN_BASE64 = "eyJ"


class Credentials(NamedTuple):
    """Credentials, and the prefix of the inbox for replies."""

    seed: str | None = None
    token: str | None = None
    password: str | None = None
    inbox_prefix: bytes = DEFAULT_INBOX_PREFIX


def read_credentials(seed: str | None, token: str | None, password: str | None) -> Credentials:
    """Read credentials, of which seed and token are given as text or path, or raise `InvalidInputError`."""
    if seed is not None and token is not None:
        raise InvalidInputError("A seed and a token are set.", hint="Set either IOA_NATS_SEED or IOA_NATS_TOKEN.")
    if seed is not None:
        key = read_key(seed)
        return Credentials(seed=key.seed, inbox_prefix=inbox_prefix_of(key.inbox_owner).encode())
    if token is None:
        return Credentials(password=password)
    text = _read_token(token)
    try:
        claims = claims_of(text)
        owner = inbox_owner(str(claims["iss"]), str(claims["sub"]))
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(
            "The token for NATS is no JWT with an issuer and a subject.", hint="Check IOA_NATS_TOKEN."
        ) from None
    return Credentials(token=text, inbox_prefix=inbox_prefix_of(owner).encode())


def _read_token(given: str) -> str:
    """Return a token, which begins like each JSON object in base64, or the content of its file. No error shows the text."""
    try:
        token = (given if given.startswith(_JSON_IN_BASE64) else Path(given).read_text(encoding="ascii")).strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not ASCII"
        raise InvalidInputError(
            f"The file of the token for NATS cannot be read: {why}.", hint="IOA_NATS_TOKEN is a JWT, or the path of its file."
        ) from None
    if len(token) > _MAX_TOKEN_CHARS:
        raise InvalidInputError(
            f"The token for NATS has {len(token):,} characters; nats-server accepts at most {_MAX_TOKEN_CHARS:,}.",
            hint="Configure the provider to add fewer claims for this audience, such as groups and roles.",
        )
    return token


def claims_of(token: str) -> Any:
    """Return the claims of a JWT without verifying it, or raise `ValueError`."""
    _, _, rest = token.partition(".")
    payload = rest.partition(".")[0]
    return parse_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def inbox_owner(issuer: str, subject: str) -> str:
    """Return the owner of the inbox for the tokens of an issuer and subject."""
    return "T" + hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()[:_DIGEST_CHARS]


def tls_context(ca: str | None, certificate: str | None) -> ssl.SSLContext | None:
    """Load certificates; None if none are set. Raise `InvalidInputError` if they cannot be read."""
    if ca is None and certificate is None:
        return None
    try:
        context = ssl.create_default_context(cafile=ca)
        if certificate is not None:
            context.load_cert_chain(certificate)
    except OSError as error:
        paths = ", ".join(path for path in (ca, certificate) if path)
        raise InvalidInputError(f"The certificates of NATS ({paths}) cannot be used: {error.strerror or error}.") from None
    return context
