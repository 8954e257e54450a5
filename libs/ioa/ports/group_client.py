"""What users ask about groups: where one stands, what its log says, what happens in it now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa.group.events import Said
from ioa.group.requests import GroupSnapshot
from ioa.ports.goal_client import PAGE_GOALS
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId


@dataclass(frozen=True)
class GroupList:
    """The groups of some goals, newest goal first, each before the teams nested in it."""

    groups: Sequence[GroupSnapshot]
    before: int | None


class GroupClient(Protocol):
    """Groups as people and programs outside of them see them."""

    async def group(self, comm_id: CommId) -> GroupSnapshot:
        """Look at one group.

        Raises:
            NotFoundError: There is no such group.
        """

    async def groups(self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False) -> GroupList:
        """List the groups of goals on record, newest goal first, nested ones behind their parents, a page of goals at a time."""

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group from its beginning; of one that is not among the newest only a whole id is found.

        Raises:
            NotFoundError: No group's id begins so.
            InvalidInputError: Several do.
        """

    async def entries(self, comm_id: CommId) -> list[StoredEntry]:
        """Read a group's whole log, in order; nothing if there is no such group."""

    async def follow(self, comm_id: CommId, hear: Callable[[StoredEntry | Said], None]) -> None:
        """Tell `hear` of every entry of one group's log from the first on, in order and once each, as they come, for ever.

        The group need not exist yet. Reports of progress that are no entries come as they are heard, from now on. `ioa.client`
        makes one view of a group and its nested teams of this.
        """
