"""Open items of a group: turns of people, and questions to the user of its goal."""

from __future__ import annotations

from typing import NamedTuple

from ioa.client.documents import open_questions
from ioa.client.waiting import people_in
from ioa.group.state import GroupState
from ioa.protocol.ids import GoalName
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


def open_items(state: GroupState) -> frozenset[OpenItem]:
    """Return the open turns and questions of a group."""
    turn = f"{state.comm_id}.{state.turn}"
    turns = [OpenItem(turn, state.name, person_of(person)) for person in people_in(state) if person in state.floor]
    return frozenset([*turns, *(OpenItem(question.item, state.name) for question in open_questions(state))])
