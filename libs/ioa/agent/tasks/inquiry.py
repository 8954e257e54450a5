"""A question that a task, or a member in its turn, asks another agent or the user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ioa.protocol.codec import validate
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import TaskQuestion

INQUIRY_TIMEOUT = timedelta(hours=1)
_MAX_SHARE = 0.9
"""Maximum share of the remaining time that a question may wait; the rest is for the use of its answer."""


@dataclass(frozen=True)
class Inquiry:
    """A question; see `TaskContext.ask`. An equal inquiry in the same task is the same question, and has its answer."""

    text: str
    default: str
    options: tuple[str, ...] = ()
    role: str | None = None
    within: timedelta = INQUIRY_TIMEOUT

    def matches(self, asked: TaskQuestion) -> bool:
        """Return True if a question of the log is this one."""
        return (asked.text, asked.default, asked.options, asked.role) == (self.text, self.default, self.options, self.role)

    def question(self, task_id: TaskId, number: int, at: datetime, latest: datetime) -> TaskQuestion:
        """Make a task's question, which ends before `latest`.

        Raises:
            InvalidInputError: The question is not valid.
        """
        about = {"role": self.role, "task_id": task_id, "number": number, "until": end_of_question(self.within, at, latest)}
        return validate(TaskQuestion, {"text": self.text, "default": self.default, "options": self.options, **about})


def end_of_question(within: timedelta, at: datetime, latest: datetime) -> datetime:
    """Return when a question that is asked `at` an instant expires; before `latest`."""
    return at + min(within, (latest - at) * _MAX_SHARE)
