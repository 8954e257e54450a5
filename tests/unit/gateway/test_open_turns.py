"""Open turns of people in one goal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ioa.client.questions import questions_waiting
from ioa.fair_semaphore import FairSemaphore
from ioa.group.goal_lists import GoalStatus, GroupList
from ioa.group.requests import GroupSnapshot
from ioa.group.state import Charter, GroupState
from ioa.protocol.api_keys import ANYBODY, Scope
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import CommId, GoalId, UserId
from ioa.protocol.team import seat_of, team_of
from ioa_gateway.a2a.tasks import Telling
from ioa_gateway.callers import Caller
from ioa_gateway.calls import Nothing
from ioa_gateway.mcp import tools
from ioa_gateway.routes import seats
from tests.unit.group.scenario import START, launched_under

_PEOPLE = [f"p{number}" for number in range(60)]
_GRIN = "\N{GRINNING FACE}"
_EVE, _ANNA = UserId("eve"), UserId("anna")


def _policy(people: list[str], words: int) -> Any:
    form = {f"f{number}": {"kind": "option", "options": [f"{one:02}{'o' * 70}" for one in range(16)]} for number in range(16)}
    node = {
        "name": "say",
        "roles": people,
        "turns": "together",
        "form": form,
        "prompt": f"{_GRIN}{'q' * words}",
        "max": len(people),
    }
    roles = {"boss": "boss", **{person: {"human": True} for person in people}}
    return team_of({"team": "t", "leader": "boss", "roles": roles, "nodes": [node]}).policy


def waits(people: list[str] = _PEOPLE, words: int = 7_900) -> tuple[Charter, GroupState]:
    """How a group stands in which people are to speak side by side, as they are told by long words, and what it was set up with."""
    seated = {person: [seat_of(person)] for person in people}
    group = launched_under(_policy(people, words), {"boss": ["boss"], **seated}, "boss", *map(seat_of, people))
    launch: Any = group.log[0]
    return launch.charter.model_copy(update={"goal": f"{_GRIN}{'g' * 4 * words}"}), group.state


def snapshot_of(standing: tuple[Charter | None, GroupState], user: UserId, goal: str) -> GroupSnapshot:
    """The same as a goal of a user."""
    charter, state = standing
    named = {"comm_id": CommId(f"{user}-{goal}"), "goal_id": GoalId(goal), "user": user}
    told = charter and charter.model_copy(update=named)
    return GroupSnapshot(seq=9, state=state.model_copy(update=named), charter=told)


class _System:
    """Groups that are open, and in which nobody has said anything."""

    def __init__(self, groups: list[GroupSnapshot]) -> None:
        self.system, self._groups = self, groups

    async def groups(self, **_asked: object) -> GroupList:
        """List them."""
        return GroupList(groups=self._groups, before=None)

    async def user(self) -> UserId:
        """Tell who asks."""
        return _EVE

    async def waiting(self, _goal: None) -> list[Any]:
        """Gather all questions, as a client does."""
        return [one async for one in questions_waiting(self)]  # type: ignore[arg-type]

    async def entries_before(self, *_of: object, **_bounds: object) -> list[Any]:
        """Nothing was said."""
        return []

    async def read_none(self, *_of: object, **_bounds: object) -> AsyncIterator[None]:
        """Nothing was said, as a client has it."""
        nothing: list[None] = []
        for one in nothing:
            yield one


def _call(groups: list[GroupSnapshot]) -> Any:
    caller = Caller("key", _EVE, frozenset({Scope.GOALS_READ, Scope.GOALS_WRITE}), people=frozenset({ANYBODY}))
    return SimpleNamespace(caller=caller, client=_System(groups), limits=SimpleNamespace(pages=FairSemaphore(1)))


async def test_what_is_short_is_told_whole() -> None:
    """And that there is no more."""
    call = _call([snapshot_of(waits(["ada"], 20), _ANNA, "mine")])
    told = json.loads(bytes((await seats.anybody(call, Nothing(), Nothing())).body))
    assert (told["more"], [(one["as"], one["told"]) for one in told["waiting"]]) == (False, [("ada", [f"{_GRIN}{'q' * 20}"])])


def _status() -> GoalStatus:
    standing = snapshot_of(waits(), _EVE, "g")
    goal = Goal(goal_id=standing.state.goal_id, user=_EVE, goal="Decide.")
    return GoalStatus(GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64), standing, None)


def test_task_of_a2a_contains_first_turn_whole() -> None:
    """Sixty people are asked; the texts of the other turns are cut."""
    call, status = _call([]), _status()
    task = Telling(status.record.goal, "http://x", call.caller).task(status, [])
    parts = task.status.message.parts
    told = [part.data.struct_value for part in parts if part.HasField("data")]
    assert (len(parts[0].text) > 7_900, told[0]["cut"], {one["cut"] for one in told[1:]}) == (True, False, {True})
    assert len(told) == len(_PEOPLE)


async def test_tool_of_mcp_contains_first_turn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of the other turns are cut."""
    call, status = _call([]), _status()

    @asynccontextmanager
    async def looking(_name: object, **_how: bool) -> AsyncIterator[GoalStatus]:
        yield status

    async def nothing(*_of: object) -> None:
        pass

    call.looking, call.look = looking, nothing
    call.client.read = call.client.read_none
    call.keyring, call.while_let_in = SimpleNamespace(check=lambda _caller: None), nothing
    monkeypatch.setattr(tools, "settled", lambda *_of: None)
    told = await tools._progress(call, status.record.goal.name, 0, 0)
    assert (len(told.asks[0].told) > 7_900, len(told.asks[1].told) < 7_900) == (True, True)
    assert len(told.asks) == len(_PEOPLE)
