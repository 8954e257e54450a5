"""Whoever asks for what his key does not allow is told so, and not that the system is out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioa
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cli.doctor import Health, examine
from ioa.cli.http_keys import list_keys
from ioa.cli.output.terminal import Terminal
from ioa.errors import ForbiddenError, NotPermittedError, UnavailableError
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import Register, RemoveAgent
from ioa.telemetry import logs
from tests.integration.security.secured import Secured, open_intruder, open_secured


async def test_command_with_a_key_of_another_role_names_the_role_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ioa doctor` by an auditor or an agent needs an observer, and `ioa keys list` by a user needs an admin."""
    async with open_secured(tmp_path, ("writer:2",)) as secured:
        for name, key in (("auditor", "seed"), ("writer", "writer-0")):
            _as(secured, name, key, monkeypatch)
            _, examined = await examine(None, tmp_path)
            last = examined[-1]
            assert (last.health, last.check, "observers" in last.hint.lower()) == (Health.PROBLEM, "credential", True)
        async with open_intruder(secured, "user") as user:
            with pytest.raises(ForbiddenError, match="This credential is user's"):
                await list_keys(ioa.Client(user), Terminal(as_json=True))


def _as(secured: Secured, name: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "configure_logs", lambda *_: None)
    monkeypatch.setenv("IOA_NATS_URL", secured.server.url)
    monkeypatch.setenv("IOA_NATS_SEED", str(secured.folder / name / key))


async def test_request_of_another_role_reports_the_missing_permission(tmp_path: Path) -> None:
    """Requests that a role may not send are rejected with the reason; an admin without services receives UnavailableError."""
    other_card = AgentCard(agent_id=AgentId("writer"), pool=PoolId("writer"), name="writer", description="Writes.")
    remove = RemoveAgent(agent_id=AgentId("writer"))
    async with (
        open_secured(tmp_path, ("writer:2",)) as secured,
        open_intruder(secured, "auditor") as auditor,
        open_intruder(secured, "user") as user,
        open_intruder(secured, "admin") as admin,
        open_intruder(secured, "writer", "writer-0") as writer,
    ):
        with pytest.raises(NotPermittedError, match=r"may not request registry\.list"):
            await NatsSystemClient(auditor).agents()
        with pytest.raises(NotPermittedError, match="does not belong to writer of the pool writer") as raised:
            await NatsAgentNetwork(writer).register(Register(card=other_card))
        for client in (auditor, user):
            with pytest.raises(ForbiddenError, match="credential of an admin"):
                await NatsSystemClient(client).remove_agent(remove)
        with pytest.raises(UnavailableError, match="No service listens"):
            await NatsSystemClient(admin).remove_agent(remove)
    assert "--replica 0" in raised.value.hint
