"""Leading a goal until its group is open: forming a team, launching the group, or saying why there is none.

A goal may be delivered many times. What its team's formation has cost is remembered over all of them, so that it is charged to the
goal, and so that no goal has more than three teams formed for it. A team that was formed is launched again and again while the
system is out of reach; the brain, which may be a language model, is not asked anew. After the goal's deadline nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import structlog

from ioa.agent.agent_metrics import count_decision, timed_decision
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.asking import until_answered
from ioa.agent.casting import cast_needs
from ioa.agent.team import BoundedTeamTools
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
"""How many teams are formed for one goal when members were found but could not join."""
MAX_FAILURES = 3
"""At which delivery an error that nobody foresaw ends the goal."""

_FOUND_WITHIN = timedelta(seconds=5)
"""How long after an agent was registered nobody's being found proves nothing: discovery follows registrations."""
_MAX_REMEMBERED = 1_000
_MAX_WHY_BYTES = 8_000
_BEYOND = 2**53
"""Behind the end of any log, so that asking for what lies there asks whether there is one."""

_FIRST_DELAY, _LONGEST_DELAY = timedelta(seconds=1), timedelta(seconds=30)
"""How long a goal is given back for whose team no model could choose: each time as long as it has lasted, within these."""
_LAUNCHED_WITHIN, _FIRST_AWAY, _LONGEST_AWAY = timedelta(seconds=3), timedelta(seconds=10), timedelta(minutes=2)
"""A goal that waits for somebody of its team, or for its user to have had less kept, gives its place to others if all are taken and
it has had it for so long. It is given back each time for as long as that has lasted, within the others."""

_BUDGET_SPENT = "The budget of the goal was spent while its team was formed."
AbandonReason = Literal[Reason.NO_AGENT, Reason.FAILED, Reason.MODEL_UNAVAILABLE, Reason.BUDGET]

_log = structlog.get_logger(__name__)


@dataclass
class _Leadership:
    """What one goal's deliveries have come to so far."""

    meter: Meter = field(default_factory=Meter)
    team: TeamLaunch | None = None
    planned: TeamSpec | None = None
    is_planned: bool = False
    nobody: NobodyFits | None = None
    formations: int = 0
    failures: int = 0
    undecided: int = 0
    incomplete: str = ""
    undecided_since: datetime | None = None
    unopened_since: datetime | None = None
    ticket: str | None = field(default=None, repr=False)


class Leader:
    """Lead goals as one agent.

    Args:
        card: The agent's.
        ports: Who forms the teams, where groups are launched, whom the agent has met, and when a goal's time is over.
        session: The process that leads.
        reform_after: How long to wait before a team is formed anew, since a member went away (longer each time) or agents are new.
        plans: Whether it plans teams, with a policy, for goals that were given none.
        places: For how many goals it forms teams side by side.
    """

    def __init__(
        self,
        card: AgentCard,
        ports: AgentPorts,
        session: SessionId,
        reform_after: timedelta,
        *,
        plans: bool = False,
        places: int,
    ) -> None:
        self._card = card
        self._session = session
        self._brain, self._network = ports.brain, ports.network
        self._store, self._clock = ports.store, ports.clock
        self._reform_after = reform_after
        self._planner = ports.brain if plans and isinstance(ports.brain, Plans) else None
        self._patience = ports.brain.patience if isinstance(ports.brain, AsksModel) else timedelta(0)
        self._since = ports.clock.now()
        self._places, self._taken = places, 0
        self._leaderships: OrderedDict[GoalName, _Leadership] = OrderedDict()

    def note_registration(self) -> None:
        """Know that the agent was registered now, at first or anew: discovery may not find it yet."""
        self._since = self._clock.now()

    async def lead(self, offer: GoalOffer) -> None:
        """Form a team for a goal and open its group, or end the goal. Called again for the same goal, it meets the same group.

        Raises:
            UnavailableError: The goal has to be offered again; or its time is over, and its deadline is left to end it.
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
        leadership = self._remembered(offer)
        self._taken += 1
        try:
            async with fail_after(left) as until_deadline:
                if offer.attempt == 1 or not await self._is_open(comm_id, leadership):
                    with live_spans.under(goal.traceparent, span_id_of_goal(goal.name)):
                        await self._open_group(goal, leadership)
        except TimeoutError:
            if until_deadline.expired():
                raise _too_late(goal) from None
            raise
        finally:
            self._taken -= 1
        self._leaderships.pop(goal.name, None)

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """End a goal that leading has failed for too often."""
        leadership = self._remembered(offer)
        await self._abandon(offer.goal, Reason.FAILED, f"{self._card.agent_id} could not lead the goal: {why}", leadership)
        self._leaderships.pop(offer.goal.name, None)

    async def _is_open(self, comm_id: CommId, leadership: _Leadership) -> bool:
        """Whether a group was opened for the goal, or it has ended: a delivery that was acknowledged too late changes nothing."""
        asked = Sync(comm_id=comm_id, agent_id=self._card.agent_id, after=_BEYOND, ticket=leadership.ticket, session=self._session)
        try:
            known = await self._network.sync(asked)
        except NotFoundError:
            return False
        except ForbiddenError:
            return True  # it is another's
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
            why = f"{self._card.agent_id} could not open a group: {error}"
            await self._abandon(goal, Reason.FAILED, why, leadership)
        except Exception as error:
            leadership.failures += 1
            if leadership.failures < MAX_FAILURES:
                raise
            _log.exception("goal_given_up", goal_id=goal.goal_id)
            why = f"{self._card.agent_id} could not open a group: {type(error).__name__}: {error}"
            await self._abandon(goal, Reason.FAILED, why, leadership)

    async def _give_back(self, goal: Goal, leadership: _Leadership, error: UndecidedError) -> None:
        """Let the goal be offered again, perhaps to an agent whose model answers, or end it if that has lasted too long.

        Raises:
            UnavailableError: The goal has to be offered again.
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
        delay = min(max(now - since, _FIRST_DELAY), _LONGEST_DELAY)
        raise UnavailableError(error.message, retry_after=delay) from None

    async def _form_and_launch(self, goal: Goal, leadership: _Leadership) -> None:
        """Launch a group with the team that was formed, or with the next one, as long as there may be another."""
        while True:
            if leadership.team is None:
                if leadership.formations and await self._is_open(goal.comm_id, leadership):
                    return  # by another one, meanwhile
                formed = await self._form_team(goal, leadership)
                if (isinstance(formed, NobodyFits) or formed.in_doubt) and self._may_look_again(goal, leadership):
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
                went = "The agents that fit the goal went away before the team was complete."
                why = went if goal.team is None else f"The team {goal.team.team} is not complete. {leadership.incomplete}"
                await self._abandon(goal, Reason.NO_AGENT, why, leadership)
                return
            await asyncio.sleep(leadership.formations * self._reform_after.total_seconds())

    def _may_look_again(self, goal: Goal, leadership: _Leadership) -> bool:
        """Whether the agent, and others that started with it, came so lately that discovery may not find them yet."""
        is_new = self._clock.now() - self._since < _FOUND_WITHIN
        return is_new and leadership.formations < MAX_FORMATIONS and not _is_spent(goal, leadership.meter.total)

    async def _form_team(self, goal: Goal, leadership: _Leadership) -> TeamLaunch | NobodyFits:
        """Ask the brain. A formation that an outage cut short costs what it cost, but is not one of the few there may be."""
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
        """Plan a team, once for each goal, and find who plays in it; None if there is no plan, or nobody for it."""
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
        """Open the group, or see that there is nothing left to do; False if the team has to be formed anew.

        While the system is out of reach, or a member is away for a moment, the same team is launched again, as long as there is a
        place for another goal.

        Raises:
            NotYetError: The goal has to be offered again.
        """
        meter = leadership.meter
        fields = {
            "owner": self._card.agent_id,
            "session": self._session,
            "members": team.members,
            "plan": team.plan,
            "goal_id": goal.goal_id,
            "user": goal.user,
            "usage": meter.total,
            "overhead": meter.overhead,
            "calls": meter.calls,
            "decided_by": meter.decided_by,
            "ticket": leadership.ticket,
            "cast": team.cast,
            "policy": goal.policy if leadership.planned is None else leadership.planned.policy.digest,
            "team": leadership.planned,
        }
        request = validate(LaunchGroup, fields)
        began = self._clock.now()

        def goes_on(error: UnavailableError) -> bool:
            if not isinstance(error, NotYetError | RateLimitedError):
                return True  # whoever else has the place cannot open a group either
            return self._taken < self._places or self._clock.now() - began < _LAUNCHED_WITHIN

        try:
            await until_answered(lambda: self._network.launch(request), goes_on=goes_on, goal_id=goal.goal_id)
        except UnavailableError as error:
            since = leadership.unopened_since = leadership.unopened_since or began
            delay = min(max(self._clock.now() - since, _FIRST_AWAY), _LONGEST_AWAY)
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

    def _remembered(self, offer: GoalOffer) -> _Leadership:
        """Return what is remembered of a goal's deliveries; what came longest ago is forgotten first."""
        leadership = self._leaderships.setdefault(offer.goal.name, _Leadership())
        leadership.ticket = offer.ticket
        self._leaderships.move_to_end(offer.goal.name)
        if len(self._leaderships) > _MAX_REMEMBERED:
            self._leaderships.popitem(last=False)
        return leadership


def _is_spent(goal: Goal, used: Usage) -> bool:
    tokens, cost = goal.max_tokens, goal.max_cost_micros
    return (tokens is not None and used.tokens >= tokens) or (cost is not None and used.cost_micros >= cost)


def _too_late(goal: Goal) -> UnavailableError:
    """Not this agent ends the goal, whose clock may be wrong: the queue drops it at its deadline, and a router ends it."""
    return UnavailableError(f"The time of the goal {goal.goal_id} is over.", retry_after=timedelta(seconds=30))


def _nobody(formed: NobodyFits) -> str:
    listed = "; ".join(f"“{need}”" for need in formed.needs)
    return "\n".join(filter(None, (f"No agent fits: {listed}", formed.nearest, "`ioa agents` lists the agents.")))
