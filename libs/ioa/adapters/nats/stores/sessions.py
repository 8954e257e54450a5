"""The process that holds each agent's id, in the bucket `IOA_SESSIONS`: one key per agent, written when it registers or leaves.

A view follows the bucket, so that the check of a message is a look-up in a dictionary. The view may lag: before a rejection, the
stream's leader is asked.
"""

from __future__ import annotations

import asyncio

from nats.aio.client import Client

from ioa.adapters.nats.stores.records import Records, read_value
from ioa.adapters.nats.streams.follow import follow_bucket
from ioa.adapters.nats.streams.topology import SESSIONS
from ioa.protocol.ids import AgentId, SessionId
from ioa.protocol.registry import Claim


class NatsSessions:
    """The claims of agents' ids. Before `follow` has read the bucket, its view contains no claim."""

    def __init__(self, client: Client) -> None:
        self._stored = Records(client, SESSIONS, Claim)
        self._claims: dict[str, Claim] = {}
        self._whole = asyncio.Event()

    async def follow(self) -> None:
        """Keep the view current until cancelled."""
        async for changes, is_snapshot in follow_bucket(self._stored.stream.client, SESSIONS):
            if is_snapshot:
                self._claims.clear()
            for change in changes.values():
                self._claims.pop(change.key, None)
                claim = None if change.value is None else read_value(SESSIONS, change.key, Claim, change.value)
                if claim is not None:
                    self._claims[change.key] = claim
            self._whole.set()

    async def whole(self) -> None:
        """Return once the view contains all that was stored when `follow` began."""
        await self._whole.wait()

    def find_inbox(self, agent_id: AgentId) -> str | None:
        """Return the nonce of an agent's inbox; None if the view has none."""
        claim = self._claims.get(agent_id)
        return None if claim is None else claim.inbox or None

    async def check(self, agent_id: AgentId, session: SessionId | None) -> None:
        """Raise `SupersededError` if another process than `session`, which sent a request, holds an agent's id."""
        claim = self._claims.get(agent_id)
        if claim is None or claim.session.session == session:
            return
        held, _ = await self.read(agent_id)
        if held is not None:
            held.refuse_others(agent_id, session)

    async def is_held(self, agent_id: AgentId) -> bool:
        """Whether a process holds an agent's id."""
        return agent_id in self._claims or (await self.read(agent_id))[0] is not None

    async def read(self, agent_id: AgentId) -> tuple[Claim | None, int]:
        """Read the claim of an id from the stream's leader, and its revision, 0 if the id was never claimed."""
        data, revision = await self._stored.stored(agent_id)
        return read_value(SESSIONS, agent_id, Claim, data) if data else None, revision

    async def remove(self, agent_id: AgentId) -> None:
        """Remove the claim of an id."""
        await self._stored.remove(agent_id)

    async def write(self, agent_id: AgentId, claim: Claim | None, *, revision: int) -> bool:
        """Claim an id, or release it (None), unless another claim was written after `revision`."""
        return await self._stored.put_onto(agent_id, claim, last=revision) is not None
