"""The position of a group in its policy, as the state of the group contains it."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import Field

from ioa.protocol.ids import AgentId
from ioa.protocol.model import OMITTED_IF_EMPTY, Model
from ioa.protocol.policy_parts import MAX_FIELDS, MAX_NODES, FieldValue, Form, Name
from ioa.protocol.setup.charter import MAX_MEMBERS
from ioa.protocol.usage import Count


class Choices(NamedTuple):
    """The members that a speaker may name, how many of them in parallel, and its exits."""

    next_speakers: tuple[AgentId, ...]
    most_named: int
    go: tuple[str, ...]


class Draft(Model):
    """A message that only its author and reviewers have heard.

    Attributes:
        by: Number of the author.
        tries: Number of drafts of this turn that may still be rejected.
        passed: Whether the author has to send it again, unchanged, to all members.
    """

    by: Count
    digest: str
    tries: Count
    passed: bool = False


class Next(NamedTuple):
    """The choices of a message, while a member is asked before they are applied.

    `go` is the chosen exit. The `named` members, by number, speak in parallel if there are `several`. `gathered` is whether several
    members have spoken in parallel.
    """

    go: Name | None = None
    named: tuple[Count, ...] = ()
    several: bool = False
    question: Form = ()
    gathered: bool = False


class Version(NamedTuple):
    """The last version of a text on the board, with the number of its author; the message that wrote it contains the text."""

    name: Name
    version: Count
    by: Count


class Watch(Model):
    """The watchers that are asked before the group goes on, by their numbers in the policy; the first one is asked now."""

    due: tuple[Count, ...]
    then: Next


class Course(Model):
    """The position of a group in its policy. Nodes, roles and members are identified by their numbers.

    Attributes:
        policy: Digest of the policy.
        leader: Role that concludes; None for the owner.
        visits: Number of entries into each node.
        turns: Turns of this visit, with silent ones.
        taken: Turns of each member in this visit.
        last: Speaker of the last turn of this visit.
        opening: Whether the floor holder has to open the node with given words.
        total: Turns of each member in the whole group; empty if the policy does not depend on them.
        told: Values of this visit: for each field on which an exit depends, the members with their values, in the order of the
            messages. Members are given by number, options by position.
        nominated: Member that the last speaker named, while another member is asked.
        offered: Choices of the floor holder, as the router computed them. Only views contain it, if they do not show its reasons.
        draft: The message that has not passed its review, or was not sent again.
        watch: The watchers that are asked before the group goes on.
        entered: Turn of the last entry into each node; empty if no node can be restarted.
        kept: Turns of the last visit of each node; empty if no node continues its count.
        agenda: Nodes that are entered later, because a node is left by all of its exits, in their order.
        done: Nodes that were left and neither entered nor forked to since, if a node waits for them.
        struck: First and last turns of struck parts, since a node was restarted.
        board: Versions of texts, in the order in which the texts were first written.
    """

    policy: str
    leader: Count | None = None
    node: Count
    visits: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES)]
    turns: Count = 0
    taken: Annotated[tuple[Count, ...], Field(max_length=MAX_MEMBERS)] = ()
    last: Count | None = None
    opening: bool = False
    total: Annotated[tuple[Count, ...], Field(max_length=MAX_MEMBERS)] = ()
    told: Annotated[tuple[tuple[tuple[Count, FieldValue], ...], ...], Field(max_length=MAX_FIELDS), OMITTED_IF_EMPTY] = ()
    nominated: Annotated[Count | None, Field(exclude_if=lambda value: value is None)] = None
    offered: Annotated[Choices | None, OMITTED_IF_EMPTY] = None
    draft: Annotated[Draft | None, OMITTED_IF_EMPTY] = None
    watch: Annotated[Watch | None, OMITTED_IF_EMPTY] = None
    entered: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    kept: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    agenda: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    done: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    struck: Annotated[tuple[tuple[Count, Count], ...], OMITTED_IF_EMPTY] = ()
    board: Annotated[tuple[Version, ...], OMITTED_IF_EMPTY] = ()
