"""First entry of a new group: construction and checks, without I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ioa.errors import ForbiddenError, InvalidInputError, PayloadTooLargeError
from ioa.group.events import GroupLaunched
from ioa.group.requests import LaunchGroup
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.policy import Casting
from ioa.protocol.setup.charter import MAX_MEMBERS, Charter
from ioa.protocol.teams.team_file import TeamSpec

CARDS_BYTES = 500_000
"""Maximum bytes of all cards of a charter; the cards of large teams are abridged."""
_LAUNCH_BYTES = MAX_PAYLOAD_BYTES * 9 // 10
"""Maximum bytes of a launch; its entry also contains the state."""


def launch_event(
    request: LaunchGroup,
    team: TeamSpec | None,
    cast: Sequence[Casting],
    cards: Sequence[AgentCard],
    origin: Mapping[str, object],
    at: datetime,
) -> GroupLaunched:
    """Return the first event of a group; `origin` contains the fields of the charter that follow from the goal or the task.

    Raises:
        InvalidInputError: The team has too many members.
        PayloadTooLargeError: Goal, plan and cards exceed the maximum size.
    """
    if len(cards) > MAX_MEMBERS:
        raise InvalidInputError(f"A team has {MAX_MEMBERS} members at most, its owner counted; this one has {len(cards)}.")
    charter = Charter.model_validate(
        {
            "goal_id": request.goal_id,
            "owner": request.owner,
            "team_members": cards,
            "plan": request.plan,
            "policy": None if team is None else team.policy,
            "cast": cast,
            **origin,
        }
    )
    launched = GroupLaunched(at=at, charter=charter, usage=request.usage, calls=request.calls, decided_by=request.decided_by)
    try:
        encode(launched, max_payload_bytes=_LAUNCH_BYTES)
    except PayloadTooLargeError as error:
        raise PayloadTooLargeError(
            f"The group cannot be opened: {error.message} It has {len(charter.plan)} planned tasks and {len(cards)} members.",
            hint="Plan less, give large content as files, or shorten the cards of the members.",
        ) from None
    return launched


def check_asked(request: LaunchGroup, team: TeamSpec | None, owner: AgentCard | None) -> None:
    """Check the policy of a launch, and whether its owner may open nested groups.

    Raises:
        InvalidInputError: The policy differs from the policy of the goal.
        ForbiddenError: The owner may not open nested groups.
    """
    if request.policy != ("" if team is None or request.parent is not None else team.policy.digest):
        raise InvalidInputError(f"{request.owner} launches another policy than that of the goal {request.goal_id}.")
    if request.parent is not None and owner is not None and not owner.may_team_up:
        raise ForbiddenError(f"{request.owner} may not open nested teams, according to its card.")
