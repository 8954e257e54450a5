"""Opening, ending and showing groups: whoever asks again gets the same, and nested teams share their parents' fate."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import suppress
from datetime import timedelta

import msgpack
import pytest

from ioa.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    IoaError,
    NoAgentError,
    NotFoundError,
    PayloadTooLargeError,
    SupersededError,
    UnavailableError,
)
from ioa.group.events import SubgroupOpened
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.requests import (
    AbandonGoal,
    Accepted,
    CancelGroup,
    InviteMember,
    LaunchGroup,
    ListMemberships,
    Sync,
)
from ioa.group.state import MAX_MEMBERS, ParentTask, PlannedTask
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, encode
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.files import Announced, PutFile
from ioa.protocol.goals import Goal, Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, SessionId, TaskId, UserId, comm_id_of_task
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Phase,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.open_groups import OpenGroup
from ioa.protocol.registry import Register
from ioa.protocol.results import encode_result
from ioa.protocol.team import team_of
from ioa.protocol.tickets import ticket_of
from tests.rig.memory_goals import MemoryTickets
from tests.unit.group.scenario import card, specs
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, TICKET, Plane, open_task, session

NESTED = comm_id_of_task(ROOM, TaskId("t1-1"))
LAUNCH = LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET)


async def test_a_launch_opens_the_group(plane: Plane) -> None:
    """The group has the goal's text and limits, the owner holds the floor, and every member is counted as one."""
    await plane.join(ADA, BOB)
    record = await plane.accept(max_turns=7)
    standing = await plane.setup.launch(LAUNCH)
    assert standing.charter is not None
    assert (standing.charter.goal, standing.state.limits.max_turns, standing.state.limits.deadline) == (
        record.goal.goal,
        7,
        record.deadline,
    )
    assert (standing.state.floor_holder, list(plane.memberships.agents())) == (ADA, [ADA, BOB])


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


async def test_repeated_launch_returns_the_existing_group(opened: Plane) -> None:
    """Also with other members, later, and when a member has gone offline since."""
    await opened.says(ADA, Discussion(content="You.", next_speaker=BOB))
    opened.clock.advance(timedelta(seconds=11))
    for members in ((BOB,), (EVE,)):
        again = await opened.setup.launch(LaunchGroup(owner=ADA, members=members, goal_id=GOAL, ticket=TICKET))
        head = (await opened.entries())[-1]
        assert (again.seq, again.state, len(await opened.entries())) == (head.seq, head.entry.state, 2)


async def test_repeated_launch_stores_missing_memberships(opened: Plane) -> None:
    """The process that appended the launch may have stopped before it stored the memberships."""
    for agent_id in (ADA, BOB):
        await opened.memberships.remove(agent_id, ROOM)
    await opened.setup.launch(LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET))
    assert [await opened.memberships.list_groups(agent_id) for agent_id in (ADA, BOB)] == [[ROOM], [ROOM]]


async def test_a_team_has_a_largest_size(plane: Plane) -> None:
    """A team beyond the limit is refused as the caller's fault, and nobody is put into it."""
    crowd = tuple(AgentId(f"agent-{number}") for number in range(64))
    await plane.join(ADA, *crowd)
    await plane.accept()
    with pytest.raises(InvalidInputError, match="64 members"):
        await plane.setup.launch(LaunchGroup(owner=ADA, members=crowd, goal_id=GOAL, ticket=TICKET))
    assert list(plane.memberships.agents()) == []


async def test_a_launch_sent_many_times_at_once_is_one(plane: Plane) -> None:
    """Launches that race open one group, and all are told the same."""
    await plane.join(ADA, BOB)
    await plane.accept()
    standings = await asyncio.gather(*(plane.setup.launch(LAUNCH) for _ in range(10)))
    assert ({standing.seq for standing in standings}, len(await plane.entries())) == ({1}, 1)


async def test_another_owner_cannot_launch_a_goal_that_is_led(opened: Plane) -> None:
    """Of two agents that lead one goal the second learns that it is taken, and is no member of anything it knows."""
    await opened.join(EVE)
    with pytest.raises(ConflictError):
        await opened.setup.launch(LaunchGroup(owner=EVE, members=(), goal_id=GOAL, ticket=TICKET))
    assert not (await opened.state()).is_member(EVE)


@pytest.mark.parametrize("how", ["left", "silent"])
async def test_launch_with_briefly_absent_member_can_be_retried(plane: Plane, how: str) -> None:
    """A member that restarts, or was heard within the last minute, makes the launch one to try again, and then it succeeds."""
    await plane.join(ADA, EVE)
    if how == "left":
        await plane.leases.put(EVE, None)
    else:
        plane.clock.advance(timedelta(seconds=60))
        await plane.join(ADA)
    await plane.accept()
    request = LaunchGroup(owner=ADA, members=(EVE,), goal_id=GOAL, ticket=TICKET)
    with pytest.raises(UnavailableError, match="eve did not renew its lease in time"):
        await plane.setup.launch(request)
    assert await plane.log.last(ROOM) is None
    await plane.join(EVE)
    assert (await plane.setup.launch(request)).state.is_member(EVE)


async def test_a_process_whose_id_was_taken_over_opens_and_ends_nothing(plane: Plane) -> None:
    """Its successor has the goal; a client that tells no session is not asked for one."""
    await plane.join(BOB)
    await plane.registry.register(Register(card=card("ada"), session=session("s2")))
    await plane.accept()
    with pytest.raises(SupersededError):
        await plane.setup.launch(LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET, session=SessionId("s1")))
    with pytest.raises(SupersededError):
        await plane.setup.abandon(
            AbandonGoal(goal_id=GOAL, ticket=TICKET, by=ADA, reason=Reason.FAILED, content="No.", session=SessionId("s1"))
        )
    launched = await plane.setup.launch(
        LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET, session=SessionId("s2"))
    )
    assert launched.state.owner == ADA


async def test_a_process_whose_id_was_taken_over_reads_and_stores_nothing(opened: Plane) -> None:
    """Nor does one that names no session, unless who holds the id is of a version that names none there."""
    announced = Announced(name="a.txt", media_type="text/plain", sha256=hashlib.sha256(b"a").hexdigest(), size_bytes=1)

    async def reads(told: str | None) -> bool:
        who = None if told is None else SessionId(told)
        with suppress(SupersededError):
            await opened.log_pages.sync(Sync(comm_id=ROOM, agent_id=ADA, session=who))
            return True
        with pytest.raises(SupersededError):
            await opened.files.put(PutFile(agent_id=ADA, comm_id=ROOM, place="a", file=announced, data=b"a", session=who))
        return False

    asked = (None, "s1", "s2")
    await opened.registry.register(Register(card=card("ada"), session=session("s2")))
    assert [await reads(one) for one in asked] == [True, False, True]
    await opened.registry.register(Register(card=card("ada"), session=session("s2"), proof="kept"))
    assert [await reads(one) for one in asked] == [False, False, True]


@pytest.mark.parametrize(("agent_id", "why"), [("nobody", "not registered"), ("eve", "not online")])
async def test_the_absent_cannot_join(plane: Plane, agent_id: str, why: str) -> None:
    """A member that is unknown or offline is named, and nothing is opened."""
    await plane.join(EVE)
    plane.clock.advance(timedelta(seconds=61))
    await plane.join(ADA)
    await plane.accept()
    with pytest.raises(NoAgentError, match=why):
        await plane.setup.launch(LaunchGroup(owner=ADA, members=(AgentId(agent_id),), goal_id=GOAL, ticket=TICKET))
    assert (plane.log.comm_ids(), list(plane.memberships.agents())) == ([], [])


async def test_an_ended_goal_cannot_be_launched(plane: Plane) -> None:
    """A goal that was cancelled before anybody took it stays cancelled."""
    await plane.join(ADA, BOB)
    await plane.accept()
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL, why="Enough."))
    with pytest.raises(ConflictError):
        await plane.setup.launch(LAUNCH)
    assert await plane.reason() is Reason.CANCELLED


async def test_only_its_user_cancels_a_goal() -> None:
    """Another user knows no goal of this id, and may not end the group; one of before users belongs to the user `local`."""
    plane, eve = Plane(), UserId("eve")
    await plane.open(ADA, BOB)
    with pytest.raises(NotFoundError, match="no goal eve/goal-1"):
        await plane.setup.cancel(eve, CancelGroup(goal_id=GOAL))
    with pytest.raises(ForbiddenError, match="a goal of local"):
        await plane.setup.cancel(eve, CancelGroup(comm_id=ROOM))
    assert await plane.reason() is None
    await plane.setup.cancel(LOCAL, CancelGroup(comm_id=ROOM))
    assert await plane.reason() is Reason.CANCELLED


async def test_a_group_is_cancelled_once(opened: Plane) -> None:
    """Cancelling ends the group with the reason given; cancelling again, or what has ended, changes nothing."""
    for why in ("Enough.", "Really."):
        await opened.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL, why=why))
    await opened.setup.cancel(LOCAL, CancelGroup(comm_id=ROOM))
    result = await opened.results.get(GoalName(LOCAL, GOAL))
    assert result is not None
    assert (result.reason, result.content, len(await opened.entries())) == (Reason.CANCELLED, "Enough.", 2)


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_long_reason_of_an_end_is_truncated(plane: Plane, is_cancelled: bool) -> None:
    """The log and the result contain only its beginning."""
    await plane.accept()
    if is_cancelled:
        await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL, why="\x01" * 60_000))
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
        await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL))
        await launch
        assert await plane.reason() is Reason.CANCELLED


async def _launched(plane: Plane) -> None:
    try:
        await plane.setup.launch(LAUNCH)
    except ConflictError:
        return


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (CancelGroup(), InvalidInputError),
        (CancelGroup(goal_id=GOAL, comm_id=ROOM), InvalidInputError),
        (CancelGroup(goal_id=GOAL), NotFoundError),
        (CancelGroup(comm_id=ROOM), NotFoundError),
    ],
)
async def test_cancellation_must_name_one_existing_goal_or_group(request_: CancelGroup, error: type[IoaError]) -> None:
    """Neither, both, and an unknown one are errors."""
    with pytest.raises(error):
        await Plane().setup.cancel(LOCAL, request_)


def test_no_other_message_is_taken_for_a_cancellation() -> None:
    """A goal that is delivered where cancellations are asked for names a goal too, and cancels nothing."""
    with pytest.raises(InvalidInputError, match="Extra inputs are not permitted"):
        decode(CancelGroup, encode(Goal(goal_id=GOAL, goal="Count to ten.")))


async def test_a_goal_without_a_team_is_abandoned() -> None:
    """The agent that finds nobody ends the goal with its reason, and with who decided that; saying so twice is one end."""
    plane, model = Plane(), DecidedBy(kind="model", name="large")
    await plane.accept()
    for content in ("Nobody paints.", "Nobody."):
        await plane.setup.abandon(
            AbandonGoal(goal_id=GOAL, ticket=TICKET, by=ADA, reason=Reason.NO_AGENT, content=content, decided_by=model)
        )
    result = await plane.results.get(GoalName(LOCAL, GOAL))
    assert result is not None
    assert (result.reason, result.content) == (Reason.NO_AGENT, "Nobody paints.")
    assert result.decisions == (Decisions(by=model, count=1),)


@pytest.mark.parametrize(
    "ticket", [None, ticket_of(MemoryTickets.key, GoalName(LOCAL, GoalId("other")))], ids=["none", "another's"]
)
async def test_goal_without_ticket_cannot_be_led_or_ended(plane: Plane, ticket: str | None) -> None:
    """Its id alone opens no group and ends nothing; with what it was given with its leader does both."""
    await plane.join(ADA, EVE)
    await plane.intake.accept(subjects.goal_of(LOCAL), json.dumps({"goal": "Count to ten.", "goal_id": GOAL}).encode(), "1")
    for refused in (
        plane.setup.launch(LaunchGroup(owner=EVE, members=(), goal_id=GOAL, ticket=ticket)),
        plane.setup.abandon(AbandonGoal(goal_id=GOAL, by=EVE, reason=Reason.FAILED, content="No.", ticket=ticket)),
    ):
        with pytest.raises(NotFoundError, match="There is no goal"):
            await refused
    assert (await plane.setup.launch(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET))).state.owner == ADA


def test_no_log_shows_a_ticket() -> None:
    """A request as it is printed says nothing that opens a group."""
    assert TICKET not in repr(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET))


async def test_a_goal_that_is_led_cannot_be_abandoned(opened: Plane) -> None:
    """An agent that gives up too late does not end another's group; an unknown goal is not found."""
    with pytest.raises(ConflictError):
        await opened.setup.abandon(AbandonGoal(goal_id=GOAL, ticket=TICKET, by=EVE, reason=Reason.NO_AGENT, content="Nobody."))
    with pytest.raises(NotFoundError):
        await opened.setup.abandon(AbandonGoal(goal_id=GoalId("other"), by=EVE, reason=Reason.NO_AGENT, content="Nobody."))
    assert (await opened.state()).phase is Phase.DISCUSSING


async def with_task() -> Plane:
    """A group in which bob has the task t1 and eve is there to help."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    return plane


async def test_a_task_is_served_by_a_nested_team() -> None:
    """The assignee's team is one deeper, has a share of the turns and the time left, and is known to the parent."""
    plane = await with_task()
    nested = await plane.nest("t1-1", BOB, EVE)
    parent = await plane.state()
    assert (nested.comm_id, nested.depth, nested.floor_holder) == (NESTED, 1, BOB)
    assert (nested.limits.max_turns, parent.limits.deadline - nested.limits.deadline) == (4, timedelta(minutes=6))
    assert open_task(parent, "t1-1").subgroup == NESTED


async def test_nested_teams_leave_their_group_turns_of_its_own(plane: Plane) -> None:
    """Who was given several tasks and opens a team for each has neither the group ended nor others' tasks cancelled."""
    await plane.open(ADA, BOB, EVE, max_turns=40)
    tasks = [f"t1-{number}" for number in range(6)]
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs((*(f"{task}:bob" for task in tasks), "t1-6:eve"))))
    for task in tasks[:3]:
        await plane.nest(task, BOB)
    with pytest.raises(ForbiddenError, match="a group keeps 4 of its turns"):
        await plane.nest(tasks[3], BOB)
    for agent, task in ((BOB, "t1-3"), (BOB, "t1-4"), (BOB, "t1-5"), (EVE, "t1-6")):
        await plane.says(agent, InformTaskProgress(task_id=TaskId(task), number=1))
    await plane.says(ADA, Discussion(content="And then?", next_speaker=EVE))
    state = await plane.state()
    assert (state.phase, open_task(state, "t1-6").assignee) == (Phase.DISCUSSING, EVE)


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


async def test_opening_a_nested_team_again_gives_the_same() -> None:
    """Launches of one nested team that are repeated or race open it once."""
    plane = await with_task()
    states = await asyncio.gather(*(plane.nest("t1-1", BOB, EVE) for _ in range(6)))
    assert (states, len(await plane.entries(NESTED))) == ([await plane.state(NESTED)] * 6, 1)


async def test_who_hears_nothing_of_a_task_learns_of_no_team_that_serves_it() -> None:
    """Whatever else is wrong with a launch, a member is told first that there is no such task, as where there is none."""
    zoe, plane = AgentId("zoe"), Plane()
    roles = {"chief": BOB, "clerk": zoe, "crowd": EVE}
    plan = {"name": "plan", "roles": ["chief"], "heard_by": ["chief", "clerk"], "max": 9, "tasks": True, "then": "talk"}
    team = team_of({"team": "panel", "roles": roles, "nodes": [plan, {"name": "talk", "roles": ["crowd"], "max": 9}]})
    await plane.join(ADA, BOB, EVE, zoe)
    await plane.accept(max_turns=60, team=team)
    launch = LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET, policy=team.policy.digest)
    await plane.setup.launch(launch)
    given = [TaskSpec(task_id=TaskId(f"t1-{name}"), assignee=zoe, task_desc=f"Write {name}.") for name in "ab"]
    await plane.says(BOB, AsyncTaskAssignment(tasks=tuple(given)))

    async def told(owner: AgentId, task_id: str) -> str:
        parent = ParentTask(comm_id=ROOM, task_id=TaskId(task_id))
        asked = LaunchGroup(owner=owner, members=(AgentId("nobody"),), goal_id=GOAL, goal="Count.", parent=parent)
        with pytest.raises(ForbiddenError) as refused:
            await plane.setup.launch(asked)
        return str(refused.value).replace(task_id, "it")

    parent = ParentTask(comm_id=ROOM, task_id=given[0].task_id)
    await plane.setup.launch(LaunchGroup(owner=zoe, members=(EVE,), goal_id=GOAL, goal="Count.", parent=parent))
    assert {await told(EVE, task_id) for task_id in ("t1-a", "t1-b", "t1-none")} == {"The group has no task it."}
    assert {await told(BOB, task_id) for task_id in ("t1-a", "t1-b")} == {"Task it belongs to zoe."}


async def test_a_nested_team_is_not_launched_for_a_goal_that_ends_meanwhile() -> None:
    """However a cancel of the goal and the launch of a nested team cross, no team goes on working for nobody."""
    for turns in range(12):
        plane = await with_task()
        launch = asyncio.create_task(_nested(plane))
        for _ in range(turns):
            await asyncio.sleep(0)
        await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL))
        await launch
        head = await plane.log.last(NESTED)
        assert head is None or head.entry.state.phase.is_terminal, turns


async def _nested(plane: Plane) -> None:
    try:
        await plane.nest("t1-1", BOB, EVE)
    except (ConflictError, ForbiddenError):
        return


async def test_a_nested_team_whose_launch_is_on_its_way_is_stopped() -> None:
    """A nested team that the parent knows of, but nobody has launched yet, can be launched no more once its task is closed."""
    plane = await with_task()
    opened = SubgroupOpened(at=plane.clock.now(), task_id=TaskId("t1-1"), by=BOB, subgroup=NESTED)
    await plane.ledgers[0].record(ROOM, opened)
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Ten."))
    late = plane.begin(NESTED, BOB, EVE)
    with pytest.raises(IllegalEventError) as refused:
        await plane.ledgers[1].record(NESTED, late)
    assert (refused.value.code, (await plane.state(NESTED)).phase) == (RejectionCode.GROUP_ENDED, Phase.CANCELLED)


async def test_only_the_assignee_may_nest() -> None:
    """A task that is another's, unknown or closed gets no team, and neither does another goal."""
    plane = await with_task()
    await plane.join(AgentId("mallory"))
    with pytest.raises(NotFoundError, match=f"There is no group {ROOM}"):
        await plane.nest("t1-1", AgentId("mallory"), BOB)
    with pytest.raises(ForbiddenError):
        await plane.nest("t1-1", EVE, BOB)
    with pytest.raises(ForbiddenError):
        await plane.nest("t9", BOB, EVE)
    parent = ParentTask(comm_id=ROOM, task_id=TaskId("t1-1"))
    with pytest.raises(InvalidInputError):
        await plane.setup.launch(LaunchGroup(owner=BOB, members=(EVE,), goal_id=GoalId("other"), parent=parent, goal="x"))
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Ten."))
    with pytest.raises(ForbiddenError):
        await plane.nest("t1-1", BOB, EVE)
    assert list(plane.log.comm_ids()) == [ROOM]


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


async def test_first_page_of_log_is_short(opened: Plane) -> None:
    """An agent that starts without its memory asks for the beginnings of all its logs, of which one user's may have gigabytes."""
    for speaker, other in ((ADA, BOB), (BOB, ADA), (ADA, BOB), (BOB, ADA)):
        await opened.says(speaker, Discussion(content=f"{speaker} says: {'x' * 60_000}", next_speaker=other))
    pages, after = list[int](), 0
    while True:
        page = await opened.log_pages.sync(Sync(comm_id=ROOM, agent_id=BOB, after=after))
        pages.append(len(page.entries))
        after = page.entries[-1].seq
        if page.complete:
            break
    assert pages == [3, 2]


async def test_only_members_are_told() -> None:
    """A stranger learns nothing of a group, not even that there is one: it is told what it is told of a group that is not there."""
    plane, told = Plane(), list[str]()
    await plane.open(ADA, BOB)
    for comm_id in (ROOM, CommId("nowhere")):
        with pytest.raises(NotFoundError) as refusal:
            await plane.log_pages.sync(Sync(comm_id=comm_id, agent_id=EVE))
        told.append(str(refusal.value).replace(comm_id, "it"))
    assert told[0] == told[1]


async def test_a_membership_is_over_when_its_agent_knows_the_end(opened: Plane) -> None:
    """Asking from the end of a group that has ended says so; asking from before, or while it is open, does not."""
    seen = [list(opened.memberships.agents())]
    for cancelled in (False, True):
        if cancelled:
            await opened.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL))
        head = (await opened.entries())[-1].seq
        for after in (0, head + 5, head):
            answer = await opened.log_pages.sync(Sync(comm_id=ROOM, agent_id=BOB, after=after))
            assert answer.head == head
            seen.append(list(opened.memberships.agents()))
    assert seen == [[ADA, BOB]] * 6 + [[ADA]]


async def test_cursor_of_lost_log_is_detected(plane: Plane) -> None:
    """Whoever remembers what a restored log does not hold is not shown what follows as if it followed that."""
    other = CommId("other")
    await plane.open(ADA, BOB)
    await plane.ledgers[0].record(other, plane.begin(other, ADA, BOB))
    await plane.says(ADA, Discussion(content="You.", next_speaker=BOB))
    foreign = (await plane.entries(other))[-1].seq
    with pytest.raises(ConflictError, match=f"{foreign} is no entry"):
        await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=BOB, after=foreign))


async def test_a_group_without_a_log_does_not_exist_and_ends_a_membership(plane: Plane) -> None:
    """The log was lost, or its goal waits: the error is the same, for members too."""
    await plane.accept()
    await plane.memberships.add((ADA,), ROOM)
    errors = set[str]()
    for agent_id in (ADA, EVE):
        with pytest.raises(NotFoundError) as missing:
            await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=agent_id))
        errors.add(f"{missing.value.message} {missing.value.hint}")
    assert (len(errors), list(plane.memberships.agents())) == (1, [])


async def test_agent_outside_launched_team_loses_membership(opened: Plane) -> None:
    """A launch that lost a race against another leaves its members on record; when they ask, that is cleared up."""
    await opened.memberships.add((EVE,), ROOM)
    with pytest.raises(NotFoundError):
        await opened.log_pages.sync(Sync(comm_id=ROOM, agent_id=EVE))
    assert list(opened.memberships.agents()) == [ADA, BOB]


@pytest.mark.parametrize("turns", [{"turns": "together"}, {"max": 3}], ids=["scoped", "open"])
async def test_removed_member_reads_log_up_to_its_removal(plane: Plane, turns: dict[str, object]) -> None:
    """Its membership is over when it knows; the others go on."""
    await plane.join(ADA, BOB, EVE)
    vote = {"name": "vote", "roles": ["a", "b", "c"], **turns, "form": {"out": "member"},
            "exits": [{"to": "talk", "remove": {"field": "out"}}]}  # fmt: skip
    three = team_of(
        {
            "team": "t",
            "roles": {"a": ADA, "b": BOB, "c": EVE},
            "nodes": [vote, {"name": "talk", "roles": ["a", "b", "c"], "max": 4}],
        }
    )
    await plane.accept(team=three)
    await plane.setup.launch(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET, policy=three.policy.digest))
    for voter in (ADA, BOB, EVE):
        await plane.says(voter, Discussion(content=f"{voter} votes.", fields={"out": EVE}))
    removed = (await plane.entries())[-1].seq
    knows = [await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=EVE))]
    await plane.says(ADA, Discussion(content="Without Eve."))
    knows += [await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=EVE, after=after)) for after in (0, removed)]
    assert [[one.seq for one in page.entries][-1:] for page in knows] == [[removed], [removed], []]
    assert all(page.complete for page in knows)
    assert list(plane.memberships.agents()) == [ADA, BOB]
    behind = (await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=BOB, after=removed))).entries
    assert not behind[0].entry.state.phase.is_terminal


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (timedelta(days=30), timedelta(hours=1)),
        (timedelta(minutes=5), timedelta(minutes=5)),
        (timedelta(milliseconds=450), timedelta(seconds=30)),
    ],
)
async def test_patience_of_a_card_is_clamped(plane: Plane, said: timedelta, kept: timedelta) -> None:
    """The bounds apply to the members of the team and to invited members."""
    await plane.join(ADA)
    for agent_id in (BOB, EVE):
        await plane.registry.register(Register(card=card(agent_id).model_copy(update={"patience": said})))
    await plane.accept()
    await plane.setup.launch(LAUNCH)
    invited = await plane.setup.invite(InviteMember(comm_id=ROOM, by=ADA, turn=1, agent_id=EVE))
    assert isinstance(invited.answer, Accepted)
    assert [member.patience for member in (await plane.state()).members] == [None, kept, kept]


@pytest.mark.parametrize("request_", [ListMemberships, Sync])
def test_sequence_beyond_the_stream_limit_is_invalid_input(request_: type[ListMemberships | Sync]) -> None:
    """The request is rejected when it is decoded."""
    asked = {"agent_id": ADA, "after": 2**64 - 1} | ({"comm_id": ROOM} if request_ is Sync else {})
    with pytest.raises(InvalidInputError, match="after"):
        decode(request_, msgpack.packb(asked))
