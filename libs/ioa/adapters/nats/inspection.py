"""Facts about the server and the streams of a system, for `ioa doctor`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.auth.identity import ask_tenant
from ioa.adapters.nats.requests.service import REJECTED
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.subscriptions import taking
from ioa.concurrency import heeding_cancellation
from ioa.errors import ForbiddenError, NotPermittedError, UnavailableError
from ioa.json_text import parse_json
from ioa.protocol.ids import TenantId
from ioa.protocol.operation.dead_letters import DeadLetter
from ioa.protocol.operation.status import StoreStanding
from ioa.protocol.setup.reads import MAX_LISTED

_PING_SECONDS = 1.0
_QUIET_SECONDS = 0.5
"""Maximum time to wait for the statistics of another service."""


@dataclass(frozen=True)
class DeadLetterKind:
    """The number of dead letters of a reason, and the newest letter; None if it is old or the caller may not read it."""

    reason: str
    count: int
    newest: DeadLetter | None


@dataclass(frozen=True)
class RejectedCaller:
    """A caller whose requests were rejected within the last minute: by their `rate`, or by a `share` of waiting requests."""

    caller: str
    limit: str
    count: int


class NatsInspection:
    """Facts about a server and the system on it. Made by `open_inspection`."""

    def __init__(self, connection: Client) -> None:
        self.connection = connection
        self.system = NatsSystemClient(connection)

    @property
    def server_version(self) -> str:
        """The version of nats-server; empty if the server does not state it."""
        return str(self.connection._server_info.get("version", ""))

    @property
    def max_payload_bytes(self) -> int:
        """The maximum size of a message."""
        return self.connection.max_payload

    async def tenant(self) -> TenantId | None:
        """Return the tenant of the credential."""
        return await ask_tenant(self.connection)

    async def standing(self) -> StoreStanding | None:
        """Return the state of JetStream; None if JetStream is off, or does not answer."""
        try:
            return await self.system.standing()
        except NotPermittedError:
            raise
        except UnavailableError:
            return None

    async def answers(self, service: str) -> bool:
        """Whether a service answers a ping (NATS ADR-32). A missing service is reported at once, without a retry."""
        with heeding_cancellation():
            try:
                await Client.request(self.connection, f"$SRV.PING.{service}", b"", timeout=_PING_SECONDS)
            except (nats.errors.Error, TimeoutError, OSError):
                return False
        return True

    async def rejected_callers(self) -> Sequence[RejectedCaller]:
        """Read from the statistics of all services which callers were rejected lately, those with most rejections first."""
        rejected, arrived, quiet = Counter[tuple[str, str]](), list[bytes](), False
        async with taking(self.connection, inbox := self.connection.new_inbox(), lambda reply: arrived.append(reply.data)):
            await self.connection.publish("$SRV.STATS", reply=inbox)
            while not quiet:  # each replica replies once (ADR-32)
                known = len(arrived)
                await asyncio.sleep(_QUIET_SECONDS)
                quiet = len(arrived) == known
        for statistics in arrived:
            with suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
                for endpoint in parse_json(statistics)["endpoints"]:
                    for caller, kind, count in (endpoint.get("data") or {}).get(REJECTED, ()):
                        rejected[str(caller), str(kind)] += int(count)
        return [RejectedCaller(caller, kind, count) for (caller, kind), count in rejected.most_common()]

    async def dead_letter_kinds(self) -> Sequence[DeadLetterKind]:
        """Count dead letters by reason, with the newest letter of each reason among the newest letters."""
        newest = dict[str, DeadLetter]()
        with suppress(ForbiddenError, NotPermittedError):  # an observer only counts letters
            for letter in (await self.system.dead_letters(limit=MAX_LISTED)).letters:
                newest.setdefault(letter.reason, letter)
        counts = (await self.system.standing()).dead_letters
        return [DeadLetterKind(reason, count, newest.get(reason)) for reason, count in counts.items()]


@asynccontextmanager
async def open_inspection(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[NatsInspection]:
    """Connect to a server within `patience`, whatever its maximum size of messages."""
    async with open_connection(settings, patience=patience, any_payload=True) as client:
        yield NatsInspection(client)
