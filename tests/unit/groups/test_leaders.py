"""Who leads a goal that addresses nobody: who fits it best takes it, and nobody's being away holds it up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from ioa.errors import NotYetError
from ioa.group.requests import LaunchGroup
from ioa.protocol import subjects
from ioa.protocol.agents.search import Hit
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import LOCAL, AgentId, CommId, PoolId, UserId
from ioa.protocol.setup.open_groups import OpenGroup
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa_groups.leaders import best_leader, split_goal
from ioa_groups.offering import TAKEN_WITHIN
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, GOAL, TICKET, Plane

ORDER = b'{"goal": "Count to ten.", "goal_id": "goal-1"}'


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


def test_the_operator_names_pools() -> None:
    """Names are separated by commas; a name that no pool can have is rejected."""
    assert ControlPlaneSettings(leaders=" ada, bob,ada,").leading_pools == ("ada", "bob")
    for leaders in ("a b", "a.b"):
        with pytest.raises(ValidationError):
            ControlPlaneSettings(leaders=leaders)


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
