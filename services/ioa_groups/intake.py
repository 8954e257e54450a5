"""Where goals come in. Each ends up on record and in a queue, or as a dead letter with its reason; nothing is dropped."""

from __future__ import annotations

import hashlib
import mimetypes

import structlog

from ioa import log_context
from ioa.errors import IoaError, PayloadTooLargeError, UnavailableError
from ioa.fault_points import reach
from ioa.group.events import LaunchAbandoned
from ioa.group.rejection import IllegalEventError
from ioa.ports.clock import Clock
from ioa.ports.delivery import Artifacts, DeadLetters, GoalRecords, Timers, WorkQueue
from ioa.ports.registry_store import RegistryView
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder, InlineInput, input_object_name, parse_goal
from ioa.protocol.goals import Artifact, Goal, GoalRecord, Reason
from ioa.protocol.ids import AgentId, GoalId, PoolId, comm_id_of_goal
from ioa.runtime.goal_metrics import accepted
from ioa.runtime.ledger import GroupLedger

INTAKE_NAME = AgentId("intake")

_log = structlog.get_logger(__name__)


class Intake:
    """Accept goals as users publish them."""

    def __init__(
        self,
        goals: GoalRecords,
        work: WorkQueue,
        timers: Timers,
        artifacts: Artifacts,
        dead: DeadLetters,
        registry: RegistryView,
        ledger: GroupLedger,
        clock: Clock,
    ) -> None:
        self._goals = goals
        self._work = work
        self._timers = timers
        self._artifacts = artifacts
        self._dead = dead
        self._registry = registry
        self._ledger = ledger
        self._clock = clock

    async def accept(self, subject: str, data: bytes, identity: str) -> None:
        """Put a goal on record and offer it to the agents. The same goal again is the same goal; see `_offer`.

        Args:
            subject: Where it was published; may address an agent or a pool.
            data: What was published.
            identity: Names the published message. A goal without an id gets one that follows from it, so that the message is
                one goal however often it is delivered.

        Raises:
            UnavailableError: The goal has to come back later.
        """
        try:
            order = parse_goal(data, subjects.goal_addressee(subject))
            goal_id = order.goal_id or _goal_id_of(identity)
            goal = order.accepted(goal_id, await self._inputs(order, goal_id))
        except UnavailableError:
            raise
        except IoaError as error:
            reason = "too_large" if isinstance(error, PayloadTooLargeError) else "unreadable"
            await self._dead.put(reason, str(error), subject=subject, data=data)
            return
        record = await self._goals.create(GoalRecord(goal=goal, accepted_at=self._clock.now()))
        if record.goal.model_copy(update={"traceparent": goal.traceparent}) != goal:
            why = f"The goal id {goal_id} is taken by another goal; that one goes on. Choose another id."
            await self._dead.put("conflict", why, subject=subject, data=data)
            return
        reach("groups.goal_recorded")
        await self._offer(record)

    async def _offer(self, record: GoalRecord) -> None:
        """Queue the goal unless a group has been opened for it; the deadline is armed first, so that it ends in any case."""
        goal = record.goal
        comm_id = comm_id_of_goal(goal.goal_id)
        log_context.bind({"goal_id": goal.goal_id, "comm_id": comm_id, "traceparent": goal.traceparent})
        await self._timers.schedule(comm_id, record.deadline)
        if await self._ledger.head(comm_id) is not None:
            return
        pool = None if goal.agent is None else self._pool_of(goal.agent)
        if goal.agent is not None and pool is None:
            await self._nobody(goal)
            return
        if pool is not None:
            await self._work.ensure_pool(pool)
        await self._work.put(goal, pool)
        accepted.inc()
        _log.info("goal_accepted", pool=pool, content=goal.goal)

    def _pool_of(self, addressee: AgentId) -> PoolId | None:
        """The pool that bears the name, or that the agent of this name belongs to."""
        record = self._registry.card(addressee)
        if record is not None:
            return record.card.pool
        pool = PoolId(addressee)
        return pool if any(other.card.pool == pool for other in self._registry.cards()) else None

    async def _nobody(self, goal: Goal) -> None:
        event = LaunchAbandoned(
            at=self._clock.now(),
            comm_id=comm_id_of_goal(goal.goal_id),
            goal_id=goal.goal_id,
            by=INTAKE_NAME,
            reason=Reason.NO_AGENT,
            content=f"No agent or pool {goal.agent!r} has ever registered; `ioa agents` lists those that have.",
        )
        try:
            await self._ledger.record(event.comm_id, event)
        except IllegalEventError:
            _log.debug("goal_ended_already", goal_id=goal.goal_id)

    async def _inputs(self, order: GoalOrder, goal_id: GoalId) -> tuple[Artifact, ...]:
        files: list[Artifact] = []
        for position, given in enumerate(order.inputs):
            match given:
                case Artifact():
                    files.append(given)
                case InlineInput(name=name, text=text):
                    media_type = mimetypes.guess_type(name)[0] or "text/plain"
                    object_name = input_object_name(goal_id, position, name)
                    files.append(await self._artifacts.put(object_name, name, text.encode(), media_type))
                case str():
                    files.append(await self._artifacts.describe(given))
        return tuple(files)


def _goal_id_of(identity: str) -> GoalId:
    return GoalId("goal-" + hashlib.sha256(identity.encode()).hexdigest()[:32])
