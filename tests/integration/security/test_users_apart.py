"""What one user's key achieves against another user: her goals, their ids and their ends are not hers to touch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.js.api import Header

from ioa.adapters.nats.system_client import NatsSystemClient, open_system
from ioa.errors import ForbiddenError, NotFoundError
from ioa.group.requests import CancelGroup
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId, GoalName, UserId
from tests.integration.security.town import BOB, EVE, SOON, USER, Town, open_town

_FIRST, _SECOND = GoalId("report"), GoalId("report-2")


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A system with two users and bob."""
    async with open_town(tmp_path, (BOB,)) as opened:
        yield opened


async def test_a_user_achieves_nothing_against_another(town: Town) -> None:
    """Taking an id or a message id first, cancelling, speaking in another's name: both users' goals end with their own answers."""
    bob, goals = town.agents[BOB], ((USER, _FIRST), (USER, _SECOND), (EVE, _FIRST))
    async with open_system(town.secured.settings("eve"), patience=SOON) as eve:
        await eve.launch(GoalOrder(goal="Count wrong.", goal_id=_FIRST, agent=BOB))
        await _take_message_id(town, _SECOND)
        for goal_id in (_FIRST, _SECOND):
            await town.user.launch(GoalOrder(goal=f"Count for {goal_id}.", goal_id=goal_id, agent=BOB))
        await town.given(*goals)
        achieved = await _cancel(eve, GoalName(USER, _FIRST))
        for user, goal_id in goals:
            await bob.lead(goal_id, f"{goal_id} of {user}", user)
        told = [await town.user.wait_for_result(GoalName(user, goal_id)) for user, goal_id in goals]
        shown = await eve.find_goal(_FIRST), await town.user.find_goal(_FIRST), await eve.find_goal(_SECOND)
        status = await eve.goal(GoalName(USER, _SECOND))
        async with open_system(town.secured.settings("admin"), patience=SOON) as admin:
            await town.user.launch(GoalOrder(goal="Wait.", goal_id=GoalId("waits"), agent=BOB))
            await town.given((USER, GoalId("waits")))
            await admin.cancel(CancelGroup(goal_id=GoalId("waits")), USER)
            cancelled = await town.user.wait_for_result(GoalId("waits"))
    assert achieved == []
    assert [(result.reason, result.content, result.user) for result in told] == [
        (Reason.CONCLUDED, f"{goal_id} of {user}", user) for user, goal_id in goals
    ]
    assert shown == (GoalName(EVE, _FIRST), GoalName(USER, _FIRST), GoalName(USER, _SECOND))
    assert status.standing is not None and status.standing.charter is not None
    assert (status.record.goal.user, status.standing.charter.user, cancelled.reason) == (USER, USER, Reason.CANCELLED)


async def _take_message_id(town: Town, goal_id: GoalId) -> None:
    """Publish what a stream would take for the same message as another user's, if that bore an id."""
    async with open_system(town.secured.settings("eve"), patience=SOON) as eve:
        headers = {Header.MSG_ID.value: f"{USER}/{goal_id}"}
        await eve._js.publish(subjects.goal_to(EVE, BOB), b"{", headers=headers)


async def _cancel(eve: NatsSystemClient, goal: GoalName) -> list[str]:
    """T17: cancel another's goal by its id, by its group, and in its user's name."""
    achieved: list[str] = []
    tries: list[tuple[CancelGroup, UserId | None]] = [
        (CancelGroup(comm_id=goal.comm_id), None),
        (CancelGroup(goal_id=GoalId("report-2")), None),
        (CancelGroup(goal_id=goal.goal_id), goal.user),
    ]
    for request, user in tries:
        try:
            await eve.cancel(request, user)
            achieved.append(f"cancelled by {request}")
        except (ForbiddenError, NotFoundError):
            pass
    return achieved
