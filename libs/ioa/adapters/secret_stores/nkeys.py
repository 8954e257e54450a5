"""Ed25519 seeds and public keys as NATS encodes them (nkeys). A server knows only public keys."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.protocol.ids import is_token

_RAW_SEED_BYTES = 32
_SEED = re.compile(r"SU[A-Z2-7]{56}")
_SEED_LIKE = re.compile(r"S[A-Z][A-Z2-7]{20,}", re.IGNORECASE)


class Key(NamedTuple):
    """A credential.

    Attributes:
        seed: An nkey seed of a user.
        name: The name of the holder, after which the inbox of its replies is named: a process whose key is replaced while it runs
            keeps its inbox. None: the inbox is named after the public key.
    """

    seed: str
    name: str | None = None

    @property
    def inbox_owner(self) -> str:
        """The owner of the inbox for replies."""
        return self.name or public_key_of(self.seed)

    def written(self) -> bytes:
        """Return the content of the key's file: the seed, and the name in a second line."""
        return "\n".join([self.seed, *([self.name] if self.name else [])]).encode("ascii")


def parse_key(written: str) -> Key | None:
    """Parse the content of a key's file; None if it is no key."""
    match written.split():
        case [seed] if _SEED.fullmatch(seed):
            return Key(seed)
        case [seed, name] if _SEED.fullmatch(seed) and is_token(name):
            return Key(seed, name)
        case _:
            return None


def read_key(given: str) -> Key:
    """Return a key, given as the content of its file or as the file's path.

    Raises:
        InvalidInputError: The file cannot be read, or contains no seed of a user.
    """
    given = given.strip()
    if found := parse_key(given):
        return found
    place, written = Path(given), ""
    if place.exists() or not _SEED_LIKE.search(given):  # an error must not show a seed
        try:
            written = place.read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise InvalidInputError(
                f"The nkey seed {given} cannot be read: {error.strerror}.",
                hint="IOA_NATS_SEED names a file that `ioa credentials` made.",
            ) from None
    else:
        given = "IOA_NATS_SEED"
    if found := parse_key(written):
        return found
    raise InvalidInputError(f"{given} holds no nkey seed of a user.", hint="Such a seed is 58 letters and begins with SU.")


def public_key_of(seed: str) -> str:
    """Derive the public key of a seed.

    Raises:
        InvalidInputError: The seed is damaged.
        MissingExtraError: The library for nkeys is not installed.
    """
    nkeys = _library()
    try:
        return str(nkeys.from_seed(bytearray(seed.encode("ascii"))).public_key.decode("ascii"))
    except (nkeys.NkeysError, ValueError) as error:
        raise InvalidInputError(f"The nkey seed is damaged ({type(error).__name__}).") from None


def create_seed() -> str:
    """Create the seed of a user.

    Raises:
        MissingExtraError: The library for nkeys is not installed.
    """
    return _create_seed(_library().PREFIX_BYTE_USER)


def create_account_seed() -> str:
    """Create the seed of an account, which signs the replies of an auth callout.

    Raises:
        MissingExtraError: The library for nkeys is not installed.
    """
    return _create_seed(_library().PREFIX_BYTE_ACCOUNT)


def _create_seed(prefix: int) -> str:
    return str(_library().encode_seed(os.urandom(_RAW_SEED_BYTES), prefix).decode("ascii"))


def account_key_of(seed: str) -> str:
    """Derive the public key of an account's seed.

    Raises:
        InvalidInputError: It is no seed of an account, or damaged.
        MissingExtraError: The library for nkeys is not installed.
    """
    if not seed.startswith("SA"):
        raise InvalidInputError("The callout's issuer is no nkey seed of an account.", hint="Such a seed begins with SA.")
    return public_key_of(seed)


def sign_with(seed: str, data: bytes) -> bytes:
    """Return the signature of data by the key of a seed."""
    return bytes(_library().from_seed(bytearray(seed.encode("ascii"))).sign(data))


def _library() -> ModuleType:
    try:
        return import_module("nkeys")
    except ImportError as error:
        raise MissingExtraError.of("The library for nkeys", "nkeys") from error
