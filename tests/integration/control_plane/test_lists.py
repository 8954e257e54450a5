"""Lists of goals and groups on a real server: whole, in order, page by page, whatever lies behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.delivery import NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats.stores.goal_records import NatsGoalRecords
from ioa.adapters.nats.stores.open_groups import NatsOpenGroups
from ioa.adapters.nats.streams import goal_listing
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.retention import NatsEndedGoals, NatsGoalRemoval
from ioa.adapters.nats.streams.stream_reader import StreamMessage, latest_messages
from ioa.adapters.nats.streams.topology import OPEN, Topology
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.events import CancelRequested, Event, GroupLaunched, Said, SubgroupOpened
from ioa.group.goal_lists import GoalFilter
from ioa.group.state import ParentTask
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.goals import EndedGoal, Goal, GoalRecord, GoalResult, Reason, digest_of
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, TaskId, UserId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.open_groups import OpenGroup
from ioa.protocol.policy import Casting
from ioa.protocol.team import TeamSpec
from ioa.runtime.ledger import GroupLedger
from tests.rig.reads import open_read_service
from tests.unit.group.scenario import START, charter, launched, limits


@asynccontextmanager
async def open_client(nats_url: str) -> AsyncIterator[Client]:
    """Connect to a server with all streams, whose read requests are answered."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await Topology().ensure(client.jetstream())
        async with open_read_service(client):
            yield client


class Goals:
    """Puts goals and groups into the stores as the services do."""

    def __init__(self, client: Client) -> None:
        js, self._clock = client.jetstream(), SystemClock()
        self.client = client
        self.records = NatsGoalRecords(js)
        self.log = NatsGroupLog(client)
        self._ledger = GroupLedger(
            self.log, NatsTimers(js), NatsInboxes(client, lambda _: None), NatsResults(js), NatsOpenGroups(client), self._clock
        )

    async def accept(self, goal_id: str) -> CommId:
        """Put a goal on record."""
        goal = Goal(goal_id=GoalId(goal_id), goal=f"Do {goal_id}.")
        await self.records.create(GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64))
        comm_id = comm_id_of_goal(GoalId(goal_id))
        await self.client.jetstream().publish(f"$KV.{OPEN}.{comm_id}", b"")
        return comm_id

    async def open(
        self, goal_id: str, comm_id: CommId | None = None, parent: ParentTask | None = None, team: TeamSpec | None = None
    ) -> CommId:
        """Open a group for a goal, or a nested one."""
        comm_id = comm_id or await self.accept(goal_id)
        rules = limits(max_turns=10).model_copy(update={"deadline": self._clock.now() + timedelta(hours=1)})
        told: dict[str, object] = {"comm_id": comm_id, "goal_id": GoalId(goal_id), "parent": parent}
        if team is not None:
            told |= {"policy": team.policy, "cast": (Casting(role="a", members=(AgentId("bob"),)),)}
        await self._ledger.record(
            comm_id, GroupLaunched(at=self._clock.now(), charter=charter("ada", "bob", limits=rules).model_copy(update=told))
        )
        return comm_id

    async def nest(self, root: CommId, nested: CommId, assigned: Event) -> None:
        """Open a team nested in a group, for its task t1-1."""
        assert isinstance(assigned, Said)
        header = assigned.message.header.model_copy(update={"comm_id": root})
        said = assigned.model_copy(update={"message": assigned.message.model_copy(update={"header": header})})
        await self._ledger.record(root, said)
        opened = SubgroupOpened(at=self._clock.now(), task_id=TaskId("t1-1"), by=AgentId("bob"), subgroup=nested)
        await self._ledger.record(root, opened)
        await self.open("nests", nested, ParentTask(comm_id=root, task_id=TaskId("t1-1")))

    async def end(self, goal_id: str) -> None:
        """Open a group and cancel it."""
        comm_id = await self.open(goal_id)
        await self._ledger.record(comm_id, CancelRequested(at=self._clock.now()))
        await self.client.jetstream().purge_stream(f"KV_{OPEN}", subject=f"$KV.{OPEN}.{comm_id}")


async def names(system: NatsSystemClient, *, limit: int, open_only: bool = False) -> list[list[GoalId]]:
    """Every page of goals, as ids and how they stand."""
    pages, before = [], None
    while True:
        page = await system.goals(limit=limit, before=before, only=GoalFilter(open_only))
        pages.append([status.record.goal.goal_id for status in page.goals])
        if page.before is None:
            return pages
        before = page.before


async def test_goals_are_listed_newest_first_with_how_they_stand(nats_url: str) -> None:
    """Each page goes on where the one before ended; a row tells whether its goal waits, is at work, or how it ended."""
    async with open_client(nats_url) as client:
        goals, system = Goals(client), NatsSystemClient(client)
        assert ((await system.goals()).goals, (await system.groups()).groups) == ([], [])
        for number in range(5):
            await goals.end(f"ended-{number}")
        await goals.accept("waiting")
        await goals.open("at-work")
        first = (await system.goals(limit=3)).goals
        assert [row.result.reason if row.result else None for row in first] == [None, None, Reason.CANCELLED]
        assert [row.standing.state.phase if row.standing else None for row in first] == ["discussing", None, None]
        ended = [f"ended-{number}" for number in range(4, -1, -1)]
        assert await names(system, limit=3) == [["at-work", "waiting", ended[0]], ended[1:4], ended[4:]]
        assert await names(system, limit=100) == [["at-work", "waiting", *ended]]
        assert await names(system, limit=100, open_only=True) == [["at-work", "waiting"]]


async def test_groups_are_listed_with_the_teams_nested_in_them(nats_url: str) -> None:
    """A nested team comes behind its parent; a goal that waits has no group; what has ended may be left out."""
    async with open_client(nats_url) as client:
        goals, system = Goals(client), NatsSystemClient(client)
        await goals.end("ended")
        root = await goals.open("nests")
        story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob")
        nested = comm_id_of_task(root, TaskId("t1-1"))
        await goals.nest(root, nested, story.log[1])
        await goals.accept("waiting")
        found = (await system.groups()).groups
        assert [one.state.comm_id for one in found] == [root, nested, comm_id_of_goal(GoalId("ended"))]
        assert [one.charter is not None for one in found] == [True] * 3
        assert [one.state.comm_id for one in (await system.groups(open_only=True)).groups] == [root, nested]
        assert await system.find_group(nested[:5]) == nested


async def test_for_one_user_nothing_of_anothers_goals_is_read(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may have 256 kB on record, and as much in its log, and of one user a hundred are open."""
    read = list[str]()

    async def noting(client: Client, stream: str, subjects: Iterable[str]) -> Mapping[str, StreamMessage]:
        read.extend(asked := [*subjects])
        return await latest_messages(client, stream, asked)

    monkeypatch.setattr(goal_listing, "latest_messages", noting)
    async with open_client(nats_url) as client:
        goals, system = Goals(client), NatsSystemClient(client)
        names = [GoalName(UserId(user), GoalId("one")) for user in ("anna", "eve")]
        for name in names:
            goal = Goal(goal_id=name.goal_id, goal="Do it.", user=name.user)
            await goals.records.create(GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64))
            await NatsOpenGroups(client).put(name.comm_id, OpenGroup(goal_id=name.goal_id, deadline=START))
            await goals.open(name.goal_id, name.comm_id)
        mine = (await system.groups(open_only=True, owner=UserId("anna"))).groups
        assert [one.state.comm_id for one in mine] == [names[0].comm_id]
        assert [[one for one in read if name.comm_id in one] != [] for name in names] == [True, False]


async def test_an_id_is_completed_among_the_newest_and_found_whole_among_all(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beginning of an old id is not found, and the answer says what to do; a whole one is, also of a goal that was removed."""
    monkeypatch.setattr(goal_listing, "_NEWEST_GOALS", 3)
    async with open_client(nats_url) as client:
        goals, system = Goals(client), NatsSystemClient(client)
        with pytest.raises(NotFoundError, match="no goal old-1"):
            await system.find_goal("old-1")
        for goal_id in ("old-1", "old-2", "new-1", "new-2", "last"):
            await goals.accept(goal_id)
        assert [(await system.find_goal(start)).goal_id for start in ("old-1", "last", "la", "new-2")] == [
            "old-1",
            "last",
            "last",
            "new-2",
        ]
        with pytest.raises(NotFoundError, match="among the newest"):
            await system.find_goal("old")
        with pytest.raises(InvalidInputError, match="2 goals begin with new"):
            await system.find_goal("new")
        with pytest.raises(NotFoundError):
            await system.find_goal("no id at all")
        gone = EndedGoal(goal_id=GoalId("old-1"), reason=Reason.FAILED, ended_at=START, digest=digest_of("Do old-1."))
        await NatsEndedGoals(client.jetstream()).put(gone)
        await NatsGoalRemoval(client).remove_record(comm_id_of_goal(GoalId("old-1")))
        assert (await system.find_goal("old-1")).goal_id == "old-1"


async def test_documents_that_do_not_fit_into_one_reply_are_read_whole(nats_url: str) -> None:
    """A row, a goal and a log page whose documents are larger than a message come in several replies, and nothing is missing."""
    async with open_client(nats_url) as client:
        goals, system = Goals(client), NatsSystemClient(client)
        goal = Goal(goal_id=GoalId("large"), goal="\U0001f600" * 32_000)
        record = GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64)
        await goals.records.create(record)
        result = GoalResult(
            goal_id=goal.goal_id, comm_id=goal.comm_id, reason=Reason.CONCLUDED, content="r" * 800_000, turns=1, finished_at=START
        )
        await NatsResults(client.jetstream()).publish(result)
        await goals.accept("small")
        room = await goals.open("talks")
        launch = (await system.entries(room))[0]
        data = encode(launch.entry)
        for _ in range(1_500_000 // len(data)):
            await client.publish(subjects.log(room), data)
        await client.flush()
        stored = 1 + 1_500_000 // len(data)
        first = await system.goals()
        [large] = (await system.goals(before=first.before)).goals
        status = await system.goal(goal.goal_id)
        entries = await system.entries(room)
        before = await system.entries_before(room, before=2**62, limit=stored)
        heads = await system.heads([*(CommId(f"g{number}") for number in range(1_200)), room], at=2**62)
    assert [row.record.goal.goal_id for row in first.goals] == ["talks", "small"]
    assert (large.record, large.result) == (record, result)
    assert (status.record, status.result) == (record, result)
    assert [len(entries), len(before), list(heads)] == [stored, stored, [room]]


async def test_a_row_that_cannot_be_read_hides_no_other(nats_url: str) -> None:
    """Garbage among records, results and logs costs its own row, or what the row would say."""
    async with open_client(nats_url) as client:
        goals, system, js = Goals(client), NatsSystemClient(client), client.jetstream()
        for goal_id in ("first", "second", "third"):
            await goals.accept(goal_id)
        await js.publish(f"$KV.IOA_GOAL_RECORDS.{comm_id_of_goal(GoalId('garbage'))}", b"\xc1")
        await js.publish("$KV.IOA_GOAL_RECORDS.a.b.c", b"x")
        await js.publish("$KV.IOA_GOAL_RECORDS._odd=key", b"x")
        await js.publish(subjects.result_of(GoalName(LOCAL, GoalId("first"))), b"garbage")
        await js.publish(subjects.log(comm_id_of_goal(GoalId("second"))), b"garbage")
        assert await names(system, limit=4) == [["third"], ["second", "first"]]
        assert (await system.groups()).groups == []
