"""Leading a goal until its group is open: few formations, each paid for, and a result whatever comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.system_clock import RandomIds
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.goal_leader import Leader
from ioa.errors import ForbiddenError, IoaError, NotYetError, UnavailableError
from ioa.group.events import GroupLaunched
from ioa.group.requests import GroupSnapshot, LaunchGroup
from ioa.ports.agent_network import GoalOffer
from ioa.ports.brain_types import Mission, NobodyFits, TeamLaunch, TeamTools, UndecidedError
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Goal, GoalResult, Reason
from ioa.protocol.ids import LOCAL, AgentId, GoalName, SessionId, TaskId, comm_id_of_goal
from ioa.protocol.registry import Register
from ioa.protocol.setup.charter import PlannedTask
from ioa.protocol.usage import Usage
from ioa.testing.manual_clock import ManualClock
from ioa.testing.scripted_brain import ScriptedBrain
from tests.rig.agent_stores import UnreliableStore
from tests.rig.memory_network import MemoryNetwork
from tests.unit.agent.company import GOAL
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import session

LEAD, WORKER = AgentId("lead"), AgentId("worker")
SPENT = Usage(tokens_in=4_000, tokens_out=1_000)
ROOM = comm_id_of_goal(GOAL.goal_id)


class Costly(ScriptedBrain):
    """A brain that spends 5,000 tokens per formation, and raises the given errors."""

    def __init__(self, *teams: TeamLaunch | NobodyFits, errors: Sequence[Exception] = ()) -> None:
        super().__init__(teams=teams)
        self._errors = list(errors)

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Spend, then raise or play the next team."""
        mission.meter.add(SPENT)
        self.missions.append(mission)
        if self._errors:
            raise self._errors.pop(0)
        return self.teams.popleft()


class Modelled(Costly):
    """The same, with a model that has a minute of patience."""

    model, failures, patience = "large", 1, timedelta(minutes=1)


class Desk:
    """A leader, and a network with its members and a goal on record."""

    def __init__(self, folder: Path, brain: Costly) -> None:
        self.clock, self.brain = ManualClock(), brain
        self.network = MemoryNetwork(self.clock)
        ports = AgentPorts(self.network, UnreliableStore(folder / "memory.sqlite"), self.clock, RandomIds(), brain)
        self.leader = Leader(card(LEAD), ports, SessionId("s-lead"), timedelta(0))
        self.deliveries = 0

    async def open(self, *members: AgentCard, goal: Goal = GOAL, lead: AgentCard | None = None) -> None:
        """Register members, and offer a goal."""
        self.goal = goal
        for member in (lead or card(LEAD), *members):
            await self.network.register(Register(card=member, session=session("s-lead") if member.agent_id == LEAD else None))
        await self.network.offer(goal)

    async def ticket(self) -> str:
        """What the goal is given with."""
        return await self.network.plane.tickets.of(GoalName(LOCAL, GOAL.goal_id))

    async def deliver(self) -> Exception | None:
        """Deliver the goal again, and return the error of the leader."""
        self.deliveries += 1
        offer = GoalOffer(self.goal, self.clock.now() + self.goal.timeout, self.deliveries, await self.ticket())
        try:
            await self.leader.lead(offer)
        except Exception as error:  # noqa: BLE001 - a queue takes whatever a leader raises
            return error
        return None

    async def result(self) -> GoalResult:
        """The goal's result, which there must be."""
        found = await self.network.result(self.goal)
        assert found is not None
        return found

    async def launched(self) -> GroupLaunched:
        """How the goal's group began."""
        event = (await self.network.entries(ROOM))[0].entry.event
        assert isinstance(event, GroupLaunched)
        return event


def too_long() -> TeamLaunch:
    """A plan that fits into no message."""
    tasks = [PlannedTask(task_id=TaskId(f"t{number}"), assignee=WORKER, task_desc="d" * 20_000) for number in range(60)]
    return TeamLaunch(members=(WORKER,), plan=tuple(tasks))


@pytest.mark.parametrize(
    "brain",
    [
        Costly(too_long()),
        Costly(errors=[ForbiddenError("The searches are spent.")]),
        Costly(errors=[KeyError("idea")]),
    ],
    ids=["too long", "forbidden", "a bug"],
)
async def test_impossible_launch_ends_the_goal(brain: Costly, tmp_path: Path) -> None:
    """One formation, its cost in the result, and the reason in words."""
    desk = Desk(tmp_path, brain)
    await desk.open(card(WORKER))
    assert await desk.deliver() is None
    result = await desk.result()
    assert (result.reason, result.usage, len(desk.brain.missions)) == (Reason.FAILED, SPENT, 1)
    assert result.content.startswith("lead could not open a group: ")


@pytest.mark.parametrize(("error", "deliveries"), [(UnavailableError("Away."), 1), (NotYetError("worker is away."), 4)])
async def test_an_outage_launches_the_same_team_again(error: UnavailableError, deliveries: int, tmp_path: Path) -> None:
    """In the same delivery while the system is away, in the next ones while a member is; nothing is asked of the brain."""
    desk = Desk(tmp_path, Costly(TeamLaunch(members=(WORKER,))))
    await desk.open(card(WORKER))
    launch, refusals = desk.network.launch, [error] * 3

    async def refuse_first(request: LaunchGroup) -> GroupSnapshot:
        if refusals:
            raise refusals.pop()
        return await launch(request)

    desk.network.launch = refuse_first  # type: ignore[method-assign]
    assert [await desk.deliver() for _ in range(deliveries)] == [*[error] * (deliveries - 1), None]
    assert ((await desk.launched()).usage, len(desk.brain.missions), refusals) == (SPENT, 1, [])


async def test_goal_ends_after_three_formations(tmp_path: Path) -> None:
    """The launched group, or the failed result, contains the usage of all formations."""
    gone = TeamLaunch(members=(AgentId("gone"),))
    for last in (TeamLaunch(members=(WORKER,)), gone):
        desk = Desk(tmp_path, Costly(gone, gone, last, gone))
        await desk.open(card(WORKER))
        assert (await desk.deliver(), len(desk.brain.missions)) == (None, 3)
        used = await desk.result() if last is gone else await desk.launched()
        assert used.usage == SPENT.plus(SPENT).plus(SPENT)
    assert (await desk.result()).reason is Reason.NO_AGENT


async def test_forming_stops_when_the_goal_has_no_budget_left(tmp_path: Path) -> None:
    """Also formations that an outage interrupted count."""
    desk = Desk(tmp_path, Costly(errors=[UnavailableError("The model is away.")] * 10))
    await desk.open(goal=GOAL.model_copy(update={"max_tokens": 10_000}))
    raised = [await desk.deliver() for _ in range(3)]
    result = await desk.result()
    assert ([type(error) for error in raised], len(desk.brain.missions)) == ([UnavailableError, UnavailableError, type(None)], 2)
    assert (result.reason, result.usage.tokens) == (Reason.BUDGET, 10_000)


@pytest.mark.parametrize(("left", "asked"), [(0, 0), (50, 1)])
async def test_forming_ends_with_the_goal(left: int, asked: int, tmp_path: Path) -> None:
    """The goal returns to the queue, and an unanswered launch is cancelled."""
    desk = Desk(tmp_path, Costly(TeamLaunch(members=(WORKER,))))
    await desk.open(card(WORKER))
    desk.network.reachable = False
    soon = GoalOffer(GOAL, desk.clock.now() + timedelta(milliseconds=left), 1)
    with pytest.raises(UnavailableError, match="time of the goal"):
        await desk.leader.lead(soon)
    assert len(desk.brain.missions) == asked


@pytest.mark.parametrize("owner", [LEAD, WORKER])
async def test_a_goal_that_is_led_already_is_not_formed_again(owner: AgentId, tmp_path: Path) -> None:
    """A second delivery finds the group of any replica, and the brain is not called."""
    desk = Desk(tmp_path, Costly())
    await desk.open(card(WORKER, pool=LEAD))
    session = SessionId("s-lead") if owner == LEAD else None
    ticket = await desk.ticket()
    await desk.network.launch(LaunchGroup(owner=owner, members=(), goal_id=GOAL.goal_id, session=session, ticket=ticket))
    desk.deliveries = 1
    assert (await desk.deliver(), desk.brain.missions) == (None, [])


async def test_goal_that_is_given_up_has_a_result(tmp_path: Path) -> None:
    """The queue reports it."""
    desk = Desk(tmp_path, Costly())
    await desk.open()
    await desk.leader.give_up(GoalOffer(GOAL, desk.clock.now(), 5, await desk.ticket()), "half a \ud800 pair" + "x" * 2_000_000)
    result = await desk.result()
    assert (result.reason, len(result.content) < 10_000) == (Reason.FAILED, True)
    assert result.content.startswith("lead could not lead the goal: half a ? pair")


async def test_an_error_of_the_system_in_abandoning_comes_back(tmp_path: Path) -> None:
    """Nothing is acknowledged before the goal has its result."""
    desk = Desk(tmp_path, Costly(NobodyFits(needs=("a poem",))))
    desk.clock.advance(timedelta(minutes=1))
    await desk.open()
    abandon = desk.network.abandon

    async def refuse(_request: object) -> None:
        raise IoaError("The log cannot be read.")

    desk.network.abandon = refuse  # type: ignore[assignment,method-assign]
    assert isinstance(await desk.deliver(), IoaError)
    desk.network.abandon = abandon  # type: ignore[method-assign]
    assert await desk.network.result(GOAL) is None


@pytest.mark.parametrize(("age", "reason", "formations"), [(0, None, 2), (4, None, 2), (6, Reason.NO_AGENT, 1)])
async def test_new_agent_repeats_a_search_without_results(age: int, reason: Reason | None, formations: int, tmp_path: Path) -> None:
    """Discovery may lag in the first seconds after a registration."""
    nobody = NobodyFits(needs=("a poem", "an ode"), nearest="Nearest is ada.")
    desk = Desk(tmp_path, Costly(nobody, TeamLaunch(members=(WORKER,))))
    await desk.open(card(WORKER))
    desk.clock.advance(timedelta(seconds=age))
    await desk.deliver()
    result = await desk.network.result(GOAL)
    assert result is None or "No agent fits: “a poem”; “an ode”\nNearest is ada." in result.content
    assert (None if result is None else result.reason, len(desk.brain.missions)) == (reason, formations)


@pytest.mark.parametrize(("is_away", "deliveries"), [(True, 4), (False, 3)])
async def test_a_goal_is_given_back_while_its_model_decides_nothing(is_away: bool, deliveries: int, tmp_path: Path) -> None:
    """Another agent may take it meanwhile. It is ended after the model's patience, or after the third useless answer."""
    desk = Desk(tmp_path, Modelled(errors=[UndecidedError("large did not decide: 503.", is_away=is_away)] * 9))
    await desk.open(card(WORKER))
    for _ in range(deliveries - 1):
        assert isinstance(await desk.deliver(), UnavailableError)
        desk.clock.advance(timedelta(seconds=20))
    assert await desk.deliver() is None
    result = await desk.result()
    assert (result.reason, result.usage.tokens) == (Reason.MODEL_UNAVAILABLE, deliveries * SPENT.tokens)
    assert "since" in result.content and result.content.endswith("large did not decide: 503.")
