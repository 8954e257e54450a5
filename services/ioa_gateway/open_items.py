"""Open items: turns of people, and questions to the users of goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ioa.client.client import Client
from ioa.client.documents import open_questions
from ioa.client.waiting import open_groups, people_in
from ioa.group.state import GroupState
from ioa.protocol.ids import GoalName, UserId
from ioa.protocol.teams.team_file import person_of


class OpenItem(NamedTuple):
    """An open turn of a person, or an open question to a user.

    Attributes:
        item: Reference for the answer.
        goal: The goal.
        person: Name of the person; empty for a question to the user.
    """

    item: str
    goal: GoalName
    person: str = ""


async def read_open_items(client: Client, owner: UserId | None = None) -> frozenset[OpenItem]:
    """Read the open turns and questions of a user's goals; None: of all goals."""
    return frozenset([item async for group in open_groups(client, owner) for item in _open_items(group.state)])


def _open_items(state: GroupState) -> Sequence[OpenItem]:
    turn = f"{state.comm_id}.{state.turn}"
    turns = [OpenItem(turn, state.name, person_of(person)) for person in people_in(state) if person in state.floor]
    return [*turns, *(OpenItem(question.item, state.name) for question in open_questions(state))]
