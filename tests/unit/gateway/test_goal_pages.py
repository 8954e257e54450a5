"""Pages of goals as the gateway tells of them, over pages of the system's that end by their bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ioa.beside import beside
from ioa.client.client import Client
from ioa.errors import ForbiddenError
from ioa.fair_semaphore import FairSemaphore
from ioa.ports.goal_client import GoalFilter, GoalList, GoalStatus
from ioa.protocol.api_keys import Scope
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Artifact, Goal, GoalRecord
from ioa.protocol.ids import LOCAL, GoalId
from ioa_gateway.callers import Caller
from ioa_gateway.given import check_inputs
from ioa_gateway.goal_pages import page_of_goals
from tests.unit.group.scenario import START

_SHOWN, _HIDDEN = (
    Artifact(name="a.txt", object_name=name, size_bytes=1, sha256=letter * 64) for name, letter in (("shown", "a"), ("hidden", "b"))
)


class _Goals:
    """A system whose pages end behind two goals each, or behind none of so many that are not wanted."""

    def __init__(self, count: int, unwanted: int = 0) -> None:
        self.rows = [_goal(number) for number in range(count)]
        self._unwanted = unwanted
        self.asked = 0

    async def goals(self, *, limit: int, before: int | None = None, only: GoalFilter) -> GoalList:
        """Read a page; a number is a place from the end on."""
        self.asked += 1
        start, most = before or 0, min(limit, 2)
        page: Sequence[GoalStatus] = self.rows[start : start + most]
        following = start + most if start + most < len(self.rows) or self._unwanted else None
        return GoalList(page, following, self._unwanted or len(page))


def _goal(number: int) -> GoalStatus:
    inputs = (_SHOWN,) if number == 7 else ()
    return GoalStatus(
        GoalRecord(
            goal=Goal(goal_id=GoalId(f"goal-{number}"), goal="Count.", inputs=inputs), accepted_at=START, ticket_digest="0" * 64
        ),
        None,
        None,
    )


def _client(system: _Goals) -> Client:
    any_system: Any = system
    return Client(any_system)


async def test_a_page_goes_on_where_one_of_the_systems_ended_by_its_bytes() -> None:
    """Who asks for nine has nine, and is told where it goes on."""
    system = _Goals(20)
    rows, before = await page_of_goals(_client(system), labels={}, limit=9)
    assert ([one["goal_id"] for one in rows], before) == ([f"goal-{number}" for number in range(9)], 9)


async def test_files_are_looked_for_across_pages_and_nothing_else_is_kept() -> None:
    """A file that a goal was given which the caller reads may be given again; what none of them names may not."""
    caller = Caller("key", LOCAL, frozenset({Scope.GOALS_READ}), labels={"team": "x"})
    lists = FairSemaphore(1, 1)
    call: Any = SimpleNamespace(caller=caller, client=_client(_Goals(20)), limits=SimpleNamespace(pages=lists))
    await check_inputs(call, GoalOrder(goal="Count.", inputs=(_SHOWN,)))
    with pytest.raises(ForbiddenError, match="reads no file"):
        await check_inputs(call, GoalOrder(goal="Count.", inputs=(_SHOWN, _HIDDEN)))
    async with lists.slot("another"), beside(check_inputs(call, GoalOrder(goal="Count.", inputs=(_SHOWN,)))):
        before = call.client.system.asked
        await asyncio.sleep(0)
        assert call.client.system.asked == before, "goals are read in turns"
