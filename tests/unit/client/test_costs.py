"""What a group has spent is shared out by purpose, to the last token."""

from __future__ import annotations

from functools import reduce

import pytest

from ioa.cli.goals import call_table, cost_table
from ioa.cli.output.terminal import Terminal
from ioa.client.costs import Purpose, costs_by_purpose, decision_calls
from ioa.client.documents import SpendingDocument, told
from ioa.group.events import Said
from ioa.protocol.decisions import ModelCall
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import Discussion, InformTaskResult
from ioa.protocol.usage import NOTHING, Overhead, Usage
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
    result = InformTaskResult(
        task_id=TaskId("t3-1"), task_conclusion="done", usage=Usage(tokens_in=30, tokens_out=20), approach_usage=Usage(tokens_in=12)
    )
    worked = reported.speaks(task.assignee, result, turn=task.turn)
    nested = worked.nests("t3-2").nested_ends("t3-2", usage=tokens(100))
    return nested.announces("ada").concludes("ada")


def spent() -> dict[Purpose, Usage]:
    """The parts of its costs."""
    return dict(costs_by_purpose(stored.entry for stored in log_of(story())))


def test_each_purpose_has_its_part() -> None:
    """Turns, the decision on a task, its work and the nested team are separate parts."""
    parts = {purpose: (usage.tokens_in, usage.tokens_out) for purpose, usage in spent().items()}
    assert parts == {Purpose.SPEAK: (12, 0), Purpose.APPROACH: (12, 0), Purpose.TASK: (18, 20), Purpose.NESTED: (100, 0)}


@pytest.mark.parametrize("claimed", [3, 5, 1_000])
def test_what_came_to_nothing_stands_apart(claimed: int) -> None:
    """Reads, repairs and refused messages are no turns; the parts add up to the charged usage, also if the report is wrong."""
    overhead = Overhead(read=tokens(1), repair=tokens(2), refused=tokens(claimed))
    turn = said("ada", Discussion(content="Well?", next_speaker=AgentId("bob")), 1, usage=tokens(10), overhead=overhead)
    parts = costs_by_purpose(stored.entry for stored in log_of(launched("ada", "bob").happens(turn)))
    refused = min(claimed, 7)
    told = {Purpose.READ: 1, Purpose.REPAIR: 2, Purpose.REFUSED: refused, Purpose.SPEAK: 7 - refused}
    assert parts == {purpose: tokens(count) for purpose, count in told.items() if count}


@pytest.mark.parametrize("boast", [0, 12, 10_000])
def test_the_parts_sum_up_to_the_whole(boast: int) -> None:
    """The parts add up to the charged usage, also if an agent reports too much."""
    log = [stored.entry for stored in log_of(story())]
    for at, entry in enumerate(log):
        if isinstance(entry.event, Said) and isinstance(entry.event.message.payload, InformTaskResult):
            lying = entry.event.message.payload.model_copy(update={"approach_usage": tokens(boast)})
            message = entry.event.message.model_copy(update={"payload": lying})
            log[at] = entry.model_copy(update={"event": entry.event.model_copy(update={"message": message})})
    assert reduce(Usage.plus, costs_by_purpose(log).values(), NOTHING) == log[-1].state.spent


def test_a_reader_sees_how_much_went_into_working_together(capsys: pytest.CaptureFixture[str]) -> None:
    """The table ends with the sum, and with the share of communication."""
    Terminal(as_json=False).print(cost_table(spent()))
    shown = capsys.readouterr().out
    assert [line.split()[:2] for line in shown.splitlines() if line.startswith("all")] == [["all", "142"]]
    assert "15% of it for working together" in shown


def test_a_reader_sees_each_call_of_a_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are in order, with duration and outcome; a call without a decision has its reason."""
    monkeypatch.setenv("COLUMNS", "120")
    calls = (
        ModelCall(purpose="speak", came_to="not_legal", about="PAUSE", milliseconds=1_240, usage=tokens(1_000)),
        ModelCall(purpose="speak", milliseconds=800, usage=tokens(1_100)),
    )
    turn = said("ada", Discussion(content="Well?", next_speaker=AgentId("bob")), 1, calls=calls)
    asked = [*decision_calls(stored.entry for stored in log_of(launched("ada", "bob").happens(turn)))]
    Terminal(as_json=False).print(call_table(asked))
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["1", "ada", "DISCUSSION", "speak", "not", "legal", "PAUSE", "1.2", "1,000", "0"],
        ["speak", "taken", "0.8", "1,100", "0"],
    ]
    nested = asked[0].model_copy(update={"comm_id": CommId("g-nested")})
    Terminal(as_json=False).print(call_table([*asked, nested]))
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["group", asked[0].comm_id, "speak", "g-nested"]
    [first, *_] = told(SpendingDocument.of({}, asked))["calls"]
    assert first.items() >= {"turn": 1, "agent_id": "ada", "came_to": "not_legal", "milliseconds": 1_240}.items()
