"""What taking over promises: whatever was open when the index did not exist is in it, and nothing else."""

from __future__ import annotations

from datetime import timedelta

from nats.aio.client import Client

from ioa.adapters.nats.delivery import NatsResults
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.open_groups import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.takeover import take_over
from ioa.adapters.nats.topology import MEMBERS
from ioa.group.events import Entry, Event, encode_entry
from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.ports.open_groups import OpenGroup
from ioa.protocol import subjects
from ioa.protocol.goals import Goal, GoalRecord, GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, comm_id_of_goal
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from tests.contract.agent_store.stories import ENDED
from tests.unit.group.scenario import COMM, GOAL, launched

ADA, BOB = AgentId("ada"), AgentId("bob")


async def _accept(client: Client, goal_id: str, *, ago: timedelta = timedelta(0)) -> CommId:
    """Put a goal on record, as it was some time ago."""
    goal = Goal(goal_id=GoalId(goal_id), goal="Count.", timeout=timedelta(hours=1))
    await NatsGoalRecords(client.jetstream()).create(GoalRecord(goal=goal, accepted_at=NEW_YEAR - ago))
    return comm_id_of_goal(goal.goal_id)


async def _end(client: Client, goal_id: str) -> None:
    """Publish a goal's result."""
    result = GoalResult(
        goal_id=GoalId(goal_id),
        reason=Reason.CONCLUDED,
        content="Ten.",
        comm_id=comm_id_of_goal(GoalId(goal_id)),
        turns=1,
        finished_at=NEW_YEAR,
    )
    await NatsResults(client.jetstream()).publish(result)


async def _write(client: Client, events: tuple[Event, ...]) -> GroupState:
    """Write a group's log."""
    state: GroupState | None = None
    seq = 0
    for event in events:
        state = step(state, event).state
        entry = encode_entry(Entry(event=event, state=state, audience=()))
        seq = await NatsGroupLog(client).append(COMM, entry, expected_seq=seq)
    assert state is not None
    return state


async def _open(client: Client) -> list[CommId]:
    return sorted((await NatsOpenGroups(client).page(after=0, limit=100)).comm_ids)


async def test_goals_without_a_result_are_open(nats_client: Client) -> None:
    """Those that wait or work, and not those that have a result or must have had one that was dropped since."""
    waiting = await _accept(nats_client, "waiting")
    overdue = await _accept(nats_client, "overdue", ago=timedelta(days=3))
    await _accept(nats_client, "long-gone", ago=timedelta(days=40))
    await _accept(nats_client, "done")
    await _end(nats_client, "done")
    await take_over(nats_client, ManualClock())
    noted = await NatsOpenGroups(nats_client).find(waiting)
    assert (await _open(nats_client), noted) == (
        sorted([waiting, overdue]),
        OpenGroup(goal_id=GoalId("waiting"), deadline=NEW_YEAR + timedelta(hours=1)),
    )


async def test_groups_that_somebody_is_in_are_open_until_they_end(nats_client: Client) -> None:
    """A nested team's group is known by its members alone; one that has no log, or has ended, is not open."""
    memberships = NatsMemberships(nats_client)
    state = await _write(nats_client, launched("ada", "bob").log)
    await memberships.add((ADA, BOB), COMM)
    await memberships.add((ADA,), CommId("never-launched"))
    await take_over(nats_client, ManualClock())
    noted = await NatsOpenGroups(nats_client).find(COMM)
    assert (await _open(nats_client), noted) == ([COMM], OpenGroup(goal_id=GOAL, deadline=state.limits.deadline))


async def test_an_ended_group_whose_member_is_away_is_not_open(nats_client: Client) -> None:
    """The membership stays, so that its agent learns the end."""
    await _write(nats_client, ENDED.log)
    await NatsMemberships(nats_client).add((ADA,), COMM)
    await take_over(nats_client, ManualClock())
    assert (await _open(nats_client), list(await NatsMemberships(nats_client).of(ADA))) == ([], [COMM])


async def test_a_group_that_cannot_be_read_is_passed_over(nats_client: Client) -> None:
    """Garbage in a log or a record holds up nothing."""
    await nats_client.jetstream().publish(subjects.log(CommId("garbage")), b"\xc1")
    await NatsMemberships(nats_client).add((ADA,), CommId("garbage"))
    await nats_client.jetstream().publish("$KV.IOA_GOAL_RECORDS.gbad", b"\xc1")
    waiting = await _accept(nats_client, "waiting")
    await take_over(nats_client, ManualClock())
    assert await _open(nats_client) == [waiting]


async def test_markers_are_cleaned_away(nats_client: Client) -> None:
    """What an older version left for each membership that was removed goes."""
    memberships, bucket = NatsMemberships(nats_client), await nats_client.jetstream().key_value(MEMBERS)
    for number in range(20):
        await memberships.add((ADA,), CommId(f"g{number}"))
        await bucket.purge(f"ada.g{number}")
    await memberships.add((ADA,), COMM)
    await take_over(nats_client, ManualClock())
    info = await nats_client.jetstream().stream_info(f"KV_{MEMBERS}")
    assert (info.state.messages, list(await memberships.of(ADA))) == (1, [COMM])


async def test_it_is_done_once(nats_client: Client) -> None:
    """What ended after it is not noted again by the next start."""
    waiting = await _accept(nats_client, "waiting")
    await take_over(nats_client, ManualClock())
    await NatsOpenGroups(nats_client).remove(waiting)
    await take_over(nats_client, ManualClock())
    assert await _open(nats_client) == []
