"""Policies: who speaks when in a group, and what leads on. A policy is data in the charter, and never changes.

A group under a policy walks through nodes. In each of them some roles speak, in an order that the node names, until one of its
exits leads on. The machine asks this data and nothing else, so that a log refolds to the same states. What a policy means is named
by its `version`: a new meaning is a new version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from ioa.protocol.codec import encode_value
from ioa.protocol.ids import AgentIdField
from ioa.protocol.model import Version

MAX_ROLES = 64
MAX_NODES = 128
MAX_EXITS = 32
MAX_PROMPT_CHARS = 8_000
END = "end"
"""Where an exit leads that ends the discussion; no node is called so."""

_NAME = r"^[a-z][a-z0-9_-]{0,31}$"

Name = Annotated[str, Field(pattern=_NAME)]
Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARS)]
Whole = Annotated[int, Field(strict=True, ge=1, le=10_000)]


def _no_text(written: object) -> object:
    """Refuse a duration that is written as a text: numbers are seconds."""
    if isinstance(written, str):
        raise ValueError("Input should be a number of seconds")
    return written


Seconds = Annotated[timedelta, BeforeValidator(_no_text), Field(gt=timedelta(0), le=timedelta(days=30))]


class PolicyPart(BaseModel):
    """A part of a policy. What is not known is an error: half a policy is another policy."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_timedelta="float")


class Role(PolicyPart):
    """A part that members play.

    Attributes:
        name: What it is called, anything but `all`.
        prompt: What its holders are told, besides their own instructions.
        at_most: How many turns a holder has in the whole group.
        timeout: How long a holder has the floor; None: as its card says, or its group.
    """

    name: Name
    prompt: Prompt = ""
    at_most: Whole | None = None
    timeout: Seconds | None = None


Mode = Literal["order", "nominate", "random", "hub", "follow"]


class Turns(PolicyPart):
    """Who speaks next in a node.

    Attributes:
        mode: How the next speaker is found.
        by: The hub, which speaks after everybody else: a role.
        follow: Which role speaks after which.
        repeat: Whether one member may speak twice in a row.
    """

    mode: Mode = "order"
    by: Name | None = None
    follow: Mapping[Name, Name] = Field(default_factory=dict)
    repeat: StrictBool = False


class Opening(PolicyPart):
    """Who speaks first in a node.

    Attributes:
        role: Who does; it is one of the node's.
        say: In which words; without them the role finds its own.
    """

    role: Name
    say: Prompt = ""


class Condition(PolicyPart):
    """When an exit is open. All that is given must hold.

    Attributes:
        turns: The node has had so many turns in this visit.
        rounds: Everybody who is present has had so many turns in this visit.
        visits: The node has been entered so many times.
    """

    turns: Whole | None = None
    rounds: Whole | None = None
    visits: Whole | None = None


class Exit(PolicyPart):
    """A way out of a node.

    Attributes:
        to: The node that it leads to, or `end`.
        when: When it is open; a rule without a condition is taken when the turns of the node are over.
        by: Whether a rule takes it, or whoever has the floor chooses it.
    """

    to: Name
    when: Condition | None = None
    by: Literal["rule", "speaker"] = "rule"

    @property
    def is_bare(self) -> bool:
        """Whether it waits for nothing but the end of the node's turns."""
        return self.by == "rule" and self.when is None


class Node(PolicyPart):
    """A stretch of the discussion.

    Attributes:
        name: What it is called, anything but `end`.
        roles: Who speaks here.
        turns: Who speaks next.
        opens: Who speaks first.
        prompt: What they are told here.
        max: How many turns a visit has; None: as its exits say, and a round if none of them has a condition.
        exits: The ways out, in the order in which they are asked.
        again: Whether a further visit counts its turns anew.
        visits: How often the node may be entered; None is no bound.
    """

    name: Name
    roles: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_ROLES)]
    turns: Turns = Turns()
    opens: Opening | None = None
    prompt: Prompt = ""
    max: Whole | None = None
    exits: Annotated[tuple[Exit, ...], Field(max_length=MAX_EXITS)] = ()
    again: Literal["anew", "continue"] = "anew"
    visits: Whole | None = None


class Policy(PolicyPart):
    """How a group is led. The first node is entered first.

    Attributes:
        version: Names the meaning of all of this.
        leader: The role that states the conclusion; None is the owner of the group.
        ends: Who says the result: the leader, in a conclusion, or whoever had the last turn, by it.
        seed: Of the random order.
        silent: What a silent turn does: it is skipped, or it ends the group.
    """

    version: Version = 1
    roles: Annotated[tuple[Role, ...], Field(min_length=1, max_length=MAX_ROLES)]
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MAX_NODES)]
    leader: Name | None = None
    ends: Literal["leader", "last"] = "leader"
    seed: Annotated[int, Field(strict=True, ge=0, le=2**53)] = 0
    silent: Literal["skip", "end"] = "skip"

    @cached_property
    def node_numbers(self) -> Mapping[str, int]:
        """The place of each node, by its name."""
        return MappingProxyType({node.name: number for number, node in enumerate(self.nodes)})

    @cached_property
    def role_numbers(self) -> Mapping[str, int]:
        """The place of each role, by its name."""
        return MappingProxyType({role.name: number for number, role in enumerate(self.roles)})

    @cached_property
    def counts_totals(self) -> bool:
        """Whether anything depends on how many turns a member has had in the whole group."""
        return any(role.at_most is not None for role in self.roles)

    @cached_property
    def times_floors(self) -> bool:
        """Whether a role says how long its holders have the floor."""
        return any(role.timeout is not None for role in self.roles)

    @cached_property
    def digest(self) -> str:
        """Tells this policy from another one."""
        return hashlib.sha256(encode_value(self.model_dump(mode="json"))).hexdigest()[:16]

    def node(self, name: str) -> Node:
        """Find a node that is there."""
        return self.nodes[self.node_numbers[name]]


class Casting(PolicyPart):
    """Who holds a role."""

    role: Name
    members: Annotated[tuple[AgentIdField, ...], Field(min_length=1, max_length=MAX_ROLES)]
