"""What one user's key achieves against another user: her goals, their ids and their ends are not hers to touch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.js.api import Header as NatsHeader

from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cli.doctor import Health, topology_finding
from ioa.client.client import open_system
from ioa.errors import ForbiddenError, NotFoundError
from ioa.group.requests import CancelGoal
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId, GoalName, UserId
from tests.contract.system_client.test_named_teams import debate
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import BOB, EVE, SOON, USER, Town, open_town
from tests.rig.deadline import eventually

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
        await eve.submit(GoalOrder(goal="Count wrong.", goal_id=_FIRST, agent=BOB))
        await _take_message_id(town, _SECOND)
        for goal_id in (_FIRST, _SECOND):
            await town.user.submit(GoalOrder(goal=f"Count for {goal_id}.", goal_id=goal_id, agent=BOB))
        await town.given(*goals)
        achieved = await _cancel(eve, GoalName(USER, _FIRST))
        for user, goal_id in goals:
            await bob.lead(goal_id, f"{goal_id} of {user}", user)
        told = [await {USER: town.user, EVE: eve}[user].wait_for_result(goal_id) for user, goal_id in goals]
        shown = await eve.find_goal(_FIRST), await town.user.find_goal(_FIRST)
        status = await town.user.goal(_SECOND)
        async with open_system(town.secured.settings("admin"), patience=SOON) as admin:
            await town.user.submit(GoalOrder(goal="Wait.", goal_id=GoalId("waits"), agent=BOB))
            await town.given((USER, GoalId("waits")))
            await admin.cancel(GoalName(USER, GoalId("waits")))
            cancelled = await town.user.wait_for_result(GoalId("waits"))
            teams = await _put_teams(town.user, eve, admin)
        await _look(town)
    assert (achieved, teams) == ([], [(1, USER), (2, USER)])
    assert [(result.reason, result.content, result.user) for result in told] == [
        (Reason.CONCLUDED, f"{goal_id} of {user}", user) for user, goal_id in goals
    ]
    assert shown == (GoalName(EVE, _FIRST), GoalName(USER, _FIRST))
    assert status.standing is not None and status.standing.charter is not None
    assert (status.record.goal.user, status.standing.charter.user, cancelled.reason) == (USER, USER, Reason.CANCELLED)


async def test_a_user_reads_nothing_of_another(town: Town) -> None:
    """Goals, results, groups, logs and dead letters of another user are as if they did not exist; an admin reads them."""
    await town.user.submit(GoalOrder(goal="Count.", goal_id=_FIRST, agent=BOB))
    await town.given((USER, _FIRST))
    await town.agents[BOB].lead(_FIRST, "One.", USER)
    name = GoalName(USER, _FIRST)
    await town.user.wait_for_result(name)
    async with (
        open_system(town.secured.settings("eve"), patience=SOON) as eve,
        open_system(town.secured.settings("admin"), patience=SOON) as admin,
    ):
        await town.user._client.jetstream().publish(subjects.goal_of(USER), b'{"goal": 1}')
        [letter] = (await eventually(lambda: admin.dead_letters(limit=5), lambda found: len(found.letters) == 1)).letters
        found: dict[str, list[object]] = {}
        for reader, system in (("user", town.user), ("eve", eve), ("admin", admin)):
            found[reader] = [
                [row.record.goal.name for row in (await system.goals()).goals],
                [one.state.comm_id for one in (await system.groups()).groups],
                len(await system.group_entries(name.comm_id)) > 0,
                len(await system.group_entries(name.comm_id, before=2**62, limit=5)) > 0,
                list(await system.heads([name.comm_id], at=2**62)),
                [one.seq for one in (await system.dead_letters(limit=5)).letters],
            ]
        for refused in (
            eve.goal(name),
            eve.result(name),
            eve.wait_for_result(name),
            eve.group(name.comm_id),
            eve.find_goal(str(name)),
            eve.find_goal(_FIRST[:3]),
            eve.find_group(name.comm_id),
            eve.dead_letter(letter.seq),
        ):
            with pytest.raises(NotFoundError):
                await refused
    everything = [[name], [name.comm_id], True, True, [name.comm_id], [letter.seq]]
    assert found == {"user": everything, "admin": everything, "eve": [[], [], False, False, [], []]}


async def _put_teams(user: NatsSystemClient, eve: NatsSystemClient, admin: NatsSystemClient) -> list[tuple[int, UserId]]:
    """Put a team of a user's, which another one may not, and an admin may."""
    first = await user.put_team(debate())
    with pytest.raises(ForbiddenError, match=f"is {USER}'s"):
        await eve.put_team(debate(most=3))
    assert [row.version for row in await eve.teams()] == [1]
    second = await admin.put_team(debate(most=4))
    return [(one.version, one.user) for one in (first, second)]


async def _look(town: Town) -> None:
    """Read the state of the system as an observer, which the server rejects in no part."""
    async with open_intruder(town.secured, "observer") as observer:
        inspection = NatsInspection(observer)
        standing = await inspection.standing()
        assert standing is not None
        assert topology_finding(standing).health is Health.OK


async def _take_message_id(town: Town, goal_id: GoalId) -> None:
    """Publish what a stream would take for the same message as another user's, if that bore an id."""
    async with open_system(town.secured.settings("eve"), patience=SOON) as eve:
        headers = {NatsHeader.MSG_ID.value: f"{USER}/{goal_id}"}
        await eve._client.jetstream().publish(subjects.goal_to(EVE, BOB), b"{", headers=headers)


async def _cancel(eve: NatsSystemClient, goal: GoalName) -> list[str]:
    """Cancel another's goal by its id, and in its user's name."""
    achieved: list[str] = []
    tries: list[tuple[CancelGoal, UserId | None]] = [
        (CancelGoal(goal_id=GoalId("report-2")), None),
        (CancelGoal(goal_id=goal.goal_id), goal.user),
    ]
    for request, user in tries:
        try:
            await eve._act(subjects.CANCEL, request, user or EVE)
            achieved.append(f"cancelled by {request}")
        except (ForbiddenError, NotFoundError):
            pass
    return achieved
