"""What a stranger's key achieves: one ordinary agent means harm, while honest agents lead goals on the same system."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta

from ioa.errors import ForbiddenError, NotFoundError
from ioa.group.requests import AbandonGoal, LaunchGroup, Sync
from ioa.protocol import subjects
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId, GoalName, PoolId
from ioa.protocol.registry import Lease, Register
from tests.integration.security.town import BOB, MALLORY, USER, Town, card

_BRIEFLY = timedelta(milliseconds=300)


async def test_a_stranger_achieves_nothing_beyond_its_own_part(town: Town) -> None:
    """An ordinary key cannot take, end or answer the goal of another key, or draw its work."""
    goals = await town.ask_for("Count to ten.", "Count to eleven.")
    achieved = [
        *await _waiting(town, goals),
        *await _theft(town, goals),
        *await _foreign_pool(town),
    ]
    for number, goal_id in enumerate(goals):
        await town.agents[BOB].lead(goal_id, f"{number}, says bob.")
    outcomes = [await town.outcome(goal_id) for goal_id in goals]
    assert achieved == []
    assert outcomes == [(Reason.CONCLUDED, f"{number}, says bob.") for number in range(2)]


async def _theft(town: Town, goals: Sequence[GoalId]) -> list[str]:
    """Launch or abandon goals whose ids are known."""
    achieved, network, session = [], town.agents[MALLORY].network, town.agents[MALLORY].session.session
    for goal_id, ticket in itertools.product(goals, (None, "0" * 32)):
        launch = LaunchGroup(owner=MALLORY, members=(), goal_id=goal_id, user=USER, session=session, ticket=ticket)
        end = AbandonGoal(
            goal_id=goal_id, user=USER, by=MALLORY, reason=Reason.FAILED, content="No.", session=session, ticket=ticket
        )
        for name, attempt in (("launched", network.launch(launch)), ("abandoned", network.abandon(end))):
            try:
                await attempt
                achieved.append(f"{name} {goal_id}")
            except NotFoundError:
                pass
    return achieved


async def _waiting(town: Town, goals: Sequence[GoalId]) -> list[str]:
    """Learn that goals wait, by their ids."""
    network, session = town.agents[MALLORY].network, town.agents[MALLORY].session.session

    async def synced(goal_id: GoalId) -> str:
        comm_id = GoalName(USER, goal_id).comm_id
        try:
            return repr(await network.sync(Sync(comm_id=comm_id, agent_id=MALLORY, session=session)))
        except NotFoundError as error:
            return f"{error.message} {error.hint}".replace(comm_id, "ROOM")

    nothing = await synced(GoalId("nothing-here"))
    told = [await synced(goal_id) for goal_id in goals]
    return [f"told of a goal that waits: {answer}" for answer in told if answer != nothing]


async def _foreign_pool(town: Town) -> list[str]:
    """Register in another agent's pool."""
    mallory = town.agents[MALLORY]
    register = Register(card=card(MALLORY, pool=BOB), session=mallory.session)
    try:
        await mallory.requester.request(subjects.agent(PoolId(MALLORY), MALLORY, subjects.REGISTER), register, Lease)
    except ForbiddenError:
        return []
    return ["registered in another pool"]
