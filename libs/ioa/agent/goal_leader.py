"""Leads goals: forms a team and launches its group, or ends the goal with the reason.

A goal can be delivered many times. Its leadership is kept over all deliveries: the cost of team formation, which is charged to the
goal, and the formed team, which is launched again. The queue of goals decides when. After the deadline no brain is asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import structlog

from ioa.agent.agent_ports import AgentPorts
from ioa.agent.metrics import measured, retries
from ioa.agent.send import until_answered
from ioa.agent.team_formation import MissionTools, cast_needs, is_launched
from ioa.concurrency import fail_after
from ioa.errors import (
    BudgetSpentError,
    ConflictError,
    IoaError,
    NoAgentError,
    NotFoundError,
    NotYetError,
    RateLimitedError,
    UnavailableError,
    reason_of,
)
from ioa.group.requests import AbandonGoal, LaunchGroup, Sync
from ioa.ports.agent_network import GoalOffer
from ioa.ports.brain_types import AsksModel, Mission, NobodyFits, TeamLaunch, UndecidedError
from ioa.ports.chat_model import current_user
from ioa.ports.meter import Meter
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import validate
from ioa.protocol.goals import Goal, Reason
from ioa.protocol.ids import GoalName, SessionId, TaskId
from ioa.protocol.operation.trace import span_id_of_goal
from ioa.protocol.setup.charter import PlannedTask
from ioa.protocol.texts import shortened
from ioa.retry import until_available
from ioa.telemetry import live_spans, log_context

MAX_FORMATIONS = 3
"""Teams that are formed for one goal when members were found but could not join."""

_NEW_AGENT = timedelta(seconds=5)
"""Time after the agent's registration in which discovery may not know all agents: a search without hits is repeated."""
_MAX_LEADERSHIPS = 1_000
_MAX_WHY_BYTES = 8_000
_AFTER_ANY_LOG = 2**53
"""A sequence after the end of every log: a sync from there only returns the head."""
_BUDGET_SPENT = "The budget of the goal was spent while its team was formed."
AbandonReason = Literal[Reason.NO_AGENT, Reason.FAILED, Reason.MODEL_UNAVAILABLE, Reason.BUDGET]

_log = structlog.get_logger(__name__)


@dataclass
class _Leadership:
    """The state of one goal over its deliveries."""

    goal: Goal
    meter: Meter = field(default_factory=Meter)
    team: TeamLaunch | None = None
    formations: int = 0
    undecided: int = 0
    undecided_since: datetime | None = None
    incomplete: str = ""
    """The reason why the last team could not be launched."""
    ticket: str | None = field(default=None, repr=False)

    def is_spent(self) -> bool:
        """Return True if the goal's budget is spent."""
        tokens, cost, used = self.goal.max_tokens, self.goal.max_cost_micros, self.meter.total
        return (tokens is not None and used.tokens >= tokens) or (cost is not None and used.cost_micros >= cost)


class Leader:
    """Lead goals as one agent.

    Args:
        card: The agent's card.
        ports: The agent's brain, memory, network and clock.
        session: The session of this process.
        reform_after: Pause before a team is formed again.
    """

    def __init__(self, card: AgentCard, ports: AgentPorts, session: SessionId, reform_after: timedelta) -> None:
        self._me, self._card = card.agent_id, card
        self._session, self._ports = session, ports
        self._reform_after = reform_after.total_seconds()
        self._registered_at = ports.clock.now()
        self._leaderships: dict[GoalName, _Leadership] = {}

    def note_registration(self) -> None:
        """Note that the agent was registered now."""
        self._registered_at = self._ports.clock.now()

    async def lead(self, offer: GoalOffer) -> None:
        """Form a team for a goal and launch its group, or end the goal. Idempotent.

        Raises:
            UnavailableError: The goal must be offered again, or its deadline has passed.
        """
        goal = offer.goal
        log_context.bind({"agent_id": self._me, "goal_id": goal.goal_id, "comm_id": goal.comm_id, "traceparent": goal.traceparent})
        current_user.set(goal.user)
        left = (offer.deadline - self._ports.clock.now()).total_seconds()
        if left <= 0:
            raise _too_late(goal)
        led = self._leadership(offer)
        try:
            async with fail_after(left) as until_deadline:
                if offer.attempt == 1 or not await self._is_open(led):
                    with live_spans.under(goal.traceparent, span_id_of_goal(goal.name)):
                        await self._open_group(led)
        except TimeoutError:
            if until_deadline.expired():
                raise _too_late(goal) from None
            raise
        self._leaderships.pop(goal.name, None)

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """End a goal whose offers failed too often."""
        await self._abandon(self._leadership(offer), Reason.FAILED, f"{self._me} could not lead the goal: {why}")
        self._leaderships.pop(offer.goal.name, None)

    def _leadership(self, offer: GoalOffer) -> _Leadership:
        """Return the state of a goal; the oldest states are dropped."""
        led = self._leaderships.pop(offer.goal.name, None) or _Leadership(offer.goal)
        led.ticket, led.meter.is_exhausted = offer.ticket, led.is_spent
        self._leaderships[offer.goal.name] = led
        if len(self._leaderships) > _MAX_LEADERSHIPS:
            del self._leaderships[next(iter(self._leaderships))]
        return led

    async def _is_open(self, led: _Leadership) -> bool:
        """Return True if a group was launched for the goal."""
        session, comm_id = self._session, led.goal.comm_id
        request = Sync(comm_id=comm_id, agent_id=self._me, after=_AFTER_ANY_LOG, ticket=led.ticket, session=session)
        return await is_launched(self._ports.network, request)

    async def _open_group(self, led: _Leadership) -> None:
        try:
            await self._form_and_launch(led)
        except UndecidedError as error:
            await self._give_back(led, error)
        except UnavailableError:
            raise
        except BudgetSpentError as error:
            await self._abandon(led, Reason.BUDGET, error.message)
        except IoaError as error:
            await self._abandon(led, Reason.FAILED, f"{self._me} could not open a group: {error}")

    async def _give_back(self, led: _Leadership, error: UndecidedError) -> None:
        """Let the goal be offered again, perhaps to an agent whose model answers; end it after the model's patience.

        Raises:
            UnavailableError: The goal must be offered again.
        """
        if led.is_spent():
            return await self._abandon(led, Reason.BUDGET, f"{_BUDGET_SPENT} {error.message}")
        now, brain = self._ports.clock.now(), self._ports.brain
        patience = brain.patience if isinstance(brain, AsksModel) else timedelta(0)
        since = led.undecided_since = led.undecided_since or now
        led.undecided += 1
        if now - since < patience if error.is_away else led.undecided < MAX_FORMATIONS:
            raise UnavailableError(error.message) from None
        why = f"{self._me} could not choose a team since {since:%Y-%m-%d %H:%M:%S} UTC: {error.message}"
        return await self._abandon(led, Reason.MODEL_UNAVAILABLE, why)

    async def _form_and_launch(self, led: _Leadership) -> None:
        """Launch a group with the formed team, or with the next one."""
        while True:
            if led.team is None:
                if led.formations and await self._is_open(led):
                    return None  # another agent has launched it meanwhile
                formed = await self._form_team(led)
                if isinstance(formed, NobodyFits) and self._may_search_again(led):
                    await asyncio.sleep(self._reform_after)
                    continue
                if isinstance(formed, NobodyFits):
                    return await self._abandon(led, Reason.NO_AGENT, _nobody(formed))
                led.team = formed
            if await self._launch(led, led.team):
                return None
            led.team = None
            if led.formations >= MAX_FORMATIONS:
                return await self._abandon(led, Reason.NO_AGENT, f"The team is not complete. {led.incomplete}")
            await asyncio.sleep(led.formations * self._reform_after)

    def _may_search_again(self, led: _Leadership) -> bool:
        """Return True if discovery may not know all agents yet."""
        is_new = self._ports.clock.now() - self._registered_at < _NEW_AGENT
        return is_new and led.formations < MAX_FORMATIONS and not led.is_spent()

    async def _form_team(self, led: _Leadership) -> TeamLaunch | NobodyFits:
        """Ask the brain for a team. A formation that an outage ended is paid for and not counted."""
        if led.is_spent():
            raise BudgetSpentError(_BUDGET_SPENT)
        goal, tools = led.goal, MissionTools(self._ports, self._me, led.goal.goal_id)
        mission = Mission(goal.goal, goal.inputs, self._card, meter=led.meter)
        formed: TeamLaunch | NobodyFits
        if goal.team is not None:
            formed = await cast_needs(goal.team, tools.search_client, leader=self._me)
        elif goal.as_task:
            formed = TeamLaunch(members=(), plan=(PlannedTask(task_id=TaskId("t1"), assignee=self._me, task_desc=goal.goal),))
        else:
            try:
                formed = await measured("form_team", led.meter, self._ports.brain.form_team(mission, tools))
            except IoaError:
                raise
            except Exception as error:
                _log.exception("formation_failed")
                raise IoaError(reason_of(error)) from error
        led.formations += 1
        return formed

    async def _launch(self, led: _Leadership, team: TeamLaunch) -> bool:
        """Launch the group; return False if the team must be formed again.

        Raises:
            UnavailableError: A member is away, or a quota is used up: the goal must be offered again.
        """
        meter, goal = led.meter, led.goal
        fields = {
            "owner": self._me,
            "session": self._session,
            "members": team.members,
            "plan": team.plan,
            "cast": team.cast,
            "goal_id": goal.goal_id,
            "user": goal.user,
            "usage": meter.total,
            "calls": meter.calls,
            "decided_by": meter.decided_by,
            "ticket": led.ticket,
            "policy": goal.policy,
        }
        request = validate(LaunchGroup, fields)
        try:
            await until_available(lambda: self._ports.network.launch(request), _raise_if_away)
        except NoAgentError as error:
            _log.info("team_incomplete", why=error.message)
            led.incomplete = error.message
            return False
        except (ConflictError, NotFoundError) as error:
            _log.info("goal_not_mine", why=error.message)
        return True

    async def _abandon(self, led: _Leadership, reason: AbandonReason, why: str) -> None:
        request = AbandonGoal(
            goal_id=led.goal.goal_id,
            user=led.goal.user,
            by=self._me,
            session=self._session,
            reason=reason,
            content=shortened(why, _MAX_WHY_BYTES),
            usage=led.meter.total,
            calls=led.meter.calls,
            decided_by=led.meter.decided_by if reason is Reason.NO_AGENT else None,
            ticket=led.ticket,
        )
        try:
            await until_answered(self._ports.network.abandon, request)
        except (ConflictError, NotFoundError) as error:
            _log.info("goal_not_mine", why=error.message)


def _raise_if_away(error: UnavailableError) -> None:
    """Return a goal to its queue while a member is offline or a quota is used up, so that other goals get its place."""
    if isinstance(error, NotYetError | RateLimitedError):
        raise error
    retries.inc()


def _too_late(goal: Goal) -> UnavailableError:
    """Return the error after a deadline; the queue and a router end the goal, because this agent's clock may be wrong."""
    return UnavailableError(f"The time of the goal {goal.goal_id} is over.", retry_after=timedelta(seconds=30))


def _nobody(formed: NobodyFits) -> str:
    listed = "; ".join(f"“{need}”" for need in formed.needs)
    return "\n".join(filter(None, (f"No agent fits: {listed}", formed.nearest, "`ioa agents` lists the agents.")))
