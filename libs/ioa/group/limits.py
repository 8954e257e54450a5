"""Limits of the tasks, members, turns and log of a group: rows of the state machine, each for some kinds of event.

Configured limits may change while a group runs, so a log is replayed without them. A message that ends the group is always legal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import maxsize
from typing import NamedTuple

from ioa.group.events import Kind, MemberJoined, SubgroupOpened, TaskDecision
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState, WaitingTask
from ioa.protocol.messages import (
    ASSIGNMENTS,
    AskUser,
    AsyncTaskAssignment,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pass,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskQuestion,
    TaskSpec,
    Thinking,
)
from ioa.protocol.setup.charter import MAX_MEMBERS

MAX_OPEN_TASKS, MAX_USES = 64, 256
"""Maximum unfinished tasks per group, and maximum tasks that they wait for in total: each entry contains them."""


class GroupLimits(NamedTuple):
    """Configured limits of one group. A nested group has the limits of a group.

    Attributes:
        tasks: Maximum tasks that a group assigns in total.
        log_bytes: Maximum bytes of a group's log. The last eighth is reserved for results of tasks and passes.
        used_bytes: Present bytes of the log.
        kept_turns: Divisor of the turns that a group keeps when it opens a nested group: without turns it cancels its tasks.
    """

    tasks: int = 256
    log_bytes: int = 64_000_000
    used_bytes: int = 0
    kept_turns: int = 10


DEFAULT_GROUP_LIMITS, UNLIMITED = GroupLimits(), GroupLimits(maxsize, maxsize, 0, maxsize)


class LimitRow(NamedTuple):
    """A limit of some kinds of event.

    `measure` returns the quantity after an event, and its maximum. It takes the state, the tasks that the event assigns, and the
    configured limits.
    """

    what: str
    code: RejectionCode
    measure: Callable[[GroupState, Sequence[TaskSpec], GroupLimits], tuple[int, int]]
    kinds: tuple[Kind, ...]


def _used_tasks(state: GroupState, added: Sequence[TaskSpec], _limits: GroupLimits) -> tuple[int, int]:
    waiting = [task.after for task in state.unfinished_tasks if isinstance(task, WaitingTask)]
    return sum(map(len, [*waiting, *(spec.uses for spec in added)])), MAX_USES


_TASKS: tuple[Kind, ...] = (SyncTaskAssignment, AsyncTaskAssignment)
_TALK: tuple[Kind, ...] = (Discussion, Decision, Pause, Thinking, AskUser, InformTaskProgress, TaskQuestion, TaskDecision)
_MANY, _MEMBERS, _LITTLE = RejectionCode.TOO_MANY_TASKS, RejectionCode.TOO_MANY_MEMBERS, RejectionCode.TOO_LITTLE_LEFT

LIMIT_ROWS = (
    LimitRow(
        "unfinished tasks",
        _MANY,
        lambda state, added, _limits: (len(state.unfinished_tasks) + max(1, len(added)), MAX_OPEN_TASKS),
        _TASKS,
    ),
    LimitRow("tasks that unfinished tasks use", _MANY, _used_tasks, _TASKS),
    LimitRow("assigned tasks", _MANY, lambda state, added, limits: (state.tasks_given + max(1, len(added)), limits.tasks), _TASKS),
    LimitRow("members", _MEMBERS, lambda state, _added, _limits: (len(state.members) + 1, MAX_MEMBERS), (MemberJoined,)),
    LimitRow(
        "turns for a nested group",
        _LITTLE,
        lambda state, _added, limits: (state.turns_left // 2 + state.limits.max_turns // limits.kept_turns, state.turns_left),
        (SubgroupOpened,),
    ),
    LimitRow(
        "bytes of the log",
        _LITTLE,
        lambda _state, _added, limits: (limits.used_bytes, limits.log_bytes // 8 * 7),
        (*_TASKS, *_TALK, MemberJoined, SubgroupOpened),
    ),
    LimitRow(
        "bytes of the whole log",
        _LITTLE,
        lambda _state, _added, limits: (limits.used_bytes, limits.log_bytes),
        (InformTaskResult, Pass),
    ),
)

_ROWS_OF = {kind: [row for row in LIMIT_ROWS if kind in row.kinds] for row in LIMIT_ROWS for kind in row.kinds}


def exceeded_limit(state: GroupState, kind: Kind, limits: GroupLimits, payload: Payload | None = None) -> IllegalEventError | None:
    """Return the rejection of an event that exceeds a limit; without its payload, of any event of the kind."""
    added = payload.tasks if kind in _TASKS and isinstance(payload, ASSIGNMENTS) else ()
    for row in _ROWS_OF.get(kind, ()):
        present, most = row.measure(state, added, limits)
        if present > most:
            return IllegalEventError(row.code, f"Too many {row.what}: {present:,}; at most {most:,} are allowed.")
    return None
