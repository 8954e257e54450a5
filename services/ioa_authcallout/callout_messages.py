"""Auth callout of nats-server (NATS ADR-26): requests and replies are JWTs signed with the key of an account.

The signature of requests is not verified: they arrive in an account that only the callout can use.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog

from ioa.adapters.nats.auth.nats_credentials import claims_of
from ioa.adapters.nats.auth.roles import WHO_IS_THIS, Permissions, account_name
from ioa.adapters.nats.wire.connection import Connection
from ioa.adapters.nats.wire.subscriptions import Message, taking
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.adapters.secret_stores.nkeys import account_key_of, sign_with
from ioa.concurrency import TaskGroup
from ioa.errors import IoaError, UnavailableError
from ioa.protocol.subjects import inbox_prefix_of

_QUEUE = "ioa-authcallout"
_MAX_CONCURRENT = 1_000
"""Maximum number of concurrent verifications; further requests get no reply, and nats-server ends their connections after 2 s."""
_UNLIMITED = -1
_NANOSECONDS = 1_000_000_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Guest:
    """A client that is accepted by a token.

    Attributes:
        name: Its name, as `full_name` writes it.
        subject: The subject of the token, by which it can be revoked.
        holder: The name that nats-server lists for the connection. No other key or role has it.
        inbox_owner: Owner of the inbox that it may read.
        until: The end of the connection.
    """

    name: str
    role: str
    subject: str
    holder: str
    may: Permissions
    inbox_owner: str
    until: datetime


async def answer_callouts(
    client: Connection, issuer_seed: str, verify: Callable[[str], Awaitable[Guest]], now: Callable[[], datetime]
) -> None:
    """Answer requests of nats-server as one replica of several, until cancelled. `issuer_seed` is of the key that signs replies.

    `verify` returns the holder of a token, or raises an `IoaError`, whose message appears in the log of nats-server only.
    """
    issuer, running = account_key_of(issuer_seed), set[asyncio.Task[None]]()

    async def decide(user: str, token: str) -> Mapping[str, object]:
        try:
            return {"jwt": sign_jwt(issuer_seed, _user_claims(issuer, user, await verify(token), now()))}
        except IoaError as error:
            return {"error": error.message}
        except Exception:  # noqa: BLE001 - the server gets an answer, the log the bug
            _log.exception("callout_failed")
            return {"error": "The auth callout failed; see its log."}

    async def reply(message: Message) -> None:
        try:
            asked = claims_of(message.data.decode("ascii"))["nats"]
            user, server, token = asked["user_nkey"], asked["server_id"]["id"], asked["connect_opts"].get("auth_token") or ""
        except (ValueError, KeyError, TypeError, AttributeError):
            _log.error("callout_unreadable")
            return
        response = {"type": "authorization_response", "version": 2, **await decide(user, token)}
        claims = {"iss": issuer, "sub": user, "aud": server, "iat": int(now().timestamp()), "nats": response}
        with suppress(UnavailableError), unavailable_unless_answered("nats-server"):  # it rejects the connection after its timeout
            await message.respond(sign_jwt(issuer_seed, claims).encode("ascii"))

    async with TaskGroup() as group:

        def take(message: Message) -> None:
            if len(running) < _MAX_CONCURRENT:
                running.add(task := group.create_task(reply(message)))
                task.add_done_callback(running.discard)

        async with taking(client, WHO_IS_THIS, take, _QUEUE):
            await asyncio.Event().wait()


def sign_jwt(seed: str, claims: Mapping[str, object]) -> str:
    """Return claims as a JWT of NATS, signed with a seed's key."""
    body = f"{_encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_encoded(claims)}"
    return f"{body}.{_base64(sign_with(seed, body.encode('ascii')))}"


def _user_claims(issuer: str, user: str, guest: Guest, now: datetime) -> dict[str, object]:
    may = guest.may
    rights: dict[str, object] = {
        "type": "user",
        "version": 2,
        "pub": {"allow": list(may.publish)},
        "sub": {"allow": [*may.subscribe, f"{inbox_prefix_of(guest.inbox_owner)}.>"]},
        **dict.fromkeys(("subs", "data", "payload"), _UNLIMITED),  # the server ignores them for users of a callout
    }
    if may.replies is not None:
        rights["resp"] = {"max": may.replies.times, "ttl": may.replies.seconds * _NANOSECONDS}
    times = {"iat": int(now.timestamp()), "exp": int(guest.until.timestamp())}
    return {"iss": issuer, "sub": user, "aud": account_name(may.account, may.tenant), "name": guest.holder, **times, "nats": rights}


def _encoded(value: Mapping[str, object]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
