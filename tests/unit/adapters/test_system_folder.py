"""The folder of a system on this machine, which lets in who can read it and nobody else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ioa.adapters.nats.connection import NatsSettings
from ioa.adapters.system_folder import make_private, new_password, note_password, password_for
from ioa.errors import InvalidInputError


def test_only_its_owner_may_enter(tmp_path: Path) -> None:
    """A new folder is closed to others, and so is what it notes; one that is open is refused with what to do."""
    folder = tmp_path / "new" / "data"
    make_private(folder)
    make_private(folder)
    note_password(folder, "nats://127.0.0.1:4222", "secret")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]
    folder.chmod(0o750)
    with pytest.raises(InvalidInputError, match=r"open to other users of this machine \(mode 750\)") as refused:
        make_private(folder)
    assert (modes, f"chmod 700 {folder}" in refused.value.hint) == ([0o700, 0o600], True)


def test_a_password_is_told_to_its_own_server(tmp_path: Path) -> None:
    """Not to another server, nor in place of what else says who connects; a new one is read at the next attempt to connect."""
    url, other = "nats://127.0.0.1:4999", "nats://127.0.0.1:4222"
    before = password_for(tmp_path, url)
    private_url = note_password(tmp_path, url, "first")
    settings = NatsSettings(url, "test", data=tmp_path)
    told = settings.password(), password_for(tmp_path, other), NatsSettings(url, "test", seed="SU", data=tmp_path).password()
    note_password(tmp_path, url, "second")
    assert (before, private_url, told, settings.password()) == (
        None,
        "nats://ioa:first@127.0.0.1:4999",
        ("first", None, None),
        "second",
    )


def test_passwords_differ() -> None:
    """Each start of a system has one of its own, that needs no escape in a URL."""
    one, other = new_password(), new_password()
    assert (one != other, len(one) > 40, (one + other).replace("-", "").replace("_", "").isalnum()) == (True, True, True)
