"""Leads goals: forms a team and launches its group, or ends the goal with the reason.

A goal can be delivered many times. Its leadership is kept over all deliveries: the cost of team formation, which is charged to the
goal, and the formed team, which is launched again while the system is out of reach. After the deadline no brain is asked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import structlog

from ioa.agent.agent_ports import AgentPorts
from ioa.agent.metrics import count_decision, timed_decision
from ioa.agent.send import until_answered
from ioa.agent.team_formation import BoundedTeamTools, cast_needs
from ioa.cancellation import fail_after
from ioa.errors import (
    BudgetSpentError,
    ConflictError,
    ForbiddenError,
    IoaError,
    NoAgentError,
    NotFoundError,
    NotYetError,
    RateLimitedError,
    UnavailableError,
)
from ioa.group.requests import AbandonGoal, LaunchGroup, Sync
from ioa.ports.agent_network import GoalOffer
from ioa.ports.brain import AsksModel, Mission, NobodyFits, Plans, TeamLaunch, UndecidedError
from ioa.ports.chat_model import current_user
from ioa.ports.meter import Meter
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import validate
from ioa.protocol.goals import Goal, Reason
from ioa.protocol.ids import CommId, GoalName, SessionId
from ioa.protocol.team import TeamSpec
from ioa.protocol.texts import shortened
from ioa.protocol.trace import span_id_of_goal
from ioa.protocol.usage import Usage
from ioa.telemetry import live_spans, log_context

MAX_FORMATIONS = 3
"""Teams that are formed for one goal when members were found but could not join."""

_NEW_AGENT = timedelta(seconds=5)
"""Time after the agent's registration in which discovery may not know all agents: a search without hits is repeated."""
_MAX_LEADERSHIPS = 1_000
_MAX_WHY_BYTES = 8_000
_AFTER_ANY_LOG = 2**53
"""A sequence after the end of every log: a sync from there only returns the head."""

_MIN_DELAY, _MAX_DELAY = timedelta(seconds=1), timedelta(seconds=30)
"""Delay until a goal is offered again whose team no model could select; it is the time since the first attempt, within these."""
_LAUNCH_TIMEOUT, _AWAY_DELAY, _MAX_AWAY_DELAY = timedelta(seconds=3), timedelta(seconds=5), timedelta(minutes=2)
"""Time for which a launch is repeated while a member is offline or a quota is used up; then the goal is offered again after the
delay times the number of its deliveries, so that other goals get its place."""

_BUDGET_SPENT = "The budget of the goal was spent while its team was formed."
AbandonReason = Literal[Reason.NO_AGENT, Reason.FAILED, Reason.MODEL_UNAVAILABLE, Reason.BUDGET]

_log = structlog.get_logger(__name__)


@dataclass
class _Leadership:
    """The state of one goal over its deliveries."""

    meter: Meter = field(default_factory=Meter)
    team: TeamLaunch | None = None
    planned: TeamSpec | None = None
    is_planned: bool = False
    nobody: NobodyFits | None = None
    formations: int = 0
    undecided: int = 0
    incomplete: str = ""
    undecided_since: datetime | None = None
    ticket: str | None = field(default=None, repr=False)
    deliveries: int = 1


class Leader:
    """Lead goals as one agent.

    Args:
        card: The agent's card.
        ports: The agent's brain, memory, network and clock.
        session: The session of this process.
        reform_after: Pause before a team is formed again.
        plans: Whether it plans teams, with a policy, for goals without a team.
    """

    def __init__(
        self, card: AgentCard, ports: AgentPorts, session: SessionId, reform_after: timedelta, *, plans: bool = False
    ) -> None:
        self._card = card
        self._session = session
        self._brain, self._network = ports.brain, ports.network
        self._store, self._clock = ports.store, ports.clock
        self._reform_after = reform_after
        self._planner = ports.brain if plans and isinstance(ports.brain, Plans) else None
        self._patience = ports.brain.patience if isinstance(ports.brain, AsksModel) else timedelta(0)
        self._registered_at = ports.clock.now()
        self._leaderships: OrderedDict[GoalName, _Leadership] = OrderedDict()

    def note_registration(self) -> None:
        """Note that the agent was registered now."""
        self._registered_at = self._clock.now()

    async def lead(self, offer: GoalOffer) -> None:
        """Form a team for a goal and launch its group, or end the goal. Idempotent.

        Raises:
            UnavailableError: The goal must be offered again, or its deadline has passed.
        """
        goal = offer.goal
        comm_id = goal.comm_id
        log_context.bind(
            {"agent_id": self._card.agent_id, "goal_id": goal.goal_id, "comm_id": comm_id, "traceparent": goal.traceparent}
        )
        current_user.set(goal.user)
        left = (offer.deadline - self._clock.now()).total_seconds()
        if left <= 0:
            raise _too_late(goal)
        leadership = self._leadership(offer)
        try:
            async with fail_after(left) as until_deadline:
                if offer.attempt == 1 or not await self._is_open(comm_id, leadership):
                    with live_spans.under(goal.traceparent, span_id_of_goal(goal.name)):
                        await self._open_group(goal, leadership)
        except TimeoutError:
            if until_deadline.expired():
                raise _too_late(goal) from None
            raise
        self._leaderships.pop(goal.name, None)

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """End a goal whose offers failed too often."""
        leadership = self._leadership(offer)
        await self._abandon(offer.goal, Reason.FAILED, f"{self._card.agent_id} could not lead the goal: {why}", leadership)
        self._leaderships.pop(offer.goal.name, None)

    async def _is_open(self, comm_id: CommId, leadership: _Leadership) -> bool:
        """Return True if a group was launched for the goal."""
        request = Sync(
            comm_id=comm_id, agent_id=self._card.agent_id, after=_AFTER_ANY_LOG, ticket=leadership.ticket, session=self._session
        )
        try:
            known = await self._network.sync(request)
        except NotFoundError:
            return False
        except ForbiddenError:
            return True  # another agent has launched it
        return known.head > 0

    async def _open_group(self, goal: Goal, leadership: _Leadership) -> None:
        try:
            await self._form_and_launch(goal, leadership)
        except UndecidedError as error:
            await self._give_back(goal, leadership, error)
        except UnavailableError:
            raise
        except BudgetSpentError as error:
            await self._abandon(goal, Reason.BUDGET, error.message, leadership)
        except IoaError as error:
            await self._abandon(goal, Reason.FAILED, f"{self._card.agent_id} could not open a group: {error}", leadership)

    async def _give_back(self, goal: Goal, leadership: _Leadership, error: UndecidedError) -> None:
        """Let the goal be offered again, perhaps to an agent whose model answers; end it after the model's patience.

        Raises:
            UnavailableError: The goal must be offered again.
        """
        count_decision("form_team", None, "model_unavailable" if error.is_away else "no_usable_answer")
        if leadership.meter.is_exhausted():
            await self._abandon(goal, Reason.BUDGET, f"{_BUDGET_SPENT} {error.message}", leadership)
            return
        now = self._clock.now()
        since = leadership.undecided_since = leadership.undecided_since or now
        leadership.undecided += 1
        if now - since >= self._patience if error.is_away else leadership.undecided >= MAX_FORMATIONS:
            why = f"{self._card.agent_id} could not choose a team since {since:%Y-%m-%d %H:%M:%S} UTC: {error.message}"
            await self._abandon(goal, Reason.MODEL_UNAVAILABLE, why, leadership)
            return
        raise UnavailableError(error.message, retry_after=min(max(now - since, _MIN_DELAY), _MAX_DELAY)) from None

    async def _form_and_launch(self, goal: Goal, leadership: _Leadership) -> None:
        """Launch a group with the formed team, or with the next one."""
        while True:
            if leadership.team is None:
                if leadership.formations and await self._is_open(goal.comm_id, leadership):
                    return  # another agent has launched it meanwhile
                formed = await self._form_team(goal, leadership)
                if (isinstance(formed, NobodyFits) or formed.in_doubt) and self._may_search_again(goal, leadership):
                    await asyncio.sleep(self._reform_after.total_seconds())
                    continue
                if isinstance(formed, NobodyFits):
                    await self._abandon(goal, Reason.NO_AGENT, _nobody(formed), leadership)
                    return
                leadership.team = formed
            if await self._launch(goal, leadership.team, leadership):
                return
            leadership.team = None
            if leadership.formations >= MAX_FORMATIONS:
                went = "The agents that fit the goal went offline before the team was complete."
                why = went if goal.team is None else f"The team {goal.team.team} is not complete. {leadership.incomplete}"
                await self._abandon(goal, Reason.NO_AGENT, why, leadership)
                return
            await asyncio.sleep(leadership.formations * self._reform_after.total_seconds())

    def _may_search_again(self, goal: Goal, leadership: _Leadership) -> bool:
        """Return True if discovery may not know all agents yet."""
        is_new = self._clock.now() - self._registered_at < _NEW_AGENT
        return is_new and leadership.formations < MAX_FORMATIONS and not _is_spent(goal, leadership.meter.total)

    async def _form_team(self, goal: Goal, leadership: _Leadership) -> TeamLaunch | NobodyFits:
        """Ask the brain for a team. A formation that an outage ended is paid for and not counted."""
        leadership.meter.is_exhausted = lambda: _is_spent(goal, leadership.meter.total)
        if leadership.meter.is_exhausted():
            raise BudgetSpentError(_BUDGET_SPENT)
        tools = BoundedTeamTools(self._network, self._store, self._card.agent_id, goal.goal_id)
        if goal.team is not None:
            leadership.formations += 1
            return await cast_needs(goal.team, tools.search_client, leader=self._card.agent_id)
        mission = Mission(goal.goal, goal.inputs, self._card, depth=0, meter=leadership.meter, before=leadership.nobody)
        if (cast := await self._cast_planned(mission, tools, leadership)) is not None:
            leadership.formations += 1
            return cast
        try:
            with timed_decision("form_team"):
                formed = await self._brain.form_team(mission, tools)
        except IoaError:
            raise
        except Exception as error:
            _log.exception("formation_failed", goal_id=goal.goal_id, agent_id=self._card.agent_id)
            raise IoaError(f"{type(error).__name__}: {error}") from error
        leadership.formations += 1
        leadership.nobody = formed if isinstance(formed, NobodyFits) else None
        count_decision("form_team", leadership.meter.decided_by)
        return formed

    async def _cast_planned(self, mission: Mission, tools: BoundedTeamTools, leadership: _Leadership) -> TeamLaunch | None:
        """Plan a team, once per goal, and find its members; None without a plan, or if no agent fits it."""
        if self._planner is None:
            return None
        if not leadership.is_planned:
            with timed_decision("plan"):
                leadership.planned = await self._planner.plan(mission, tools)
            leadership.is_planned = True
            count_decision("plan", leadership.meter.decided_by)
        if leadership.planned is None:
            return None
        cast = await cast_needs(leadership.planned, tools.search_client, leader=self._card.agent_id)
        if isinstance(cast, TeamLaunch):
            return cast
        _log.info("plan_dropped", agent_id=self._card.agent_id, why=_nobody(cast))
        leadership.planned = None
        return None

    async def _launch(self, goal: Goal, team: TeamLaunch, leadership: _Leadership) -> bool:
        """Launch the group; return False if the team must be formed again.

        Raises:
            NotYetError: The goal must be offered again.
        """
        meter = leadership.meter
        fields = {
            "owner": self._card.agent_id,
            "session": self._session,
            "members": team.members,
            "plan": team.plan,
            "cast": team.cast,
            "goal_id": goal.goal_id,
            "user": goal.user,
            "usage": meter.total,
            "overhead": meter.overhead,
            "calls": meter.calls,
            "decided_by": meter.decided_by,
            "ticket": leadership.ticket,
            "policy": goal.policy if leadership.planned is None else leadership.planned.policy.digest,
            "team": leadership.planned,
        }
        request = validate(LaunchGroup, fields)
        began = self._clock.now()

        def goes_on(error: UnavailableError) -> bool:
            return not isinstance(error, NotYetError | RateLimitedError) or self._clock.now() - began < _LAUNCH_TIMEOUT

        try:
            await until_answered(lambda: self._network.launch(request), goes_on=goes_on, goal_id=goal.goal_id)
        except UnavailableError as error:
            delay = min(leadership.deliveries * _AWAY_DELAY, _MAX_AWAY_DELAY)
            raise NotYetError(error.message, hint=error.hint, retry_after=delay) from None
        except NoAgentError as error:
            _log.info("team_incomplete", goal_id=goal.goal_id, why=error.message)
            leadership.incomplete = error.message
            return False
        except (ConflictError, NotFoundError) as error:
            _log.info("goal_not_mine", goal_id=goal.goal_id, why=error.message)
        return True

    async def _abandon(self, goal: Goal, reason: AbandonReason, why: str, leadership: _Leadership) -> None:
        request = AbandonGoal(
            goal_id=goal.goal_id,
            user=goal.user,
            by=self._card.agent_id,
            session=self._session,
            reason=reason,
            content=shortened(why, _MAX_WHY_BYTES),
            usage=leadership.meter.total,
            calls=leadership.meter.calls,
            decided_by=leadership.meter.decided_by if reason is Reason.NO_AGENT else None,
            ticket=leadership.ticket,
        )
        try:
            await until_answered(lambda: self._network.abandon(request), goal_id=goal.goal_id)
        except (ConflictError, NotFoundError) as error:
            _log.info("goal_not_mine", goal_id=goal.goal_id, why=error.message)

    def _leadership(self, offer: GoalOffer) -> _Leadership:
        """Return the state of a goal; the oldest states are dropped."""
        leadership = self._leaderships.setdefault(offer.goal.name, _Leadership())
        leadership.ticket, leadership.deliveries = offer.ticket, offer.attempt
        self._leaderships.move_to_end(offer.goal.name)
        if len(self._leaderships) > _MAX_LEADERSHIPS:
            self._leaderships.popitem(last=False)
        return leadership


def _is_spent(goal: Goal, used: Usage) -> bool:
    tokens, cost = goal.max_tokens, goal.max_cost_micros
    return (tokens is not None and used.tokens >= tokens) or (cost is not None and used.cost_micros >= cost)


def _too_late(goal: Goal) -> UnavailableError:
    """Return the error after a deadline; the queue and a router end the goal, because this agent's clock may be wrong."""
    return UnavailableError(f"The time of the goal {goal.goal_id} is over.", retry_after=timedelta(seconds=30))


def _nobody(formed: NobodyFits) -> str:
    listed = "; ".join(f"“{need}”" for need in formed.needs)
    return "\n".join(filter(None, (f"No agent fits: {listed}", formed.nearest, "`ioa agents` lists the agents.")))
