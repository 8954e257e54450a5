"""Forgetting agents: who is online is not, who was away for too long is, and a queue with goals in it stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.errors import ConflictError, NotFoundError
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import AgentId, GoalId, PoolId
from ioa.protocol.registry import Deregister, Register, RemoveAgent
from ioa.protocol.registry_records import EMPTY_RENEWAL
from ioa_registry.removal import AgentRemover
from tests.rig.memory_retention import MemoryAgentRemoval
from tests.unit.group.scenario import START, card
from tests.unit.runtime.plane import ADA, BOB, EVE, LEASE, Plane

KEEP = timedelta(days=90)
SUMS = PoolId("sums")


def remover(plane: Plane) -> AgentRemover:
    """What forgets the agents of a plane."""
    return AgentRemover(plane.cards, plane.view, MemoryAgentRemoval(plane.cards, plane.leases, plane.work), plane.clock)


def known(plane: Plane) -> list[AgentId]:
    """Who is registered."""
    return [record.card.agent_id for record in plane.view.cards()]


async def test_absent_agent_is_removed(plane: Plane) -> None:
    """After its time an agent that is offline goes; who is online, or away for less long, stays."""
    await plane.join(ADA)
    plane.clock.advance(timedelta(days=30))
    await plane.join(BOB)
    plane.clock.advance(timedelta(days=61))
    await plane.join(EVE)
    await remover(plane).sweep(KEEP)
    assert known(plane) == [BOB, EVE]


async def test_online_agent_is_kept(plane: Plane) -> None:
    """It is the last renewal that counts, not the registration."""
    await plane.join(ADA)
    plane.clock.advance(timedelta(days=100))
    await plane.leases.put(ADA, EMPTY_RENEWAL)
    plane.clock.advance(LEASE * 2)
    await remover(plane).sweep(KEEP)
    assert known(plane) == [ADA]


async def test_agent_with_unknown_absence_is_kept(plane: Plane) -> None:
    """A card without a lease on record, as an older release leaves it, is not taken for one that is old."""
    await plane.join(ADA)
    plane.leases.forget(ADA)
    plane.clock.advance(timedelta(days=1_000))
    await remover(plane).sweep(KEEP)
    assert known(plane) == [ADA]


async def test_an_agent_that_is_named_is_forgotten_unless_it_is_online(plane: Plane) -> None:
    """Who is online is refused unless it is wanted all the same; who is unknown is not found."""
    await plane.join(ADA, BOB)
    await plane.registry.deregister(Deregister(agent_id=ADA))
    removal = remover(plane)
    await removal.remove(RemoveAgent(agent_id=ADA))
    with pytest.raises(ConflictError, match="online"):
        await removal.remove(RemoveAgent(agent_id=BOB))
    with pytest.raises(NotFoundError):
        await removal.remove(RemoveAgent(agent_id=ADA))
    assert known(plane) == [BOB]
    await removal.remove(RemoveAgent(agent_id=BOB, force=True))
    assert known(plane) == []


async def test_the_queue_of_a_pool_goes_with_its_last_agent(plane: Plane) -> None:
    """While the pool has another agent, or a goal waits, its queue stays."""
    for name in ("ada", "bob"):
        await plane.registry.register(Register(card=card(name).model_copy(update={"pool": SUMS})))
    removal = remover(plane)
    await removal.remove(RemoveAgent(agent_id=ADA, force=True))
    assert SUMS in plane.work.pools
    await removal.remove(RemoveAgent(agent_id=BOB, force=True))
    assert SUMS not in plane.work.pools
    await plane.registry.register(Register(card=card("ada").model_copy(update={"pool": SUMS})))
    await plane.work.put(
        GoalRecord(goal=Goal(goal_id=GoalId("goal-1"), goal="Count."), accepted_at=START, ticket_digest="0" * 64), SUMS
    )
    await removal.remove(RemoveAgent(agent_id=ADA, force=True))
    assert SUMS in plane.work.pools
