"""Following a goal's group through the gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.testing.manual_clock import NEW_YEAR
from ioa_gateway.context import ApiCall
from ioa_gateway.open_questions import documents_of

_NAME = GoalName(LOCAL, GoalId("g1"))
_ENTRY = {"seq": 1}
_RESULT = GoalResult(
    goal_id=_NAME.goal_id, user=LOCAL, reason=Reason.FAILED, content="No.", comm_id=_NAME.comm_id, turns=0, finished_at=NEW_YEAR
)


class _Streams:
    def __init__(self, told: Sequence[dict[str, Any] | None]) -> None:
        self._told = told

    async def documents(self, *_: object, progress: bool) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield the documents of the test."""
        for one in self._told:
            yield one


@pytest.mark.parametrize(
    ("told", "result", "expected"),
    [
        ([None, None, None], _RESULT, [None]),
        ([None, None, None], None, [None, None, None]),
        ([_ENTRY, None, _ENTRY], _RESULT, [_ENTRY, None, _ENTRY]),
    ],
)
async def test_entries_of_a_goal_that_was_refused_are_not_waited_for(
    told: list[dict[str, Any] | None], result: GoalResult | None, expected: list[dict[str, Any] | None]
) -> None:
    """After silence it is seen that there will be none; what has begun ends by an entry."""

    async def found(_goal: GoalName) -> GoalResult | None:
        return result

    call = cast(ApiCall, SimpleNamespace(streams=_Streams(told), caller=None, client=SimpleNamespace(result=found)))
    assert [one async for one in documents_of(call, _NAME, 0)] == expected
