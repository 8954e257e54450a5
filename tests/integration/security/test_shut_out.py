"""`ioa credentials revoke` says that somebody is let in no more when his key was tried, and says so where it still opens."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.connection import NotLetInError
from ioa.cli import key_rotation, reach
from ioa.cli.credentials import AUTHORIZATION
from ioa.cli.key_rotation import KeyFolder, revoke
from ioa.cli.shut_out import Door, try_door
from ioa.cli.terminal import Terminal
from ioa.errors import IoaError, UnavailableError
from tests.integration.security.secured import open_secured

_SOON = timedelta(seconds=1)


@pytest.mark.parametrize("included", [True, False], ids=["the authorization", "another file"])
async def test_a_revoked_key_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], included: bool
) -> None:
    """A server that includes another file goes on accepting a revoked key: the command fails and gives the reason."""
    monkeypatch.setattr(reach, "configure_logs", lambda *_: None)
    monkeypatch.setattr(key_rotation, "TRIED", _SOON)
    async with open_secured(tmp_path, ("writer:2",)) as secured:
        if not included:
            (folder := secured.folder / AUTHORIZATION).joinpath("other.conf").write_text(
                (folder / "authorization.conf").read_text()
            )
            configuration = secured.server.log_path.with_name("nats-server.conf")
            configuration.write_text(configuration.read_text().replace("/authorization.conf", "/other.conf"))
        monkeypatch.setenv("IOA_NATS_URL", secured.server.url)
        keys, terminal = KeyFolder(secured.folder, secured.pid_file), Terminal(as_json=False)
        if included:
            await revoke(keys, "writer-0", None, datetime.now(UTC), terminal)
        else:
            with pytest.raises(IoaError, match="lets in writer-0 all the same") as raised:
                await revoke(keys, "writer-0", None, datetime.now(UTC), terminal)
            assert not isinstance(raised.value, UnavailableError) and "does not include" in raised.value.hint
        assert ("writer-0 is let in no more, which was tried" in capsys.readouterr().err) is included
        there = secured.settings("writer", "writer-1")
        assert await try_door(there, str(there.seed), timedelta(0)) is Door.OPEN
    assert await try_door(there, str(there.seed), timedelta(0)) is Door.UNTRIED


def test_where_no_server_is_in_reach_nothing_is_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever is told by the pid file of one server and reaches none is told that nothing was tried."""
    key_rotation._tell_door("eve", Door.UNTRIED, told=True, terminal=Terminal(as_json=False))
    assert "was not tried" in capsys.readouterr().err


async def test_a_command_ends_whose_credential_is_let_in_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for a goal and is thrown out is told: it asked for ever, with a line every other second."""
    monkeypatch.setattr(reach, "configure_logs", lambda *_: None)
    monkeypatch.setattr(reach, "REFUSED", _SOON)
    async with open_secured(tmp_path, ()) as secured:
        monkeypatch.setenv("IOA_NATS_URL", secured.server.url)
        monkeypatch.setenv("IOA_NATS_SEED", str(secured.folder / "eve" / "seed"))
        with pytest.raises(NotLetInError, match="rejects this credential"):
            async with asyncio.timeout(30), reach.open_place(None):
                await revoke(KeyFolder(secured.folder, secured.pid_file), "eve", None, datetime.now(UTC), Terminal(as_json=True))
                await asyncio.sleep(30)
