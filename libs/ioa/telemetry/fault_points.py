"""Points at which a test can have a process die, so that each step of a message's life is cut short on purpose, not by luck.

`FAULT_POINT=router.before_append:3` kills the process, as `kill -9` would, when it reaches that point for the third time;
without a number, the first time. Otherwise a point costs one comparison. `POINTS` names them all, so that a test can visit each.
"""

from __future__ import annotations

import os
import re
import signal

from ioa.errors import InvalidInputError

POINTS = {
    "router.before_append": "a legal event was judged, its timer is armed, nothing is written",
    "router.after_append": "the event is in the log, nobody was told",
    "router.between_pushes": "one member was shown the entry, the others were not",
    "router.before_answer": "every member was shown the entry, the sender has no answer",
    "groups.goal_recorded": "a goal is on record and not yet in a queue",
    "groups.subgroup_recorded": "a nested team is in its parent's log and was not launched",
    "agent.thinking": "an agent has the floor and was about to ask its brain",
    "agent.message_answered": "an agent's message has its answer, on which the agent has not acted",
    "agent.task_begun": "an attempt at a task is counted, its function has not begun",
    "agent.team_opened": "a nested team is open, and who opened it for its task does not wait for it yet",
    "agent.task_running": "a task's function has begun",
    "agent.task_finished": "a task's function has returned, its result is not in the journal",
    "agent.task_journalled": "a result is in the journal and was not reported",
}

VARIABLE = "FAULT_POINT"
"""The environment variable of tests. It is no setting."""

_armed: dict[str, int] = {}
"""The armed point, if any, and how often it has yet to be reached until the process dies."""


def arm(written: str | None) -> None:
    """Arm the point that `written` names, or none.

    Raises:
        InvalidInputError: There is no such point.
    """
    _armed.clear()
    if written is None:
        return
    name, _, nth = written.partition(":")
    if name not in POINTS or not re.fullmatch(r"([1-9]\d*)?", nth):
        raise InvalidInputError(f"{VARIABLE}: {written!r} is no fault point.", hint=f"There are: {', '.join(POINTS)}.")
    _armed[name] = int(nth or 1)


def is_armed(name: str) -> bool:
    """Whether the process will die at this point, now or later."""
    return name in _armed


def fault_point(name: str) -> None:
    """Die here if this point is armed and was passed often enough."""
    if name not in _armed:
        return
    if _armed[name] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _armed[name] -= 1
