"""The agents of a test, which say what it has them say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from ioa.errors import IoaError, NotFoundError
from ioa.group.requests import Accepted, GroupSnapshot, LaunchGroup
from ioa.protocol.cards import AgentCard
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId, CommId, GoalId, GoalName, MessageId, PoolId, TaskId, comm_id_of_goal
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskQuestion,
    TaskSpec,
)
from ioa.protocol.registry import Register
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.usage import Usage
from ioa_testkit.planes import Plane
from tests.rig.deadline import eventually
from tests.rig.given_goals import GivenGoals

ADA, BOB = AgentId("ada"), AgentId("bob")
GOAL = GoalId("goal-1")
ROOM = comm_id_of_goal(GOAL)
TASK = TaskId("t1-count")
_LOOK_SECONDS = 0.05


async def say(
    plane: Plane, message_id: MessageId, sender: AgentId, payload: Payload, comm_id: CommId, usage: Usage | None = None
) -> int:
    """Say something, as a group or a task stands, that must be accepted, and return its sequence. `usage` is of no task."""
    state = (await plane.client.group(comm_id)).state
    task = state.task(payload.task_id) if isinstance(payload, InformTaskProgress | InformTaskResult | TaskQuestion) else None
    header = Header(
        message_id=message_id,
        comm_id=comm_id,
        sender=sender,
        state=Phase.DISCUSSING,
        turn=state.turn if task is None else task.turn,
        after=0,
        sent_at=datetime.now(UTC),
        usage=None if task else usage,
    )
    answer = await plane.network.say(Message(header=header, payload=payload))
    assert isinstance(answer, Accepted), answer
    return answer.seq


class Members:
    """Two agents that say what a test has them say."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._said = 0
        self.given = GivenGoals()

    async def register(self, *agents: AgentId) -> None:
        """Register agents and wait until discovery knows them."""
        client = self._plane.client
        for agent_id in agents:
            card = AgentCard(agent_id=agent_id, name=agent_id, description=f"{agent_id} counts", pool=PoolId(agent_id))
            await self._plane.network.register(Register(card=card))
        await eventually(client.index_status, lambda status: status.cards >= len(agents))
        await eventually(lambda: client.agents(online_only=True), lambda found: len(found) >= len(agents))

    async def launch(self, goal_id: GoalId = GOAL, parent: ParentTask | None = None) -> GroupSnapshot:
        """Open a group for a goal as soon as that is on record; Ada owns it, or Bob a nested one."""
        owner, other = (ADA, BOB) if parent is None else (BOB, ADA)
        request = LaunchGroup(
            owner=owner,
            members=(other,),
            goal_id=goal_id,
            parent=parent,
            goal="Count to five." if parent else "",
            ticket=await eventually(lambda: self._ticket_of(goal_id)),
        )
        return await self._plane.network.launch(request)

    def _ticket_of(self, goal_id: GoalId) -> str | None:
        try:
            return self.given.ticket_of(goal_id)
        except NotFoundError:
            return None

    async def is_known(self, goal_id: GoalId) -> bool:
        """Whether a goal is on record."""
        try:
            await self._plane.client.goal(goal_id)
        except NotFoundError:
            return False
        return True

    async def say(self, sender: AgentId, payload: Payload, comm_id: CommId = ROOM) -> int:
        """Say something that must be accepted, and return its sequence."""
        self._said += 1
        return await say(self._plane, MessageId(f"m-{self._said}"), sender, payload, comm_id)

    async def conclude(self, sender: AgentId, content: str, comm_id: CommId = ROOM) -> None:
        """End a group."""
        await self.say(sender, ConcludeGroupDiscussion(), comm_id)
        await self.say(sender, Conclusion(content=content), comm_id)

    async def reach_goals(self) -> None:
        """Conclude whatever goal is given to Ada, for ever."""
        done = set[GoalName]()
        while True:
            for name in self.given.names - done:
                done.add(name)
                try:
                    room = (await self.launch(name.goal_id)).state.comm_id
                    await self.conclude(ADA, "Done.", room)
                except (IoaError, AssertionError):  # somebody has cancelled it
                    continue
            await asyncio.sleep(_LOOK_SECONDS)

    async def assign(self, task_id: TaskId = TASK) -> None:
        """Have Ada give Bob a task, which he begins."""
        await self.say(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=task_id, assignee=BOB, task_desc="Count."),)))
        await self.say(BOB, InformTaskProgress(task_id=task_id, number=1))


def order(goal_id: str = GOAL, text: str = "Count to ten.", **options: object) -> GoalOrder:
    """A goal that is Ada's to lead."""
    return GoalOrder.model_validate({"goal": text, "goal_id": goal_id, "agent": "ada", **options})
