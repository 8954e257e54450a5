"""The whole control plane on fakes: two replicas of the router over one log, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from ioa.errors import UnavailableError
from ioa.group.events import GroupLaunched, Said
from ioa.group.limits import DEFAULT_GROUP_LIMITS, GroupLimits
from ioa.group.machine import step
from ioa.group.requests import Accepted, LaunchGroup, Rejected, SayReply
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.agents.search import Hit, NeedHits, Search, SearchResult
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import Goal, GoalRecord, Reason, RepetitionRule
from ioa.protocol.ids import (
    LOCAL,
    AgentId,
    CommId,
    GoalId,
    GoalName,
    MessageId,
    PoolId,
    SessionId,
    TaskId,
    comm_id_of_goal,
)
from ioa.protocol.messages import Header, InformTaskProgress, InformTaskResult, Message, Payload, Phase
from ioa.protocol.policy import Casting
from ioa.protocol.registry import Register, Session
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.setup.open_groups import OpenGroup
from ioa.protocol.setup.tickets import digest_of_ticket, ticket_of
from ioa.protocol.subjects import say
from ioa.protocol.teams.team_file import TeamSpec, team_of
from ioa.protocol.usage import Usage
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.testing.manual_clock import NEW_YEAR, CountedIds, ManualClock
from ioa_groups.role_casting import cast_roles
from ioa_registry.removal import AgentRemover
from tests.rig.memory_delivery import MemoryInboxes
from tests.rig.memory_goals import MemoryTickets, MemoryWorkQueue
from tests.rig.memory_services import MemoryServices
from tests.unit.group.scenario import card, charter, launched_under, limits
from tests.unit.group.test_policy import policy_of

ADA, BOB, EVE = AgentId("ada"), AgentId("bob"), AgentId("eve")
GOAL = GoalId("goal-1")
ROOM = comm_id_of_goal(GOAL)
TICKET = ticket_of(MemoryTickets.key, GoalName(LOCAL, GOAL))
"""What the goal is given with when it came by the intake."""
LEASE = timedelta(seconds=10)
SETTINGS = ControlPlaneSettings(
    lease=LEASE,
    renew_every=LEASE / 3,
    max_depth=2,
    agent_files_bytes=3_000_000,
    user_files_bytes=4_000_000,
)


class FoundAgents:
    """A `Discovery` that finds whom a test names, in this order, with these similarities."""

    def __init__(self) -> None:
        self.found: list[tuple[AgentCard, float]] = []
        self.reachable = True

    async def search(self, search: Search) -> SearchResult:
        """Find them for every need."""
        if not self.reachable:
            raise UnavailableError("Discovery does not answer.")
        hits = tuple(Hit(card=card, score=similarity, similarity=similarity) for card, similarity in self.found)
        return SearchResult(by_need=tuple(NeedHits(need=need, hits=hits) for need in search.needs))


class Plane(MemoryServices[FoundAgents]):
    """Registry, group setup and two routers over one log, which a test drives step by step."""

    def __init__(
        self, limits: GroupLimits = DEFAULT_GROUP_LIMITS, leaders: Sequence[PoolId] = (), *, users_are_known: bool = False
    ) -> None:
        self.clock, self.ids = ManualClock(), CountedIds()
        self.inboxes, self.work = MemoryInboxes(), MemoryWorkQueue()
        changed = {"quota_group_tasks": limits.tasks, "quota_group_log_bytes": limits.log_bytes, "leaders": ",".join(leaders)}
        changed |= {"nats_seed": "a seed"} if users_are_known else {}
        super().__init__(
            self.clock,
            self.ids,
            SETTINGS.model_copy(update=changed),
            inboxes=self.inboxes,
            work=self.work,
            discovery=lambda _view: FoundAgents(),
            routers=2,
        )
        self.remover = AgentRemover(self.registry._ports)
        for router in self.routers:
            self.progress.listen(router.add_report)

    async def join(self, *agents: AgentId) -> None:
        """Register agents."""
        for agent_id in agents:
            await self.registry.register(Register(card=card(agent_id)))

    async def accept(
        self,
        goal_id: GoalId = GOAL,
        *,
        max_turns: int = 10,
        max_tokens: int | None = None,
        timeout: timedelta = timedelta(hours=1),
        repetition: RepetitionRule = RepetitionRule.VERBATIM,
        team: TeamSpec | None = None,
    ) -> GoalRecord:
        """Put a goal on record as the intake does."""
        goal = Goal(
            goal_id=goal_id,
            goal="Count to ten.",
            max_turns=max_turns,
            max_tokens=max_tokens,
            timeout=timeout,
            repetition=repetition,
            team=team,
        )
        record = await self.goals.create(
            GoalRecord(
                goal=goal, accepted_at=self.clock.now(), ticket_digest=digest_of_ticket(ticket_of(MemoryTickets.key, goal.name))
            )
        )
        comm_id = comm_id_of_goal(goal_id)
        await self.timers.schedule(comm_id, record.deadline)
        await self.open_groups.put(LOCAL, comm_id, OpenGroup(goal_id=goal_id, deadline=record.deadline))
        return record

    async def open(
        self,
        *agents: AgentId,
        max_turns: int = 10,
        max_tokens: int | None = None,
        timeout: timedelta = timedelta(hours=1),
        repetition: RepetitionRule = RepetitionRule.VERBATIM,
    ) -> GroupState:
        """Register agents, accept a goal and open its group; the first agent owns it."""
        await self.join(*agents)
        await self.accept(max_turns=max_turns, max_tokens=max_tokens, timeout=timeout, repetition=repetition)
        return (await self.setup.launch(LaunchGroup(owner=agents[0], members=agents[1:], goal_id=GOAL, ticket=TICKET))).state

    async def open_led(self, *nodes: Mapping[str, Any], **top: Any) -> None:
        """Open a group of Ada, Bob and Eve, who play a, b and c under a policy of these nodes; Ada owns it."""
        agents = (ADA, BOB, EVE)
        story = launched_under(policy_of(*nodes, **top), dict(zip("abc", [[one] for one in agents], strict=True)), *agents)
        await self.join(*agents)
        launch, opened = self.begin(ROOM, *agents), story.log[0]
        assert isinstance(opened, GroupLaunched)
        led = {"policy": opened.charter.policy, "cast": opened.charter.cast, "limits": opened.charter.limits}
        await self.ledgers[0].record(ROOM, launch.model_copy(update={"charter": launch.charter.model_copy(update=led)}))

    def cast(self, team: Mapping[str, Any], found: Mapping[str, Sequence[str]], owner: str) -> Mapping[str, Sequence[AgentId]]:
        """Cast the roles of a team file with the registered agents and those that its leader has found."""
        castings = [Casting.model_validate({"role": role, "members": members}) for role, members in found.items()]
        return {one.role: one.members for one in cast_roles(team_of(team), castings, AgentId(owner), self.view)}

    async def nest(self, task_id: str, *agents: AgentId) -> GroupState:
        """Open a nested team for a task of the goal's group; the first agent owns it."""
        parent = ParentTask(comm_id=ROOM, task_id=TaskId(task_id))
        request = LaunchGroup(owner=agents[0], members=agents[1:], goal_id=GOAL, parent=parent, goal="Count to five.")
        return (await self.setup.launch(request)).state

    def begin(self, comm_id: CommId, *agents: AgentId, max_turns: int = 10) -> GroupLaunched:
        """What launches a group without any goal or registry, now."""
        rules = limits(max_turns=max_turns)
        rules = rules.model_copy(update={"deadline": self.clock.now() + timedelta(days=1)})
        return GroupLaunched(at=self.clock.now(), charter=charter(*agents, limits=rules).model_copy(update={"comm_id": comm_id}))

    async def message(
        self,
        sender: AgentId,
        payload: Payload,
        *,
        comm_id: CommId = ROOM,
        turn: int | None = None,
        usage: Usage | None = None,
    ) -> Message:
        """Something a member might say, with the turn that fits unless another is given."""
        if turn is None:
            state = await self.state(comm_id)
            turn = state.turn
            if isinstance(payload, InformTaskProgress | InformTaskResult):
                task = state.task(payload.task_id)
                turn = task.turn if task is not None else turn
        header = Header(
            message_id=MessageId(self.ids.new("m")),
            comm_id=comm_id,
            sender=sender,
            state=Phase.DISCUSSING,
            turn=turn,
            after=0,
            sent_at=self.clock.now(),
            usage=usage,
        )
        return Message(header=header, payload=payload)

    async def send(self, message: Message, router: int = 0) -> Accepted | Rejected:
        """Send a message to a replica of the router; the entry that it is answered with comes into its sender's inbox."""
        header = message.header
        answer = decode(
            SayReply, await self.routers[router].say(say(PoolId(header.sender), header.sender, header.comm_id), encode(message))
        ).answer
        if isinstance(answer, Accepted) and answer.entry is not None:
            self.inboxes.keep(header.sender, answer.entry)
        return answer

    async def says(
        self, sender: AgentId, payload: Payload, *, comm_id: CommId = ROOM, router: int = 0, usage: Usage | None = None
    ) -> Accepted | Rejected:
        """Say something."""
        return await self.send(await self.message(sender, payload, comm_id=comm_id, usage=usage), router)

    async def state(self, comm_id: CommId = ROOM) -> GroupState:
        """Where a group stands."""
        head = await self.log.last(comm_id)
        assert head is not None
        return head.entry.state

    async def entries(self, comm_id: CommId = ROOM) -> list[StoredEntry]:
        """A group's whole log."""
        return list(await self.log.read(comm_id, after=0, limit=10_000))

    async def reason(self, goal_id: GoalId = GOAL) -> Reason | None:
        """How a goal ended; None while it has not."""
        result = await self.results.get(GoalName(LOCAL, goal_id))
        return result.reason if result else None

    async def fire_due(self, router: int = 0) -> None:
        """Bring every timer that is due to a router; what fails comes back."""
        for comm_id in self.timers.take_due():
            try:
                await self.routers[router].fire_timer(comm_id)
            except UnavailableError:
                await self.timers.schedule(comm_id, self.clock.now())

    async def run_timers(self, limit: int = 1_000) -> None:
        """Let nothing happen but timers until none is armed."""
        for fired in range(limit):
            at = self.timers.next_at()
            if at is None:
                return
            self.clock.advance_to(at)
            await self.fire_due(fired % 2)
        raise AssertionError("timers never come to rest")

    async def replayed(self, comm_id: CommId = ROOM) -> list[GroupState]:
        """The states that the machine makes of a log's events."""
        state: GroupState | None = None
        states, policy = [], None
        for stored in await self.entries(comm_id):
            event = stored.entry.event
            policy = event.charter.policy if isinstance(event, GroupLaunched) else policy
            state = step(state, event, policy).state
            states.append(state)
        return states


def session(name: str) -> Session:
    """A process that runs an agent."""
    return Session(session=SessionId(name), host="box", pid=7, since=NEW_YEAR)


def messages_of(entries: list[StoredEntry]) -> list[MessageId]:
    """The ids of the messages in a log, in order."""
    return [stored.entry.event.message.header.message_id for stored in entries if isinstance(stored.entry.event, Said)]


@pytest.fixture
def plane() -> Plane:
    """A control plane without agents."""
    return Plane()


@pytest.fixture
async def opened(plane: Plane) -> Plane:
    """A control plane with a group of ada and bob; ada has the floor."""
    await plane.open(ADA, BOB)
    return plane
