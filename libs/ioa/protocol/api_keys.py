"""The keys by which programs and people come in by HTTP: whose each is, what it is for, and until when.

A key is `ioa_<id>_<secret>`. What is kept of its secret is a digest, which tells nobody anything: it has 256 random bits.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NewType

from pydantic import AfterValidator, Field

from ioa.errors import InvalidInputError
from ioa.protocol.ids import UserIdField, check_token, is_token
from ioa.protocol.labels import Labels
from ioa.protocol.model import Model, Time

KNOWN_FOR = timedelta(seconds=5)
"""After how long a key that was revoked lets nobody in any more, at whichever gateway."""

KeyId = NewType("KeyId", str)
KeyIdField = Annotated[KeyId, AfterValidator(check_token)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

ANYBODY = "*"
_SEAT = "seats:"
_BEGINNING = "ioa"
_PARTS = 3


class Scope(StrEnum):
    """One thing that a key may be for."""

    GOALS_READ = "goals:read"
    """Read goals of the key's own user, their groups and logs."""
    GOALS_READ_ALL = "goals:read-all"
    """Read goals of all users, together with `goals:read`."""
    GOALS_WRITE = "goals:write"
    """Launch goals, and cancel those of the key's own user."""
    AGENTS_READ = "agents:read"
    """See who there is, and search among them."""
    TEAMS_WRITE = "teams:write"
    """Put teams under a name."""
    WEBHOOKS_WRITE = "webhooks:write"
    """Have results and what leads to them sent to a URL."""
    SEATS = "seats:*"
    """Answer as any person in teams; `seats:anna` answers as that one alone, and sees what she hears."""


def is_scope(written: str) -> bool:
    """Whether a text is a scope, that of one person's seat too."""
    return written in {one.value for one in Scope} or (written.startswith(_SEAT) and is_token(written.removeprefix(_SEAT)))


def people_of(scopes: Iterable[str]) -> frozenset[str]:
    """Return for whose seats scopes are, by name; `ANYBODY` stands for all."""
    return frozenset(scope.removeprefix(_SEAT) for scope in scopes if scope.startswith(_SEAT))


class ApiKey(Model):
    """A key as it is kept.

    Attributes:
        name: What its owner calls it.
        user: Whose goals are launched by it.
        scopes: What it is for. A later version may know more than this one.
        digest: Of its secret.
        expires_at: When it lets nobody in any more; never if None.
        labels: Goals that are launched by it bear these, and it shows no others.
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
        """Whether it lets anybody in."""
        return self.expires_at is None or now < self.expires_at

    def is_shown_by(self, secret: str) -> bool:
        """Whether a secret is this key's. It takes as long for any."""
        return hmac.compare_digest(digest_of_secret(secret), self.digest)


class LoginToken(Model):
    """What lets one browser in, once, as if it had shown a key."""

    digest: Digest
    key_id: KeyIdField
    expires_at: Time


def digest_of_secret(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def written_key(key_id: KeyId, secret: str) -> str:
    """Write a key as its holder shows it."""
    return f"{_BEGINNING}_{key_id}_{secret}"


def parse_key(written: str) -> tuple[KeyId, str]:
    """Read the id and the secret of a key.

    Raises:
        InvalidInputError: It is none; what it is instead is not said.
    """
    parts = written.strip().split("_", _PARTS - 1)
    if len(parts) != _PARTS or parts[0] != _BEGINNING or not is_token(parts[1]) or not parts[2]:
        raise InvalidInputError("This is no key.", hint="A key is like ioa_<id>_<secret>; `ioa keys create` makes one.")
    return KeyId(parts[1]), parts[2]
