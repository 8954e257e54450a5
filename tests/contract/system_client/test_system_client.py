"""What users of a system rely on, whichever `SystemClient` they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from ioa.cli.groups import find_group
from ioa.client.history import conversation
from ioa.client.watching import News, watch
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.events import Said
from ioa.group.goal_lists import GoalFilter
from ioa.group.requests import CancelGroup
from ioa.group.state import ParentTask
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId, PoolId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.messages import (
    Discussion,
    InformTaskProgress,
    InformTaskResult,
)
from ioa.protocol.registry import Deregister, ListAgents
from ioa.protocol.retention import Prune
from ioa.protocol.search import Need, Search
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, ROOM, TASK, Members, order
from tests.rig.deadline import eventually


async def test_a_goal_goes_from_its_launch_to_its_result(plane: Plane, members: Members) -> None:
    """It is on record before it has a group or a result; its result is what was concluded, whoever asks and how often."""
    client = plane.client
    await members.register(ADA, BOB)
    assert await client.launch(order()) == GOAL
    opened = await members.launch()
    waiting = asyncio.create_task(client.wait_for_result(GOAL))
    before = await client.goal(GOAL)
    assert (before.record.goal.goal, before.result, await client.result(GOAL)) == ("Count to ten.", None, None)
    assert before.standing is not None and before.standing.charter == opened.charter
    bare = await client.goal(GOAL, with_team=False)
    assert (bare.record, bare.standing) == (before.record, before.standing.model_copy(update={"charter": None}))

    await members.conclude(ADA, "Ten.")
    result = await waiting

    assert (result.reason, result.content) == (Reason.CONCLUDED, "Ten.")
    assert [await client.wait_for_result(GOAL), await eventually(lambda: client.result(GOAL))] == [result, result]
    assert (await client.goal(GOAL)).result == result


async def test_lists_are_newest_first_and_page_by_page(plane: Plane, members: Members) -> None:
    """A page goes on where the one before ended; ended goals are left out on request; groups are those of the goals listed."""
    client = plane.client
    await members.register(ADA, BOB)
    assert ((await client.goals()).goals, (await client.groups()).groups) == ([], [])
    for number in (1, 2, 3):
        await client.launch(order(f"goal-{number}"))
        await members.launch(GoalId(f"goal-{number}"))
    await members.conclude(ADA, "Two.", comm_id_of_goal(GoalId("goal-2")))
    await client.wait_for_result(GoalId("goal-2"))

    first = await client.goals(limit=2)
    second = await client.goals(limit=2, before=first.before)
    told = [(row.record.goal.goal_id, row.standing is not None, row.result is not None) for row in (*first.goals, *second.goals)]
    assert told == [("goal-3", True, False), ("goal-2", False, True), ("goal-1", True, False)]
    assert second.before is None
    still_open = await eventually(lambda: client.goals(only=GoalFilter(open_only=True)), lambda found: len(found.goals) == 2)
    assert [row.record.goal.goal_id for row in still_open.goals] == ["goal-3", "goal-1"]
    groups = [comm_id_of_goal(GoalId(f"goal-{number}")) for number in (3, 2, 1)]
    assert [one.state.comm_id for one in (await client.groups()).groups] == groups
    assert [one.state.comm_id for one in (await client.groups(open_only=True)).groups] == [groups[0], groups[2]]


async def test_ids_are_completed(plane: Plane, members: Members) -> None:
    """From a beginning that only one has; several, or none, are refused with what helps."""
    client = plane.client
    await members.register(ADA, BOB)
    for goal_id in ("sum-1", "sum-2", "list-1"):
        await client.launch(order(goal_id))
        await members.launch(GoalId(goal_id))
    assert [(await client.find_goal(start)).goal_id for start in ("li", "sum-1")] == ["list-1", "sum-1"]
    room = comm_id_of_goal(GoalId("list-1"))
    assert [await client.find_group(room), await client.find_group(room[:12])] == [room, room]
    assert [await find_group(client, one) for one in (room[:12], "list-1", "li")] == [room] * 3
    await client.launch(order("waits"))
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


async def test_what_is_not_there_is_not_found(plane: Plane) -> None:
    """Neither a goal nor a group; a log that was never begun is empty."""
    with pytest.raises(NotFoundError, match="There is no goal goal-1"):
        await plane.client.goal(GOAL)
    with pytest.raises(NotFoundError, match="There is no group"):
        await plane.client.group(ROOM)
    with pytest.raises(NotFoundError):
        await plane.client.cancel(CancelGroup(goal_id=GOAL))
    assert (await plane.client.entries(ROOM), await plane.client.result(GOAL)) == ([], None)


async def test_a_goal_is_cancelled_wherever_it_stands(plane: Plane, members: Members) -> None:
    """Before it has a group, in the middle of it, and again after its end, which changes nothing."""
    client = plane.client
    await members.register(ADA, BOB)
    for goal_id, launched in (("waits", False), ("works", True)):
        await client.launch(order(goal_id))
        if launched:
            await members.launch(GoalId(goal_id))
        else:
            await eventually(lambda: members.is_known(GoalId("waits")))
        await client.cancel(CancelGroup(goal_id=GoalId(goal_id), why="No more need."))
        result = await client.wait_for_result(GoalId(goal_id))
        assert (result.reason, result.content) == (Reason.CANCELLED, "No more need.")
        await client.cancel(CancelGroup(goal_id=GoalId(goal_id)))
        assert await client.result(GoalId(goal_id)) == result


async def test_a_group_is_followed_from_its_first_entry(plane: Plane, members: Members) -> None:
    """Before there is a group, within it or behind an entry, until it ends: every entry once, in order; progress from then on."""
    client = plane.client
    await members.register(ADA, BOB)
    early: list[News] = []
    late: list[News] = []

    async def follow(hear: Callable[[News], None], after: int = 0) -> None:
        async with watch(client, ROOM, after=after) as coming:
            async for news in coming:
                hear(news)

    async with asyncio.TaskGroup() as group:
        group.create_task(follow(early.append))
        await client.launch(order())
        await members.launch()
        await members.assign()
        group.create_task(follow(late.append))
        await eventually(lambda: len(late) >= 3)
        await members.say(BOB, InformTaskProgress(task_id=TASK, number=2, content="Half.", fraction=0.5))
        await members.say(BOB, InformTaskResult(task_id=TASK, task_conclusion="Ten."))
        await members.conclude(ADA, "Ten.")
    entries = await client.entries(ROOM)
    for heard in (early, late):
        assert [(one.seq, one.entry) for one in heard if isinstance(one, StoredEntry)] == [(one.seq, one.entry) for one in entries]
        [report] = [one.message.payload for one in heard if isinstance(one, Said)]
        assert isinstance(report, InformTaskProgress) and report.content == "Half."
    rest: list[News] = []
    await follow(rest.append, after=entries[2].seq)
    assert [one.seq for one in rest if isinstance(one, StoredEntry)] == [one.seq for one in entries[3:]]
    assert [one.seq for one in await client.entries(ROOM, after=entries[0].seq, limit=2)] == [one.seq for one in entries[1:3]]
    before = entries[-1].seq
    for number in range(1, len(entries)):
        size = sum(one.size_bytes for one in entries[:number])
        assert await client.entries(ROOM, limit=100, max_bytes=size) == entries[:number]
        assert await client.entries(ROOM, max_bytes=size + 1) == entries[: number + 1]
        size = sum(one.size_bytes for one in entries[-1 - number : -1])
        assert await client.entries(ROOM, before=before, limit=100, max_bytes=size) == entries[-1 - number : -1]
        assert await client.entries(ROOM, before=before, limit=2, max_bytes=size) == entries[-1 - min(2, number) : -1]


async def test_a_nested_team_is_part_of_the_conversation(plane: Plane, members: Members) -> None:
    """Read afterwards and watched as it happens: all entries in the one order in which they were stored; it is listed behind it."""
    client = plane.client
    await members.register(ADA, BOB)
    nested = comm_id_of_task(ROOM, TASK)
    seen: list[News] = []

    async def look() -> None:
        async with watch(client, ROOM) as coming:
            seen.extend([news async for news in coming])

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        await client.launch(order())
        await members.launch()
        await members.assign()
        await members.launch(parent=ParentTask(comm_id=ROOM, task_id=TASK))
        assert [one.state.comm_id for one in (await client.groups()).groups] == [ROOM, nested]
        await members.say(BOB, Discussion(content="You count.", next_speaker=ADA), nested)
        await members.conclude(ADA, "Five.", nested)
        await eventually(lambda: client.group(ROOM), lambda found: not found.state.open_tasks)
        await members.conclude(ADA, "Ten.")

    watched = [(one.entry.state.comm_id, one.seq) for one in seen if isinstance(one, StoredEntry)]
    entries = await conversation(client, ROOM)
    assert watched == [(one.entry.state.comm_id, one.seq) for one in entries]
    assert {comm_id for comm_id, _ in watched} == {ROOM, nested}
    seqs = [seq for _, seq in watched]
    assert seqs == sorted(seqs)
    assert await conversation(client, ROOM, after=seqs[4]) == entries[5:]


async def test_agents_are_listed_and_found(plane: Plane, members: Members) -> None:
    """By id, whether they are online, and by what they do; the index holds as many cards as the registry."""
    client = plane.client
    assert (list(await client.agents()), (await client.index_status()).cards) == ([], 0)
    await members.register(BOB, ADA)
    assert [(one.card.agent_id, one.online) for one in await client.agents()] == [("ada", True), ("bob", True)]
    found = await client.search(Search(needs=(Need(text="counts ada"),)))
    assert found.merged[0].card.agent_id == "ada"

    await plane.network.deregister(Deregister(agent_id=BOB))
    await eventually(lambda: client.agents(online_only=True), lambda online: len(online) == 1)
    assert [(one.card.agent_id, one.online) for one in await client.agents()] == [("ada", True), ("bob", False)]
    page = await client.list_agents(ListAgents(limit=1))
    assert ([one.card.agent_id for one in page.agents], page.more) == (["ada"], True)
    assert [one.card.agent_id for one in (await client.list_agents(ListAgents(pool=PoolId("bob")))).agents] == ["bob"]


async def test_operators_remove_goals_that_have_ended(plane: Plane, members: Members) -> None:
    """What is open stays; of what was removed only how it ended is known, and nobody waits for it."""
    client = plane.client
    await members.register(ADA, BOB)
    for goal_id in ("ended", "open"):
        await client.launch(order(goal_id))
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
    assert ((await client.find_goal("ended")).goal_id, await client.entries(comm_id_of_goal(GoalId("ended")))) == ("ended", [])


async def test_what_cannot_be_accepted_is_a_dead_letter(plane: Plane, members: Members) -> None:
    """The newest comes first; one can be read by its number, and put back once, which takes it off the list."""
    client = plane.client
    await members.register(ADA, BOB)
    box = client.dead_letters
    assert (await box.page(limit=10)).letters == ()
    await client.launch(order())
    await members.launch()
    for text in ("Count to eleven.", "Count to twelve."):
        await client.launch(order(text=text))
    page = await eventually(lambda: box.page(limit=10), lambda found: len(found.letters) == 2)
    assert [(letter.reason, letter.subject) for letter in page.letters] == [("conflict", "ioa.v1.goal.local.ada")] * 2
    newest, older = page.letters
    first = await box.page(limit=1)
    assert ([one.seq for one in first.letters], [one.seq for one in (await box.page(limit=1, before=first.before)).letters]) == (
        [newest.seq],
        [older.seq],
    )
    whole = await box.read(older.seq)
    assert (whole, len(whole.data)) == (older.model_copy(update={"data": whole.data}), older.size_bytes)

    assert await box.put_back(whole)
    with pytest.raises(NotFoundError, match="There is no dead letter"):
        await box.read(older.seq)
    again = await eventually(lambda: box.page(limit=10), lambda found: len(found.letters) == 2)
    assert [letter.seq for letter in again.letters if letter.seq in (newest.seq, older.seq)] == [newest.seq]
