"""What is said while nothing happens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import pytest

from ioa.cli.conversation import ConversationView
from ioa.cli.following import say_waiting
from ioa.cli.terminal import Terminal
from ioa.ports.goal_client import AnyGoal
from ioa.ports.system_client import SystemClient
from ioa.protocol.ids import GoalId, GoalName, UserId


@dataclass
class Crowded:
    """A system of which it is asked nothing but how many goals wait."""

    number: int

    async def waiting(self, _goal: AnyGoal) -> int:
        """As many as it was told."""
        return self.number


@pytest.mark.parametrize(("number", "words"), [(0, "waiting for an agent"), (4, "until other goals of anna have ended")])
async def test_a_goal_that_waits_for_others_says_so(number: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Who has launched more goals than may be open learns that no agent is missing."""
    terminal = Terminal(as_json=False)
    with ConversationView(terminal) as view:
        system = cast(SystemClient, Crowded(number))
        await say_waiting(system, terminal, view, GoalName(UserId("anna"), GoalId("g")), after=timedelta(0))
    assert words in " ".join(capsys.readouterr().err.split())
