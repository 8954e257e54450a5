"""Pages of goals, limited by count and bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ioa.client.client import Client
from ioa.client.documents import GoalRow, told
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_GOALS, GoalPhase
from ioa.protocol.ids import UserId
from ioa_gateway.entry_pages import MOST_BYTES

LOOKED_THROUGH, MOST_FOUND, MOST_LOOKED_THROUGH = 200, 1_000, 5_000
"""Maximum goals that a search reads at once, that it returns, and that it looks at."""


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
    """Read documents of goals, newest first, until `limit` or `MOST_BYTES` is reached; also return where the next page starts.

    Raises:
        UnavailableError: The goals cannot be read now.
    """
    rows, size, looked_at = list[dict[str, Any]](), 0, 0
    while True:
        page = await client.goals(
            limit=limit - len(rows), before=before, open_only=open_only, labels=labels, phase=phase, user=user
        )
        for goal in page.goals:
            rows.append(told(GoalRow.of(goal)))
            size += len(json.dumps(rows[-1], ensure_ascii=False).encode())
        before, looked_at = page.before, looked_at + page.looked_at
        if before is None or len(rows) >= limit or size >= MOST_BYTES or looked_at >= MOST_LOOKED_AT:
            return rows, before
