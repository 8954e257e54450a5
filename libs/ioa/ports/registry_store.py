"""What the registry owns: cards, leases, and which process holds an agent's id."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Protocol

from pydantic import Field

from ioa.errors import SupersededError
from ioa.protocol.cards import AgentCard, ModelReport
from ioa.protocol.ids import AgentId, PoolId, SessionId, SessionIdField
from ioa.protocol.load import IDLE, Load
from ioa.protocol.model import Model, Time
from ioa.protocol.registry import Session


class CardRecord(Model):
    """A card as it is kept."""

    card: AgentCard
    registered_at: Time


class CardStore(Protocol):
    """The cards of everybody who ever registered."""

    async def put(self, record: CardRecord) -> None:
        """Store or replace a card."""

    async def get(self, agent_id: AgentId) -> CardRecord | None:
        """Read a card."""


class Renewal(Model):
    """What an agent said when it last renewed its lease: how busy it is, which process said so, and how its model answers."""

    load: Load = IDLE
    session: SessionIdField | None = None
    model: ModelReport | None = None


NOTHING_TOLD = Renewal()


class LeaseStore(Protocol):
    """What was heard of agents, and when the server stored it. Whether a lease stands is judged from that by the view."""

    async def renew(self, agent_id: AgentId, renewal: Renewal = NOTHING_TOLD) -> None:
        """Take or keep the lease."""

    async def release(self, agent_id: AgentId) -> None:
        """Give the lease back: the agent leaves in good order."""

    async def beat(self) -> None:
        """Show that registry and store are up, so that the silence of agents means something."""


def seal_of(proof: str) -> str:
    """Return what is kept of what a process's successor has to show."""
    return hashlib.sha256(proof.encode()).hexdigest() if proof else ""


class Claim(Model):
    """Which process holds an agent's id, and by which card, as a digest of all of it but the id.

    `inbox` is the nonce under which the process is pushed to; empty if a version that drew none wrote the claim. `seal` is the
    digest of what its successor has to show; empty if the process, or the registry that wrote the claim, is of a version without.
    """

    session: Session
    card: str
    inbox: Annotated[str, Field(repr=False)] = ""
    seal: str = ""

    def is_sealed_by(self, proof: str | None) -> bool:
        """Whether somebody shows what the process's memory holds, or nothing has to be shown."""
        return not self.seal or (proof is not None and hmac.compare_digest(self.seal, seal_of(proof)))

    def refuse_others(self, agent_id: AgentId, session: SessionId | None, *, may_be_silent: bool = False) -> None:
        """Refuse to take a process for the one that claims the id; see `Sessions.check`.

        Raises:
            SupersededError: It is another one; the message names who holds the id.
        """
        is_silent = may_be_silent and session is None and not self.seal
        if self.session.session != session and not is_silent:
            raise SupersededError(
                f"{agent_id} was taken over by {self.session.whereabouts}.",
                hint="This process has to end; start it under another id if both are wanted.",
            )


@dataclass(frozen=True)
class HeldClaim:
    """What is stored under an agent's id: a claim, or None where one was given back or cannot be read."""

    claim: Claim | None
    revision: int


class Sessions(Protocol):
    """Who may speak as an agent."""

    async def check(self, agent_id: AgentId, session: SessionId | None, *, may_be_silent: bool = False) -> None:
        """Refuse a process that another one has taken the agent's id from. An id that no process claims is anybody's.

        Args:
            agent_id: As whom is spoken.
            session: Which process speaks; None is one that knows no sessions.
            may_be_silent: Whether there are versions that know sessions and name none in such a request. Where one of those holds
                the id, who names none is let through.

        Raises:
            SupersededError: Another process holds the id; the store was asked just now.
            UnavailableError: Another process seems to hold it, and the store cannot be asked.
        """


class SessionStore(Sessions, Protocol):
    """The record of which process holds which id. It is written when an agent registers or leaves, and at no other time."""

    async def read(self, agent_id: AgentId) -> HeldClaim | None:
        """Read who holds an id, as of now."""

    async def write(self, agent_id: AgentId, claim: Claim, *, revision: int) -> bool:
        """Take an id if what is stored is still `revision` (0: nothing); False if it is not."""

    async def remove(self, agent_id: AgentId, *, revision: int) -> bool:
        """Let go of an id if what is stored is still `revision`; False if it is not."""


class RegistryView(Protocol):
    """Cards and leases as a live view that follows the buckets by watching them."""

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """Return the card of an agent."""

    def cards(self) -> Sequence[CardRecord]:
        """All cards, in the order of their ids."""

    def of_pool(self, pool: PoolId) -> Sequence[CardRecord]:
        """Return the cards of a pool, in the order of their ids; it costs nothing for being asked among many others."""

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease stands, so that it may be found and launched."""

    def load(self, agent_id: AgentId) -> Load:
        """How busy the agent said it was when it last renewed its lease; idle without a lease."""


class LivenessView(RegistryView, Protocol):
    """The same, and more of how it is judged who is alive (`ioa.protocol.liveness`)."""

    def model(self, agent_id: AgentId) -> ModelReport | None:
        """How the agent said that its model answers; None without a model or a lease."""

    async def whole(self) -> None:
        """Return once all that was stored when the view was opened has been seen."""

    def unreadable(self) -> Sequence[str]:
        """Return what is stored and skipped since it cannot be read, each with its place and the reason."""

    def is_lost(self, agent_id: AgentId) -> bool:
        """Whether the agent was not heard for a whole lease while others were, so that its groups are told.

        An agent that left in good order a moment ago is neither online nor lost.
        """

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """How long the agent has not been heard, by the server's clock, up to what was last heard of anybody; None if never."""
