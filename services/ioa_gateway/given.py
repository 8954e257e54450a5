"""Files that go with goals, by keys that read only part of what there is: whoever gives a file to a goal has it read there.

A key without labels that reads goals reads all that its user does, and so gives whatever its user may. The uploads of any other key
lie in a folder of its own, which their references show. What an agent names shows nothing by itself, since it may have learned the
reference elsewhere: for such a key, group setup looks whether somebody in the group was rightly told of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ioa.errors import ForbiddenError, NotFoundError
from ioa.protocol.api_keys import Scope
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import CommId, GoalName
from ioa.protocol.object_names import folder_of
from ioa_gateway.callers import Caller
from ioa_gateway.calls import ApiCall
from ioa_gateway.goal_pages import LOOKED_THROUGH, MOST_FOUND, MOST_LOOKED_THROUGH


async def upload(call: ApiCall, name: str, media_type: str | None) -> Artifact:
    """Store the file that is sent.

    Raises:
        IoaError: See `ioa.ports.goal_client.GoalClient.upload`.
    """
    if not _is_narrowed(call.caller):
        return await call.client.upload(name, call.sent, media_type=media_type)
    uploads, place = _uploads_of(call.caller).goal_id, call.hooks.draw(16).hex()
    return await call.client.system.upload(name, call.sent, media_type=media_type, goal_id=uploads, place=place)


async def check_inputs(call: ApiCall, order: GoalOrder) -> None:
    """See that the caller may give a goal the files that it refers to: by a key that reads only part, those of this part.

    Raises:
        ForbiddenError: One is not among its own uploads, nor among what the newest goals that it reads were given, or ended with.
    """
    if not _is_narrowed(call.caller):
        return
    mine = f"{folder_of(_uploads_of(call.caller).key)}/"
    others = [
        one
        for one in order.inputs
        if not (isinstance(one, InlineInput) or (isinstance(one, Artifact) and one.object_name.startswith(mine)))
    ]
    told = await _told(call, {_named(one) for one in others if isinstance(one, Artifact)})
    for one in others:
        if isinstance(one, Artifact) and await told.tells(call, one):
            continue
        named = one if isinstance(one, str) else one.name
        raise ForbiddenError(f"This key reads no file {named[:80]!r} like this one.", hint="Upload the file by this key.")


def held_to(caller: Caller, comm_id: CommId) -> CommId | None:
    """Say in which group a file that a caller reads there must rightly have been told of: none if he reads all."""
    return comm_id if _is_narrowed(caller) else None


def _is_narrowed(caller: Caller) -> bool:
    return bool(caller.labels) or Scope.GOALS_READ not in caller.scopes


def _uploads_of(caller: Caller) -> GoalName:
    """Name a goal that nobody launches, for which the uploads of a key are stored."""
    return GoalName(caller.user, caller.goal_id("f", "uploads"))


_Named = tuple[str, str]
"""A file's name in the store, and its digest."""


@dataclass
class _Told:
    """Where files that are wanted were found, among the newest goals that a caller reads.

    Attributes:
        given: Those that users gave to them.
        made: Those that their agents say they ended with, and the groups of those that do.
    """

    given: set[_Named] = field(default_factory=set)
    made: dict[_Named, list[CommId]] = field(default_factory=dict)

    async def tells(self, call: ApiCall, file: Artifact) -> bool:
        """Whether the caller reads a file there."""
        named = _named(file)
        if named in self.given:
            return True
        for comm_id in self.made.get(named, ()):
            try:
                await call.client.fetch(file, 0, 0, told_in=comm_id)
            except NotFoundError:
                continue
            return True
        return False


def _named(file: Artifact) -> _Named:
    return file.object_name, file.sha256


async def _told(call: ApiCall, wanted: set[_Named]) -> _Told:
    """Look for files among the newest goals that the caller reads; of other files nothing is kept."""
    told, before, found, looked_at = _Told(), None, 0, 0
    if not wanted or Scope.GOALS_READ not in call.caller.scopes:
        return told
    while found < MOST_FOUND and looked_at < MOST_LOOKED_THROUGH:
        async with call.limits.pages.slot(call.caller.user):
            before, of_these, looked_at_now = await _look(call, told, wanted, before)
        if before is None or told.given == wanted:
            break
        found, looked_at = found + of_these, looked_at + looked_at_now
    return told


async def _look(call: ApiCall, told: _Told, wanted: set[_Named], before: int | None) -> tuple[int | None, int, int]:
    """Look through a page of goals; returns where it goes on, and how many were read of how many that were looked at."""
    page = await call.client.goals(limit=LOOKED_THROUGH, before=before, labels=call.caller.labels)
    for one in page.goals:
        told.given.update(wanted.intersection(map(_named, one.record.goal.inputs)))
        for named in wanted.intersection(map(_named, one.result.artifacts if one.result else ())):
            told.made.setdefault(named, []).append(one.record.goal.comm_id)
    return page.before, len(page.goals), page.looked_at
