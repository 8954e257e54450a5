"""A system on one machine that accepts third parties by tokens, and its owner by the password."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.adapters.system_folder import note_password
from ioa.cli.up import prepare_callout
from ioa.concurrency import beside
from ioa.errors import InvalidInputError
from ioa.local.system import authorization_of, refuse_other_account
from ioa.protocol.ids import LOCAL, UserId
from ioa.runtime.process import StopSignal
from ioa_authcallout.__main__ import serve
from ioa_authcallout.settings import CalloutSettings
from tests.rig.identity_provider import Provider

_SOON = timedelta(seconds=20)


async def test_a_laptop_lets_in_its_owner_and_guests(tmp_path: Path) -> None:
    """The owner may do everything, a guest what its token permits; a folder is started with the option of its creation."""
    data, nats, provider = tmp_path / "data", tmp_path / "data" / "nats", Provider(url="https://id.example.com")
    guests = await asyncio.to_thread(prepare_callout, data)
    assert await asyncio.to_thread(prepare_callout, data) == guests
    (tmp_path / "jwks.json").write_text(json.dumps(provider.answer("/keys")))
    async with open_nats_server(nats, None, authorization=authorization_of(guests, "a-password")) as server:
        note_password(data, server.url, "a-password")
        settings = CalloutSettings(
            nats_url=server.url,
            data=data,
            callout_keys=guests / "callout",
            callout_roster=guests / "nats" / "roster.json",
            callout_issuer=provider.url,
            callout_jwks=tmp_path / "jwks.json",
            callout_audience="ioa",
        )
        token = provider.token({"role": "user", "name": "bob"})
        async with (
            open_connection(NatsSettings(server.url, "owner", data=data), patience=_SOON) as owner,
            beside(serve(settings, StopSignal())),
        ):
            assert (await NatsSystemClient(owner).user(), (await owner.jetstream().account_info()).streams) == (LOCAL, 0)
            await owner.jetstream().add_stream(name="ANY", subjects=["any"])
            async with open_connection(NatsSettings(server.url, "guest", token=token), patience=_SOON) as bob:
                assert await NatsSystemClient(bob).user() == UserId("bob")
    refuse_other_account(nats, is_open=True)
    with pytest.raises(InvalidInputError, match="was made with --callout"):
        refuse_other_account(nats, is_open=False)
