"""The folder of a system on this machine, and the note in it that lets its owner's programs in.

Every user of a machine can connect to its loopback address. So the server of such a system asks for a password, and what is allowed
to read the folder is allowed to connect. A password is new with each start of the system, and whoever connects reads it anew each
time: one that was told to a program which had taken the port of a system that was down is worth nothing to it afterwards.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from ioa.errors import InvalidInputError

USER = "ioa"
"""The only user of such a server."""

_PRIVATE_URL = "private-url"
_PRIVATE_FOLDER, _PRIVATE_FILE, _OTHERS = 0o700, 0o600, 0o077
_PASSWORD_BYTES = 32


def make_private(folder: Path) -> None:
    """Make the folder if it is missing, and see that only its owner may enter it.

    Raises:
        InvalidInputError: Others may, or it cannot be made.
    """
    try:
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        mode = folder.stat().st_mode & 0o777
    except OSError as error:
        raise InvalidInputError(f"The folder {folder} cannot be used: {error.strerror}.", hint="Choose another.") from error
    if mode & _OTHERS:
        raise InvalidInputError(
            f"The folder {folder} is open to other users of this machine (mode {mode:o}). It keeps what users and agents say.",
            hint=f"Close it with `chmod 700 {folder}` if it belongs to the system alone, or choose another folder.",
        )


def make_closed(folder: Path) -> None:
    """Make the folder, and what is missing above it, for its owner alone; close it to others if it is there and this user's.

    A folder of another user is used unchanged: it may be a volume of a cluster, which is writable for a group.

    Raises:
        OSError: It cannot be made.
    """
    for missing in reversed([one for one in folder.parents if not one.exists()]):
        missing.mkdir(_PRIVATE_FOLDER, exist_ok=True)
    folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
    if not belongs_to_another(folder):
        with suppress(OSError):  # its disk keeps no modes
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) & ~_OTHERS)


def check_own(folder: Path) -> None:
    """See that a folder that says where a system runs was made by `make_private`, by who reads it.

    Raises:
        InvalidInputError: It is another user's, or open to others.
    """
    is_anothers = belongs_to_another(folder)
    if is_anothers or folder.stat().st_mode & _OTHERS:
        why = "belongs to another user" if is_anothers else "is open to other users"
        raise InvalidInputError(
            f"The folder {folder} {why} of this machine, who could name any system there.",
            hint="Name the system by --url or IOA_NATS_URL; if the folder is yours, close it with `chmod 700`.",
        )


def belongs_to_another(folder: Path) -> bool:
    """Whether a folder is another user's: root enters those, too."""
    return folder.stat().st_uid != os.geteuid()


def new_password() -> str:
    """Make a password that nobody can guess, of letters that need no escape in a URL."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def note_password(folder: Path, url: str, password: str) -> str:
    """Write into the folder how to connect to the server at `url`, for its owner alone; return that URL, password and all."""
    private_url = url.replace("://", f"://{USER}:{password}@", 1)
    write_private(folder / _PRIVATE_URL, f"{private_url}\n".encode("ascii"))
    return private_url


def write_private(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all, also where the machine fails, for its owner alone.

    Raises:
        OSError: It cannot be written.
    """
    draft = path.with_name(f".{path.name}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE_FILE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # else the new name may be kept, and the data not
    draft.replace(path)


def password_for(folder: Path, url: str) -> str | None:
    """Read the password of the server at `url`; None if the folder knows none, or that of another server."""
    try:
        noted = urlsplit((folder / _PRIVATE_URL).read_text(encoding="ascii").strip())
        asked = urlsplit(url if "://" in url else f"nats://{url}")
        same = (noted.hostname, noted.port) == (asked.hostname, asked.port)
    except (OSError, ValueError):
        return None
    return noted.password if same else None


def url_file(data: Path) -> Path:
    """Return the file with the address of the system that runs on a folder."""
    return data / "url"


def read_url(data: Path) -> str | None:
    """Return the address of the system that runs on a folder, or ran when it was killed.

    Raises:
        InvalidInputError: Other users may enter the folder, so they may have written the address.
    """
    try:
        noted = url_file(data).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
    if noted is not None:
        check_own(data)
    return noted


@contextmanager
def noted_url(data: Path, url: str) -> Iterator[None]:
    """Write the address of a system into its folder while the block runs."""
    url_file(data).write_text(f"{url}\n", encoding="utf-8")
    try:
        yield
    finally:
        url_file(data).unlink(missing_ok=True)
