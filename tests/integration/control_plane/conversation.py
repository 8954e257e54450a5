"""A group's life by raw requests: what members send, and what everybody must be able to check afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError

from ioa.adapters.nats.delivery.delivery import NatsResults
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.stores.goal_records import TICKET
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.topology import WORK, pool_consumer
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.errors import NotFoundError, UnavailableError
from ioa.group.events import Said
from ioa.group.machine import step
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Accepted, Entries, GroupSnapshot, LaunchGroup, Rejected, SayReply, SequencedEntry, Sync
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import Goal, GoalResult
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, MessageId, PoolId, SessionId, TaskId, comm_id_of_goal
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pause,
    Payload,
    Phase,
    TaskSpec,
)
from ioa.protocol.model import Model
from ioa.protocol.registry import Lease, Register
from tests.rig.deadline import eventually
from tests.unit.group.scenario import card

R = TypeVar("R", bound=Model)
T = TypeVar("T")

ADA, BOB, EVE = AgentId("ada"), AgentId("bob"), AgentId("eve")
_ATTEMPT = timedelta(seconds=1)
_PATIENCE = timedelta(seconds=40)
_PULL_SECONDS = 0.2


async def _until_given(once: Callable[[], Awaitable[T | None]]) -> T:
    given: T | None = await eventually(once, lambda found: found is not None, within=_PATIENCE)
    assert given is not None
    return given


class Caller:
    """Somebody who asks again until an answer comes, as every client of the system does."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._requester = NatsRequester(client)
        self._queues: dict[AgentId, JetStreamContext.PullSubscription] = {}
        self._tickets: dict[GoalId, str] = {}
        self._taking = asyncio.Lock()

    async def ask(self, subject: str, request: Model, reply: type[R]) -> R:
        """Ask until somebody answers."""

        async def once() -> R | None:
            try:
                return await self._requester.request(subject, request, reply, timeout=_ATTEMPT)
            except UnavailableError:
                return None

        return await _until_given(once)

    async def register(self, *agents: AgentId) -> None:
        """Register agents until all of them can be launched with."""
        for agent_id in agents:
            await self.ask(subjects.agent(PoolId(agent_id), agent_id, subjects.REGISTER), Register(card=card(agent_id)), Lease)

    async def publish_goal(self, goal_id: GoalId, **options: object) -> None:
        """Publish a goal as any NATS client does; it is Ada's to lead."""
        order = json.dumps({"goal": "Count to ten.", "goal_id": goal_id, "agent": ADA, **options}).encode()
        await self.client.jetstream().publish(subjects.goal_of(LOCAL), order)

    async def launch(self, goal_id: GoalId, owner: AgentId, *members: AgentId, session: SessionId | None = None) -> GroupSnapshot:
        """Open the group as soon as the goal was given to its owner and the members are known."""
        ticket = await self._ticket_of(goal_id, owner)
        request = LaunchGroup(owner=owner, members=members, goal_id=goal_id, session=session, ticket=ticket)

        async def once() -> GroupSnapshot | None:
            try:
                return await self.ask(subjects.agent(PoolId(owner), owner, subjects.LAUNCH), request, GroupSnapshot)
            except NotFoundError:
                return None

        return await _until_given(once)

    async def _ticket_of(self, goal_id: GoalId, owner: AgentId) -> str:
        """Take goals off the owner's queue until this one has come."""
        if owner not in self._queues:
            self._queues[owner] = await self.client.jetstream().pull_subscribe_bind(pool_consumer(PoolId(owner)), WORK)
        queue = self._queues[owner]

        async def once() -> str | None:
            if goal_id not in self._tickets:
                try:
                    async with self._taking:
                        for message in await queue.fetch(16, timeout=_PULL_SECONDS):
                            self._tickets[decode(Goal, message.data).goal_id] = (message.headers or {})[TICKET]
                            await message.ack()
                except (nats.errors.Error, APIError, OSError):
                    pass  # nothing waits now, or the server is away
            return self._tickets.get(goal_id)

        return await _until_given(once)

    async def state(self, comm_id: CommId) -> GroupState:
        """Where a group stands."""
        return (await NatsSystemClient(self.client).group(comm_id)).state

    async def entries(self, comm_id: CommId, agent_id: AgentId) -> list[SequencedEntry]:
        """A member's copy of the log, page by page."""
        entries: list[SequencedEntry] = []
        while True:
            request = Sync(comm_id=comm_id, agent_id=agent_id, after=entries[-1].seq if entries else 0)
            page = await self.ask(subjects.agent(PoolId(agent_id), agent_id, subjects.SYNC), request, Entries)
            entries += page.entries
            if page.complete:
                return entries

    async def result(self, goal_id: GoalId) -> GoalResult:
        """Wait for a goal's result."""
        results = NatsResults(self.client)

        async def once() -> GoalResult | None:
            try:
                return await results.get(GoalName(LOCAL, goal_id))
            except UnavailableError:
                return None

        return await _until_given(once)

    async def say(self, comm_id: CommId, sender: AgentId, payload: Payload, turn: int, number: int) -> Accepted | Rejected:
        """Say something twice at the same time; both must be answered alike, with the entry or without it.

        Of a report of progress another router may refuse the copy, since nobody looks for it in the log.
        """
        header = Header(
            message_id=MessageId(f"m-{comm_id}-{number}"),
            comm_id=comm_id,
            sender=sender,
            state=Phase.DISCUSSING,
            turn=turn,
            after=0,
            sent_at=datetime.now(UTC),
        )
        message = Message(header=header, payload=payload)
        asked = [self.ask(subjects.say(PoolId(sender), sender, comm_id), message, SayReply) for _ in range(2)]
        first, second = [reply.answer for reply in await asyncio.gather(*asked)]
        if isinstance(first, Accepted) and isinstance(second, Accepted):
            assert first.seq == second.seq
        elif isinstance(payload, InformTaskProgress):
            return first if isinstance(first, Accepted) else second
        else:
            assert type(first) is type(second), (first, second)
        return first


async def converse(caller: Caller, goal_id: GoalId) -> CommId:
    """Lead a goal from its publication to its end: discussion, tasks side by side, a pause, a conclusion."""
    await caller.publish_goal(goal_id)
    comm_id = (await caller.launch(goal_id, ADA, BOB, EVE)).state.comm_id
    number = 0

    async def say(sender: AgentId, payload: Payload, turn: int | None = None) -> Accepted | Rejected:
        nonlocal number
        number += 1
        now = (await caller.state(comm_id)).turn if turn is None else turn
        return await caller.say(comm_id, sender, payload, now, number)

    accepted = [await say(ADA, Discussion(content="Who counts?", next_speaker=BOB))]
    refused = await say(ADA, Discussion(content="Me again.", next_speaker=EVE))
    assert isinstance(refused, Rejected), refused
    accepted.append(await say(BOB, Discussion(content="Eve and I.", next_speaker=ADA)))
    turn = (await caller.state(comm_id)).turn
    tasks = tuple(TaskSpec(task_id=TaskId(f"t{turn}-{to}"), assignee=to, task_desc="Count.") for to in (BOB, EVE))
    accepted.append(await say(ADA, AsyncTaskAssignment(tasks=tasks)))
    accepted += await asyncio.gather(
        *(say(task.assignee, InformTaskProgress(task_id=task.task_id, number=1), turn) for task in tasks),
    )
    accepted.append(await say(ADA, Pause(triggers=tuple(task.task_id for task in tasks))))
    accepted += await asyncio.gather(
        *(say(task.assignee, InformTaskResult(task_id=task.task_id, task_conclusion="Ten."), turn) for task in tasks),
    )
    accepted.append(await say(ADA, ConcludeGroupDiscussion()))
    accepted.append(await say(ADA, Conclusion(content=f"Ten, says {goal_id}.")))
    # The answer to a report may die with its router, and another one does not look it up in the log; `check` does.
    codes = {answer.code for answer in accepted if isinstance(answer, Rejected)}
    assert (len(accepted), codes <= {RejectionCode.STALE_PROGRESS}) == (10, True), codes
    return comm_id


async def check(caller: Caller, goal_id: GoalId) -> None:
    """The goal has its result, and its log is gapless, without repetition, the same for every member and for the pure machine."""
    comm_id = comm_id_of_goal(goal_id)
    assert (await caller.result(goal_id)).content == f"Ten, says {goal_id}."
    stored = await NatsGroupLog(caller.client).read(comm_id, after=0, limit=1_000)
    copies = [await caller.entries(comm_id, member) for member in (ADA, BOB, EVE)]
    assert copies[0] == copies[1] == copies[2]
    assert [(entry.seq, entry.entry) for entry in copies[0]] == [(found.seq, found.entry) for found in stored]
    assert [entry.previous_seq for entry in copies[0]] == [0, *(entry.seq for entry in copies[0][:-1])]
    said = [found.entry.event.message.header.message_id for found in stored if isinstance(found.entry.event, Said)]
    assert (len(said), len(set(said))) == (10, 10)
    replay(stored)


def replay(stored: Sequence[StoredEntry]) -> None:
    """Every state of a log is what the machine makes of the one before."""
    state: GroupState | None = None
    for found in stored:
        state = step(state, found.entry.event).state
        assert state == found.entry.state, found.seq
