"""Who leads a goal that addresses nobody: who fits it best takes it, and nobody's being away holds it up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from pydantic import ValidationError

from ioa.errors import NotYetError
from ioa.group.requests import LaunchGroup
from ioa.protocol import subjects
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import LOCAL, AgentId, CommId, PoolId, UserId
from ioa.protocol.open_groups import OpenGroup
from ioa.protocol.search import Hit
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa_groups.leaders import LED_WITHIN, TAKEN_WITHIN, best_leader, split_goal
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, TICKET, Plane

ORDER = b'{"goal": "Count to ten.", "goal_id": "goal-1"}'
_A_MOMENT = timedelta(milliseconds=1)


def hit(agent_id: str, similarity: float, *, leads: bool | None = None, tags: tuple[str, ...] = ()) -> Hit:
    """An agent that was found."""
    found = led_by(agent_id, leads).model_copy(update={"tags": tags})
    return Hit(card=found, score=similarity, similarity=similarity)


def led_by(agent_id: str, leads: bool | None = None) -> AgentCard:
    """A card that says whether its agent leads."""
    return card(AgentId(agent_id)).model_copy(update={"leads": leads})


@pytest.mark.parametrize(
    ("hits", "leader"),
    [
        ([], None),
        ([hit("first", 0.8), hit("second", 0.7)], "first"),
        ([hit("first", 0.2), hit("second", 0.1)], "first"),
        ([hit("robot", 0.9, leads=False), hit("second", 0.7)], "second"),
        ([hit("robot", 0.9, leads=False)], None),
        ([hit("first", 0.8), hit("coordinator", 0.75, leads=True)], "coordinator"),
        ([hit("first", 0.8), hit("coordinator", 0.5, leads=True)], "first"),
        ([hit("first", 0.2), hit("tagged", 0.15, tags=("coordinator",))], "tagged"),
    ],
    ids=[
        "nobody is found",
        "the best hit",
        "the best hit, though it hardly fits",
        "who does not lead is passed over",
        "and leads not even if nobody else is there",
        "a coordinator goes before one that fits hardly better",
        "but not before one that fits much better",
        "the tag makes a coordinator",
    ],
)
def test_who_is_chosen(hits: list[Hit], leader: str | None) -> None:
    """The best hit leads, unless its card says otherwise or a coordinator is about as good."""
    assert best_leader(hits) == leader


def test_leader_of_goal_whose_parts_fit_several_pools_is_a_coordinator() -> None:
    """Its similarity to the goal does not count then; without a coordinator the best hit leads."""
    hits = [hit("budget", 0.6), hit("launch", 0.3, leads=True)]
    assert [best_leader(hits, several=several) for several in (True, False)] == ["launch", "budget"]
    assert best_leader(hits[:1], several=True) == "budget"


@pytest.mark.parametrize(
    ("goal", "parts"),
    [
        ("sum of price in sales.csv", []),
        ("Sum sales.csv. Draw a chart!", ["Sum sales.csv.", "Draw a chart!"]),
        ("Plan a launch:\n- a budget\n2. a list of risks", ["Plan a launch:", "a budget", "a list of risks"]),
        ("计划预算。画图。", ["计划预算。", "画图。"]),
    ],
)
def test_parts_of_goal_are_its_sentences_and_list_items(goal: str, parts: list[str]) -> None:
    """The goal itself is the first need; a goal with one part has no others."""
    assert split_goal(goal) == [goal, *parts]


def test_who_was_asked_is_not_asked_again() -> None:
    """The second offer goes to somebody else."""
    assert best_leader([hit("first", 0.8), hit("second", 0.7)], {PoolId("first")}) == "second"


async def found(*agents: tuple[AgentId, float], only: Sequence[AgentId] = ()) -> Plane:
    """A system in which discovery finds these agents, all of them online, and these pools alone may lead."""
    plane = Plane(leaders=tuple(map(PoolId, only)))
    await plane.join(*(agent_id for agent_id, _ in agents))
    plane.discovery.found = [(card(agent_id), similarity) for agent_id, similarity in agents]
    return plane


async def look(plane: Plane) -> bool:
    """Deliver the goal to intake; whether it is done with it."""
    try:
        await plane.intake.accept(subjects.goal_of(LOCAL), ORDER, "IOA_GOALS/1/x")
    except NotYetError as error:
        assert error.retry_after == TAKEN_WITHIN
        return False
    return True


def where(plane: Plane) -> list[PoolId | None]:
    """The queues in which the goal waits."""
    return [pool for pool in (PoolId(ADA), PoolId(BOB), PoolId(EVE), None) if plane.work.waiting(pool)]


async def test_a_goal_goes_from_one_to_the_next() -> None:
    """It waits a moment for the best, another for the second, and then for anybody; never in two queues at once."""
    plane = await found((ADA, 0.8), (BOB, 0.7), (EVE, 0.6))
    seen = []
    for _ in range(3):
        done = await look(plane)
        seen.append((where(plane), done))
        if not done:
            plane.clock.advance(TAKEN_WITHIN - _A_MOMENT)
            assert (await look(plane), where(plane)) == (False, seen[-1][0])
            plane.clock.advance(_A_MOMENT)
    assert seen == [([PoolId(ADA)], False), ([PoolId(BOB)], False), ([None], True)]


async def _places(plane: Plane) -> list[int]:
    """Under which numbers the goal was queued, where it was last."""
    noted = await plane.open_groups.find(ROOM)
    return [] if noted is None else [offer.seq for offer in noted.offers]


async def test_only_those_lead_whom_the_operator_names() -> None:
    """Whoever fits better: the best of those first, then the others, and whoever is last keeps it for as long as he is there."""
    plane = await found((ADA, 0.9), (BOB, 0.6), (EVE, 0.7), only=(BOB, EVE))
    seen = []
    for _ in range(6):
        assert not await look(plane)
        seen.append(where(plane))
        plane.clock.advance(TAKEN_WITHIN)
        plane.leases.hear(BOB)
        plane.leases.hear(EVE)
    assert seen == [[PoolId(EVE)], *[[PoolId(BOB)]] * 5]
    assert await _places(plane) == [1, 2], "it has kept its place in the queue"
    await plane.leases.put(BOB, None)
    assert (await look(plane), where(plane)) == (False, [PoolId(EVE)])
    await plane.setup.launch(LaunchGroup(owner=EVE, members=(), goal_id=GOAL, ticket=TICKET))
    assert await look(plane)


@pytest.mark.parametrize("away", ["discovery", "everybody"])
async def test_a_goal_waits_for_those_who_may_lead(away: str) -> None:
    """It is nobody else's, whether discovery answers or not; whoever of them comes is given it."""
    plane = await found((ADA, 0.9), only=(BOB, EVE))
    plane.discovery.reachable = away != "discovery"
    for _ in range(3):
        assert (await look(plane), where(plane)) == (False, [PoolId(BOB)])
        plane.clock.advance(TAKEN_WITHIN)
    assert await _places(plane) == [1]
    await plane.join(EVE)
    assert (await look(plane), where(plane)) == (False, [PoolId(EVE)])


def test_the_operator_names_pools() -> None:
    """With commas between; what can be no pool is refused, and so are more than one search is for."""
    assert ControlPlaneSettings(leaders=" ada, bob,ada,").leading_pools == ("ada", "bob")
    for leaders in ("a b", "a.b", ",".join(f"p{number}" for number in range(33))):
        with pytest.raises(ValidationError):
            ControlPlaneSettings(leaders=leaders)


async def test_who_may_lead_and_drops_a_goal_is_given_it_last() -> None:
    """Another one has it first; where there is none it is put back for him."""
    plane = await found((ADA, 0.9), (BOB, 0.6), only=(BOB,))
    await look(plane)
    await plane.work.withdraw(1)
    assert (await look(plane), where(plane)) == (False, [PoolId(BOB)])


async def test_who_took_it_may_take_its_time() -> None:
    """While an agent forms a team nobody else is asked, until its pool is gone."""
    plane = await found((ADA, 0.8), (BOB, 0.7))
    await look(plane)
    plane.work.taken.add(1)
    plane.clock.advance(TAKEN_WITHIN)
    assert (await look(plane), where(plane)) == (False, [PoolId(ADA)])
    await plane.leases.put(ADA, None)
    assert (await look(plane), where(plane)) == (False, [PoolId(BOB)])


async def test_who_took_it_and_opens_no_group_for_minutes_is_not_waited_for() -> None:
    """An agent that reports work without opening a group loses the goal to the next pool."""
    plane = await found((ADA, 0.8), (BOB, 0.7))
    await look(plane)
    plane.work.taken.add(1)
    plane.clock.advance(LED_WITHIN - _A_MOMENT)
    plane.leases.hear(ADA)
    assert (await look(plane), where(plane)) == (False, [PoolId(ADA)])
    plane.clock.advance(_A_MOMENT)
    assert (await look(plane), where(plane)) == (False, [PoolId(BOB)])


async def test_once_its_group_is_open_the_goal_is_led() -> None:
    """The goal is looked at no more, and stands in the list of what is open until its end."""
    plane = await found((ADA, 0.8))
    await look(plane)
    await plane.setup.launch(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET))
    assert await look(plane)
    assert plane.open_groups.comm_ids() == [ROOM]


async def test_while_its_group_opens_the_goal_is_offered_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look between the note that a group is open and its first entry wakes nobody, so that no second team is formed."""
    plane = await found((ADA, 0.8))
    await look(plane)
    plane.work.taken.add(1)
    add, seen = plane.open_groups.add, []

    async def add_while_looked_at(user: UserId, comm_id: CommId, group: OpenGroup) -> bool:
        is_new = await add(user, comm_id, group)
        seen.append((await look(plane), len(plane.work.waiting(PoolId(ADA)))))
        return is_new

    monkeypatch.setattr(plane.open_groups, "add", add_while_looked_at)
    await plane.setup.launch(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET))
    assert seen == [(False, 1)]


@pytest.mark.parametrize("away", ["discovery", "everybody"])
async def test_nobodys_being_away_holds_a_goal_up(away: str) -> None:
    """Without discovery, or when it finds nobody, the goal is anybody's at once."""
    plane = await found((ADA, 0.8))
    if away == "discovery":
        plane.discovery.reachable = False
    else:
        plane.discovery.found = []
    assert (await look(plane), where(plane)) == (True, [None])
