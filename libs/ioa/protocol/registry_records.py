"""Records of the registry: stored cards, lease renewals, and claims of agents' ids."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ioa.errors import SupersededError
from ioa.protocol.cards import AgentCard, ModelReport
from ioa.protocol.ids import AgentId, SessionId, SessionIdField
from ioa.protocol.load import IDLE, Load
from ioa.protocol.model import Model, Time
from ioa.protocol.registry import Session


class CardRecord(Model):
    """A stored card."""

    card: AgentCard
    registered_at: Time


class Renewal(Model):
    """The content of an agent's last lease renewal: its load, its process, and the state of its model."""

    load: Load = IDLE
    session: SessionIdField | None = None
    model: ModelReport | None = None


EMPTY_RENEWAL = Renewal()


def proof_digest(proof: str) -> str:
    """Return the digest of the proof that a process's successor must show."""
    return hashlib.sha256(proof.encode()).hexdigest() if proof else ""


class Claim(Model):
    """The process that holds an agent's id.

    Attributes:
        card: Digest of the agent's card without its id.
        inbox: Nonce of the subject of the process's pushes.
        seal: Digest of the proof that a successor must show; empty if it needs none.
    """

    session: Session
    card: str
    inbox: Annotated[str, Field(repr=False)] = ""
    seal: str = ""

    def is_sealed_by(self, proof: str | None) -> bool:
        """Whether a proof matches the seal, or no proof is needed."""
        return not self.seal or (proof is not None and hmac.compare_digest(self.seal, proof_digest(proof)))

    def refuse_others(self, agent_id: AgentId, session: SessionId | None) -> None:
        """Reject a process that does not hold the id.

        Raises:
            SupersededError: Another process holds the id; the message names it.
        """
        if self.session.session != session:
            raise SupersededError(
                f"{agent_id} was taken over by {self.session.whereabouts}.",
                hint="This process has to end; start it under another id if both are wanted.",
            )


@dataclass(frozen=True)
class HeldClaim:
    """The stored claim of an agent's id; None if it was released or cannot be read."""

    claim: Claim | None
    revision: int
