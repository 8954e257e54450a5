"""The contract of the store of API keys."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.stores.api_keys import NatsApiKeys
from ioa.adapters.nats.streams.topology import API_KEYS
from ioa.errors import NotFoundError
from ioa.protocol.api_keys import MOST_SIGNED_OUT, KeyId, LoginToken, SignedOut, digest_of_secret
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


async def test_sessions_that_ended_are_kept_by_key(store: NatsApiKeys) -> None:
    """Whoever signs out at the same time as others is not forgotten, and a key that is removed takes along what was kept of it."""
    now = int(NEW_YEAR.timestamp() * 1_000)
    await store.put(key("one"))
    await asyncio.gather(*(store.sign_out(KeyId("one"), now + number, NEW_YEAR) for number in (3, 1, 2)))
    told = await store.sign_out(KeyId("two"), now + 7, NEW_YEAR)
    found = {each.key_id: each for each in await store.signed_out()}
    assert found == {
        KeyId("one"): SignedOut(key_id=KeyId("one"), ended=(now + 1, now + 2, now + 3)),
        KeyId("two"): told,
    }
    await store.remove(KeyId("one"))
    assert list(await store.signed_out()) == [told]


def test_what_is_kept_of_sessions_stays_small() -> None:
    """Who signs out very often ends what began before, and no session that ended ever goes on; those whose time is over go."""
    now = int(NEW_YEAR.timestamp() * 1_000)
    found = SignedOut(key_id=KeyId("web"), ended=(now - 1,))
    for number in range(2 * MOST_SIGNED_OUT):
        found = found.with_one_more(now + 2 * number + 2, NEW_YEAR)
    assert (len(found.ended), found.before) == (MOST_SIGNED_OUT, now + 2 * MOST_SIGNED_OUT)
    assert all(found.holds(now + 2 * number + 2) for number in range(2 * MOST_SIGNED_OUT))
    assert not found.holds(now + 4 * MOST_SIGNED_OUT - 1)


async def test_all_seal_cookies_alike(store: NatsApiKeys) -> None:
    """Whoever asks what cookies are sealed with is told the same, so that any replica knows the sessions of all."""
    assert len(set(await asyncio.gather(*(store.cookie_secret() for _ in range(3))))) == 1


async def test_all_sessions_end_together(store: NatsApiKeys) -> None:
    """Who ends all sessions has cookies sealed with something else, for everybody."""
    before = await store.cookie_secret()
    await store.end_sessions()
    after = {await store.cookie_secret() for _ in range(3)}
    assert (len(after), before in after) == (1, False)


@pytest.mark.parametrize("removed_by", ["purge", "delete"])
async def test_what_seals_cookies_is_drawn_anew_once_it_was_removed(client: Client, removed_by: str) -> None:
    """`nats kv purge IOA_API_KEYS cookie`, which leaves a marker, ends all sessions: another secret is drawn, the same for all."""
    store = NatsApiKeys(client)
    before = await store.cookie_secret()
    bucket = await client.jetstream().key_value(API_KEYS)
    await getattr(bucket, removed_by)("cookie")
    after = set(await asyncio.gather(*(store.cookie_secret() for _ in range(3))))
    assert (len(after), before in after) == (1, False)
