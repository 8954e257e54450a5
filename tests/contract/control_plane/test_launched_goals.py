"""What who waits for a goal is told that was refused, where nothing is kept of that: its place in the stream of goals is empty."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery import NatsPassingResults
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.launched import LaunchedGoals
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import GOALS
from ioa.beside import beside
from ioa.client.client import Client as Programs
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalRecord, GoalResult, Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.testing.manual_clock import NEW_YEAR

_NAME = GoalName(LOCAL, GoalId("g1"))
_ORDER = GoalOrder(goal="Say hello.", goal_id=_NAME.goal_id)
_LONG_SECONDS = 5.0


async def _refuse(client: Client) -> None:
    """Take the goal out of its stream, as who refuses it does."""
    await client.jetstream().purge_stream(GOALS)


@asynccontextmanager
async def _refused_in(client: Client, seconds: float) -> AsyncIterator[None]:
    async def later() -> None:
        await asyncio.sleep(seconds)
        await _refuse(client)

    async with beside(later()):
        yield


async def _entries(programs: Programs) -> Sequence[StoredEntry]:
    return [one async for one in programs.follow(_NAME)]


async def test_who_waits_for_a_goal_that_was_refused_is_told(nats_client: Client) -> None:
    """Within seconds, though there is neither a result nor an entry; who follows it is done as well."""
    system = NatsSystemClient(nats_client)
    programs = Programs(system)
    await system.launch(_ORDER)
    async with asyncio.timeout(2 * _LONG_SECONDS), _refused_in(nats_client, 1.0):
        async with asyncio.TaskGroup() as group:
            waiting, following = group.create_task(system.wait_for_result(_NAME)), group.create_task(_entries(programs))
        result, entries = waiting.result(), following.result()
    assert (result.name, result.reason, entries) == (_NAME, Reason.FAILED, [])
    assert result.content.startswith("The goal was not accepted: ")
    assert await system.result(_NAME) == result


async def test_a_goal_that_waits_or_is_on_record_was_not_refused(nats_client: Client) -> None:
    """Nobody is told so who waits as long for one that nobody has taken in yet, nor for one that was taken in and is under way."""
    system = NatsSystemClient(nats_client)
    await system.launch(_ORDER)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(_LONG_SECONDS):
            await system.wait_for_result(_NAME)
    await NatsGoalRecords(nats_client.jetstream()).create(GoalRecord(goal=_ORDER.accepted(_NAME, ()), accepted_at=NEW_YEAR))
    await _refuse(nats_client)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(_LONG_SECONDS):
            await system.wait_for_result(_NAME)


async def test_of_a_goal_that_nobody_launched_here_nothing_is_said(nats_client: Client) -> None:
    """Somebody else may be about to launch it."""
    system = NatsSystemClient(nats_client)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await system.wait_for_result(_NAME)
    assert await system.result(_NAME) is None


async def test_whoever_waits_for_it_is_told_of_a_refusal_that_passes_by(nats_client: Client) -> None:
    """In another process than that which launched it, before it was refused and for some minutes after."""
    elsewhere = NatsSystemClient(nats_client)
    told = GoalResult(
        goal_id=_NAME.goal_id,
        user=LOCAL,
        reason=Reason.FAILED,
        content="The goal was not accepted: no room.",
        comm_id=_NAME.comm_id,
        turns=0,
        finished_at=NEW_YEAR,
    )
    async with asyncio.timeout(_LONG_SECONDS), asyncio.TaskGroup() as group:
        waiting = group.create_task(elsewhere.wait_for_result(_NAME))
        await asyncio.sleep(0.2)
        await NatsPassingResults(nats_client).publish(told)
    assert [waiting.result(), await NatsSystemClient(nats_client).wait_for_result(_NAME)] == [told, told]


async def test_another_goal_in_its_place_is_not_it(nats_client: Client) -> None:
    """A store that was lost and made anew counts from one again."""
    system = NatsSystemClient(nats_client)
    await system.launch(_ORDER)
    config = (await nats_client.jetstream().stream_info(GOALS)).config
    await nats_client.jetstream().delete_stream(GOALS)
    await nats_client.jetstream().add_stream(config)
    await NatsSystemClient(nats_client).launch(GoalOrder(goal="Another one.", goal_id=GoalId("g2")))
    async with asyncio.timeout(2 * _LONG_SECONDS):
        assert (await system.wait_for_result(_NAME)).reason is Reason.FAILED


async def test_many_goals_that_wait_are_looked_for_more_seldom(nats_client: Client) -> None:
    """Each look reads a goal as a whole: of a gateway with thousands that wait they would be all that is read."""
    launched = LaunchedGoals(nats_client, _is_nowhere)
    first = GoalName(LOCAL, GoalId("g-0"))
    launched.note(first, 1)
    alone = launched.look_in(first)
    names = [GoalName(LOCAL, GoalId(f"g-{number}")) for number in range(1_000)]
    for name in names:
        launched.note(name, 1)
    waits = launched.look_in(names[-1])
    assert alone is not None and waits is not None
    assert (alone <= 0.5, waits > 40.0) == (True, True)
    for name in names[1:]:
        launched.forget(name)
    launched.note(first, 1)
    assert (launched.look_in(first) or 0.0) <= 0.5


async def _is_nowhere(_goal: GoalName) -> bool:
    return False
