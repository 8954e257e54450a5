"""Rejections of events. The state does not change."""

from __future__ import annotations

from enum import StrEnum

from ioa.errors import ERRORS, ErrorRow, IoaError

MAX_REFUSALS = 3
"""Maximum tries of an agent in one turn; then it passes, and reports the reason."""


class RejectionCode(StrEnum):
    """The fault of an event, for programs."""

    NO_GROUP = "no_group"
    GROUP_EXISTS = "group_exists"
    GROUP_ENDED = "group_ended"
    WRONG_PHASE = "wrong_phase"
    WRONG_GROUP = "wrong_group"
    NOT_A_MEMBER = "not_a_member"
    NOT_YOUR_FLOOR = "not_your_floor"
    STALE_TURN = "stale_turn"
    REPETITION = "repetition"
    BAD_NEXT_SPEAKER = "bad_next_speaker"
    BAD_ASSIGNEE = "bad_assignee"
    BAD_TASK_ID = "bad_task_id"
    BAD_TEAM = "bad_team"
    TOO_MANY_TASKS = "too_many_tasks"
    UNKNOWN_TASK = "unknown_task"
    NOT_YOUR_TASK = "not_your_task"
    TASK_CLOSED = "task_closed"
    STALE_PROGRESS = "stale_progress"
    BAD_TRIGGER = "bad_trigger"
    BAD_REJECT = "bad_reject"
    BAD_USES = "bad_uses"
    TASK_WAITING = "task_waiting"
    BAD_FORM = "bad_form"
    BAD_DECISION = "bad_decision"
    BAD_OPENING = "bad_opening"
    BAD_EXIT = "bad_exit"
    BAD_ADDRESSEE = "bad_addressee"
    OFF_COURSE = "off_course"
    GUARDED = "guarded"
    TOO_MANY_MEMBERS = "too_many_members"
    TASKS_OPEN = "tasks_open"
    SUBGROUP_EXISTS = "subgroup_exists"
    TOO_DEEP = "too_deep"
    TOO_LITTLE_LEFT = "too_little_left"
    TOO_LATE = "too_late"
    NOTHING_DUE = "nothing_due"
    NO_CHANGE = "no_change"


class IllegalEventError(IoaError):
    """The event is not legal in this state.

    Attributes:
        code: The fault.
        legal: The kinds of message that its sender may send now.
        repeats_turn: The turn of the repeated message or task, in case of a repetition.
    """

    def __init__(self, code: RejectionCode, message: str, *, legal: tuple[str, ...] = (), repeats_turn: int | None = None) -> None:
        super().__init__(message, hint=f"Legal now: {', '.join(legal)}." if legal else "")
        self.code = code
        self.legal = legal
        self.repeats_turn = repeats_turn


ERRORS[IllegalEventError] = ErrorRow("illegal_event")
