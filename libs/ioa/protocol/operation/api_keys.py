"""Keys for HTTP: the user, scopes and expiry of each.

A key is `ioa_<id>_<secret>`. Only a digest of its secret, which has 256 random bits, is stored.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NewType

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.protocol.goals import Labels
from ioa.protocol.ids import IS_TOKEN, UserIdField, is_token
from ioa.protocol.model import Digest, Model, Time

KNOWN_FOR = timedelta(seconds=5)
"""Maximum time for which a gateway accepts a revoked key."""

KeyId = NewType("KeyId", str)
KeyIdField = Annotated[KeyId, IS_TOKEN]

ALL_PEOPLE = "*"
_SEAT = "seats:"
_BEGINNING = "ioa"
_PARTS = 3


class Scope(StrEnum):
    """A permission of a key."""

    GOALS_READ = "goals:read"
    """Read goals of the key's own user, their groups and logs."""
    GOALS_READ_ALL = "goals:read-all"
    """Read goals of all users, together with `goals:read`."""
    GOALS_WRITE = "goals:write"
    """Launch goals, and cancel goals of the key's own user."""
    AGENTS_READ = "agents:read"
    """List and search agents."""
    TEAMS_WRITE = "teams:write"
    """Store teams."""
    WEBHOOKS_WRITE = "webhooks:write"
    """Create webhooks."""
    SEATS = "seats:*"
    """Answer as any person in teams; `seats:anna` permits one person, with the messages that this person hears."""


def is_scope(written: str) -> bool:
    """Whether a text is a scope, including the seat of a person."""
    return written in {one.value for one in Scope} or (written.startswith(_SEAT) and is_token(written.removeprefix(_SEAT)))


def people_of(scopes: Iterable[str]) -> frozenset[str]:
    """Return the people whose seats scopes permit; `ALL_PEOPLE` is all people."""
    return frozenset(scope.removeprefix(_SEAT) for scope in scopes if scope.startswith(_SEAT))


class ApiKey(Model):
    """A stored key.

    Attributes:
        name: Name that its owner chose.
        user: The user of goals that are launched with it.
        scopes: Its permissions.
        digest: Digest of its secret.
        expires_at: Expiry; None: never.
        labels: Labels of the goals that it launches; it shows only goals with these labels.
    """

    key_id: KeyIdField
    name: Annotated[str, Field(min_length=1, max_length=200)]
    user: UserIdField
    scopes: tuple[str, ...]
    digest: Digest
    created_at: Time
    expires_at: Time | None = None
    labels: Labels = Field(default_factory=dict)

    def stands(self, now: datetime) -> bool:
        """Whether it is valid."""
        return self.expires_at is None or now < self.expires_at

    def is_shown_by(self, secret: str) -> bool:
        """Whether a secret is this key's, in constant time."""
        return hmac.compare_digest(digest_of_secret(secret), self.digest)


class LoginToken(Model):
    """A token that one browser can use once instead of a key."""

    digest: Digest
    key_id: KeyIdField
    expires_at: Time


def digest_of_secret(secret: str) -> str:
    """Return the digest of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def written_key(key_id: KeyId, secret: str) -> str:
    """Return the text of a key."""
    return f"{_BEGINNING}_{key_id}_{secret}"


def parse_key(written: str) -> tuple[KeyId, str]:
    """Read the id and the secret of a key.

    Raises:
        InvalidInputError: It is no key. The error does not show it.
    """
    parts = written.strip().split("_", _PARTS - 1)
    if len(parts) != _PARTS or parts[0] != _BEGINNING or not is_token(parts[1]) or not parts[2]:
        raise InvalidInputError("This is no key.", hint="A key is like ioa_<id>_<secret>; `ioa keys create` makes one.")
    return KeyId(parts[1]), parts[2]
