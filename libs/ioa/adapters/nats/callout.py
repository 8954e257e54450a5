"""What nats-server asks an auth callout, and how it is answered (NATS ADR-26): JWTs signed by the key of an account.

The server signs its requests too. That is not checked: they come in an account in which nobody is but the callout itself.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.arrivals import Arrival, ArrivalQueue
from ioa.adapters.nats.permissions import WHO_IS_THIS, Permissions, account_of
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.tokens import claims_of
from ioa.adapters.nkey_seeds import account_key_of, sign_with
from ioa.cancellation import TaskGroup
from ioa.errors import ForbiddenError, IoaError
from ioa.networks import network_of
from ioa.protocol.subjects import inbox_prefix_of

_QUEUE = "ioa-authcallout"
_AT_ONCE, _FOR_THE_KNOWN = 128, 16
"""How many are judged at a time, of whom so many were let in before: who brings an unknown key waits for its issuer, and must not
keep others out for so long."""
_UNBOUNDED = -1
_NANOSECONDS = 1_000_000_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Guest:
    """Somebody who is let in by a token: under which name and role, what he may do, where he reads answers, and until when.

    `subject` is that of the token, by which it is revoked. `holder` is the name that nats-server lists for the connection: no key
    and no holder of another role has it.
    """

    name: str
    role: str
    subject: str
    holder: str
    may: Permissions
    inbox_owner: str
    until: datetime


class CalloutJudge(Protocol):
    """Who says whom nats-server lets in. Addresses are as `network_of` has them."""

    async def judge(self, token: str, address: str) -> Guest:
        """Say who the holder of a token is.

        Raises:
            IoaError: He is not let in; the server logs the message, the client is told nothing else.
        """
        ...

    def is_answered(self, address: str) -> bool:
        """Whether somebody of this address who is not let in is told so; else he waits for the server to give him up."""
        ...

    def given_up(self, address: str) -> None:
        """Hear that somebody was not judged, since too many waited."""
        ...


async def answer_callouts(client: Client, issuer_seed: str, entrance: CalloutJudge, now: Callable[[], datetime]) -> None:
    """Answer nats-server's questions as one replica of several, until cancelled.

    Args:
        client: A connection in the account where questions come.
        issuer_seed: That of the key which signs the answers.
        entrance: Says who is let in.
        now: The time.
    """
    clock = asyncio.get_running_loop().time
    arrivals = ArrivalQueue(clock, lambda arrival: entrance.given_up(arrival.address))
    answering = _Answering(client, issuer_seed, entrance, now, arrivals)

    def come(message: Msg) -> None:
        try:
            asked = claims_of(message.data.decode("ascii"))["nats"]
            user, server, token = asked["user_nkey"], asked["server_id"]["id"], asked["connect_opts"].get("auth_token") or ""
            address = network_of(asked["client_info"].get("host") or "")
        except (ValueError, KeyError, TypeError, AttributeError):
            _log.error("callout_unreadable")
            return
        answering.arrivals.come(Arrival(user, server, token, address, clock(), message.reply))

    async with TaskGroup() as group:
        await client.subscribe(WHO_IS_THIS, queue=_QUEUE, future=MessageSink(come))
        for number in range(_AT_ONCE):
            group.create_task(answering.follow(known_alone=number < _FOR_THE_KNOWN))


class _Answering:
    def __init__(
        self, client: Client, issuer_seed: str, entrance: CalloutJudge, now: Callable[[], datetime], arrivals: ArrivalQueue
    ) -> None:
        self.arrivals = arrivals
        self._client = client
        self._seed = issuer_seed
        self._issuer = account_key_of(issuer_seed)
        self._entrance = entrance
        self._now = now

    async def follow(self, *, known_alone: bool) -> None:
        """Judge one after another, for ever."""
        while True:
            arrival = await self.arrivals.next(known_alone=known_alone)
            holder: str | None = None
            try:
                holder = await self._answer(arrival)
            finally:
                self.arrivals.done(arrival, holder)

    async def _answer(self, arrival: Arrival) -> str | None:
        """Judge somebody, and tell the server; returns the subject of who is let in, an empty one, or None if it is not known."""
        decided: dict[str, object]
        holder: str | None = None
        try:
            guest = await self._entrance.judge(arrival.token, arrival.address)
            decided = {"jwt": sign_jwt(self._seed, _user(self._issuer, arrival.user, guest, self._now()))}
            holder = guest.subject
        except IoaError as error:
            decided = {"error": error.message}
            holder = "" if isinstance(error, ForbiddenError) else None
            if not self._entrance.is_answered(arrival.address):
                return holder
        except Exception:  # noqa: BLE001 - the server gets an answer, the log the bug
            decided = {"error": "The auth callout failed; its log says why."}
            _log.exception("callout_failed")
        claims = {"iss": self._issuer, "sub": arrival.user, "aud": arrival.server, "iat": int(self._now().timestamp())}
        response = {"nats": {"type": "authorization_response", "version": 2, **decided}}
        try:
            await self._client.publish(arrival.reply, sign_jwt(self._seed, claims | response).encode("ascii"))
        except (nats.errors.Error, OSError) as error:
            _log.warning("callout_unanswered", error=str(error) or type(error).__name__)
        return holder


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
