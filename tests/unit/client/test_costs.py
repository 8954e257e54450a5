"""Usage of a goal by purpose, and its model calls."""

from __future__ import annotations

import pytest

from ioa.cli.goal_commands import call_table
from ioa.cli.output.terminal import Terminal
from ioa.client.costs import DecisionCall, costs_by_purpose, decision_calls
from ioa.protocol.decisions import ModelCall
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import Discussion, InformTaskResult
from ioa.protocol.usage import NOTHING, Usage
from tests.unit.cli.logs import log_of
from tests.unit.group.scenario import Scenario, launched, said


def tokens(count: int) -> Usage:
    """Some tokens."""
    return Usage(tokens_in=count, cost_micros=count)


def story() -> Scenario:
    """A goal that talked, worked, decided how to work, and had a nested team."""
    asked = launched("ada", "bob").speaks("ada", Discussion(content="Well?", next_speaker="bob"), usage=tokens(5))
    assigned = asked.says("bob", to="ada", tokens=7).assigns_and_waits("ada", "t3-1:bob", "t3-2:bob")
    task = assigned.open("t3-1")
    reported = assigned.progresses("t3-1", tokens=10)
    result = InformTaskResult(task_id=TaskId("t3-1"), task_conclusion="done", usage=Usage(tokens_in=30, tokens_out=20))
    worked = reported.speaks(task.assignee, result, turn=task.turn)
    nested = worked.nests("t3-2").nested_ends("t3-2", usage=tokens(100))
    return nested.announces("ada").concludes("ada")


def calls() -> tuple[ModelCall, ...]:
    """Calls of two purposes."""
    return (
        ModelCall(purpose="form", usage=tokens(5)),
        ModelCall(purpose="speak", came_to="not_legal", about="PAUSE", milliseconds=1_240, usage=tokens(1_000)),
        ModelCall(purpose="speak", milliseconds=800, usage=tokens(1_100)),
    )


def turn_calls() -> list[DecisionCall]:
    """The calls of a turn, from its log."""
    turn = said("ada", Discussion(content="Well?", next_speaker=AgentId("bob")), 1, calls=calls())
    return [*decision_calls(stored.entry for stored in log_of(launched("ada", "bob").happens(turn)))]


def test_usage_by_purpose_adds_up_to_the_total() -> None:
    """Usage without a call is `other`; a smaller total has no negative part."""
    parts = {"form": tokens(5), "speak": tokens(2_100)}
    assert costs_by_purpose(turn_calls(), tokens(2_112)) == parts | {"other": tokens(7)}
    assert costs_by_purpose(turn_calls(), NOTHING) == parts


def test_a_reader_sees_each_call_of_a_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are in order, with duration and outcome; a call without a decision has its reason."""
    monkeypatch.setenv("COLUMNS", "120")
    rows = turn_calls()[1:]
    Terminal(as_json=False).print(call_table(rows))
    assert [line.split()[1:] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["1", "ada", "DISCUSSION", "speak", "not_legal", "PAUSE", "1.2", "1,000", "0"],
        ["1", "ada", "DISCUSSION", "speak", "taken", "0.8", "1,100", "0"],
    ]
