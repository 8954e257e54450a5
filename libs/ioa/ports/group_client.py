"""What users ask about groups: where one stands, what its log says, what happens in it now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from ioa.group.events import Said
from ioa.group.requests import GroupSnapshot
from ioa.ports.goal_client import PAGE_GOALS
from ioa.ports.group_log import StoredEntry
from ioa.protocol.codec import encode_value
from ioa.protocol.ids import CommId, UserId


@dataclass(frozen=True)
class GroupList:
    """The groups of some goals, newest goal first, each before the teams nested in it; policies only of those with people."""

    groups: Sequence[GroupSnapshot]
    before: int | None


def listed_group(group: GroupSnapshot) -> GroupSnapshot:
    """Return a group as lists show it: by its policy is told what is asked of people, and nothing else."""
    if group.charter is None or any(member.human for member in group.state.members):
        return group
    return group.model_copy(update={"charter": group.charter.model_copy(update={"policy": None, "cast": ()})})


def listed_bytes(group: GroupSnapshot) -> int:
    """Count a group for a page of a list, as it would be sent: of its log's entries, which have more, no more is kept."""
    return len(encode_value(group.model_dump(mode="json")))


class GroupListener(Protocol):
    """Whoever wants to know when there is something to read."""

    def hint(self) -> None:
        """Hear that an entry was stored, or is about to be."""

    def look(self) -> None:
        """Hear that a hint may have been lost; now and then, and whenever the connection was."""

    def report(self, said: Said) -> None:
        """Take a report of progress that is no entry."""


class GroupClient(Protocol):
    """Groups as people and programs outside of them see them."""

    async def group(self, comm_id: CommId) -> GroupSnapshot:
        """Look at one group.

        Raises:
            NotFoundError: There is no such group.
        """

    async def groups(
        self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False, owner: UserId | None = None
    ) -> GroupList:
        """List the groups of goals on record, newest goal first, nested ones behind their parents, a page of goals at a time.

        A page ends behind the goal whose groups reach `PAGE_BYTES`.

        Of open ones with `owner` those of this user's goals alone, of which a page may be short: of others' nothing is read.
        """

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group from its beginning; of one that is not among the newest only a whole id is found.

        Raises:
            NotFoundError: No group's id begins so.
            InvalidInputError: Several do.
        """

    async def entries(
        self, comm_id: CommId, *, after: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read a group's log behind a sequence, in order; nothing if there is no such group.

        Fewer than `limit` are all that its leader has in the moment of the answer, unless they have `max_bytes`: the last one is
        the one that reaches it. `ioa.client` makes one view of a group and its nested teams of this.

        Raises:
            UnavailableError: The log cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """

    async def entries_before(
        self, comm_id: CommId, *, before: int, limit: int, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read the last entries of a group's log before a sequence, in order; fewer than `limit` are all there are.

        With `max_bytes` there are fewer if they have more: the first one is the one that reaches it.

        Raises:
            UnavailableError: The log cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """

    async def heads(self, comm_ids: Sequence[CommId], *, at: int) -> Mapping[CommId, GroupSnapshot]:
        """Tell where each group stood at a sequence, by its last entry up to there; groups that have none by then are left out.

        No charter is told: the entry may be a launch, whose policy takes megabytes when it is decoded.

        Raises:
            UnavailableError: The logs cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """

    def listen(self, comm_id: CommId, listener: GroupListener) -> AbstractAsyncContextManager[None]:
        """Call the listener for news of a goal's root group, which need not exist yet, and the groups nested in it.

        The caller reads own goals only, or the goals of all users.
        """
