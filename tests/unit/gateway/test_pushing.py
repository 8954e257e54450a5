"""Push notifications of A2A are written so that others are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest

from ioa.client.client import Client
from ioa.group.requests import GroupSnapshot
from ioa.ports.goal_client import GoalStatus
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import GoalName, UserId
from ioa.protocol.webhooks import HookEvent, Notice, PushTarget
from ioa_gateway.a2a import pushing
from ioa_gateway.a2a.tasks import Telling
from ioa_gateway.callers import Caller
from ioa_gateway.entry_pages import EntryPage
from ioa_gateway.outward.pushes import Pushes
from tests.unit.client.golden_documents import AT, GOAL, documents
from tests.unit.gateway.test_waiting_lists import snapshot_of, waits


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
        return GoalStatus(GoalRecord(goal=GOAL, accepted_at=AT), self.standing, None)


async def test_pushes_are_written_one_at_a_time_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred configurations of one task held the loop for minutes; and what was said is not told, so none of it is made."""
    reads, most = Counter[str](), Counter[str]()
    entries = documents()["entries"]

    async def last_page(_client: object, name: GoalName) -> EntryPage:
        reads[name.owner] += 1
        most[name.owner], most["all"] = max(most[name.owner], reads[name.owner]), max(most["all"], reads.total())
        for _ in range(20):
            await asyncio.sleep(0)
        reads[name.owner] -= 1
        return EntryPage([], entries, None)

    def message(_telling: Telling, _entry: object) -> None:
        raise AssertionError("it is not told")

    monkeypatch.setattr(pushing, "last_page", last_page)
    monkeypatch.setattr(Telling, "message", message)
    pushes = Pushes(cast("Client", _Goals()), lambda _key: Caller("web", UserId("eva"), frozenset()))
    push = PushTarget(config_id="a", version="1.0", base_url="http://gateway")
    about: dict[str, Any] = {"webhook_id": "h", "message_id": "m", "at": AT, "goal_id": "sum", "comm_id": "room"}
    notices = [
        Notice.model_validate({**about, "event": HookEvent.PHASE, "user": user}) for user in ("eva", "bob") for _ in range(8)
    ]
    told = await asyncio.gather(*(pushes.body(push, notice, "web") for notice in notices))
    assert (most, len(set(told)), b"history" in (told[0] or b"history")) == ({"eva": 1, "bob": 1, "all": 2}, 1, False)


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
