"""Ed25519 seeds as NATS writes them (nkeys). Who holds one can prove to be who its public key says; a server knows only that."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ioa.errors import InvalidInputError, MissingExtraError

_RAW_SEED_BYTES = 32
_SEED = re.compile(r"SU[A-Z2-7]{56}")
_SEED_LIKE = re.compile(r"S[A-Z][A-Z2-7]{20,}", re.IGNORECASE)
_PUBLIC_KEY = re.compile(r"U[A-Z2-7]{55}")


class Key(NamedTuple):
    """What somebody proves by who he is.

    Attributes:
        seed: An nkey seed of a user.
        inbox_of: The public key under which answers to its holder come, if that is not its own: of the first one that he had.
            So a process whose key is replaced while it runs goes on hearing what it has asked.
    """

    seed: str
    inbox_of: str | None = None

    @property
    def inbox_owner(self) -> str:
        """The public key under which answers come."""
        return self.inbox_of or public_key_of(self.seed)

    def written(self) -> bytes:
        """Return what stands in its file: the seed, and in a second line whose answers it reads."""
        return "\n".join([self.seed, *([self.inbox_of] if self.inbox_of else [])]).encode("ascii")


def parse_key(written: str) -> Key | None:
    """Read what a key's file holds; None if that is no key."""
    match written.split():
        case [seed] if _SEED.fullmatch(seed):
            return Key(seed)
        case [seed, inbox_of] if _SEED.fullmatch(seed) and _PUBLIC_KEY.fullmatch(inbox_of):
            return Key(seed, inbox_of)
        case _:
            return None


def read_key(given: str) -> Key:
    """Return the key that is given as what its file holds, or as the path of that file.

    Raises:
        InvalidInputError: The file cannot be read, or what is there is no seed of a user.
    """
    given = given.strip()
    found = parse_key(given)
    if found is not None:
        return found
    if not Path(given).exists() and _SEED_LIKE.search(given):  # what may be a seed is shown to nobody
        raise InvalidInputError(
            "IOA_NATS_SEED holds something like a seed, but no seed of a user.",
            hint="Such a seed is 58 letters and begins with SU.",
        )
    try:
        found = parse_key(Path(given).read_text(encoding="ascii"))
    except OSError as error:
        raise InvalidInputError(
            f"The nkey seed {given} cannot be read: {error.strerror}.",
            hint="IOA_NATS_SEED names a file that `ioa credentials` made.",
        ) from None
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise InvalidInputError(f"{given} holds no nkey seed of a user.", hint="Such a seed is 58 letters and begins with SU.")
    return found


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
    """Make the seed of a new user.

    Raises:
        MissingExtraError: The library for nkeys is not installed.
    """
    nkeys = _library()
    return str(nkeys.encode_seed(os.urandom(_RAW_SEED_BYTES), nkeys.PREFIX_BYTE_USER).decode("ascii"))


def create_account_seed() -> str:
    """Make the seed of an account, which signs what an auth callout says.

    Raises:
        MissingExtraError: The library for nkeys is not installed.
    """
    nkeys = _library()
    return str(nkeys.encode_seed(os.urandom(_RAW_SEED_BYTES), nkeys.PREFIX_BYTE_ACCOUNT).decode("ascii"))


def account_key_of(seed: str) -> str:
    """Derive the public key of an account's seed.

    Raises:
        InvalidInputError: It is no such seed, or damaged.
        MissingExtraError: The library for nkeys is not installed.
    """
    if not seed.startswith("SA"):
        raise InvalidInputError("The callout's issuer is no nkey seed of an account.", hint="Such a seed begins with SA.")
    return public_key_of(seed)


def sign_with(seed: str, data: bytes) -> bytes:
    """Sign by a seed's key."""
    return bytes(_library().from_seed(bytearray(seed.encode("ascii"))).sign(data))


def _library() -> ModuleType:
    try:
        return import_module("nkeys")
    except ImportError as error:
        raise MissingExtraError.of("The library for nkeys", "nkeys") from error
