"""Seeds, roster and authorization in a secret store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ioa.adapters.nats.auth.server_config import Callout
from ioa.adapters.secret_stores.nkeys import Key, account_key_of, create_account_seed, create_seed, parse_key, public_key_of
from ioa.errors import InvalidInputError
from ioa.hosting.roster import AccessRoster, Holder, read_roster

ROSTER, AUTHORIZATION = "roster.json", "authorization.conf"
"""The roster, and the file rendered from it that nats-server includes. Both are keys of one Secret."""
ASKED, ISSUER, REVOKED = "asked", "issuer", "revoked"
"""Keys of the auth callout's Secret: the seed of its connection, the seed that signs its replies, and the subjects whose tokens are
revoked, one per line."""


class Secrets(Protocol):
    """A store of Secrets: named sets of keys with values."""

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return the keys of a Secret, or None if there is no such Secret."""

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Write keys of a Secret, which is created if it is missing; its other keys stay."""


def load_roster(secrets: Secrets, name: str) -> AccessRoster:
    """Return the roster in a Secret, or an empty one.

    Raises:
        InvalidInputError: The roster cannot be read.
    """
    written = (secrets.read(name) or {}).get(ROSTER)
    return AccessRoster() if written is None else read_roster(written)


def write_roster(secrets: Secrets, name: str, roster: AccessRoster, more: Mapping[str, bytes] | None = None) -> Sequence[str]:
    """Write the roster, the authorization rendered from it, and `more` keys to a Secret; return the keys that changed."""
    written = roster.model_dump_json(indent=1, exclude_defaults=True)
    return write_changes(secrets, name, {ROSTER: written.encode(), AUTHORIZATION: roster.render().encode(), **(more or {})})


def write_changes(secrets: Secrets, name: str, data: Mapping[str, bytes]) -> Sequence[str]:
    """Write the keys of a Secret that are new or different, in order, and return their names."""
    there = secrets.read(name) or {}
    changed = {key: value for key, value in data.items() if there.get(key) != value}
    if changed:
        secrets.extend(name, changed)
    return [*changed]


def make_seeds(
    secrets: Secrets,
    name: str,
    holders: Mapping[str, Holder],
    rotation: Mapping[str, bytes] | None = None,
) -> tuple[list[Holder], Sequence[str]]:
    """Create the missing seeds of a Secret; return its holders with their public keys, and the keys that were written.

    Args:
        secrets: The store.
        name: The Secret.
        holders: The holder of each key of the Secret.
        rotation: Replace all seeds, and write these keys, which name the rotation.

    Raises:
        InvalidInputError: A key contains no seed of a user.
    """
    there = secrets.read(name) or {}
    new = {key: new_seed(one.name) for key, one in holders.items() if rotation or key not in there} | {**(rotation or {})}
    changed, held = write_changes(secrets, name, new), {**there, **new}
    return [
        one.model_copy(update={"keys": (public_key_of(read_seed(name, key, held).seed),)}) for key, one in holders.items()
    ], changed


def read_seed(name: str, key: str, there: Mapping[str, bytes]) -> Key:
    """Return the credential in a key of a Secret.

    Raises:
        InvalidInputError: The key contains no seed of a user. The error does not show the content.
    """
    found = parse_key(there[key].decode("ascii", "replace"))
    if found is None:
        raise InvalidInputError(f"{key} of {name} contains no nkey seed of a user.", hint="Remove it to get a new one.")
    return found


def new_seed(name: str) -> bytes:
    """Return the content of a new seed's file for the holder of a name."""
    return Key(create_seed(), name).written()


def make_callout(secrets: Secrets, name: str) -> tuple[Callout, Sequence[str]]:
    """Create the missing keys of an auth callout's Secret; return the callout and the keys that were written.

    Raises:
        InvalidInputError: A key contains no seed.
    """
    there = secrets.read(name) or {}
    makers: dict[str, Callable[[], str]] = {ASKED: create_seed, ISSUER: create_account_seed, REVOKED: str}
    held = {key: there[key] if key in there else make().encode("ascii") for key, make in makers.items()}
    changed = write_changes(secrets, name, held)
    issuer = account_key_of(held[ISSUER].decode("ascii", "replace").strip())
    return Callout(user=public_key_of(read_seed(name, ASKED, held).seed), issuer=issuer), changed


def lines(text: str) -> frozenset[str]:
    """Return the lines of a text that are not blank, without blanks around them."""
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


def is_line(text: str) -> bool:
    """Whether a text is one of its `lines` without a change."""
    return lines(text) == {text}
