"""What opens a group: for what, with whom and by which team, and whether it fits into one entry. Nothing is read or stored here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ioa.errors import ForbiddenError, InvalidInputError, PayloadTooLargeError
from ioa.group.events import GroupLaunched
from ioa.group.requests import LaunchGroup
from ioa.group.state import MAX_MEMBERS, Charter, Limits, ParentTask
from ioa.protocol.cards import AgentCard, card_bytes
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.goals import Artifact, GoalRecord
from ioa.protocol.ids import CommId, UserId
from ioa.protocol.policy import Casting
from ioa.protocol.team import TeamSpec

CARDS_BYTES = 500_000
"""What all cards of a charter may hold; members of large teams are shown less of each other."""
_LAUNCH_BYTES = MAX_PAYLOAD_BYTES * 9 // 10
"""What a launch may hold, so that its entry, which carries a state besides, fits."""
_LARGEST_NAMED = 3


@dataclass(frozen=True)
class GroupMandate:
    """What a new group works for, and within which limits."""

    comm_id: CommId
    user: UserId | None
    goal: str
    inputs: tuple[Artifact, ...]
    depth: int
    limits: Limits
    parent: ParentTask | None
    traceparent: str
    labels: dict[str, str]


@dataclass(frozen=True)
class GroupOpening:
    """Who opens a group with whom, at what time; for what, its mandate says."""

    request: LaunchGroup
    team: TeamSpec | None
    cast: tuple[Casting, ...]
    cards: tuple[AgentCard, ...]
    at: datetime

    def under(self, mandate: GroupMandate) -> GroupLaunched:
        """Return the group's first entry, if it has room.

        Raises:
            PayloadTooLargeError: Goal, plan and cards together do not fit into it.
        """
        request = self.request
        launched = GroupLaunched(
            at=self.at,
            charter=Charter(
                comm_id=mandate.comm_id,
                goal_id=request.goal_id,
                user=mandate.user,
                goal=mandate.goal,
                owner=request.owner,
                team_members=self.cards,
                team_up_depth=mandate.depth,
                limits=mandate.limits,
                inputs=mandate.inputs,
                parent=mandate.parent,
                plan=request.plan,
                traceparent=mandate.traceparent,
                brief=request.brief if mandate.parent else "",
                policy=None if self.team is None else self.team.policy,
                cast=self.cast,
                labels=mandate.labels,
            ),
            usage=request.usage,
            overhead=request.overhead,
            calls=request.calls,
            decided_by=request.decided_by,
        )
        check_launch_size(launched)
        return launched


def team_of(request: LaunchGroup, record: GoalRecord | None) -> TeamSpec | None:
    """Return the team that works at a goal: its own, or the one that its leader has planned.

    Raises:
        InvalidInputError: A team was planned for a task, or for a goal that has one, or with a person, who was not asked, or who
            recalls what was said in other groups of the goal's user: who leads one goal of his is not to read there of the others.
    """
    given, planned = None if record is None else record.goal.team, request.team
    if planned is None:
        return given
    if given is not None or record is None:
        raise InvalidInputError(f"{request.owner} has planned a team for a goal that was given one, or for a task.")
    if people := [role.name for role in planned.policy.roles if role.human]:
        raise InvalidInputError(f"{request.owner} has planned people in ({', '.join(people)}), whom nobody has asked.")
    if recalling := [role.name for role in planned.policy.roles if role.memory is not None and role.memory.relevant is not None]:
        why = f"{request.owner} has planned a team in which {', '.join(recalling)} would recall what was said in other groups."
        raise InvalidInputError(why, hint="A goal's user says so, by a team of his own.")
    return planned


def check_asked(request: LaunchGroup, team: TeamSpec | None, owner: AgentCard | None) -> None:
    """Refuse a launch by another policy than its goal's, or of a nested team by who may open none, whoever would be in it.

    Raises:
        InvalidInputError: It is by another policy.
        ForbiddenError: Its owner may open no nested teams.
    """
    if request.policy != ("" if team is None or request.parent is not None else team.policy.digest):
        raise InvalidInputError(f"{request.owner} launches another policy than that of the goal {request.goal_id}.")
    if request.parent is not None and owner is not None and not owner.may_team_up:
        raise ForbiddenError(f"{request.owner} may not open nested teams: its card says so.")


def check_number(cards: Sequence[AgentCard]) -> None:
    """Refuse a team of too many.

    Raises:
        InvalidInputError: It has too many members.
    """
    if len(cards) > MAX_MEMBERS:
        raise InvalidInputError(f"A team has {MAX_MEMBERS} members at most, its owner counted; this one has {len(cards)}.")


def check_launch_size(launched: GroupLaunched) -> None:
    """Refuse a launch whose entry would not fit, and say what takes the room."""
    try:
        encode(launched, max_payload_bytes=_LAUNCH_BYTES)
    except PayloadTooLargeError as error:
        charter = launched.charter
        largest = sorted(charter.team_members, key=card_bytes, reverse=True)[:_LARGEST_NAMED]
        named = ", ".join(f"{card.agent_id} ({card_bytes(card):,} bytes)" for card in largest)
        raise PayloadTooLargeError(
            f"The group cannot be opened: {error.message} It has {len(charter.plan)} planned tasks and {len(charter.team_members)}"
            f" members, whose largest cards are those of {named}.",
            hint="Plan less, give large content as files, or shorten these cards.",
        ) from None
