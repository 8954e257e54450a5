"""Output of the result of a goal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from ioa.cli.output.conversation_output import ConversationView
from ioa.cli.output.results import note_waiting, show_answer
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.group.requests import AnyGoal
from ioa.protocol.goals import Degraded, GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, GoalName, TaskId, UserId

CONCLUDED = GoalResult(
    goal_id=GoalId("g"),
    reason=Reason.CONCLUDED,
    content="Ten.",
    comm_id=CommId("room"),
    turns=1,
    finished_at=datetime(2026, 1, 1, tzinfo=UTC),
)


DEGRADED = Degraded(lost=(AgentId("bob"), AgentId("eve")), tasks=(TaskId("t1-1"), TaskId("t2-1")))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"degraded": DEGRADED}, "degraded: bob, eve were lost when this was concluded; not done: t1-1, t2-1"),
        ({"degraded": DEGRADED.model_copy(update={"tasks": ()})}, "degraded: bob, eve were lost when this was concluded"),
        ({"limit": Reason.MAX_TURNS}, "cut short: max_turns was reached, and so was the goal"),
    ],
)
def test_result_names_lost_members_and_limits(fields: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The goal succeeded, without some members or tasks, or at a limit."""
    show_answer(Terminal(as_json=False), CONCLUDED.model_copy(update=fields))
    assert " ".join(capsys.readouterr().out.split()).endswith(words)


@dataclass
class Waiting:
    """A system in which other goals of the user wait."""

    number: int

    async def count_waiting(self, _goal: AnyGoal) -> int:
        """Return the number of waiting goals."""
        return self.number


@pytest.mark.parametrize(("number", "words"), [(0, "waiting for an agent"), (4, "until other goals of anna have ended")])
async def test_a_goal_that_waits_reports_the_reason(number: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A user with more goals than may be open reads that no agent is missing."""
    terminal = Terminal(as_json=False)
    with ConversationView(terminal) as view:
        system = cast(Client, Waiting(number))
        await note_waiting(system, terminal, view, GoalName(UserId("anna"), GoalId("g")), after=timedelta(0))
    assert words in " ".join(capsys.readouterr().err.split())
