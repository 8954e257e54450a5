"""Tests of what a deployment says of an agent: its number and its card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ioa import Agent
from ioa.errors import InvalidInputError
from ioa.hosting.deployment import as_deployed, replica_of
from ioa.protocol.cards import Skill
from ioa.protocol.ids import AgentId


@pytest.mark.parametrize(("given", "number"), [("7", 7), ("ioa-writer-0", 0), ("my-writer2-12", 12)])
def test_the_replica_is_the_number_at_the_end(given: str, number: int) -> None:
    """A StatefulSet's pod is known by its name."""
    assert replica_of({"IOA_REPLICA": given}) == number


def test_without_a_deployment_there_is_no_number() -> None:
    """An agent on a laptop joins as itself."""
    assert (replica_of({}), replica_of({"IOA_REPLICA": ""})) == (None, None)


@pytest.mark.parametrize("given", ["writer", "writer2", "-1x", "2-b"])
def test_a_name_without_a_number_is_refused(given: str) -> None:
    """Replicas that all took one id would undo each other's work."""
    with pytest.raises(InvalidInputError) as caught:
        replica_of({"IOA_REPLICA": given})

    assert caught.value.message == f"IOA_REPLICA: {given!r} is no number and does not end with one, as writer-2 does."


def test_a_card_replaces_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    """The author's words stay where the deployment says nothing, and so does the function."""
    agent = _agent()
    said = {"agent_id": "analyst", "examples": ["sum a column"], "skills": [{"name": "sums"}, "means"], "may_team_up": False}

    [deployed] = as_deployed([agent], _card(tmp_path, said))

    card = deployed.card_as(AgentId("analyst-1"))
    assert (card.pool, card.description, card.examples, card.skills, card.may_team_up, deployed.function) == (
        "analyst", "Reads tables", ("sum a column",), (Skill(name="sums"), Skill(name="means")), False, agent.function,
    )  # fmt: skip


def test_without_a_card_agents_stay_as_they_are() -> None:
    """Nothing is copied."""
    agents = [_agent()]

    assert as_deployed(agents, {}) is agents


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ('{"descripton": "x"}', "descripton: Extra inputs are not permitted"),
        ("{", "JSON: Invalid JSON"),
        ('{"examples": "one"}', "examples: Input should be a valid array"),
    ],
)
def test_a_wrong_card_is_refused(tmp_path: Path, written: str, complaint: str) -> None:
    """The message names the file and the field."""
    path = tmp_path / "card.json"
    path.write_text(written)

    with pytest.raises(InvalidInputError) as caught:
        as_deployed([_agent()], {"IOA_CARD": str(path)})

    assert f"IOA_CARD: {path}: {complaint}" in caught.value.message


def test_card_with_an_invalid_id_is_rejected(tmp_path: Path) -> None:
    """The rules for a card equal the rules of the author's agent."""
    with pytest.raises(InvalidInputError, match="is not valid: agent_id"):
        as_deployed([_agent()], _card(tmp_path, {"agent_id": "a.b"}))


def test_one_card_is_not_for_two_agents(tmp_path: Path) -> None:
    """Two agents under one id would undo each other's work."""
    with pytest.raises(InvalidInputError, match="is the card of one agent, but 2 are to run"):
        as_deployed([_agent(), _agent()], _card(tmp_path, {}))


def _agent() -> Agent:
    agent = Agent("reader", description="Reads tables", examples=["read this"])
    agent.task(lambda task: task)
    return agent


def _card(folder: Path, said: dict[str, object]) -> dict[str, str]:
    path = folder / "card.json"
    path.write_text(json.dumps(said))
    return {"IOA_CARD": str(path)}
