"""What nats-server asks an auth callout, and how it is answered (NATS ADR-26): JWTs signed by the key of an account.

The server signs its requests too. That is not checked: they come in an account in which nobody is but the callout itself.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.permissions import WHO_IS_THIS, Permissions, account_of
from ioa.adapters.nats.tokens import claims_of
from ioa.adapters.nkey_seeds import account_key_of, sign_with
from ioa.errors import IoaError
from ioa.protocol.subjects import inbox_prefix_of

_QUEUE = "ioa-authcallout"
_AT_ONCE = 1_000
"""Many, since those who bring an unknown key wait for its issuer, and must not keep others out for so long."""
_UNBOUNDED = -1
_NANOSECONDS = 1_000_000_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Guest:
    """Somebody who is let in by a token: under which name and role, what he may do, where he reads answers, and until when.

    `subject` is whose token it is, by which it is revoked. `holder` is what nats-server knows him by, and what is kept out if he
    floods: no key and nobody of another role is called so.
    """

    name: str
    role: str
    subject: str
    holder: str
    may: Permissions
    inbox_owner: str
    until: datetime


async def answer_callouts(
    client: Client, issuer_seed: str, judge: Callable[[str], Awaitable[Guest]], now: Callable[[], datetime]
) -> None:
    """Answer nats-server's questions as one replica of several, until cancelled.

    Args:
        client: A connection in the account where questions come.
        issuer_seed: That of the key which signs the answers.
        judge: Says who the holder of a token is, or raises an error of IoA, whose message the server logs. The client is told
            nothing but that it is not let in.
        now: The time.
    """
    issuer = account_key_of(issuer_seed)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def answer(message: Msg) -> None:
        async with slots:
            try:
                asked = claims_of(message.data.decode("ascii"))["nats"]
                user, server, token = asked["user_nkey"], asked["server_id"]["id"], asked["connect_opts"].get("auth_token") or ""
            except (ValueError, KeyError, TypeError, AttributeError):
                _log.error("callout_unreadable")
                return
            decided: dict[str, object]
            try:
                guest = await judge(token)
                decided = {"jwt": sign_jwt(issuer_seed, _user(issuer, user, guest, now()))}
            except IoaError as error:
                decided = {"error": error.message}
            except Exception:  # noqa: BLE001 - the server gets an answer, the log the bug
                decided = {"error": "The auth callout failed; its log says why."}
                _log.exception("callout_failed")
            claims = {"iss": issuer, "sub": user, "aud": server, "iat": int(now().timestamp())}
            response = {"nats": {"type": "authorization_response", "version": 2, **decided}}
            try:
                await message.respond(sign_jwt(issuer_seed, claims | response).encode("ascii"))
            except (nats.errors.Error, OSError) as error:
                _log.warning("callout_unanswered", error=str(error) or type(error).__name__)

    async with asyncio.TaskGroup() as group:
        subscription = await client.subscribe(WHO_IS_THIS, queue=_QUEUE)
        async for message in subscription.messages:
            group.create_task(answer(message))


def sign_jwt(seed: str, claims: Mapping[str, object]) -> str:
    """Write claims as a JWT of NATS, signed by a seed's key."""
    body = f"{_encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_encoded(claims)}"
    return f"{body}.{_base64(sign_with(seed, body.encode('ascii')))}"


def _user(issuer: str, user: str, guest: Guest, now: datetime) -> dict[str, object]:
    may = guest.may
    rights: dict[str, object] = {
        "type": "user",
        "version": 2,
        "pub": {"allow": list(may.publish)},
        "sub": {"allow": [*may.subscribe, f"{inbox_prefix_of(guest.inbox_owner)}.>"]},
        **dict.fromkeys(("subs", "data", "payload"), _UNBOUNDED),  # the server heeds none of them for users of a callout
    }
    if may.answering is not None:
        rights["resp"] = {"max": may.answering.times, "ttl": may.answering.seconds * _NANOSECONDS}
    times = {"iat": int(now.timestamp()), "exp": int(guest.until.timestamp())}
    return {"iss": issuer, "sub": user, "aud": account_of(may.account, may.tenant), "name": guest.holder, **times, "nats": rights}


def _encoded(value: Mapping[str, object]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
