"""Lists of goals and groups on a real server: large documents, malformed rows and the completion of ids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.nats_delivery import NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats.stores.goal_records import NatsGoalRecords, record_key
from ioa.adapters.nats.stores.open_group_store import NatsOpenGroups
from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, OPEN, Topology, subject_of
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.errors import NotFoundError
from ioa.group.events import GroupLaunched
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.goals import Goal, GoalRecord, GoalResult, Reason
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, UserId, comm_id_of_goal
from ioa.runtime.ledger import GroupLedger
from ioa_groups import goal_listing
from tests.rig.reads import open_read_service
from tests.unit.group.scenario import START, charter, limits


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
        self._clock = SystemClock()
        self.client = client
        self.records = NatsGoalRecords(client)
        self.log = NatsGroupLog(client)
        self._ledger = GroupLedger(
            self.log,
            NatsTimers(client),
            NatsInboxes(client, lambda _: None),
            NatsResults(client),
            NatsOpenGroups(client),
            self._clock,
        )

    async def accept(self, goal_id: str) -> CommId:
        """Put a goal on record."""
        goal = Goal(goal_id=GoalId(goal_id), goal=f"Do {goal_id}.")
        await self.records.create(GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64))
        comm_id = comm_id_of_goal(GoalId(goal_id))
        await self.client.jetstream().publish(f"$KV.{OPEN}.{LOCAL}.{comm_id}", b"")
        return comm_id

    async def open(self, goal_id: str) -> CommId:
        """Open a group for a goal."""
        comm_id = await self.accept(goal_id)
        rules = limits(max_turns=10).model_copy(update={"deadline": self._clock.now() + timedelta(hours=1)})
        opened = charter("ada", "bob", limits=rules).model_copy(update={"comm_id": comm_id, "goal_id": GoalId(goal_id)})
        await self._ledger.record(comm_id, GroupLaunched(at=self._clock.now(), charter=opened))
        return comm_id


@pytest.mark.parametrize("open_only", [False, True])
@pytest.mark.parametrize("place", [None, *(pytest.param(place, marks=pytest.mark.nightly) for place in (0, 5_000, 10_000))])
async def test_page_of_user_among_goals_of_others_takes_one_request(nats_url: str, place: int | None, open_only: bool) -> None:
    """Only the user's records are examined, wherever the 10,000 goals of another user are: before, after, or between."""
    order = [GoalName(UserId("eve"), GoalId(f"e{number}")) for number in range(10_000)]
    for number in range(60):
        order.insert(number * 167 if place is None else place + number, GoalName(UserId("anna"), GoalId(f"a{number}")))
    async with open_client(nats_url) as client:
        for number, name in enumerate(order):
            goal = Goal(goal_id=name.goal_id, goal="Do it.", user=name.user)
            record = GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64)
            await client.publish(subject_of(GOAL_RECORDS, record_key(name.comm_id, name.user)), encode(record))
            await client.publish(subject_of(OPEN, f"{name.user}.{name.comm_id}"), b"")
            if number % 100 == 0:
                await client.flush()
        for bucket in (GOAL_RECORDS, OPEN):
            await client.jetstream().publish(subject_of(bucket, "eve.last"), b"")  # acknowledged after all others are stored
        system = NatsSystemClient(client, UserId("anna"))
        first = await system.goals(open_only=open_only)
        second = await system.goals(before=first.before, open_only=open_only)
    found = [[row.record.goal.goal_id for row in page.goals] for page in (first, second)]
    assert found == [[f"a{number}" for number in range(59, 9, -1)], [f"a{number}" for number in range(9, -1, -1)]]
    assert (first.looked_at, second.before) == (50, None)


async def test_id_is_completed_among_the_newest_goals(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning of an older id is not found, and the error states the reason; a whole id is found."""
    monkeypatch.setattr(goal_listing, "_NEWEST_GOALS", 2)
    async with open_client(nats_url) as client:
        goals, system = Goals(client), NatsSystemClient(client)
        for goal_id in ("old-1", "new-1", "new-2"):
            await goals.accept(goal_id)
        assert [(await system.find_goal(start)).goal_id for start in ("old-1", "new-2")] == ["old-1", "new-2"]
        with pytest.raises(NotFoundError, match="among the newest"):
            await system.find_goal("old")


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
        await NatsResults(client).publish(result)
        await goals.accept("small")
        room = await goals.open("talks")
        launch = (await system.group_entries(room))[0]
        data = encode(launch.entry)
        for _ in range(1_500_000 // len(data)):
            await client.publish(subjects.log(room), data)
        await client.flush()
        stored = 1 + 1_500_000 // len(data)
        first = await system.goals()
        [large] = (await system.goals(before=first.before)).goals
        status = await system.goal(goal.goal_id)
        entries = await system.group_entries(room)
        before = await system.group_entries(room, before=2**62, limit=stored)
        heads = await system.heads([*(CommId(f"g{number}") for number in range(200)), room], at=2**62)
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
        await js.publish(f"$KV.IOA_GOAL_RECORDS.{LOCAL}.{comm_id_of_goal(GoalId('garbage'))}", b"\xc1")
        await js.publish("$KV.IOA_GOAL_RECORDS.a.b.c", b"x")
        await js.publish("$KV.IOA_GOAL_RECORDS._odd=key", b"x")
        await js.publish(subjects.result_of(GoalName(LOCAL, GoalId("first"))), b"garbage")
        await js.publish(subjects.log(comm_id_of_goal(GoalId("second"))), b"garbage")
        page = await system.goals(limit=4)
        assert [row.record.goal.goal_id for row in page.goals] == ["third", "second", "first"]
        assert page.before is None
        assert (await system.groups()).groups == ()
