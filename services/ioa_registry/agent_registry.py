"""Registration and leases of agents. The key-value buckets contain all state; a replica can end at any time.

A renewal needs one write only; other fields of its reply are optional. Lists of agents, and claims of an id that is in use, wait
until the replica has read the buckets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import structlog
from prometheus_client import Gauge

from ioa.adapters.nats.stores.goal_records import NatsWorkQueue
from ioa.adapters.nats.stores.open_group_store import NatsMemberships
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.concurrency import fail_after
from ioa.errors import AlreadyRunningError, IdTakenError, IoaError, NotFoundError, UnavailableError, reason_of
from ioa.ports.clock import Clock, IdSource
from ioa.ports.registry_view import RegistryView
from ioa.protocol.cards import AgentCard, AgentStatus, advice, check_card_size
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import (
    Acknowledged,
    Agents,
    CardRecord,
    Claim,
    Deregister,
    Lease,
    ListAgents,
    Register,
    Renew,
    Renewal,
    proof_digest,
)

_OPTIONAL_TIMEOUT = timedelta(milliseconds=500)
"""Timeout of the reads for optional fields of a reply."""
_CLAIM_ATTEMPTS = 5
_PAGE_BYTES = MAX_PAYLOAD_BYTES * 3 // 4

T = TypeVar("T")

_log = structlog.get_logger(__name__)
agents = Gauge("ioa_agents", "Registered agents, online or offline", ["state"])


@dataclass(frozen=True, kw_only=True)
class RegistryPorts:
    """Stores and services that a registry uses."""

    cards: Records[CardRecord]
    leases: Records[Renewal]
    sessions: NatsSessions
    view: RegistryView
    memberships: NatsMemberships
    work: NatsWorkQueue
    clock: Clock
    ids: IdSource


class Registry:
    """Handles the requests `registry.*`."""

    def __init__(self, ports: RegistryPorts, renew_every: timedelta) -> None:
        self._ports = ports
        self._renew_every = renew_every

    async def register(self, request: Register) -> Lease:
        """Store a card, if it changed, and renew the lease of its agent. Idempotent.

        Raises:
            PayloadTooLargeError: The card exceeds the maximum size.
            AlreadyRunningError: Another live process holds the id, with the same card.
            IdTakenError: Another live process holds the id, with another card.
        """
        card = request.card
        check_card_size(card)
        inbox = await self._claim(request)
        known = await self._ports.cards.find(card.agent_id)
        if known is None or known.card != card:
            registered_at = known.registered_at if known else self._ports.clock.now()
            await self._ports.cards.put(card.agent_id, CardRecord(card=card, registered_at=registered_at))
        await self._ports.work.ensure_pool(card.pool)
        session = request.session.session if request.session else None
        await self._ports.leases.put(card.agent_id, Renewal(session=session))
        return (await self._answer(card.agent_id, advice(card))).model_copy(update={"inbox": inbox})

    async def renew(self, request: Renew) -> Lease:
        """Renew a lease.

        Raises:
            NotFoundError: The agent is not registered in this pool, or its session is not stored.
            SupersededError: Another process holds the id now.
        """
        await self._ports.sessions.check(request.agent_id, request.session)
        if request.session is not None and not await self._ports.sessions.is_held(request.agent_id):
            raise NotFoundError(f"No session of {request.agent_id} is stored.", hint="Register again.")
        if not _is_of(self._ports.view.card(request.agent_id), request.pool):
            # The view can lag; the bucket decides.
            if not _is_of(await self._ports.cards.find(request.agent_id), request.pool):
                raise NotFoundError(f"{request.agent_id} is not registered in the pool {request.pool}.", hint="Register first.")
        await self._ports.leases.put(request.agent_id, Renewal(load=request.load, session=request.session, model=request.model))
        return await self._answer(request.agent_id, ())

    async def deregister(self, request: Deregister) -> Acknowledged:
        """End a lease and keep the card. A process that no longer holds the id changes nothing."""
        claim, revision = await self._ports.sessions.read(request.agent_id)
        if claim is not None:
            if claim.session.session != request.session or not claim.is_sealed_by(request.proof):
                _log.info("deregistration_ignored", agent_id=request.agent_id, session=request.session)
                return Acknowledged()
            if not await self._ports.sessions.write(request.agent_id, None, revision=revision):
                return Acknowledged()
        await self._ports.leases.put(request.agent_id, None)
        return Acknowledged()

    async def list(self, request: ListAgents) -> Agents:
        """Return one page of agents, ordered by id."""
        view = self._ports.view
        if request.name is None:
            records = view.cards()
        else:
            agent = view.card(request.name)
            records = view.of_pool(PoolId(request.name)) if agent is None else [agent]
        chosen = (
            self._status(record)
            for record in records
            if (request.after is None or record.card.agent_id > request.after)
            and (not request.online_only or view.is_online(record.card.agent_id))
        )
        return _fill_page(chosen, limit=request.limit)

    def count_agents(self) -> None:
        """Set the metric of registered agents."""
        online = [self._ports.view.is_online(record.card.agent_id) for record in self._ports.view.cards()]
        agents.labels("online").set(online.count(True))
        agents.labels("offline").set(online.count(False))

    def _status(self, record: CardRecord) -> AgentStatus:
        return AgentStatus(
            card=record.card,
            online=self._ports.view.is_online(record.card.agent_id),
            registered_at=record.registered_at,
            load=self._ports.view.load(record.card.agent_id),
            model=self._ports.view.model(record.card.agent_id),
        )

    async def _claim(self, request: Register) -> str:
        """Claim the id for a process, unless another live process holds it; return the nonce of its inbox, which it keeps."""
        agent_id = request.card.agent_id
        for _ in range(_CLAIM_ATTEMPTS):
            claim, revision = await self._ports.sessions.read(agent_id)
            if claim is not None and not _succeeds(request, claim) and self._ports.view.is_online(agent_id):
                raise self._refusal(request.card, claim)
            if request.session is not None:
                is_mine = claim is not None and claim.session.session == request.session.session
                inbox = (claim.inbox if claim is not None and is_mine else "") or self._ports.ids.new("inbox")
                mine = Claim(
                    session=request.session, card=_digest(request.card), inbox=inbox, seal=proof_digest(request.proof or "")
                )
                done = claim == mine or await self._ports.sessions.write(agent_id, mine, revision=revision)
            else:
                inbox = ""
                done = claim is None or await self._ports.sessions.write(agent_id, None, revision=revision)
            if done:
                return inbox
        raise UnavailableError(f"Too many processes register as {agent_id} at once.", hint="Are they meant to be one agent?")

    def _refusal(self, card: AgentCard, claim: Claim) -> IoaError:
        silence = self._ports.view.silence(card.agent_id)
        heard = "" if silence is None else f" It was last heard {silence.total_seconds():.0f} s ago."
        holder = f"{claim.session.whereabouts}.{heard}"
        if claim.card == _digest(card):
            return AlreadyRunningError(
                f"{card.agent_id} runs already, as {holder}",
                hint=f"Stop that process, or start this one under another id in the pool {card.pool} to share its work.",
            )
        return IdTakenError(
            f"The id {card.agent_id} is taken by another agent, {holder}", hint="Choose another id, or stop that process."
        )

    async def _answer(self, agent_id: AgentId, warnings: tuple[str, ...]) -> Lease:
        joined = await _optional(self._ports.memberships.newest(agent_id), 0)
        return Lease(renew_every=self._renew_every, joined=joined, warnings=warnings)


async def _optional(read: Awaitable[T], default: T) -> T:
    """Return the value of an optional field, or the default after a timeout."""
    try:
        async with fail_after(_OPTIONAL_TIMEOUT.total_seconds()):
            return await read
    except (TimeoutError, UnavailableError) as error:
        _log.warning("optional_field_missing", error=reason_of(error))
        return default


def _is_of(record: CardRecord | None, pool: PoolId) -> bool:
    return record is not None and record.card.pool == pool


def _succeeds(request: Register, claim: Claim) -> bool:
    """Whether a process holds the id, or has its memory. Knowledge of the session alone proves neither."""
    holder = claim.session.session
    is_named = holder == request.previous or (request.session is not None and holder == request.session.session)
    return is_named and claim.is_sealed_by(request.proof)


def _digest(card: AgentCard) -> str:
    """Return a digest of the fields that the author of a card wrote, without the id and fields that its client adds."""
    written = card.model_copy(update={"agent_id": "", "speaks": None, "patience": None})
    return hashlib.sha256(encode(written)).hexdigest()


def _fill_page(statuses: Iterable[AgentStatus], *, limit: int | None = None) -> Agents:
    """Fill a page with agents; see `Agents`. Stops reading `statuses` when the page is full."""
    page, size = list[AgentStatus](), 0
    for status in statuses:
        size += len(encode(status))
        if len(page) == limit or size > _PAGE_BYTES:
            return Agents(agents=tuple(page), more=True)
        page.append(status)
    return Agents(agents=tuple(page))
