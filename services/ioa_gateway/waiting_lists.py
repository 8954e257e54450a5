"""Lists of what waits in goals, of so many bytes at the most: one goal has 60 people wait, and tells each half a megabyte."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel
from starlette.responses import Response

from ioa.client.seat import Awaited
from ioa.client.waiting import AwaitedDocument
from ioa.protocol.ids import GoalName, UserId
from ioa_gateway.calls import document_of_parts, written_part
from ioa_gateway.entry_pages import MOST_BYTES

_MOST_TURNS_BYTES = 500_000
"""Of the turns of one goal, which are told in words besides."""


class FairList:
    """What waits in many goals, in the order in which it was found, as far as it fits.

    Where it does not, the last part is left out of that goal which takes up most, of that user whose goals do: what a stranger's
    goals tell leaves out nothing of who takes up no more than the others.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._found = 0
        self._parts = dict[int, bytes]()
        self._numbers = dict[UserId, dict[GoalName, list[int]]]()
        self._of_users, self._of_goals = Counter[UserId](), Counter[GoalName]()

    async def add(self, goal: GoalName, part: BaseModel) -> None:
        """Write something that waits in a goal, if there is room for it; others' requests go on behind each."""
        self._parts[self._found] = written_part(part)
        self._numbers.setdefault(goal.owner, {}).setdefault(goal, []).append(self._found)
        self._count(goal, len(self._parts[self._found]))
        self._found += 1
        while self._of_users.total() > self._most_bytes:
            self._leave_out()
        await asyncio.sleep(0)

    def document(self, name: str) -> Response:
        """Answer with the list, and with whether there is more."""
        return document_of_parts({"more": len(self._parts) < self._found}, name, self._parts.values())

    def _leave_out(self) -> None:
        [(user, _)] = self._of_users.most_common(1)
        goals = self._numbers[user]
        goal = max(goals, key=self._of_goals.__getitem__)
        self._count(goal, -len(self._parts.pop(goals[goal].pop())))

    def _count(self, goal: GoalName, size: int) -> None:
        self._of_users[goal.owner] += size
        self._of_goals[goal] += size


def turns_told(found: Sequence[Awaited]) -> tuple[Sequence[AwaitedDocument], int]:
    """Describe what is up to people in one goal: the first whole, of others how their texts begin, and how many do not fit."""
    told, size = list[AwaitedDocument](), 0
    for one in found:
        document = AwaitedDocument.of(one)
        document = document.begun() if told else document
        size += len(written_part(document))
        if told and size > _MOST_TURNS_BYTES:
            break
        told.append(document)
    return told, len(found) - len(told)
