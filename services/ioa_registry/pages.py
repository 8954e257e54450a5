"""Pages of agents that fit into one message."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from ioa.errors import PayloadTooLargeError
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import AgentId
from ioa.protocol.registry import Agents

PAGE_BYTES = MAX_PAYLOAD_BYTES * 3 // 4

_log = structlog.get_logger(__name__)


def fill_page(statuses: Iterable[AgentStatus], *, limit: int | None = None) -> Agents:
    """Fill a page with agents; see `Agents`. Stops reading `statuses` when the page is full."""
    page: list[AgentStatus] = []
    left_out: list[AgentId] = []
    size = 0
    for status in statuses:
        if limit is not None and len(page) >= limit:
            return Agents(agents=tuple(page), more=True, left_out=tuple(left_out))
        try:
            added = len(encode(status, max_payload_bytes=PAGE_BYTES))
        except PayloadTooLargeError as error:
            _log.warning("agent_not_listed", agent_id=status.card.agent_id, error=error.message)
            left_out.append(status.card.agent_id)
            continue
        if size + added > PAGE_BYTES:
            return Agents(agents=tuple(page), more=True, left_out=tuple(left_out))
        page.append(status)
        size += added
    return Agents(agents=tuple(page), left_out=tuple(left_out))
