"""Third parties join by tokens of an identity provider, on a real nats-server, with a provider that answers on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.stores.audit_stream import NatsAuditTrail
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.cli.credentials import CALLOUT, authorization_file, revoke
from ioa.cli.output.terminal import Terminal
from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.hosting.credential_store import ROSTER
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, PoolId, SessionId, UserId
from ioa.protocol.operation.audit import Deed
from ioa.protocol.registry import Register, Session
from ioa.retry import until_available
from ioa.runtime.process import StopSignal
from ioa.telemetry import logs
from ioa.testing.manual_clock import NEW_YEAR
from ioa_authcallout.__main__ import serve
from ioa_authcallout.settings import CalloutSettings
from tests.integration.security.secured import (
    Secured,
    open_intruder,
    open_processes,
    open_secured,
)
from tests.integration.security.town import card
from tests.rig.deadline import eventually
from tests.rig.identity_provider import Provider, open_provider
from tests.rig.nats_server import ignore_refused_subscriptions

_SOON, _BRIEFLY = timedelta(seconds=20), timedelta(milliseconds=100)
_BOB = {"role": "user", "name": "bob"}
_QUIET = Terminal(as_json=True)
_SESSION = Session(session=SessionId("s1"), host="box", pid=7, since=NEW_YEAR)


@dataclass(frozen=True)
class House:
    """A server that asks the callout, and the provider that the callout believes."""

    provider: Provider
    secured: Secured

    def by_token(self, token: str | Path) -> NatsSettings:
        """How somebody connects who has a token."""
        return NatsSettings(self.secured.server.url, "guest", token=str(token))

    async def is_refused(self, token: str) -> None:
        """See that a token does not let in, without a client that asks again."""
        server = urlsplit(self.secured.server.url)
        reader, writer = await asyncio.open_connection(server.hostname, server.port)
        try:
            await reader.readline()
            writer.write(f"CONNECT {json.dumps({'auth_token': token, 'verbose': False})}\r\nPING\r\n".encode())
            assert (await reader.readline()).startswith(b"-ERR")
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A nats-server with credentials, and an auth callout that accepts tokens of a provider."""
    async with open_secured(tmp_path, ["calculator"], callout=True) as secured, open_callout(secured) as provider:
        yield House(provider, secured)


@asynccontextmanager
async def open_callout(secured: Secured) -> AsyncIterator[Provider]:
    """Run an auth callout, and yield the provider whose tokens it accepts."""
    folder = secured.folder
    async with open_provider() as provider:
        settings = CalloutSettings(
            nats_url=secured.server.url,
            nats_seed=str(folder / "authcallout" / "seed"),
            callout_keys=folder / CALLOUT,
            callout_roster=authorization_file(folder).with_name(ROSTER),
            callout_issuer=provider.url,
            callout_audience="ioa",
        )
        async with beside(serve(settings, StopSignal())):
            token = provider.token({"role": "observer", "name": "first"}, sub="first")
            async with open_connection(NatsSettings(secured.server.url, "first", token=token), patience=_SOON):
                yield provider


def _errors_of(client: Client) -> list[str]:
    heard: list[str] = []

    async def hear(error: Exception) -> None:
        heard.append(str(error))

    client._error_cb = hear
    return heard


async def test_a_guest_may_do_what_its_token_says(house: House) -> None:
    """An agent by a token has an agent's rights, as itself and nobody else; a user by a token is the user that it names."""
    async with (
        open_connection(house.by_token(house.provider.token()), patience=_SOON) as guest,
        open_connection(house.by_token(house.provider.token(_BOB, sub="bob")), patience=_SOON) as bob,
    ):
        assert await NatsSystemClient(bob).user() == UserId("bob")
        heard = _errors_of(guest)
        await guest.publish(subjects.agent(PoolId("guest"), AgentId("guest-1"), subjects.REGISTER), b"{}")
        await guest.subscribe(subjects.inbox(AgentId("guest-1"), "n1"))
        await guest.subscribe(guest.new_inbox())
        await guest.flush()
        assert heard == []
        for subject in (
            subjects.agent(PoolId("calculator"), AgentId("guest-1"), subjects.REGISTER),
            subjects.agent(PoolId("guest-2"), AgentId("guest-2"), subjects.DEREGISTER),
            subjects.goal_of(UserId("bob")),
            "$SYS.REQ.USER.AUTH",
        ):
            await guest.publish(subject, b"{}")
        await ignore_refused_subscriptions(guest)
        for subject in (bob.new_inbox(), "_INBOX.>", "$SYS.REQ.USER.AUTH", subjects.inbox(AgentId("calculator"), "*")):
            await guest.subscribe(subject)
        await eventually(lambda: len(heard), lambda count: count == 8, within=_SOON)


async def test_what_is_no_token_of_the_provider_lets_nobody_in(house: House) -> None:
    """Not a forged one, nor one whose claim bears a key's name, a wildcard or too much; none is written to the server's log."""
    forged = Provider(url=house.provider.url).token()
    refused = [
        forged,
        house.provider.token({"role": "agent", "agent": "calculator", "pool": "guest"}),
        house.provider.token({"role": "user", "name": "eve"}, sub="another"),
        house.provider.token({"role": "agent", "agent": "*"}),
        house.provider.token(more="x" * 20_000),
        house.provider.token(more="x" * 60_000),
    ]
    for token in refused:
        await house.is_refused(token)
    log = house.secured.log()
    assert not [token for token in refused if token in log]
    assert "name of a holder of a key" in log
    with pytest.raises(UnavailableError, match="rejects the credentials"):
        async with open_connection(house.by_token(forged), patience=_BRIEFLY):
            pass


async def test_a_connection_ends_with_its_token_and_goes_on_with_the_next(house: House, tmp_path: Path) -> None:
    """When a token runs out its connection is closed; the file is read anew, and answers go on coming to the same place."""
    file = tmp_path / "token"
    file.write_text(house.provider.token(lasts=-3))  # it has run out, which is let pass for five seconds
    async with open_connection(house.by_token(file), patience=_SOON) as guest:
        first, inbox = guest.client_id, guest.new_inbox()
        file.write_text(house.provider.token())
        await eventually(lambda: guest.client_id, lambda now: now != first and guest.is_connected, within=_SOON)
        heard = _errors_of(guest)
        await guest.subscribe(inbox)
        await guest.flush()
        assert heard == []


@pytest.mark.slow
async def test_a_subject_is_thrown_out_and_others_are_not(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is closed, all its tokens are rejected, and the audit log contains its names and the rejection."""
    monkeypatch.setattr(logs, "configure_logs", lambda *_: None)
    monkeypatch.setenv("IOA_NATS_URL", house.secured.server.url)
    monkeypatch.setenv("IOA_NATS_SEED", str(house.secured.folder / "admin" / "seed"))
    both = {"role": "agent", "agent": "both"}
    of_guest = [house.provider.token(), house.provider.token({"role": "user", "name": "greta"}), house.provider.token(both)]
    of_bob = [house.provider.token(claim, sub="bob@example.com") for claim in (_BOB, both)]
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(open_intruder(house.secured, "admin"))
        await stack.enter_async_context(open_processes(house.secured, map(house.secured.service, ("registry", "groups"))))
        bad, *_, good, other = [
            await stack.enter_async_context(open_connection(house.by_token(token), patience=_SOON))
            for token in (*of_guest, *of_bob)
        ]
        for client, agent_id, pool in ((bad, "guest-1", "guest"), (other, "both", "both")):
            request = Register(card=card(AgentId(agent_id), pool), session=_SESSION)
            registration = partial(NatsAgentNetwork(client).register, request)
            await until_available(registration, lambda _: None)
        trail = NatsAuditTrail(admin)

        async def noted() -> set[tuple[str, str, str, str]]:
            lines = [line for _, line in (await trail.page(limit=500)).lines if line.deed is Deed.CONNECTED]
            return {(line.who, line.target, line.why if not line.refused else "", line.refused) for line in lines}

        came = {("guest-1", "guest@example.com", "agent", ""), ("both", "bob@example.com", "agent", "")}
        await eventually(noted, came.issubset, within=_SOON)
        await asyncio.to_thread(
            partial(revoke, _QUIET, "guest@example.com", out=house.secured.folder, pid_file=house.secured.pid_file, subject=True)
        )
        await eventually(house.secured.log, lambda log: "subject is revoked" in log, within=_SOON)
        await eventually(lambda: good.is_connected and not bad.is_connected, bool, within=_SOON)
        await house.is_refused(house.provider.token())
        await eventually(noted, {("", "guest@example.com", "", "forbidden")}.issubset, within=_SOON)
