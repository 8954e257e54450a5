"""Pages of goals as the gateway tells of them, over pages of the system's that end by their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ioa.client.client import Client
from ioa.group.goal_lists import GoalList, GoalStatus
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import GoalId
from ioa_gateway.pagination import page_of_goals
from tests.unit.group.scenario import START


class _Goals:
    """A system whose pages contain at most two goals."""

    def __init__(self, count: int) -> None:
        self.rows = [_goal(number) for number in range(count)]

    async def goals(self, *, limit: int, before: int | None = None, **_filters: object) -> GoalList:
        """Read a page; a number is a place from the end on."""
        start, most = before or 0, min(limit, 2)
        page: Sequence[GoalStatus] = self.rows[start : start + most]
        following = start + most if start + most < len(self.rows) else None
        return GoalList(goals=tuple(page), before=following, looked_at=len(page))


def _goal(number: int) -> GoalStatus:
    goal = Goal(goal_id=GoalId(f"goal-{number}"), goal="Count.")
    return GoalStatus(record=GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64))


async def test_a_page_goes_on_where_one_of_the_systems_ended_by_its_bytes() -> None:
    """Who asks for nine has nine, and is told where it goes on."""
    rows, before = await page_of_goals(cast(Client, _Goals(20)), labels={}, limit=9)
    assert ([one["goal_id"] for one in rows], before) == ([f"goal-{number}" for number in range(9)], 9)
