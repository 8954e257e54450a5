"""Pages of agents that fit into one message."""

from __future__ import annotations

from collections.abc import Iterable

from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.registry import Agents

PAGE_BYTES = MAX_PAYLOAD_BYTES * 3 // 4


def fill_page(statuses: Iterable[AgentStatus], *, limit: int | None = None) -> Agents:
    """Fill a page with agents; see `Agents`. Stops reading `statuses` when the page is full."""
    page, size = list[AgentStatus](), 0
    for status in statuses:
        size += len(encode(status))
        if len(page) == limit or size > PAGE_BYTES:
            return Agents(agents=tuple(page), more=True)
        page.append(status)
    return Agents(agents=tuple(page))
