"""The cast and turns of a node: the holders of its roles, the next speaker, and what a member must do in its roles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ioa.group.policy.position import Course
from ioa.group.state import Concluding, Ended, GroupState, Member
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Casting, Policy
from ioa.protocol.policy_parts import END, Memory, Node


class Cast(NamedTuple):
    """The holders of the roles of a node, as long as the members of the group do not change.

    Attributes:
        places: All holders, in the order of the roles, then of joining; removed members keep their place.
        held: Holders that are not removed.
        living: Holders that are neither removed nor lost.
        times: The longest timeout of each member's roles in the node, otherwise the patience on its card; None without both.
    """

    places: tuple[int, ...]
    held: tuple[int, ...]
    living: tuple[int, ...]
    times: tuple[timedelta | None, ...]


class Scene(NamedTuple):
    """A group in a node of its policy at a time. Members are identified by their index, in the order of joining.

    Attributes:
        course: The position in the policy.
        present: Living members of the cast that have a turn left.
    """

    policy: Policy
    state: GroupState
    at: datetime
    course: Course
    node: Node
    cast: Cast
    present: tuple[int, ...]

    def with_course(self, **changed: object) -> Scene:
        """Return the same scene with a changed course."""
        course = self.course.model_copy(update=changed)
        state = self.state.model_copy(update={"course": course})
        return Scene(self.policy, state, self.at, course, self.node, self.cast, self.present)

    def agent(self, number: int) -> AgentId:
        """Return the id of a member."""
        return self.state.members[number].agent_id

    def holders(self, role: str) -> tuple[int, ...]:
        """Return the present holders of a role of the node."""
        number = self.policy.role_numbers[role]
        return tuple([one for one in self.present if number in self.state.members[one].roles])

    def others(self, than: int | None) -> tuple[int, ...]:
        """Return the present members except one."""
        return tuple([one for one in self.present if one != than])

    @property
    def hub(self) -> int | None:
        """The member that speaks after each other member; None without a hub, or if it is not present."""
        turns = self.node.turns
        return next(iter(self.holders(turns.by)), None) if turns.mode == "hub" and turns.by is not None else None

    @property
    def opener(self) -> int | None:
        """The member that opens the visit; None if it has begun, has no opening, or that member is not present."""
        if self.node.opens is None or self.course.last is not None:
            return None
        return next(iter(self.holders(self.node.opens.role)), None)

    @property
    def candidates(self) -> tuple[int, ...]:
        """The members of which the next speaker is chosen, by a role that is asked or at random."""
        return self.present if self.node.turns.repeat else self.others(self.course.last) or self.present

    def next_speaker(self, named: int | None = None) -> int | None:
        """Return the speaker after the last one; None if no member is present.

        If the named member is not present, the hub speaks, or the next member in order.
        """
        turns, last = self.node.turns, self.course.last
        if not self.present:
            return None
        if turns.mode == "random":
            return self._draw_speaker()
        if turns.follow and (follower := self._find_follower()) is not None:
            return follower
        hub = self.hub
        if hub is not None and (last != hub or (named is not None and named not in self.present)):
            return hub
        if named in self.present:
            return named
        if last is None:
            return self.present[0]
        places = self.cast.places
        start = places.index(last) + 1 if last in places else 0
        # the last speaker if no other is present
        return next(filter(self.present.__contains__, (*places[start:], *places[:start])))

    def has_had(self, rounds: int) -> bool:
        """Return whether all present members have had some turns in this visit; False if none is present."""
        taken = self.course.taken
        return bool(self.present) and min([taken[number] for number in self.present]) >= rounds

    def has_visit(self, to: str) -> bool:
        """Return True if a node may be entered again; the end always may."""
        if to == END:
            return True
        number = self.policy.node_numbers[to]
        visits = self.policy.nodes[number].visits
        return visits is None or self.course.visits[number] < visits

    def _find_follower(self) -> int | None:
        """Return the first present member of the role that follows the last speaker's role; None without one."""
        turns, last = self.node.turns, self.course.last
        held = () if last is None else self.state.members[last].roles
        roles = [name for name in self.node.roles if name in turns.follow and self.policy.role_numbers[name] in held]
        followers = self.holders(turns.follow[roles[0]]) if roles else ()
        return next((one for one in followers if turns.repeat or one != last), None)

    def _draw_speaker(self) -> int:
        """Return a speaker by a hash of the position, so that a replayed log gives the same order."""
        course, able = self.course, self.candidates
        key = f"{self.policy.seed}/{self.state.comm_id}/{self.node.name}/{course.visits[course.node]}/{course.turns}"
        return able[int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % len(able)]


def current_scene(policy: Policy, state: GroupState, at: datetime) -> Scene:
    """Return the scene of a group that its policy leads."""
    course, members = state.course, state.members
    assert course is not None
    number = course.node
    cast = policy.of_members(number, members, _find_cast)
    present = cast.living
    if course.total:
        present = tuple([one for one in present if _has_a_turn(policy, policy.speaking[number], members, course, one)])
    return Scene(policy, state, at, course, policy.nodes[number], cast, present)


def _find_cast(policy: Policy, members: Sequence[Member], node: int) -> Cast:
    roles = policy.speaking[node]
    places = _places(roles, policy.secrets, tuple([member.roles for member in members]))
    held = tuple([number for number in places if not members[number].removed])
    living = tuple([number for number in held if not members[number].lost])
    times = [(member, [policy.roles[role].timeout for role in roles if role in member.roles]) for member in members]
    longest = [max([time for time in some if time is not None], default=member.patience) for member, some in times]
    return Cast(places, held, living, tuple(longest))


def members_in_order(
    policy: Policy, members: Iterable[AgentId], cast: Iterable[Casting]
) -> tuple[tuple[AgentId, ...], tuple[Casting, ...]]:
    """Return the members of a new group, each once, the owner first, and its cast; with secret roles in the order of their ids."""
    owner, *others = dict.fromkeys(members)
    if not policy.secrets:
        return (owner, *others), tuple(cast)
    in_order = (owner, *sorted(others))
    return in_order, tuple([one.model_copy(update={"members": tuple(sorted(one.members, key=in_order.index))}) for one in cast])


def _places(roles: tuple[int, ...], secrets: frozenset[int], held: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return the holders of a node's roles in the order of the roles, then of joining.

    Holders of secret roles alone share the place of the first secret role, so that the order does not reveal their roles.
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
    """Whether a member has a turn left in one of its roles here."""
    held, taken = members[number].roles, course.total[number]
    caps = [policy.roles[role].at_most for role in roles if role in held]
    return None in caps or taken < max([cap for cap in caps if cap is not None], default=0)


class Part(NamedTuple):
    """A member's part under a policy.

    Attributes:
        roles: The names of its roles.
        node: The node of the group; empty when the discussion has ended.
        prompts: The prompts of its roles, and of the node if it speaks there, in this order.
        memory: The messages that it sees, by the first of its roles with a memory; roles that speak in the node come first.
    """

    roles: tuple[str, ...]
    node: str
    prompts: tuple[str, ...]
    memory: Memory | None = None


def part_of(policy: Policy, state: GroupState, agent_id: AgentId) -> Part:
    """Return the part of a member."""
    held = [policy.roles[number] for number in state.members[state.number_of(agent_id)].roles]
    node = None if state.course is None or isinstance(state.stage, Concluding | Ended) else policy.nodes[state.course.node]
    speaking = [role for role in held if node is not None and role.name in node.roles]
    prompts = [role.prompt for role in held] + ([node.prompt] if node is not None and speaking else [])
    memory = next((role.memory for role in (*speaking, *held) if role.memory), None)
    return Part(tuple([role.name for role in held]), node.name if node else "", tuple(filter(None, prompts)), memory)
