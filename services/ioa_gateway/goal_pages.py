"""Pages of goals that end by their bytes, too: what one asks for and what came of it may be as large as a thousand others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ioa.client.client import Client
from ioa.client.documents import GoalRow, told
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_GOALS, GoalPhase
from ioa.protocol.ids import UserId
from ioa_gateway.entry_pages import MOST_BYTES

_FIRST, _AT_ONCE = 8, 64
"""How many goals are read at first, and at the most until it is known how large they are."""
LOOKED_THROUGH, MOST_FOUND, MOST_LOOKED_THROUGH = 200, 1_000, 5_000
"""How many of a caller's goals are read at once by who looks through them for something, how many of them are, and how many of the
system's are looked at for them."""


async def page_of_goals(
    client: Client,
    *,
    labels: Mapping[str, str],
    user: UserId | None = None,
    limit: int = PAGE_GOALS,
    before: int | None = None,
    open_only: bool = False,
    phase: GoalPhase | None = None,
) -> tuple[list[dict[str, Any]], int | None]:
    """Read goals as they are told, newest first, until there are so many or they have too many bytes, and where it goes on.

    What they were told of is let go before more is read, and no more goals are looked at than a page of the system's may look at.

    Raises:
        UnavailableError: They cannot be read now.
    """
    rows, size, step, looked_at = list[dict[str, Any]](), 0, _FIRST, 0
    while True:
        asked = min(step, limit - len(rows))
        page = await client.goals(limit=asked, before=before, open_only=open_only, labels=labels, phase=phase, user=user)
        for goal in page.goals:
            rows.append(told(GoalRow.of(goal)))
            size += len(json.dumps(rows[-1], ensure_ascii=False).encode())
        before, looked_at = page.before, looked_at + page.looked_at
        if before is None or len(rows) >= limit or size >= MOST_BYTES or looked_at >= MOST_LOOKED_AT:
            return rows, before
        fitting = (MOST_BYTES - size) * len(rows) // size if rows else _AT_ONCE
        step = max(1, min(4 * step, _AT_ONCE, fitting))
