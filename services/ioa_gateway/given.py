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

_PAGE, _PAGES_LOOKED_AT = 200, 5


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
    mine, told = f"{folder_of(_uploads_of(call.caller).key)}/", None
    for one in order.inputs:
        if isinstance(one, InlineInput) or (isinstance(one, Artifact) and one.object_name.startswith(mine)):
            continue
        if isinstance(one, Artifact):
            told = await _told(call) if told is None else told
            if await told.tells(call, one):
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


@dataclass
class _Told:
    """The files of the newest goals that a caller reads, by name and digest.

    Attributes:
        given: What users gave to them.
        made: What their agents say they ended with, and the groups of those that do.
    """

    given: set[tuple[str, str]] = field(default_factory=set)
    made: dict[tuple[str, str], list[CommId]] = field(default_factory=dict)

    async def tells(self, call: ApiCall, file: Artifact) -> bool:
        """Whether the caller reads a file there."""
        named = (file.object_name, file.sha256)
        if named in self.given:
            return True
        for comm_id in self.made.get(named, ()):
            try:
                await call.client.fetch(file, 0, 0, told_in=comm_id)
            except NotFoundError:
                continue
            return True
        return False


async def _told(call: ApiCall) -> _Told:
    """Return the files of the newest goals that the caller reads."""
    found, before = _Told(), None
    for _ in range(_PAGES_LOOKED_AT if Scope.GOALS_READ in call.caller.scopes else 0):
        page = await call.client.goals(limit=_PAGE, before=before, labels=call.caller.labels)
        for one in page.goals:
            found.given.update((file.object_name, file.sha256) for file in one.record.goal.inputs)
            for file in one.result.artifacts if one.result else ():
                found.made.setdefault((file.object_name, file.sha256), []).append(one.record.goal.comm_id)
        before = page.before
        if before is None:
            break
    return found
