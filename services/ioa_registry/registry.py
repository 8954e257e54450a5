"""Registering agents and keeping their leases. The buckets are the truth; this process may die at any time.

A renewal depends on nothing but the one write that keeps the lease: what else its answer tells is left out if it is not to be had.
Nothing waits for a view to be whole but what is answered from it, lists and the question who may take an id over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import structlog

from ioa.cancellation import fail_after
from ioa.errors import AlreadyRunningError, IdTakenError, IoaError, NotFoundError, UnavailableError
from ioa.ports.clock import Clock, IdSource
from ioa.ports.delivery import Memberships, WorkQueue
from ioa.ports.group_log import GroupLog
from ioa.ports.registry_store import CardRecord, CardStore, Claim, LeaseStore, LivenessView, Renewal, SessionStore, seal_of
from ioa.protocol.cards import AgentCard, AgentStatus, advice, check_card_size
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import Acknowledged, Agents, Deregister, GetAgents, Lease, ListAgents, Register, Renew
from ioa_registry.pages import fill_page

_TOLD_WITHIN = timedelta(milliseconds=500)
"""How long an answer waits for what it may leave out."""
_WHOLE_WITHIN = timedelta(seconds=2)
_CLAIM_ATTEMPTS = 5

T = TypeVar("T")

_MAX_TOLD, _MAX_TOLD_CHARS = 20, 500
"""How much of what cannot be read is told in one answer."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class RegistryPorts:
    """What a registry keeps agents in, and what else it asks."""

    cards: CardStore
    leases: LeaseStore
    sessions: SessionStore
    view: LivenessView
    memberships: Memberships
    log: GroupLog
    work: WorkQueue
    clock: Clock
    ids: IdSource


class Registry:
    """Answer the requests of `ioa.v1.registry`."""

    def __init__(self, ports: RegistryPorts, lease: timedelta, renew_every: timedelta) -> None:
        self._ports = ports
        self._lease = lease
        self._renew_every = renew_every
        self._epoch = ""

    async def register(self, request: Register) -> Lease:
        """Store or update a card and give its agent a lease. Registering again changes nothing but what differs.

        Raises:
            PayloadTooLargeError: The card is larger than a card may be.
            AlreadyRunningError: Another process that lives holds the id, by the same card.
            IdTakenError: The same, by another card.
        """
        card = request.card
        check_card_size(card)
        inbox = await self._claim(request)
        known = await self._ports.cards.get(card.agent_id)
        if known is None or known.card != card:
            registered_at = known.registered_at if known else self._ports.clock.now()
            await self._ports.cards.put(CardRecord(card=card, registered_at=registered_at))
        await self._ports.work.ensure_pool(card.pool)
        session = request.session.session if request.session else None
        await self._ports.leases.renew(card.agent_id, Renewal(session=session))
        return (await self._answer(card.agent_id, advice(card))).model_copy(update={"inbox": inbox})

    async def renew(self, request: Renew) -> Lease:
        """Keep a lease.

        Raises:
            NotFoundError: The agent has never registered, or was last registered in another pool; it should now.
            SupersededError: Another process has taken the id over.
        """
        await self._ports.sessions.check(request.agent_id, request.session)
        if not _is_of(self._ports.view.card(request.agent_id), request.pool):
            # What follows the bucket may be late: the bucket itself decides.
            if not _is_of(await self._ports.cards.get(request.agent_id), request.pool):
                raise NotFoundError(f"{request.agent_id} is not registered in the pool {request.pool}.", hint="Register first.")
        await self._ports.leases.renew(request.agent_id, Renewal(load=request.load, session=request.session, model=request.model))
        return await self._answer(request.agent_id, ())

    async def deregister(self, request: Deregister) -> Acknowledged:
        """Take an agent offline at once, without forgetting it. A process that holds the id no more takes nobody offline."""
        held = await self._ports.sessions.read(request.agent_id)
        if held is not None and held.claim is not None:
            if held.claim.session.session != request.session or not held.claim.is_sealed_by(request.proof):
                _log.info("not_its_own_to_end", agent_id=request.agent_id, session=request.session)
                return Acknowledged()
            if not await self._ports.sessions.remove(request.agent_id, revision=held.revision):
                return Acknowledged()
        await self._ports.leases.release(request.agent_id)
        return Acknowledged()

    async def get(self, request: GetAgents) -> Agents:
        """Look agents up by id; with `more`, ask again for those behind the last one."""
        await self._until_whole()
        found = (self._ports.view.card(agent_id) for agent_id in dict.fromkeys(request.agent_ids))
        return fill_page(self._status(record) for record in found if record is not None)

    async def list(self, request: ListAgents) -> Agents:
        """List agents in the order of their ids, a page at a time."""
        await self._until_whole()
        chosen = (
            self._status(record)
            for record in (self._ports.view.cards() if request.pool is None else self._ports.view.of_pool(request.pool))
            if (request.after is None or record.card.agent_id > request.after)
            and (not request.online_only or self._ports.view.is_online(record.card.agent_id))
        )
        page = fill_page(chosen, limit=request.limit)
        if request.after is not None:
            return page
        unreadable = self._ports.view.unreadable()[:_MAX_TOLD]
        return page.model_copy(update={"unreadable": tuple(one[:_MAX_TOLD_CHARS] for one in unreadable)})

    def forget_epoch(self) -> None:
        """Ask anew which store the logs are in: the server may have come back without it."""
        self._epoch = ""

    def _status(self, record: CardRecord) -> AgentStatus:
        return AgentStatus(
            card=record.card,
            online=self._ports.view.is_online(record.card.agent_id),
            registered_at=record.registered_at,
            load=self._ports.view.load(record.card.agent_id),
            model=self._ports.view.model(record.card.agent_id),
        )

    async def _claim(self, request: Register) -> str:
        """Take the id for the process that asks, unless another one that lives holds it; return the nonce of its inbox.

        A process that registers again keeps its inbox.
        """
        agent_id = request.card.agent_id
        for _ in range(_CLAIM_ATTEMPTS):
            held = await self._ports.sessions.read(agent_id)
            claim, revision = (held.claim, held.revision) if held is not None else (None, 0)
            if claim is not None and not _succeeds(request, claim):
                await self._until_whole()
                if self._ports.view.is_online(agent_id):
                    raise self._refusal(request.card, claim)
            if request.session is not None:
                is_mine = claim is not None and claim.session.session == request.session.session
                inbox = (claim.inbox if claim is not None and is_mine else "") or self._ports.ids.new("inbox")
                mine = Claim(session=request.session, card=_digest(request.card), inbox=inbox, seal=seal_of(request.proof or ""))
                done = claim == mine or await self._ports.sessions.write(agent_id, mine, revision=revision)
            else:
                inbox = ""
                done = claim is None or await self._ports.sessions.remove(agent_id, revision=revision)
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

    async def _until_whole(self) -> None:
        try:
            async with fail_after(_WHOLE_WITHIN.total_seconds()):
                await self._ports.view.whole()
        except TimeoutError:
            raise UnavailableError("The registry has not read its records yet.", hint="Ask again.") from None

    async def _answer(self, agent_id: AgentId, warnings: tuple[str, ...]) -> Lease:
        joined = await _told(self._ports.memberships.newest(agent_id), 0)
        epoch = self._epoch or await _told(self._ask_epoch(), "")
        return Lease(duration=self._lease, renew_every=self._renew_every, joined=joined, epoch=epoch, warnings=warnings)

    async def _ask_epoch(self) -> str:
        self._epoch = await self._ports.log.epoch()
        return self._epoch


async def _told(asked: Awaitable[T], otherwise: T) -> T:
    """Wait a moment for what an answer may leave out."""
    try:
        async with fail_after(_TOLD_WITHIN.total_seconds()):
            return await asked
    except (TimeoutError, UnavailableError) as error:
        _log.warning("not_told", error=str(error) or type(error).__name__)
        return otherwise


def _is_of(record: CardRecord | None, pool: PoolId) -> bool:
    return record is not None and record.card.pool == pool


def _succeeds(request: Register, claim: Claim) -> bool:
    """Whether who asks is the process that holds the id, or has its memory: that it knows the session proves neither."""
    holder = claim.session.session
    is_named = holder == request.previous or (request.session is not None and holder == request.session.session)
    return is_named and claim.is_sealed_by(request.proof)


def _digest(card: AgentCard) -> str:
    """Tell cards apart by what their author wrote: not by the id, and not by what its client adds."""
    written = card.model_copy(update={"agent_id": "", "speaks": None, "patience": None})
    return hashlib.sha256(encode(written)).hexdigest()
