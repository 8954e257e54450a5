"""Push notifications of A2A are written so that others are answered meanwhile."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ioa.client.client import Client
from ioa.group.goal_lists import GoalStatus
from ioa.group.requests import GroupSnapshot
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import GoalName, UserId
from ioa.protocol.webhooks import HookEvent, Notice, PushTarget
from ioa_gateway.a2a import pushing
from ioa_gateway.callers import Caller
from ioa_gateway.entry_pages import EntryPage
from ioa_gateway.outward.pushes import Pushes
from tests.unit.client.golden_documents import AT, GOAL
from tests.unit.gateway.test_open_turns import snapshot_of, waits


class _Goals:
    """Knows every goal; it goes on, as it stands."""

    def __init__(self, standing: GroupSnapshot | None = None) -> None:
        self.standing, self.with_team = standing, 0

    @property
    def system(self) -> _Goals:
        """Where goals are read."""
        return self

    async def goal(self, _name: GoalName, *, with_team: bool = True) -> GoalStatus:
        """How one stands."""
        self.with_team += with_team
        return GoalStatus(GoalRecord(goal=GOAL, accepted_at=AT, ticket_digest="0" * 64), self.standing, None)


async def test_a_turn_that_asks_nobody_has_no_charter_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A team may be large, and turns are dozens a second: who is awaited is told by how the goal stands."""

    async def last_page(_client: object, _name: GoalName) -> EntryPage:
        return EntryPage([], [], None)

    monkeypatch.setattr(pushing, "last_page", last_page)
    goals = _Goals(snapshot_of(waits(["ann", "joe"], 10), UserId("eva"), "sum"))
    about: dict[str, Any] = {"webhook_id": "h", "message_id": "m", "at": AT, "goal_id": "sum", "comm_id": "room"}
    turn = Notice.model_validate({**about, "event": HookEvent.TURN, "user": UserId("eva")})

    async def pushed_to(person: str) -> bytes | None:
        caller = Caller("web", UserId("eva"), frozenset(), people=frozenset({person}))
        push = PushTarget(config_id="a", version="1.0", base_url="http://gateway")
        return await Pushes(cast("Client", goals), lambda _key: caller).body(push, turn, "web")

    assert (await pushed_to("eve"), goals.with_team) == (None, 0)
    assert b"TASK_STATE_INPUT_REQUIRED" in (await pushed_to("ann") or b"")
    assert goals.with_team == 1
