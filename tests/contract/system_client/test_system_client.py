"""Requests of users and operators: lists, completion of ids, cancellation, following, search and removal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from ioa.cli.groups import find_group
from ioa.client.watching import News, watch
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.agents.search import Need, Search
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalId, comm_id_of_goal
from ioa.protocol.messages import (
    InformTaskProgress,
    InformTaskResult,
)
from ioa.protocol.operation.status import Prune
from ioa.protocol.registry import Deregister, ListAgents
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, ROOM, TASK, Members, order
from tests.rig.deadline import eventually


async def test_lists_are_newest_first_and_page_by_page(plane: Plane, members: Members) -> None:
    """A page goes on where the one before ended; ended goals are left out on request; groups are those of the goals listed."""
    client = plane.client
    assert ((await client.goals()).goals, (await client.groups()).groups) == ((), ())
    for number in (1, 2, 3):
        await client.submit(order(f"goal-{number}"))
        await members.launch(GoalId(f"goal-{number}"))
    await members.conclude(ADA, "Two.", comm_id_of_goal(GoalId("goal-2")))
    await client.wait_for_result(GoalId("goal-2"))

    first = await client.goals(limit=2)
    second = await client.goals(limit=2, before=first.before)
    told = [(row.record.goal.goal_id, row.standing is not None, row.result is not None) for row in (*first.goals, *second.goals)]
    assert told == [("goal-3", True, False), ("goal-2", False, True), ("goal-1", True, False)]
    assert second.before is None
    still_open = await eventually(lambda: client.goals(open_only=True), lambda found: len(found.goals) == 2)
    assert [row.record.goal.goal_id for row in still_open.goals] == ["goal-3", "goal-1"]
    groups = [comm_id_of_goal(GoalId(f"goal-{number}")) for number in (3, 2, 1)]
    assert [one.state.comm_id for one in (await client.groups()).groups] == groups
    assert [one.state.comm_id for one in (await client.groups(open_only=True)).groups] == [groups[0], groups[2]]


async def test_ids_are_completed(plane: Plane, members: Members) -> None:
    """From a beginning that only one has; several, or none, are refused with what helps."""
    client = plane.client
    for goal_id in ("sum-1", "sum-2", "list-1"):
        await client.submit(order(goal_id))
        await members.launch(GoalId(goal_id))
    assert [(await client.find_goal(start)).goal_id for start in ("li", "sum-1")] == ["list-1", "sum-1"]
    room = comm_id_of_goal(GoalId("list-1"))
    assert [await client.find_group(room), await client.find_group(room[:12])] == [room, room]
    assert [await find_group(client, one) for one in (room[:12], "list-1", "li")] == [room] * 3
    await client.submit(order("waits"))
    await eventually(client.goals, lambda page: len(page.goals) == 4)
    with pytest.raises(NotFoundError, match="The goal waits has no group yet"):
        await find_group(client, "waits")
    with pytest.raises(NotFoundError, match="no group nothing-like-it"):
        await find_group(client, "nothing-like-it")
    with pytest.raises(InvalidInputError, match="2 goals begin with sum"):
        await client.find_goal("sum")
    for find in (client.find_goal, client.find_group):
        with pytest.raises(NotFoundError):
            await find("nothing-like-it")


async def test_a_goal_is_cancelled_wherever_it_stands(plane: Plane, members: Members) -> None:
    """Before it has a group, in the middle of it, and again after its end, which changes nothing."""
    client = plane.client
    for goal_id, launched in (("waits", False), ("works", True)):
        await client.submit(order(goal_id))
        if launched:
            await members.launch(GoalId(goal_id))
        else:
            await eventually(lambda: members.is_known(GoalId("waits")))
        await client.cancel(GoalId(goal_id), "No more need.")
        result = await client.wait_for_result(GoalId(goal_id))
        assert (result.reason, result.content) == (Reason.CANCELLED, "No more need.")
        await client.cancel(GoalId(goal_id))
        assert await client.result(GoalId(goal_id)) == result


async def test_a_group_is_followed_from_its_first_entry(plane: Plane, members: Members) -> None:
    """Before there is a group, within it or behind an entry, until it ends: every entry once, in order; progress from then on."""
    client = plane.client
    early: list[News] = []
    late: list[News] = []

    async def follow(hear: Callable[[News], None]) -> None:
        async with watch(client, ROOM) as coming:
            async for news in coming:
                hear(news)

    async with asyncio.TaskGroup() as group:
        group.create_task(follow(early.append))
        await client.submit(order())
        await members.launch()
        await members.assign()
        group.create_task(follow(late.append))
        await eventually(lambda: len(late) >= 3)
        await members.say(BOB, InformTaskProgress(task_id=TASK, number=2, content="Half.", fraction=0.5))
        await members.say(BOB, InformTaskResult(task_id=TASK, task_conclusion="Ten."))
        await members.conclude(ADA, "Ten.")
    entries = await client.group_entries(ROOM)
    for heard in (early, late):
        assert [(one.seq, one.entry) for one in heard if isinstance(one, StoredEntry)] == [(one.seq, one.entry) for one in entries]
        [report] = [one.message.payload for one in heard if isinstance(one, Said)]
        assert isinstance(report, InformTaskProgress) and report.content == "Half."
    assert [one.seq for one in await client.group_entries(ROOM, after=entries[0].seq, limit=2)] == [one.seq for one in entries[1:3]]
    size = sum(one.size_bytes for one in entries[:2])
    assert await client.group_entries(ROOM, limit=100, max_bytes=size) == entries[:2]
    assert await client.group_entries(ROOM, before=entries[2].seq, limit=100, max_bytes=size) == entries[:2]


async def test_agents_are_listed_and_found(plane: Plane, members: Members) -> None:
    """By id, whether they are online, and by what they do; the index holds as many cards as the registry."""
    client = plane.client
    assert [(one.card.agent_id, one.online) for one in await client.agents()] == [("ada", True), ("bob", True)]
    search = Search(needs=(Need(text="counts bob"),))
    assert (await client.find_agents(search)).merged[0].card.agent_id == "bob"

    await plane.network.deregister(Deregister(agent_id=BOB))
    await eventually(lambda: client.agents(online_only=True), lambda online: len(online) == 1)
    await eventually(lambda: client.find_agents(search), lambda found: [one.card.agent_id for one in found.merged] == ["ada"])
    assert [(one.card.agent_id, one.online) for one in await client.agents()] == [("ada", True), ("bob", False)]
    page = await client.list_agents(ListAgents(limit=1))
    assert ([one.card.agent_id for one in page.agents], page.more) == (["ada"], True)
    assert [one.card.agent_id for one in (await client.list_agents(ListAgents(name=AgentId("bob")))).agents] == ["bob"]


async def test_operators_remove_goals_that_have_ended(plane: Plane, members: Members) -> None:
    """What is open stays; of what was removed only how it ended is known, and nobody waits for it."""
    client = plane.client
    for goal_id in ("ended", "open"):
        await client.submit(order(goal_id))
        await members.launch(GoalId(goal_id))
    await members.conclude(ADA, "Ten.", comm_id_of_goal(GoalId("ended")))
    await client.wait_for_result(GoalId("ended"))

    counted = await client.prune(Prune(older_than=timedelta(0), after=0, dry_run=True))
    pruned = await client.prune(Prune(older_than=timedelta(0), after=0))

    assert (counted.goals, pruned.goals, pruned.groups, pruned.failed) == ({"concluded": 1}, {"concluded": 1}, 1, 0)
    assert [row.record.goal.goal_id for row in (await client.goals()).goals] == ["open"]
    for ask in (client.goal, client.wait_for_result):
        with pytest.raises(NotFoundError, match=r"has ended .* and was removed"):
            await ask(GoalId("ended"))
    assert ((await client.find_goal("ended")).goal_id, await client.group_entries(comm_id_of_goal(GoalId("ended")))) == (
        "ended",
        [],
    )
