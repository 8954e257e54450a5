"""The folder of a system on this machine, which lets in who can read it and nobody else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.adapters.secret_stores.nkeys import create_seed
from ioa.adapters.system_folder import make_closed, make_private, new_password, note_password, password_for
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


@pytest.fixture
def _readable_by_others() -> Iterator[None]:
    """A user who lets others read what he makes, as most do."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_readable_by_others")
def test_what_an_agent_makes_is_closed(tmp_path: Path) -> None:
    """Its folder, and those above it that were missing, so that a system may run there later; one that was open is closed."""
    data, old = tmp_path / ".ioa", tmp_path / "agents" / "old"
    old.mkdir(parents=True)
    old.chmod(0o2775)
    for folder in (data / "agents" / "new", old):
        make_closed(folder)
    make_private(data)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (data, data / "agents", data / "agents" / "new", old.parent, old)]
    assert modes == [0o700, 0o700, 0o700, 0o755, 0o2700]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_a_folder_of_another_user_is_used_as_it_is(tmp_path: Path) -> None:
    """A volume of a cluster is not its agents' own: they write there by its group."""
    os.chown(tmp_path, 1, -1)
    tmp_path.chmod(0o2775)
    make_closed(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o2775


def test_a_password_is_told_to_its_own_server(tmp_path: Path) -> None:
    """Not to another server, nor in place of what else says who connects; a new one is read at the next attempt to connect."""
    url, other = "nats://127.0.0.1:4999", "nats://127.0.0.1:4222"
    before = password_for(tmp_path, url)
    private_url = note_password(tmp_path, url, "first")
    settings = NatsSettings(url, "test", data=tmp_path)
    with_key = NatsSettings(url, "test", seed=create_seed(), data=tmp_path)
    told = settings.read_credentials().password, password_for(tmp_path, other), with_key.read_credentials().password
    note_password(tmp_path, url, "second")
    assert (before, private_url, told, settings.read_credentials().password) == (
        None,
        "nats://ioa:first@127.0.0.1:4999",
        ("first", None, None),
        "second",
    )


def test_passwords_differ() -> None:
    """Each start of a system has one of its own, that needs no escape in a URL."""
    one, other = new_password(), new_password()
    assert (one != other, len(one) > 40, (one + other).replace("-", "").replace("_", "").isalnum()) == (True, True, True)
