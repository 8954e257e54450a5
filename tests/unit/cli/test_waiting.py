"""What is said while nothing happens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import pytest

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cli.conversation import ConversationView
from ioa.cli.following import say_waiting
from ioa.cli.terminal import Terminal
from ioa.errors import NotFoundError
from ioa.group.goal_lists import AnyGoal
from ioa.protocol.ids import GoalId, GoalName, UserId


@dataclass
class Crowded:
    """A system of which it is asked nothing but how many goals wait, and whether this one is on record."""

    number: int
    taken_in: bool = True

    async def goal(self, goal: AnyGoal) -> None:
        """Look for it; nobody looks at what is found."""
        if not self.taken_in:
            raise NotFoundError(f"There is no goal {goal}.")

    async def waiting(self, _goal: AnyGoal) -> int:
        """As many as it was told."""
        return self.number


@pytest.mark.parametrize(
    ("number", "taken_in", "words"),
    [
        (0, True, "waiting for an agent"),
        (4, False, "until other goals of anna have ended"),
        (0, False, "waiting to be taken in; `ioa doctor` says"),
    ],
)
async def test_a_goal_that_waits_for_others_says_so(
    number: int, taken_in: bool, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who has launched more goals than may be open, or has so much kept that there is no room, learns that no agent is missing."""
    terminal = Terminal(as_json=False)
    with ConversationView(terminal) as view:
        system = cast(NatsSystemClient, Crowded(number, taken_in))
        await say_waiting(system, terminal, view, GoalName(UserId("anna"), GoalId("g")), after=timedelta(0))
    assert words in " ".join(capsys.readouterr().err.split())
