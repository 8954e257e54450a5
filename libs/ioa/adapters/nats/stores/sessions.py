"""Which process holds an agent's id, in the bucket `IOA_SESSIONS`: one key for each agent, written when it registers or leaves.

A view follows the bucket, so that a message costs a look into a dictionary. Nobody is refused on the word of a view, which may lag:
the stream's leader is asked first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog
from nats.aio.client import Client
from nats.js.kv import KV_OP

from ioa.adapters.nats.stores.bucket import Change, Snapshot, follow
from ioa.adapters.nats.streams.compare_and_set import last_message, publish_onto, stream_of, subject_of
from ioa.adapters.nats.streams.topology import SESSIONS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import InvalidInputError
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, SessionId
from ioa.protocol.registry_records import Claim, HeldClaim

_DELETED = {KV_OP: "DEL"}

_log = structlog.get_logger(__name__)


class NatsSessions:
    """A `SessionStore` in a bucket. `check` goes by the view that `follow` keeps; before it was read, nobody holds any id."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._claims: dict[str, Claim | None] = {}
        self._whole = asyncio.Event()

    async def follow(self) -> None:
        """Keep the view of who holds which id current, for ever."""
        async for change in follow(self._client, SESSIONS):
            match change:
                case Snapshot(values=values):
                    self._claims = {key: _claim_of(key, value) for key, value in values.items()}
                    self._whole.set()
                case Change(key=key, value=None):
                    self._claims.pop(key, None)
                case Change(key=key, value=bytes() as value):
                    self._claims[key] = _claim_of(key, value)

    async def whole(self) -> None:
        """Return once `follow` has read all that was stored when it began."""
        await self._whole.wait()

    def inbox_of(self, agent_id: AgentId) -> str | None:
        """Return the nonce of an agent's inbox; None if it has none, or none that is known here yet."""
        claim = self._claims.get(agent_id)
        return None if claim is None else claim.inbox or None

    def agents(self) -> Iterable[str]:
        """Return all whose ids are held."""
        return self._claims.keys()

    async def check(self, agent_id: AgentId, session: SessionId | None, *, may_be_silent: bool = False) -> None:
        """Refuse a process that another one has taken the id from; see the port."""
        claim = self._claims.get(agent_id)
        if claim is None or claim.session.session == session or (may_be_silent and session is None and not claim.seal):
            return
        held = await self.read(agent_id)
        if held is not None and held.claim is not None:
            held.claim.refuse_others(agent_id, session, may_be_silent=may_be_silent)

    async def is_held(self, agent_id: AgentId) -> bool:
        """Whether a process holds an id; see the port."""
        if self._claims.get(agent_id) is not None:
            return True
        held = await self.read(agent_id)
        return held is not None and held.claim is not None

    async def read(self, agent_id: AgentId) -> HeldClaim | None:
        """Read who holds an id from the stream's leader."""
        with unavailable_unless_answered("The record of sessions"):
            found = await last_message(self._js, stream_of(SESSIONS), subject_of(SESSIONS, agent_id))
        if found is None:
            return None
        revision = found.seq or 0
        if found.headers and KV_OP in found.headers:
            return HeldClaim(None, revision)
        return HeldClaim(_claim_of(agent_id, found.data or b""), revision)

    async def write(self, agent_id: AgentId, claim: Claim, *, revision: int) -> bool:
        """Take an id, unless somebody else wrote since."""
        return await self._put(agent_id, encode(claim), {}, revision)

    async def remove(self, agent_id: AgentId, *, revision: int) -> bool:
        """Let go of an id, unless somebody else wrote since."""
        return await self._put(agent_id, b"", _DELETED, revision)

    async def _put(self, agent_id: AgentId, data: bytes, headers: dict[str, str], revision: int) -> bool:
        with unavailable_unless_answered("The record of sessions"):
            subject = subject_of(SESSIONS, agent_id)
            return await publish_onto(self._js, stream_of(SESSIONS), subject, data, last=revision, headers=headers) is not None


def _claim_of(key: str, value: bytes) -> Claim | None:
    try:
        return decode(Claim, value)
    except InvalidInputError as error:
        _log.error("claim_unreadable", key=key, why=error.message)
        return None
