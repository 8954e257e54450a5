"""What both stores of HTTP's keys keep to: the one in memory, and the one on a real nats-server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ioa.adapters.nats.api_keys import NatsApiKeys
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.server import open_nats_server
from ioa.adapters.nats.topology import Topology
from ioa.errors import NotFoundError
from ioa.ports.api_key_store import ApiKeyStore
from ioa.protocol.api_keys import KeyId, LoginToken, digest_of_secret
from ioa.testing.manual_clock import NEW_YEAR
from ioa.testing.memory_api_keys import MemoryApiKeys
from tests.integration.gateway.serving import key

TOKEN = LoginToken(digest=digest_of_secret("once"), key_id=KeyId("web"), expires_at=NEW_YEAR)


@pytest.fixture(params=["memory", "nats"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ApiKeyStore]:
    """A store without keys."""
    if request.param == "memory":
        yield MemoryApiKeys()
        return
    async with open_nats_server(tmp_path, None) as server, open_connection(NatsSettings(server.url, "test")) as client:
        await Topology().ensure(client.jetstream())
        yield NatsApiKeys(client)


async def test_keys_are_kept_until_they_are_removed(store: ApiKeyStore) -> None:
    """A key is there as it was put, the last one of an id counts, and one that was removed is gone for good."""
    await store.put(key("one"))
    await store.put(key("two"))
    await store.put(key("two", expires_at=NEW_YEAR))
    await store.remove(KeyId("one"))
    with pytest.raises(NotFoundError, match="no key one"):
        await store.remove(KeyId("one"))
    assert list(await store.keys()) == [key("two", expires_at=NEW_YEAR)]


async def test_a_token_lets_in_once(store: ApiKeyStore) -> None:
    """Of all who show the same token at once one is let in, and nobody after him; it is no key."""
    await store.put_token(TOKEN)
    taken = await asyncio.gather(*(store.take_token(TOKEN.digest) for _ in range(4)))
    assert sorted(taken, key=bool) == [None, None, None, TOKEN]
    assert (await store.take_token(TOKEN.digest), list(await store.keys())) == (None, [])


async def test_all_seal_cookies_alike(store: ApiKeyStore) -> None:
    """Whoever asks what cookies are sealed with is told the same, so that any replica knows the sessions of all."""
    assert len(set(await asyncio.gather(*(store.cookie_secret() for _ in range(3))))) == 1
