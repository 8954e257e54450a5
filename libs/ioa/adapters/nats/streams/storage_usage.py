"""Usage of JetStream's storage, and the switch for new goals."""

from __future__ import annotations

from nats.aio.client import Client

from ioa.adapters.nats.streams.topology import GOALS, LOG, Shares
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered

_CLOSED_BYTES = 1
"""`max_bytes` of the stream of goals while it accepts none: JetStream stores no message of this size."""


class NatsStorage:
    """The store of a connection's account. Without `shares` it has no limit. `replicas` is the number of copies of each stream."""

    def __init__(self, client: Client, shares: Shares | None, replicas: int) -> None:
        self._js = client.jetstream()
        self._shares = shares
        self._replicas = replicas

    async def used(self) -> float:
        """Return the used part of the account or of the log's share, whichever is larger."""
        if self._shares is None:
            return 0.0
        with unavailable_unless_answered("JetStream"):
            stored = (await self._js.account_info()).storage / self._replicas
            logs = (await self._js.stream_info(LOG)).state.bytes
        return max(stored / self._shares.store, logs / self._shares.by_stream()[LOG])

    async def accept_goals(self, accept: bool) -> None:
        """Set `max_bytes` of the stream of goals."""
        if self._shares is None:
            return
        max_bytes = self._shares.by_stream()[GOALS] if accept else _CLOSED_BYTES
        with unavailable_unless_answered("The stream of goals"):
            config = (await self._js.stream_info(GOALS)).config
            if config.max_bytes != max_bytes:
                await self._js.update_stream(config.evolve(max_bytes=max_bytes))
