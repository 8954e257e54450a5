"""Tests of the settings of a deployment for an agent: its replica number and its card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ioa import Agent
from ioa.errors import InvalidInputError
from ioa.hosting.loading import as_deployed, replica_of
from ioa.protocol.cards import Skill
from ioa.protocol.ids import AgentId


@pytest.mark.parametrize(
    ("given", "number"),
    [("7", 7), ("ioa-writer-0", 0), ("my-writer2-12", 12), ("", None), ("writer", ""), ("writer2", ""), ("-1x", "")],
)
def test_replica_is_the_number_at_the_end(given: str, number: int | str | None) -> None:
    """A StatefulSet's pod has such a name; replicas without a number would all take one id."""
    if number == "":
        with pytest.raises(InvalidInputError, match=f"IOA_REPLICA: {given!r} is no number and does not end with one"):
            replica_of({"IOA_REPLICA": given})
    else:
        assert replica_of({"IOA_REPLICA": given}) == number
        assert replica_of({}) is None


def test_deployed_card_replaces_only_its_own_fields(tmp_path: Path) -> None:
    """The author's fields stay unless the deployment replaces them, and so does the function."""
    agent = _agent()
    said = {"agent_id": "analyst", "examples": ["sum a column"], "skills": [{"name": "sums"}, "means"], "may_team_up": False}

    [deployed] = as_deployed([agent], _card(tmp_path, said))

    card = deployed.card_as(AgentId("analyst-1"))
    assert (card.pool, card.description, card.examples, card.skills, card.may_team_up, deployed.function) == (
        "analyst", "Reads tables", ("sum a column",), (Skill(name="sums"), Skill(name="means")), False, agent.function,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ('{"descripton": "x"}', "card.json: descripton: Extra inputs are not permitted"),
        ("{", "card.json: JSON: Invalid JSON"),
        ('{"examples": "one"}', "card.json: examples: Input should be a valid array"),
        ('{"agent_id": "a.b"}', "is not valid: agent_id"),
    ],
)
def test_invalid_card_is_rejected(tmp_path: Path, written: str, complaint: str) -> None:
    """The message names the file and the field."""
    (tmp_path / "card.json").write_text(written)
    with pytest.raises(InvalidInputError, match=complaint):
        as_deployed([_agent()], {"IOA_CARD": str(tmp_path / "card.json")})


def test_card_is_for_one_agent(tmp_path: Path) -> None:
    """Two agents under one id would undo each other's work; without a card, agents stay as they are."""
    agents = [_agent(), _agent()]
    assert as_deployed(agents, {}) is agents
    with pytest.raises(InvalidInputError, match="is the card of one agent, but 2 are to run"):
        as_deployed(agents, _card(tmp_path, {}))


def _agent() -> Agent:
    agent = Agent("reader", description="Reads tables", examples=["read this"])
    agent.task(lambda task: task)
    return agent


def _card(folder: Path, said: dict[str, object]) -> dict[str, str]:
    path = folder / "card.json"
    path.write_text(json.dumps(said))
    return {"IOA_CARD": str(path)}
