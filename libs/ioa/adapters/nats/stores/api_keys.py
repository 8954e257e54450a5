"""The keys of HTTP in the bucket `IOA_API_KEYS`, and what sessions rest on."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from nats.aio.client import Client

from ioa.adapters.nats.streams.compare_and_set import drawn_once, erase, last_message, publish_onto, stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import pages
from ioa.adapters.nats.streams.topology import API_KEYS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import NotFoundError
from ioa.protocol.api_keys import ApiKey, KeyId, LoginToken, SignedOut
from ioa.protocol.codec import decode, encode
from ioa.protocol.model import Model

_STREAM = stream_of(API_KEYS)
_WHAT = "The bucket of keys"
_KEY, _TOKEN, _COOKIE, _OUT = "key", "once", "cookie", "out"
_PAGE = 256
_SECRET_BYTES = 32

M = TypeVar("M", bound=Model)


class NatsApiKeys:
    """API keys by id. Any replica answers lists; other reads come from the stream's leader."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()

    async def keys(self) -> Sequence[ApiKey]:
        """Read all keys, from any replica."""
        return await self._all_of(_KEY, ApiKey)

    async def put(self, key: ApiKey) -> None:
        """Keep a key."""
        with unavailable_unless_answered(_WHAT):
            await self._js.publish(subject_of(API_KEYS, f"{_KEY}.{key.key_id}"), encode(key), stream=_STREAM)

    async def remove(self, key_id: KeyId) -> None:
        """Forget a key."""
        with unavailable_unless_answered(_WHAT):
            if await last_message(self._js, _STREAM, subject_of(API_KEYS, f"{_KEY}.{key_id}")) is None:
                raise NotFoundError(f"There is no key {key_id}.", hint="`ioa keys list` lists them.")
            for kind in (_KEY, _OUT):
                await erase(self._js, API_KEYS, f"{kind}.{key_id}")

    async def put_token(self, token: LoginToken) -> None:
        """Keep a token."""
        with unavailable_unless_answered(_WHAT):
            await self._js.publish(_subject_of_token(token.digest), encode(token), stream=_STREAM)

    async def take_token(self, digest: str) -> LoginToken | None:
        """Use a token up. What is written over it says that it was."""
        subject = _subject_of_token(digest)
        with unavailable_unless_answered(_WHAT):
            kept = await last_message(self._js, _STREAM, subject)
            if kept is None or not kept.data or not await publish_onto(self._js, _STREAM, subject, b"", last=kept.seq or 0):
                return None
        return decode(LoginToken, kept.data)

    async def sign_out(self, key_id: KeyId, until: int, now: datetime) -> SignedOut:
        """Keep that a session is over, besides whatever others say of the same key's."""
        subject = subject_of(API_KEYS, f"{_OUT}.{key_id}")
        with unavailable_unless_answered(_WHAT):
            while True:
                kept = await last_message(self._js, _STREAM, subject)
                known = decode(SignedOut, kept.data) if kept is not None and kept.data else SignedOut(key_id=key_id)
                found = known.with_one_more(until, now)
                last = 0 if kept is None else kept.seq or 0
                if found == known or await publish_onto(self._js, _STREAM, subject, encode(found), last=last):
                    return found

    async def signed_out(self) -> Sequence[SignedOut]:
        """Read which sessions ended before their time, from any replica."""
        return await self._all_of(_OUT, SignedOut)

    async def cookie_secret(self) -> bytes:
        """Return what cookies are sealed with."""
        return await drawn_once(self._js, API_KEYS, _COOKIE, _SECRET_BYTES, "What cookies are sealed with")

    async def end_sessions(self) -> None:
        """Write another secret over the one that cookies are sealed with."""
        with unavailable_unless_answered(_WHAT):
            await self._js.publish(subject_of(API_KEYS, _COOKIE), secrets.token_bytes(_SECRET_BYTES), stream=_STREAM)

    async def _all_of(self, kind: str, model: type[M]) -> Sequence[M]:
        found = pages(self._client, _STREAM, subject_of(API_KEYS, f"{kind}.*"), limit=_PAGE)
        return [decode(model, message.data) async for page in found for message in page.messages if message.data]


def _subject_of_token(digest: str) -> str:
    return subject_of(API_KEYS, f"{_TOKEN}.{digest}")
