"""A policy: the roles, nodes and watchers that lead a group, with values computed from them.

A policy is data in the charter of a group and never changes. The group visits nodes. In each node some roles speak, in the order
that the node names, until an exit leads on. `policy_parts` contains the parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, model_validator

from ioa.protocol.codec import encode_value
from ioa.protocol.ids import AgentId, AgentIdField
from ioa.protocol.policy_parts import (
    END,
    MAX_NODES,
    MAX_ROLES,
    NOTHING,
    Hearing,
    Name,
    Node,
    PolicyPart,
    Role,
    Whole,
    list_of_one,
)

WatchVerb = Literal["remove", "add", "hint", "end", "go"]


class Watcher(PolicyPart):
    """A role that may intervene after messages, before another member speaks.

    Attributes:
        role: The role; its first present holder is asked.
        node: The node. Default: every node.
        by: Only messages of holders of this role. Default: of all members.
        every: Only turns of the group whose number is a multiple of this. A member can skip its turn by passing.
        may: Its options in addition to `nothing`: `remove` or `hint` members, `add` an agent, `end` the discussion, or `go` back.
        go: Nodes that it may restart, once they were entered. Messages since then are struck.
    """

    role: Name
    node: Name | None = None
    by: Name | None = None
    every: Whole = 1
    may: Annotated[tuple[WatchVerb, ...], list_of_one, Field(min_length=1, max_length=5)]
    go: Annotated[tuple[Name, ...], list_of_one, Field(max_length=MAX_NODES)] = ()

    @model_validator(mode="after")
    def _goes_to_nodes(self) -> Watcher:
        if ("go" in self.may) != bool(self.go):
            raise ValueError("`go` lists the nodes that it may restart, and needs `may = ['go']`")
        if same := {NOTHING, *get_args(WatchVerb)}.intersection(self.go):
            raise ValueError(f"cannot choose the node {min(same)!r}, which is another of its options: rename that node")
        return self


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Roles = frozenset[int]
"""Roles by their indices in the policy."""


class Policy(PolicyPart):
    """How a group is led. The first node is entered first.

    Attributes:
        leader: The role that states the conclusion. Default: the owner of the group.
        ends: The result is the conclusion of the `leader`, or the `last` message, which all members hear.
        seed: Seed of the random order.
        silent: A silent turn is skipped (`skip`), or ends the group (`end`).
        heard_by: The members that hear a node without `heard_by`.
        watchers: Roles that may intervene after messages, in the order in which they are asked.
    """

    roles: Annotated[tuple[Role, ...], Field(min_length=1, max_length=MAX_ROLES)]
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MAX_NODES)]
    leader: Name | None = None
    ends: Literal["leader", "last"] = "leader"
    seed: Annotated[int, Field(strict=True, ge=0, le=2**53)] = 0
    silent: Literal["skip", "end"] = "skip"
    heard_by: Hearing = "all"
    watchers: Annotated[tuple[Watcher, ...], Field(max_length=16)] = ()

    @cached_property
    def node_numbers(self) -> Mapping[str, int]:
        """The index of each node by its name."""
        return MappingProxyType({node.name: number for number, node in enumerate(self.nodes)})

    @cached_property
    def role_numbers(self) -> Mapping[str, int]:
        """The index of each role by its name."""
        return MappingProxyType({role.name: number for number, role in enumerate(self.roles)})

    @cached_property
    def speaking(self) -> tuple[tuple[int, ...], ...]:
        """For each node the indices of its roles, in its order."""
        return tuple([tuple([self.role_numbers[name] for name in node.roles]) for node in self.nodes])

    @cached_property
    def checked(self) -> Mapping[str, frozenset[str]]:
        """For each role the other roles that it reviews, judges or watches."""
        pairs = [(by, node.roles) for node in self.nodes for by in (node.review and node.review.by, node.judge) if by]
        for one in self.watchers:
            watched = [node.roles for node in self.nodes if one.node in (None, node.name)]
            pairs += [(one.role, tuple(name for name in roles if one.by in (None, name))) for roles in watched]
        of = {role.name: [name for by, roles in pairs if by == role.name for name in roles] for role in self.roles}
        return {name: frozenset(roles) - {name} for name, roles in of.items()}

    @cached_property
    def counts_totals(self) -> bool:
        """Whether a role limits the turns of its holders in the whole group."""
        return any(role.at_most is not None for role in self.roles)

    @cached_property
    def targets(self) -> tuple[frozenset[int], ...]:
        """For each node the nodes that its exits lead to."""
        return tuple([frozenset([self.node_numbers[way.to] for way in node.exits if way.to != END]) for node in self.nodes])

    @cached_property
    def awaited(self) -> Mapping[int, frozenset[int]]:
        """For each node that waits for several: the nodes that lead to it and can be reached without it."""
        joins = [number for number, node in enumerate(self.nodes) if node.join == "all"]
        return {join: frozenset([one for one in self.reached(0, {join}) if join in self.targets[one]]) for join in joins}

    def reached(self, start: int, without: Collection[int] = ()) -> set[int]:
        """Return a node and all nodes to which exits lead from it, on ways that avoid some nodes."""
        found, left = set[int](), {start}.difference(without)
        while left:
            found |= left
            left = set[int]().union(*(self.targets[one] for one in left)).difference(found, without)
        return found

    @cached_property
    def hides(self) -> bool:
        """Whether something is hidden from members for good."""
        never = any(node.sits_apart and node.turns.peers == "never" for node in self.nodes)
        hints = any("hint" in watcher.may for watcher in self.watchers)
        scoped = any(hearers is not None for of_role in self._hearing for hearers in of_role.values())
        return never or hints or scoped or self.reviews or bool(self.secrets)

    @cached_property
    def reviews(self) -> bool:
        """Whether a node reviews drafts."""
        return any(node.review for node in self.nodes)

    @cached_property
    def is_scoped(self) -> bool:
        """Whether some members hear a message later than others, or never."""
        return self.hides or any(node.sits_apart for node in self.nodes)

    @cached_property
    def hearing_all(self) -> Roles:
        """The roles that hear all."""
        return frozenset([number for number, role in enumerate(self.roles) if role.hears_all])

    @cached_property
    def secrets(self) -> Roles:
        """The secret roles."""
        return frozenset([number for number, role in enumerate(self.roles) if role.secret])

    @cached_property
    def _of_members(self) -> dict[Hashable, tuple[Any, Any]]:
        return {}

    def of_members(self, key: K, members: Sequence[Any], compute: Callable[[Policy, Any, K], T]) -> T:
        """Return a value that depends on the members of a group, cached for the last members, which rarely change."""
        known = self._of_members.get(key)
        if known is None or known[0] is not members:
            known = self._of_members[key] = members, compute(self, members, key)
        value: T = known[1]
        return value

    @cached_property
    def digest(self) -> str:
        """A short hash of the policy."""
        return hashlib.sha256(encode_value(self.model_dump(mode="json"))).hexdigest()[:16]

    def able(self, roles: Iterable[Name]) -> tuple[Name, ...]:
        """Return the roles in which an agent may join: roles that are neither secret nor held by a person."""
        held = [self.roles[self.role_numbers[name]] for name in roles]
        return tuple([role.name for role in held if not role.human and not role.secret])

    def hearers(self, node: int, held: Iterable[int]) -> Roles | None:
        """Return the roles that hear the message of a holder of some roles in a node; None if all do.

        A member without a known role of the node may hold any of them.
        """
        of_role = self._hearing[node]
        found = [of_role[role] for role in held if role in of_role] or list(of_role.values())
        if len(found) == 1:
            return found[0]
        return None if None in found else frozenset[int]().union(*filter(None, found))

    def hearing_more(self, held: Iterable[int]) -> Roles:
        """Return the roles that hear a message, draft or decision which a holder of the given roles does not hear."""
        mine = frozenset(held)
        if not self.hides or mine & self.hearing_all:
            return frozenset()
        return self.hearing_all.union(*(roles for roles, apart in self._audiences if not mine & roles or mine & apart))

    @cached_property
    def _audiences(self) -> Sequence[tuple[Roles, Roles]]:
        """The roles that hear a message or draft, and the roles whose holders do not hear it even in another role."""
        found = [({self.role_numbers[node.review.by]}, set[int]()) for node in self.nodes if node.review]
        for number, node in enumerate(self.nodes):
            apart = set(self.speaking[number]) if node.sits_apart and node.turns.peers == "never" else set()
            apart -= {self.role_numbers.get(node.turns.by or "", -1)}
            for hearers in self._hearing[number].values():
                heard = set(range(len(self.roles)) if hearers is None else hearers)
                found += [(heard, set()), (heard - apart, apart)]
        return [(frozenset(heard), frozenset(apart)) for heard, apart in found]

    @cached_property
    def _hearing(self) -> tuple[Mapping[int, Roles | None], ...]:
        """For each node and each role that speaks in it: the roles that hear it, or None if all do."""
        return tuple([{self.role_numbers[role]: self._hearers_of(node, role) for role in node.roles} for node in self.nodes])

    def _hearers_of(self, node: Node, role: Name) -> Roles | None:
        heard_by = self.heard_by if node.heard_by is None else node.heard_by
        if isinstance(heard_by, Mapping):
            heard_by = heard_by.get(role, self.heard_by)
        if heard_by == "leader":
            heard_by = "all" if role == self.leader else (self.leader,) if self.leader else ()
        names = node.roles if heard_by == "node" else heard_by
        return None if "all" in names else frozenset([self.role_numbers[name] for name in names])


class Casting(PolicyPart):
    """The holders of a role; empty for members that must not know them."""

    role: Name
    members: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_ROLES)]


def people_of(policy: Policy, cast: Sequence[Casting]) -> frozenset[AgentId]:
    """Return the members that hold roles of people."""
    return frozenset([agent for role, casting in zip(policy.roles, cast, strict=True) if role.human for agent in casting.members])
