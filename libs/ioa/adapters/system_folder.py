"""The folder of a system on this machine, with the address and the password of its server.

Every user of a machine can connect to its loopback address. Therefore the server requires a password, and a program that can read
the folder can connect. Each start of the system creates a new password, and each connection reads it again: a program that listens
on the port of a stopped system learns only an old password.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from ioa.errors import InvalidInputError

USER = "ioa"
"""The only user of such a server."""

PRIVATE_URL = "private-url"
"""File with the address and the password of the server."""
_PRIVATE_FOLDER, _PRIVATE_FILE, _OTHERS = 0o700, 0o600, 0o077
_PASSWORD_BYTES = 32


def make_private(folder: Path) -> None:
    """Create a folder if it is missing, and check that only its owner may enter it.

    Raises:
        InvalidInputError: Other users may enter it, or it cannot be created.
    """
    try:
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"The folder {folder} cannot be used: {error.strerror}.", hint="Choose another.") from error
    check_closed(folder, "They could read the messages of users and agents.")


def make_closed(folder: Path) -> None:
    """Create a folder and its parents for their owner only; close an existing folder of this user to other users.

    A folder of another user stays unchanged: it may be a volume of a cluster, which is writable for a group.

    Raises:
        OSError: It cannot be created.
    """
    for missing in reversed([one for one in folder.parents if not one.exists()]):
        missing.mkdir(_PRIVATE_FOLDER, exist_ok=True)
    folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
    if not belongs_to_another(folder):
        with suppress(OSError):  # its disk keeps no modes
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) & ~_OTHERS)


def check_closed(folder: Path, risk: str, *, forbidden: int = _OTHERS, hint: str = "choose another folder") -> None:
    """Check the permissions of an existing folder.

    Args:
        folder: The folder.
        risk: What other users could do.
        forbidden: Bits of the mode that must not be set. Default: all of other users.
        hint: What to do instead of closing the folder.

    Raises:
        InvalidInputError: The mode has a forbidden bit.
    """
    mode = folder.stat().st_mode & 0o777
    if mode & forbidden:
        raise InvalidInputError(
            f"The folder {folder} is open to other users of this machine (mode {mode:o}). {risk}",
            hint=f"Close it with `chmod 700 {folder}`, or {hint}.",
        )


def check_own(folder: Path, risk: str) -> None:
    """Check that an existing folder belongs to this user: root may enter the folders of other users.

    Raises:
        InvalidInputError: It belongs to another user.
    """
    if belongs_to_another(folder):
        raise InvalidInputError(
            f"The folder {folder} belongs to another user of this machine. {risk}",
            hint="Run the command as that user, or choose another folder.",
        )


def belongs_to_another(folder: Path) -> bool:
    """Return whether a folder belongs to another user. Root can enter such a folder."""
    return folder.stat().st_uid != os.geteuid()


def new_password() -> str:
    """Create a random password, whose characters need no escape in a URL."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def note_password(folder: Path, url: str, password: str) -> str:
    """Write the URL of a server with its password into the folder, for its owner only; return it."""
    private_url = url.replace("://", f"://{USER}:{password}@", 1)
    write_private(folder / PRIVATE_URL, f"{private_url}\n".encode("ascii"))
    return private_url


def remove_password(folder: Path) -> None:
    """Remove the URL and the password of a server that has stopped."""
    (folder / PRIVATE_URL).unlink(missing_ok=True)


def write_private(path: Path, data: bytes) -> None:
    """Write a file for its owner only, atomically, also if the machine fails.

    Raises:
        OSError: It cannot be written.
    """
    draft = path.with_name(f".{path.name}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE_FILE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # otherwise the new name may be stored without the data
    draft.replace(path)


def password_for(folder: Path, url: str) -> str | None:
    """Return the password of the server at `url`; None if the folder contains no password of this server."""
    try:
        noted = _noted(folder)
        asked = urlsplit(url if "://" in url else f"nats://{url}")
        same = (noted.hostname, noted.port) == (asked.hostname, asked.port)
    except (OSError, ValueError):
        return None
    return noted.password if same else None


def read_url(data: Path) -> str | None:
    """Return the address of the system that runs on a folder, or ran when it was killed.

    Raises:
        InvalidInputError: Other users may have written the address, because they may enter the folder.
    """
    try:
        noted = _noted(data)
    except (OSError, ValueError):
        return None
    risk = "They could write the address of another system into it."
    check_own(data, risk)
    check_closed(data, risk, hint="name the system by --url or IOA_NATS_URL")
    return f"{noted.scheme}://{noted.netloc.rpartition('@')[2]}"


def _noted(folder: Path) -> SplitResult:
    return urlsplit((folder / PRIVATE_URL).read_text(encoding="ascii").strip())
