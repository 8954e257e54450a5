"""Opening, ending and showing groups: whoever asks again gets the same, and nested teams share their parents' fate."""

from __future__ import annotations

import asyncio

import msgpack
import pytest

from ioa.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    PayloadTooLargeError,
)
from ioa.group.requests import (
    AbandonGoal,
    CancelGoal,
    LaunchGroup,
    ListMemberships,
    Sync,
)
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, encode
from ioa.protocol.goals import Goal, Reason, encode_result
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalName, TaskId, UserId, comm_id_of_task
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Phase,
    SyncTaskAssignment,
)
from ioa.protocol.registry import Register
from ioa.protocol.setup.charter import MAX_MEMBERS, ParentTask, PlannedTask
from ioa.protocol.setup.open_groups import OpenGroup
from ioa.protocol.teams.team_file import team_of
from tests.unit.group.scenario import card, specs
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, TICKET, Plane

NESTED = comm_id_of_task(ROOM, TaskId("t1-1"))
LAUNCH = LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET)


async def test_the_largest_team_of_the_largest_cards_fits(plane: Plane) -> None:
    """Sixty-four members whose cards are as large as cards may be open a group, whose log its members can be sent."""
    members = [AgentId(f"agent-{number:02}") for number in range(MAX_MEMBERS)]
    for agent_id in members:
        large = card(agent_id).model_copy(update={"description": "d" * 4_000, "tags": ("é" * 64,) * 50})
        await plane.registry.register(Register(card=large))
    await plane.accept()
    standing = await plane.setup.launch(LaunchGroup(owner=members[0], members=tuple(members[1:]), goal_id=GOAL, ticket=TICKET))
    page = await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=members[0]))
    assert standing.charter is not None
    assert (len(standing.charter.team_members), len(encode(page)) <= MAX_PAYLOAD_BYTES) == (MAX_MEMBERS, True)


_LARGE = {"plan": (20_000, "Plan it.", 2), "goal": (10, "\U0001f600" * 220_000, 1)}


@pytest.mark.parametrize(("described", "goal", "kept"), _LARGE.values(), ids=_LARGE)
async def test_group_of_any_size_is_returned(opened: Plane, described: int, goal: str, kept: int) -> None:
    """Who leads it may launch it as large as an entry may be, and what is said comes to that: its user looks at it all the same.

    So does the leader that launches it again, since it was not answered.
    """
    await opened.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    plan = tuple(PlannedTask(task_id=TaskId(f"t{number}"), assignee=BOB, task_desc="d" * described) for number in range(40))
    parent = ParentTask(comm_id=ROOM, task_id=TaskId("t1-1"))
    nested = LaunchGroup(owner=BOB, members=(ADA,), goal_id=GOAL, goal=goal, parent=parent, plan=plan)
    launched = await opened.setup.launch(nested)
    assert launched.charter is not None
    await opened.says(BOB, ConcludeGroupDiscussion(), comm_id=NESTED)
    await opened.says(BOB, Conclusion(content="x" * 200_000), comm_id=NESTED)
    standing = await opened.setup.launch(nested)
    assert standing.charter is not None
    assert len(encode(standing)) <= MAX_PAYLOAD_BYTES
    assert (standing.state.phase, standing.charter.labels) == (Phase.CONCLUDED, launched.charter.labels)
    assert (len(standing.charter.team_members), standing.charter.plan) == (kept, ())


async def test_a_launch_sent_many_times_at_once_is_one(plane: Plane) -> None:
    """Launches that race open one group, and all are told the same."""
    await plane.join(ADA, BOB)
    await plane.accept()
    standings = await asyncio.gather(*(plane.setup.launch(LAUNCH) for _ in range(10)))
    assert ({standing.seq for standing in standings}, len(await plane.entries())) == ({1}, 1)


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_long_reason_of_an_end_is_truncated(plane: Plane, is_cancelled: bool) -> None:
    """The log and the result contain only its beginning."""
    await plane.accept()
    if is_cancelled:
        await plane.setup.cancel(LOCAL, CancelGoal(goal_id=GOAL, why="é" * 60_000))
    else:
        await plane.setup.abandon(AbandonGoal(goal_id=GOAL, ticket=TICKET, by=ADA, reason=Reason.FAILED, content="é" * 250_000))
    result = await plane.results.get(GoalName(LOCAL, GOAL))
    assert result is not None and 5_000 < len(encode_result(result)) < 9_000


async def test_launch_after_abandonment_stores_no_membership(plane: Plane) -> None:
    """Memberships are stored after the launch is recorded."""
    await plane.join(ADA)
    team = team_of(
        {"team": "t", "roles": {"a": ADA, "b": {"human": "nobody"}}, "nodes": [{"name": "w", "roles": ["a"], "then": "end"}]}
    )
    await plane.accept(team=team)
    add = plane.open_groups.add

    async def abandoned_meanwhile(user: UserId, comm_id: CommId, group: OpenGroup) -> bool:
        is_new = await add(user, comm_id, group)
        await plane.setup.abandon(AbandonGoal(goal_id=GOAL, ticket=TICKET, by=ADA, reason=Reason.FAILED, content="No."))
        return is_new

    plane.open_groups.add = abandoned_meanwhile  # type: ignore[method-assign]
    with pytest.raises(ConflictError):
        await plane.setup.launch(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET, policy=team.policy.digest))
    assert plane.memberships.agents() == []


async def test_a_cancel_that_meets_a_launch_cancels_it() -> None:
    """Whether a cancel comes before, during or after a launch, the goal ends cancelled."""
    for turns in range(6):
        plane = Plane()
        await plane.join(ADA, BOB)
        await plane.accept()
        launch = asyncio.create_task(_launched(plane))
        for _ in range(turns):
            await asyncio.sleep(0)
        await plane.setup.cancel(LOCAL, CancelGoal(goal_id=GOAL))
        await launch
        assert await plane.reason() is Reason.CANCELLED


async def _launched(plane: Plane) -> None:
    try:
        await plane.setup.launch(LAUNCH)
    except ConflictError:
        return


def test_no_other_message_is_taken_for_a_cancellation() -> None:
    """A goal that is delivered where cancellations are asked for names a goal too, and cancels nothing."""
    with pytest.raises(InvalidInputError, match="Extra inputs are not permitted"):
        decode(CancelGoal, encode(Goal(goal_id=GOAL, goal="Count to ten.")))


def test_no_log_shows_a_ticket() -> None:
    """A request as it is printed says nothing that opens a group."""
    assert TICKET not in repr(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET))


async def with_task() -> Plane:
    """A group in which bob has the task t1 and eve is there to help."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    return plane


async def test_a_nested_team_that_cannot_be_opened_is_lent_nothing() -> None:
    """What has no room is refused before the parent lends it turns, which nobody would give back."""
    plane = await with_task()
    plan = tuple(PlannedTask(task_id=TaskId(f"t{number}"), assignee=EVE, task_desc="d" * 20_000) for number in range(48))
    request = LaunchGroup(
        owner=BOB, members=(EVE,), goal_id=GOAL, goal="x", parent=ParentTask(comm_id=ROOM, task_id=TaskId("t1-1")), plan=plan
    )
    with pytest.raises(PayloadTooLargeError):
        await plane.setup.launch(request)
    assert ((await plane.state()).loans, await plane.entries(NESTED)) == ((), [])


async def test_a_nested_team_is_not_launched_for_a_goal_that_ends_meanwhile() -> None:
    """However a cancel of the goal and the launch of a nested team cross, no team goes on working for nobody."""
    for turns in range(12):
        plane = await with_task()
        launch = asyncio.create_task(_nested(plane))
        for _ in range(turns):
            await asyncio.sleep(0)
        await plane.setup.cancel(LOCAL, CancelGoal(goal_id=GOAL))
        await launch
        head = await plane.log.last(NESTED)
        assert head is None or head.entry.state.phase.is_terminal, turns


async def _nested(plane: Plane) -> None:
    try:
        await plane.nest("t1-1", BOB, EVE)
    except (ConflictError, ForbiddenError):
        return


async def test_member_reads_missed_entries_by_pages(plane: Plane) -> None:
    """However long and heavy the log is, pages that fit into messages join to the whole of it."""
    await plane.open(ADA, BOB, max_turns=300)
    for number, (speaker, other) in enumerate(((ADA, BOB), (BOB, ADA)) * 70):
        await plane.says(speaker, Discussion(content=f"{number} " + "x" * 15_000, next_speaker=other))
    seen, pages = [0], 0
    while True:
        page = await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=BOB, after=seen[-1]))
        assert [entry.previous_seq for entry in page.entries] == [*seen[-1:], *(entry.seq for entry in page.entries[:-1])]
        seen += [entry.seq for entry in page.entries]
        pages += 1
        if page.complete:
            break
    assert seen[1:] == [stored.seq for stored in await plane.entries()]
    assert pages > 2


@pytest.mark.parametrize("request_", [ListMemberships, Sync])
def test_sequence_beyond_the_stream_limit_is_invalid_input(request_: type[ListMemberships | Sync]) -> None:
    """The request is rejected when it is decoded."""
    asked = {"agent_id": ADA, "after": 2**64 - 1} | ({"comm_id": ROOM} if request_ is Sync else {})
    with pytest.raises(InvalidInputError, match="after"):
        decode(request_, msgpack.packb(asked))
