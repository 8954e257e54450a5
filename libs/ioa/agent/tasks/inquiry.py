"""A question that a task, or a member in its turn, asks another agent or the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from ioa.protocol.codec import validate
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import AskUser, TaskQuestion

MAX_SHARE = 0.9
"""Maximum share of the remaining time that a question may wait; the rest is for the use of its answer."""
INQUIRY_TIMEOUT = timedelta(hours=1)

Q = TypeVar("Q", TaskQuestion, AskUser)


@dataclass(frozen=True)
class Inquiry:
    """A question; see `TaskContext.ask`. An equal inquiry in the same task is the same question, and has its answer."""

    text: str
    default: str
    options: tuple[str, ...] = ()
    role: str | None = None
    within: timedelta = INQUIRY_TIMEOUT

    def matches(self, question: TaskQuestion) -> bool:
        """Return True if a question of the log is this one."""
        same = (question.text, question.default, question.options, question.role)
        return same == (self.text, self.default, self.options, self.role)

    def question(self, task_id: TaskId, number: int, at: datetime, latest: datetime) -> TaskQuestion:
        """Make a task's question, which ends before `latest`.

        Raises:
            InvalidInputError: The question is not valid.
        """
        return self._question(TaskQuestion, {"role": self.role, "task_id": task_id, "number": number}, at, latest)

    def to_user(self, began: datetime | None, deadline: datetime) -> AskUser:
        """Make the question of a member that has had the floor since `began`.

        Raises:
            InvalidInputError: The question is not valid.
        """
        return self._question(AskUser, {}, began or deadline, deadline)

    def _question(self, kind: type[Q], more: Mapping[str, object], at: datetime, latest: datetime) -> Q:
        until = at + min(self.within, (latest - at) * MAX_SHARE)
        return validate(kind, {"text": self.text, "default": self.default, "options": self.options, "until": until, **more})
