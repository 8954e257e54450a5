"""The contract of the store of API keys."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.errors import NotFoundError
from ioa.protocol.operation.api_keys import KeyId, LoginToken, digest_of_secret
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.gateway.serving import key

TOKEN = LoginToken(digest=digest_of_secret("once"), key_id=KeyId("web"), expires_at=NEW_YEAR)


@pytest.fixture
def store(client: Client) -> NatsApiKeys:
    """A store without content."""
    return NatsApiKeys(client)


async def test_keys_are_kept_until_they_are_removed(store: NatsApiKeys) -> None:
    """A key is there as it was put, the last one of an id counts, and one that was removed is gone for good."""
    await store.put(key("one"))
    await store.put(key("two"))
    await store.put(key("two", expires_at=NEW_YEAR))
    await store.remove(KeyId("one"))
    with pytest.raises(NotFoundError, match="no key one"):
        await store.remove(KeyId("one"))
    assert list(await store.keys()) == [key("two", expires_at=NEW_YEAR)]


async def test_a_token_lets_in_once(store: NatsApiKeys) -> None:
    """Of all who show the same token at once one is let in, and nobody after him; it is no key."""
    await store.put_token(TOKEN)
    taken = await asyncio.gather(*(store.take_token(TOKEN.digest) for _ in range(4)))
    assert sorted(taken, key=bool) == [None, None, None, TOKEN]
    assert (await store.take_token(TOKEN.digest), list(await store.keys())) == (None, [])
