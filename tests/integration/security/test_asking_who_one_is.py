"""Whose a connection is, and what it may, is the server's word, and its silence is no word."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.adapters.nats.auth import identity as whoami
from ioa.adapters.nats.auth.identity import ask_user
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.errors import ForbiddenError, UnavailableError
from ioa.protocol.ids import AgentId, UserId
from ioa.protocol.registry import RemoveAgent
from tests.integration.security.secured import open_intruder, open_secured
from tests.rig.standstill import freeze, thaw


async def test_a_silent_server_makes_nobody_a_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent's key launches nothing, as the server said; a user's whose server is busy is told to come again."""
    monkeypatch.setattr(whoami, "_TIMEOUT", 0.5)
    async with (
        open_secured(tmp_path, ["writer"]) as secured,
        open_intruder(secured, "user") as user,
        open_intruder(secured, "writer", "writer") as agent,
    ):
        assert await ask_user(user) == UserId("user")
        with pytest.raises(ForbiddenError, match="is no user's"):
            await ask_user(agent)
        freeze(secured.server.pid)
        try:
            with pytest.raises(UnavailableError, match="NATS does not answer"):
                await ask_user(user)
        finally:
            thaw(secured.server.pid)


async def test_who_is_no_admin_is_told_so(tmp_path: Path) -> None:
    """An auditor and a user are told that they may not do what an admin does; an admin whom nobody hears, that nobody answers."""
    async with open_secured(tmp_path, ["writer"]) as secured:
        async with open_intruder(secured, "auditor") as auditor, open_intruder(secured, "user") as user:
            with pytest.raises(ForbiddenError, match="no admin's"):
                await NatsSystemClient(auditor).remove_agent(RemoveAgent(agent_id=AgentId("writer")))
            with pytest.raises(ForbiddenError, match="no admin's"):
                await NatsSystemClient(user).remove_agent(RemoveAgent(agent_id=AgentId("writer")))
        async with open_intruder(secured, "admin") as admin:
            with pytest.raises(UnavailableError, match="No service listens"):
                await NatsSystemClient(admin).remove_agent(RemoveAgent(agent_id=AgentId("writer")))
