"""Planning a team for a goal with a model: each plan passes the checker."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ioa import Agent, UnavailableError
from ioa.agent.model import Budget, ModelBrain
from ioa.agent.team_formation import cast_needs
from ioa.brain import Mission
from ioa.client.rehearsal import rehearse
from ioa.ports.brain_types import Contact, TeamLaunch, UndecidedError
from ioa.ports.chat_model import ModelAnswer
from ioa.ports.meter import Meter
from ioa.protocol.agents.search import Hit, Need, NeedHits, Search, SearchResult
from ioa.protocol.codec import validate
from ioa.protocol.ids import AgentId
from ioa.protocol.teams.team_file import TeamSpec, document_of, team_of
from ioa.testing import ScriptedModel
from ioa.testing.recording_context import found
from ioa.testing.scripted_model import Line
from tests.unit.group.scenario import card

GOAL = "Analyse sales.csv, draw a chart of the result, and then write a report."
CARD = Agent("planner", description="Plans").card_as(AgentId("planner"))

ROLES = """
team = "reviewed report"
leader = "writer"
[roles]
writer = { need = "write a report" }
critic = { need = "check a report", prompt = "Be strict." }
"""
DRAFT = """
[[nodes]]
name = "draft"
roles = ["writer"]
visits = 3
then = "review"
"""
REVIEW = """
[[nodes]]
name = "review"
roles = ["critic"]
max = 1
form = { good = "yes/no" }
exits = [{ to = "end", when = { field = "good", equals = true } }, { to = "draft" }, { to = "end" }]
"""


class _Tools:
    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        return found(Agent("reporter", description="Writes reports", examples=["write a report"])).model_copy(
            update={"by_need": ()}
        )

    async def contacts(self) -> Sequence[Contact]:
        return ()


def _plan(*nodes: str) -> ModelAnswer:
    plan = {"type": "team", "file": ROLES + "".join(nodes)}
    return ModelAnswer(json.dumps({"decision": plan}), prompt_tokens=100, answer_tokens=10)


async def _planned(*script: Line, goal: str = GOAL) -> tuple[TeamSpec | None, ScriptedModel, Meter]:
    meter, model = Meter(), ScriptedModel(script)
    brain = ModelBrain(model, budget=Budget())
    return await brain.plan(Mission(goal, (), CARD, meter=meter), _Tools()), model, meter


async def test_a_model_plans_a_team_that_plays() -> None:
    """Its goal is the goal of the user."""
    team, model, meter = await _planned(_plan(DRAFT, REVIEW))
    assert team is not None and team_of(document_of(team)) == team
    assert (team.goal, team.leader.role, [one.need for one in team.fillings]) == (
        GOAL,
        "writer",
        ["write a report", "check a report"],
    )
    assert list(rehearse(team, {}))[-1].node == ""
    assert meter.decided_by is not None and (meter.decided_by.kind, meter.total.tokens) == ("model", 110)
    assert GOAL in model.asked[0].prompt


async def test_model_corrects_findings_of_the_checker() -> None:
    """Garbage, then a plan with an unreachable end, then a good one: three tries, each counted, and its sentences in the prompt."""
    endless = (
        DRAFT.replace("visits = 3", ""),
        REVIEW.replace(', { to = "end" }]', "]").replace('{ to = "end", when', '{ to = "draft", when'),
    )
    team, model, meter = await _planned("no plan", _plan(*endless), _plan(DRAFT, REVIEW))
    assert team is not None and len(model.asked) == 3
    assert "no way leads from it to the end" in model.asked[2].messages[-1].content
    assert [call.came_to for call in meter.calls] == ["useless_answer", "not_legal", "taken"]


async def test_file_that_is_no_toml_is_returned_with_its_error() -> None:
    """The model can correct it."""
    _, model, _ = await _planned(_plan("[[nodes]"), _plan(DRAFT, REVIEW))
    assert "TOML" in model.asked[1].messages[-1].content


@pytest.mark.parametrize(("script", "is_away"), [(["garbage"] * 3, False), ([UnavailableError("away", hint="")], True)])
async def test_failing_model_plans_nothing(script: list[Line], is_away: bool) -> None:
    """No other component plans in its place."""
    brain = ModelBrain(ScriptedModel(script), budget=Budget(), sleep=_gives_up)
    with pytest.raises(UndecidedError) as caught:
        await brain.plan(Mission(GOAL, (), CARD), _Tools())
    assert caught.value.is_away == is_away


async def _gives_up(_seconds: float) -> None:
    raise UnavailableError("away")


async def test_goal_of_one_need_gets_no_policy() -> None:
    """The model answers that the goal is free."""
    free = json.dumps({"decision": {"type": "free", "why": "It is one agent's work."}})
    assert (await _planned(free, goal="Greet Ada."))[0] is None


async def test_more_needs_than_one_search_may_have_are_looked_for_by_several() -> None:
    """A team may have 64 roles. It failed with a traceback, three times for each goal."""
    asked: list[int] = []

    async def search(needs: Sequence[Need]) -> SearchResult:
        validate(Search, {"needs": needs})
        asked.append(len(needs))
        hits = (Hit(card=card(AgentId("ada")), score=1.0, similarity=1.0),)
        return SearchResult(by_need=tuple(NeedHits(need=need, hits=hits) for need in needs))

    names = [f"r{number}" for number in range(40)]
    nodes = [{"name": "x", "roles": names, "max": 1}]
    team = team_of({"team": "t", "roles": {name: {"need": "sums"} for name in names}, "nodes": nodes})
    cast = await cast_needs(team, search, leader=AgentId("eve"))
    assert isinstance(cast, TeamLaunch)
    assert (asked, [one.role for one in cast.cast]) == ([32, 8], names)
