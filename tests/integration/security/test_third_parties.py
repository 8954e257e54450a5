"""Third parties join by tokens of an identity provider, on a real nats-server, with a provider that answers on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ioa.adapters.nats.authorization import authorization, read_authorization, read_callout
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.server import open_nats_server
from ioa.beside import beside
from ioa.cli.credentials import AUTHORIZATION, CALLOUT, FolderSecrets, plan_of
from ioa.errors import UnavailableError
from ioa.hosting.cluster_credentials import make_credentials
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, PoolId
from ioa.runtime.process import StopSignal
from ioa.testing.manual_clock import NEW_YEAR
from ioa_authcallout.__main__ import serve
from ioa_authcallout.settings import CalloutSettings
from tests.rig.deadline import eventually
from tests.rig.identity_provider import Provider, open_provider

_SOON, _BRIEFLY = timedelta(seconds=20), timedelta(milliseconds=100)


@dataclass(frozen=True)
class House:
    """A server that asks the callout, the provider, and how to connect."""

    provider: Provider
    url: str
    folder: Path

    def by_token(self, token: str | Path) -> NatsSettings:
        """How somebody connects who has a token."""
        return NatsSettings(self.url, "guest", token=token)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A nats-server with credentials and an auth callout that believes the provider."""
    credentials = tmp_path / "credentials"
    plan = plan_of(["writer"], ["anna"], [], [], third_parties=True)
    await asyncio.to_thread(make_credentials, plan, FolderSecrets(credentials), NEW_YEAR)
    rendered = await asyncio.to_thread((credentials / AUTHORIZATION / "authorization.conf").read_text)
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(open_provider())
        server = await stack.enter_async_context(open_nats_server(tmp_path / "nats", None, authorization=rendered))
        settings = CalloutSettings(
            nats_url=server.url,
            nats_seed=str(credentials / CALLOUT / "seed"),
            callout_seed=credentials / CALLOUT / "issuer",
            callout_issuer=provider.url,
            callout_audience="ioa",
        )
        await stack.enter_async_context(beside(serve(settings, StopSignal())))
        yield House(provider, server.url, credentials)


async def test_a_third_party_may_do_what_its_token_says(house: House) -> None:
    """An agent by a token has an agent's rights, as itself and nobody else; a key that is known is asked for no token."""
    ada = NatsSettings(house.url, "writer", seed=str(house.folder / "writer" / "writer"))
    heard: list[str] = []
    async with (
        open_connection(house.by_token(house.provider.token()), patience=_SOON) as guest,
        open_connection(ada, patience=_SOON),
    ):

        async def refused(error: Exception) -> None:
            heard.append(str(error))

        guest._error_cb = refused
        await guest.publish(subjects.register(PoolId("guest"), AgentId("guest-1")), b"{}")
        await guest.subscribe(subjects.inbox(AgentId("guest-1"), "n1"))
        await guest.subscribe(guest.new_inbox())
        await guest.flush()
        assert heard == []
        for subject in (subjects.register(PoolId("writer"), AgentId("guest-1")), subjects.GOAL):
            await guest.publish(subject, b"{}")
        await guest.subscribe("_INBOX.>")
        await eventually(lambda: len(heard), lambda count: count == 3, within=_SOON)


async def test_a_connection_ends_with_its_token_and_goes_on_with_the_next(house: House, tmp_path: Path) -> None:
    """When a token runs out its connection is closed; the file is read anew, and what was asked comes to the same place."""
    file = tmp_path / "token"
    file.write_text(house.provider.token(lasts=-3))  # it has run out, which is let pass for five seconds
    async with open_connection(house.by_token(file), patience=_SOON) as guest:
        first = guest.client_id
        file.write_text(house.provider.token())
        await eventually(lambda: guest.client_id, lambda now: now != first and guest.is_connected, within=_SOON)
        inbox = guest.new_inbox()
        got = await guest.subscribe(inbox)
        assert inbox.startswith("_INBOX.T") and got is not None


async def test_a_provider_that_is_away_shuts_nobody_out_whose_key_is_known(house: House) -> None:
    """Who is connected stays, a key that was seen goes on; a new one is taken as soon as the provider is back."""
    async with open_connection(house.by_token(house.provider.token()), patience=_SOON) as guest:
        house.provider.away = True
        house.provider.keys["k2"] = ec.generate_private_key(ec.SECP256R1())
        async with open_connection(house.by_token(house.provider.token()), patience=_SOON):
            pass
        with pytest.raises(UnavailableError, match="lets nobody in"):
            async with open_connection(house.by_token(house.provider.token(key_id="k2")), patience=_BRIEFLY):
                pass
        await guest.flush()
        assert guest.is_connected


def test_the_authorization_keeps_its_list_until_a_restart(tmp_path: Path) -> None:
    """nats-server takes no other list of keys at a reload: who is revoked stays on it, and only somebody new changes it."""
    make_credentials(plan_of(["writer:2"], [], [], [], third_parties=True), FolderSecrets(tmp_path), NEW_YEAR)
    rendered = (tmp_path / AUTHORIZATION / "authorization.conf").read_text()
    known, callout = read_authorization(rendered), read_callout(rendered)
    assert callout is not None
    fewer = dict(list(known.items())[1:])
    after = read_callout(authorization(fewer, callout))
    more = read_callout(authorization({**fewer, "UNEW": known[next(iter(fewer))]}, callout))
    assert after == callout and more is not None
    assert set(more.listed) == {*fewer, "UNEW", callout.user}
