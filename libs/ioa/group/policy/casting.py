"""Who plays in a node: the holders of its roles, and who of them is present."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ioa.group.state import Course, GroupState, Member
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.policy import Casting, Node, Policy


class Scene(NamedTuple):
    """A node as a group stands in it. Members are told by their numbers, in the order of joining.

    Attributes:
        comm_id: The group, part of the seed of random draws.
        places: The holders of the node's roles, in the order of the roles, then of joining; removed members keep their place.
        cast: Those of them that are not removed.
        present: Those of these that live and have a turn left.
    """

    policy: Policy
    node: Node
    course: Course
    comm_id: CommId
    members: Sequence[Member]
    places: Sequence[int]
    cast: tuple[int, ...]
    present: tuple[int, ...]

    def holders(self, role: str) -> tuple[int, ...]:
        """Return who is present and holds a role of the node."""
        number = self.policy.role_numbers[role]
        return tuple([one for one in self.present if number in self.members[one].roles])

    def others(self, than: int | None) -> tuple[int, ...]:
        """Return who is present but one."""
        return tuple([one for one in self.present if one != than])

    def following(self, last: int) -> Sequence[int]:
        """Return the holders of the node's roles, from the one after a member on; who was removed had a place too."""
        places = self.places
        at = places.index(last) + 1 if last in places else 0
        return [*places[at:], *places[:at]]

    def after(self, state: GroupState, course: Course) -> Scene:
        """See the same node after a turn, which may have been somebody's last one."""
        if self.policy.counts_totals:
            return scene_of(self.policy, state, course)
        return self._replace(course=course)

    def agent(self, number: int) -> AgentId:
        """Return the id of a member."""
        return self.members[number].agent_id


def scene_of(policy: Policy, state: GroupState, course: Course) -> Scene:
    """See who plays in the node that a course has come to."""
    members, roles = state.members, policy.speaking[course.node]
    places = _places(roles, policy.secrets, tuple([member.roles for member in members]))
    cast = tuple([number for number in places if not members[number].removed])
    present = tuple([number for number in cast if not members[number].lost])
    if policy.counts_totals:
        present = tuple([number for number in present if _has_a_turn(policy, roles, members, course, number)])
    return Scene(
        policy=policy,
        node=policy.nodes[course.node],
        course=course,
        comm_id=state.comm_id,
        members=members,
        places=places,
        cast=cast,
        present=present,
    )


def members_in_order(
    policy: Policy, members: Iterable[AgentId], cast: Iterable[Casting]
) -> tuple[tuple[AgentId, ...], tuple[Casting, ...]]:
    """Return the members of a new group, each once, and its cast; with secret roles in the order of their ids.

    Args:
        policy: The policy of the group.
        members: The members, the owner first.
        cast: The holders of each role.
    """
    owner, *others = dict.fromkeys(members)
    if not policy.secrets:
        return (owner, *others), tuple(cast)
    in_order = (owner, *sorted(others))
    return in_order, tuple([one.model_copy(update={"members": tuple(sorted(one.members, key=in_order.index))}) for one in cast])


@lru_cache(maxsize=1_024)
def _places(roles: tuple[int, ...], secrets: frozenset[int], held: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return the holders of a node's roles in the order of the roles, then of joining.

    Holders of secret roles alone share the place of the first secret role, so that the order does not tell who holds which.
    """
    known = [role for role in roles if role not in secrets]
    first = next((place for place, role in enumerate(roles) if role in secrets), 0)
    places = {
        number: next((roles.index(role) for role in known if role in roles_held), first)
        for number, roles_held in enumerate(held)
        if not set(roles).isdisjoint(roles_held)
    }
    return tuple(sorted(places, key=places.__getitem__))


def _has_a_turn(policy: Policy, roles: Sequence[int], members: Sequence[Member], course: Course, number: int) -> bool:
    """Whether a member may speak once more, in one of its roles here."""
    caps = [policy.roles[role].at_most for role in roles if role in members[number].roles]
    return any(cap is None or course.total[number] < cap for cap in caps)
