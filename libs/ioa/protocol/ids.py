"""Identifiers that are safe as one token of an NATS subject.

Each kind of id has its own type. No id contains `.`, `*`, `>`, `$` or white space, so an id can be put into a subject
without escaping and parsed without ambiguity (NATS subject naming). A display name is separate free text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple, NewType

from pydantic import AfterValidator

from ioa.errors import InvalidInputError, NotFoundError

MAX_ID_CHARS = 64
_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")


@lru_cache(maxsize=16_384)  # the same few names come with every message
def check_token(value: str) -> str:
    """Return `value` if it is a valid id of at most 64 characters.

    Raises:
        ValueError: It names the permitted characters.
    """
    if not is_token(value):
        raise ValueError(
            f"{value[:80]!r} is not a valid id: use 1 to {MAX_ID_CHARS} of A-Z a-z 0-9 _ -, starting with a letter or digit"
        )
    return value


def is_token(value: str) -> bool:
    """Whether `value` is a valid id."""
    return len(value) <= MAX_ID_CHARS and _TOKEN.fullmatch(value) is not None


def check_tenant(value: str) -> str:
    """Return `value` if it is a valid name of a tenant, which is part of names of accounts and of objects in Kubernetes.

    Raises:
        ValueError: It names the permitted characters.
    """
    if _TENANT.fullmatch(value) is None:
        raise ValueError(f"{value[:80]!r} is no tenant's name: use 1 to 20 of a-z 0-9 -, with a letter or digit at both ends")
    return value


AgentId = NewType("AgentId", str)
PoolId = NewType("PoolId", str)
CommId = NewType("CommId", str)
GoalId = NewType("GoalId", str)
TaskId = NewType("TaskId", str)
MessageId = NewType("MessageId", str)
SessionId = NewType("SessionId", str)
UserId = NewType("UserId", str)
TenantId = NewType("TenantId", str)

IS_TOKEN = AfterValidator(check_token)
"""Marks a text that must be a valid id."""

AgentIdField = Annotated[AgentId, IS_TOKEN]
PoolIdField = Annotated[PoolId, IS_TOKEN]
CommIdField = Annotated[CommId, IS_TOKEN]
GoalIdField = Annotated[GoalId, IS_TOKEN]
TaskIdField = Annotated[TaskId, IS_TOKEN]
MessageIdField = Annotated[MessageId, IS_TOKEN]
SessionIdField = Annotated[SessionId, IS_TOKEN]
UserIdField = Annotated[UserId, IS_TOKEN]
TenantIdField = Annotated[TenantId, AfterValidator(check_tenant)]

LOCAL = UserId("local")
"""The user of a system without credentials, such as on a laptop."""

ADMIN = UserId("admin")
"""The user of goals that an admin launches."""


class GoalName(NamedTuple):
    """The unique name of a goal: its user, and an id that is unique for the user."""

    user: UserId
    goal_id: GoalId

    @property
    def key(self) -> str:
        """The goal's id for `LOCAL`, otherwise user and id."""
        return self.goal_id if self.user == LOCAL else f"{self.user}/{self.goal_id}"

    @property
    def comm_id(self) -> CommId:
        """The `comm_id` of the goal's root group: a goal that is launched twice has the same log."""
        return CommId("g" + _digest(self.key))

    def __str__(self) -> str:
        return self.key


def parse_agent_id(value: str) -> AgentId:
    """Check an agent id.

    Raises:
        InvalidInputError: The id contains a character that is not permitted.
    """
    try:
        return AgentId(check_token(value))
    except ValueError as error:
        raise InvalidInputError(str(error)) from None


def parse_goal_id(value: str) -> GoalId:
    """Check the id of a goal.

    Raises:
        InvalidInputError: The id contains a character that is not permitted.
    """
    return GoalId(parse_agent_id(value))


def comm_id_of_goal(goal_id: GoalId, user: UserId = LOCAL) -> CommId:
    """Derive the `comm_id` of a goal's root group."""
    return GoalName(user, goal_id).comm_id


def comm_id_of_task(parent: CommId, task_id: TaskId) -> CommId:
    """Derive the `comm_id` of the nested group of a task."""
    return CommId("n" + _digest(f"{parent}/{task_id}"))


def task_id_of_turn(turn: int, name: str) -> TaskId:
    """Derive the id of a task from the turn of its assignment and its name in that turn, or in a plan."""
    task_id = f"t{turn}-{name}"
    return TaskId(task_id if len(task_id) <= MAX_ID_CHARS else f"t{turn}-{name_in_long_ids(name)}")


def turn_of_task_id(task_id: TaskId) -> int | None:
    """Return the turn that a task's id names; None if it names none."""
    head, dash, _ = task_id.partition("-")
    return int(head[1:]) if dash and head[:1] == "t" and head[1:].isdecimal() and head[1:].isascii() else None


def name_of_task_id(task_id: TaskId) -> str:
    """Return the name part of a task's id; a task that is assigned again has the same name."""
    return task_id.partition("-")[2] if turn_of_task_id(task_id) is not None else task_id


def name_in_long_ids(name: str) -> str:
    """Return the replacement of a name that is too long for the id of a task."""
    return _digest(name)


@lru_cache(maxsize=16_384)  # each entry of a group needs the digest of its goal
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def complete_id(what: str, start: str, known: Sequence[str], *, complete: bool) -> str:
    """Return the only id that begins with a text, or equals it.

    Args:
        what: Kind of the ids for errors, such as `goal`.
        start: The beginning.
        known: The ids.
        complete: Whether `known` contains all ids.

    Raises:
        NotFoundError: No id begins with it.
        InvalidInputError: Several ids do.
    """
    found = [one for one in known if one.startswith(start)]
    if not found:
        if complete:
            raise NotFoundError(f"There is no {what} {start}.", hint=f"`ioa {what}s` lists them.")
        hint = f"Of an older one write the whole id; `ioa {what}s --all` lists all."
        raise NotFoundError(f"There is no {what} {start} among the newest.", hint=hint)
    if len(found) > 1 and start not in found:
        raise InvalidInputError(f"{len(found)} {what}s begin with {start}.", hint=f"Write more of it: {', '.join(found[:4])}.")
    return start if start in found else found[0]


def complete_goal(start: str, user: UserId | None, known: Sequence[GoalName], *, complete: bool) -> GoalName:
    """Return the only goal whose id, or whole name, begins with a text; goals of `user` come first.

    A user with a name never gets the goal of another user, whose id may be the same; the error names it. An admin, and a user
    without credentials, may get any goal.

    Raises:
        NotFoundError: No goal begins with it, or only goals of other users.
        InvalidInputError: Several ids do.
    """
    own = [name for name in known if name.user == user and name.goal_id.startswith(start)]
    written = {name: str(name) if "/" in start else name.goal_id for name in own or known}
    found = complete_id("goal", start, list(written.values()), complete=complete)
    meant = [name for name, text in written.items() if text == found]
    if len(meant) > 1:
        raise InvalidInputError(f"{len(meant)} users have a goal {found}.", hint=f"Write whose: {', '.join(map(str, meant))}.")
    if "/" not in start and user not in (None, LOCAL, ADMIN) and meant[0].user not in (user, LOCAL):
        raise NotFoundError(f"There is no goal {start} of {user}.", hint=f"Another user has one: write {meant[0]} for it.")
    return meant[0]


def full_name(tenant: TenantId | None, name: str) -> str:
    """Return the name with its tenant, such as `acme/anna`; without a tenant, the name."""
    return name if tenant is None else f"{tenant}/{name}"
