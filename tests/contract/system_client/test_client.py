"""What programs rely on that use a system: three lines launch a goal, and whoever was interrupted goes on where he was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import ioa
from ioa.client.client import END, Group
from ioa.client.history import conversation
from ioa.concurrency import beside
from ioa.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId, TaskId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.messages import Discussion, Phase
from ioa.protocol.setup.charter import ParentTask
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, ROOM, Members, order
from tests.rig.deadline import eventually


async def test_a_goal_is_run(plane: Plane, members: Members, tmp_path: Path) -> None:
    """From its words and its files to its result, by one call; its id names it everywhere."""
    client, file = plane.client, tmp_path / "numbers.csv"
    file.write_text("1,2,3")

    async def work() -> None:
        opened = await members.launch()
        assert opened.charter is not None
        assert await client.fetch(opened.charter.inputs[0]) == b"1,2,3"
        await members.conclude(ADA, "Ten.")

    async with beside(work()):
        result = await client.run(order(), [file])

    assert (result.reason, result.content, result.succeeded) == (Reason.CONCLUDED, "Ten.", True)
    assert [await client.result(GOAL), (await client.goal(GOAL)).result] == [result, result]
    assert [row.record.goal.goal_id for row in (await client.goals()).goals] == [GOAL]


async def test_a_launch_tells_what_was_accepted(plane: Plane, members: Members, tmp_path: Path) -> None:
    """The same goal launched again is the same; another one under its id is a conflict, also if only a file is another."""
    client, file = plane.client, tmp_path / "numbers.csv"
    file.write_text("1,2,3")
    first = await client.launch(order(), [str(file)])
    assert first.record is not None
    assert (first.goal_id, first.comm_id, first.record.goal.goal) == (GOAL, ROOM, "Count to ten.")
    assert await client.launch(order(), [file]) == first
    for other, with_file in ((order(text="Count to nine."), True), (order(), False)):
        with pytest.raises(ConflictError, match="another goal goal-1"):
            await client.launch(other, [file] if with_file else [])
    file.write_text("1,2,3,4")
    with pytest.raises(ConflictError):
        await client.launch(order(), [file])
    unnamed = await client.launch("Count to eight.", accepted_within=timedelta(0))
    assert (unnamed.record, unnamed.name.user) == (None, await plane.client.user())


async def test_a_conversation_is_read_page_by_page(plane: Plane, members: Members) -> None:
    """Forwards or backwards, with its nested teams, and their states then; of a group as of a goal."""
    client = plane.client
    assert [await client.entries(GOAL), await client.entries(GOAL, before=END), await client.state(GOAL)] == [[], [], {}]
    await client.launch(order())
    await members.launch()
    for speaker, other in ((ADA, BOB), (BOB, ADA)):
        await members.say(speaker, Discussion(content="1, 2.", next_speaker=other))
    task_id = TaskId("t3-count")
    await members.assign(task_id)
    await members.launch(parent=ParentTask(comm_id=ROOM, task_id=task_id))
    nested = comm_id_of_task(ROOM, task_id)
    await members.say(BOB, Discussion(content="You count.", next_speaker=ADA), nested)
    amid = await client.state(GOAL)
    assert [one.state.comm_id for one in (await plane.client.groups()).groups] == [ROOM, nested]
    await members.conclude(ADA, "Five.", nested)
    await eventually(lambda: plane.client.group(ROOM), lambda found: not found.state.open_tasks)
    await members.conclude(ADA, "Ten.")

    entries = await conversation(plane.client, ROOM)
    assert [one.seq for one in entries] == sorted(one.seq for one in entries)
    for target in (GOAL, Group(ROOM)):
        assert await client.entries(target, limit=len(entries) + 1) == entries
        assert await client.entries(target, before=END, limit=3) == entries[-3:]
    of_nested = [one for one in entries if one.entry.state.comm_id == nested]
    place = entries.index(of_nested[1])
    assert (amid[nested], await client.state(GOAL, at=of_nested[1].seq)) == (of_nested[1].entry.state, amid)
    assert await client.entries(GOAL, after=of_nested[1].seq, limit=2) == entries[place + 1 : place + 3]
    assert (await client.entries(Group(nested)), await client.state(Group(nested))) == (
        of_nested,
        {nested: of_nested[-1].entry.state},
    )
    assert await client.entries(GOAL, after=entries[4].seq, before=entries[7].seq) == entries[5:7]
    with pytest.raises(InvalidInputError, match="A page of 0 entries"):
        await client.entries(GOAL, limit=0)


async def test_goals_are_found_by_their_labels_and_where_they_stand(plane: Plane, members: Members) -> None:
    """Those that bear all that is asked for, newest first, page by page; a group bears those of its goal."""
    client = plane.client
    for number in range(6):
        labels = {"team": "x" if number % 2 else "y", "night": ""}
        launched = await client.launch(order(f"goal-{number}", labels=labels), accepted_within=timedelta(seconds=20))
        assert launched.record is not None and launched.record.goal.labels == labels
    await members.launch(GoalId("goal-1"))
    await client.cancel("goal-3")
    await client.wait_for_result("goal-3")
    with pytest.raises(ConflictError):
        await client.launch(order("goal-1", labels={"team": "z"}))

    async def found(limit: int = 50, **wanted: Any) -> list[list[str]]:
        pages, before = list[list[str]](), None
        while True:
            page = await client.goals(limit=limit, before=before, **wanted)
            pages.append([row.record.goal.goal_id for row in page.goals])
            if (before := page.before) is None:
                return pages

    assert await found(labels={"team": "x", "night": ""}) == [["goal-5", "goal-3", "goal-1"]]
    assert await found(limit=2, labels={"team": "x"}) == [["goal-5", "goal-3"], ["goal-1"]]
    assert await found(limit=1, labels={"team": "y"}) == [["goal-4"], ["goal-2"], ["goal-0"]]
    assert await found(labels={"team": "z"}) == [[]]
    assert await found(phase=Phase.CANCELLED) == [["goal-3"]]
    assert await found(phase=Phase.DISCUSSING, labels={"team": "x"}) == [["goal-1"]]
    assert await found(phase="waiting", labels={"team": "x"}) == [["goal-5"]]
    group = await plane.client.group(comm_id_of_goal(GoalId("goal-1")))
    assert group.charter is not None and group.charter.labels == {"team": "x", "night": ""}
    whole, bare = [await plane.client.goal(GoalId("goal-1"), with_team=of_team) for of_team in (True, False)]
    assert whole.standing == group
    assert bare.standing == group.model_copy(update={"charter": None})


async def test_files_go_and_come_piece_by_piece(plane: Plane, members: Members) -> None:
    """As bytes or as they come; a part of a file is what stands there, and a whole one is held to its digest."""
    client, data = plane.client, bytes(range(251)) * 5_000

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 100_000):
            yield data[at : at + 100_000]

    file = await client.upload("numbers.csv", parts())
    assert (file.name, file.media_type, file.size_bytes) == ("numbers.csv", "text/csv", len(data))
    assert b"".join([piece async for piece in client.stream(file)]) == await client.fetch(file) == data
    for start, stop in ((0, 10), (700_000, 700_010), (524_287, 1_100_000), (len(data) - 1, None), (5, 5), (9 * len(data), None)):
        assert await client.fetch(file, start, stop) == data[start:stop]
    assert await client.fetch(await client.upload("empty", b"")) == b""

    for_goal = await client.upload("a.txt", b"One.", goal_id=GOAL)
    assert await client.upload("a.txt", b"One.", goal_id=GOAL) == for_goal
    with pytest.raises(ConflictError):
        await client.upload("a.txt", b"Two.", goal_id=GOAL)
    with pytest.raises(InvalidInputError):
        await client.upload("../a.txt", b"")
    with pytest.raises(InvalidInputError, match="has changed"):
        await client.fetch(file.model_copy(update={"size_bytes": len(data) - 1}))
    launched = await client.launch(order(inputs=(file,)), accepted_within=timedelta(seconds=20))
    assert launched.record is not None and launched.record.goal.inputs == (file,)


async def test_what_cannot_be_is_refused(plane: Plane) -> None:
    """A goal without a word, a file that is not there, an id that cannot be one: with a reason, and nothing is launched."""
    client = plane.client
    for wrong in (" ", "x" * 100_000):
        with pytest.raises(InvalidInputError, match="The goal cannot be read: goal:"):
            await client.launch(wrong)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        await client.launch("Count.", [Path("nowhere.csv")])
    with pytest.raises(InvalidInputError, match=r"Two inputs have the same name, a\.txt"):
        await client.launch(order(agent=None, inputs=(InlineInput(name="a.txt", text="1"), InlineInput(name="a.txt", text="2"))))
    for ask in (client.cancel, client.goal, client.result):
        with pytest.raises(InvalidInputError, match="is not a valid id"):
            await ask("of whom > ?")
    with pytest.raises(InvalidInputError):
        await client.search("")
    for ask in (client.goal, client.cancel):
        with pytest.raises(NotFoundError):
            await ask("nothing")
    with pytest.raises(NotFoundError, match="There is no group"):
        await client.group(ROOM)
    assert await client.group_entries(ROOM) == []
    assert ((await client.goals()).goals, await client.result("nothing"), await client.agents()) == ((), None, [])


async def test_a_goal_that_is_not_accepted_says_why(plane: Plane) -> None:
    """Who launches a goal that names a team which does not exist is told so, at once; who runs it has that as its result."""
    client, wrong = plane.client, order(agent=None, team="nobody")
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="No team is called nobody"):
            await client.launch(wrong)
    ended = await client.run(wrong)
    assert (ended.succeeded, "No team is called nobody" in ended.content) == (False, True)


async def test_a_program_connects(plane: Plane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """To the server that it names, or its environment does; with a sentence where nothing answers."""
    monkeypatch.chdir(tmp_path)
    if plane.url is not None:
        async with ioa.connect(plane.url) as client:
            launched = await client.launch(GoalOrder(goal="Count."))
            assert launched.record == (await plane.client.goal(launched.name)).record
        monkeypatch.setenv("IOA_NATS_URL", plane.url)
        async with ioa.connect() as client:
            assert await client.agents() == []
    monkeypatch.setenv("IOA_NATS_URL", "nats://127.0.0.1:9")
    with pytest.raises(UnavailableError, match=r"nothing answers at nats://127\.0\.0\.1:9"):
        async with ioa.connect():
            pass
