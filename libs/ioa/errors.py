"""Every failure that IoA can report, and the one table that says what a class of errors means.

`ERRORS` maps a class to its name on the wire, whose fault it is, how often the work that raised it is tried, and the level at which
it is logged. Whoever answers a request, takes work off a queue or ends a command reads it there (`row_of`). A class without a row
has that of its base; a module that defines a class of its own adds the row beside it.
"""

from __future__ import annotations

import traceback
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Literal, NamedTuple, TypeVar

from ioa.distribution import pip_install


class Fault(StrEnum):
    """Whose fault an error is: the caller's, the system's, or the agent's that ran a task."""

    CALLER = "caller"
    SYSTEM = "system"
    AGENT = "agent"


class Retry(Enum):
    """The number of attempts after an error: without end for an outage, otherwise five (decision 12)."""

    ENDLESS = "endless"
    BOUNDED = "bounded"


class ErrorRow(NamedTuple):
    """What a class of errors means."""

    wire_code: str
    fault: Fault
    retry: Retry
    level: Literal["info", "warning", "error"]


class IoaError(Exception):
    """Say what happened, whose fault it is and what to do next.

    Args:
        message: What happened, in one sentence.
        hint: What the reader can do next; empty when there is nothing to do.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class InvalidInputError(IoaError):
    """The payload cannot be what it claims to be: wrong type, missing field, malformed id."""


class DeclinedError(InvalidInputError):
    """The task is of a kind that this agent does not do, whatever it says in detail. Another agent may do it."""


class PayloadTooLargeError(InvalidInputError):
    """The payload exceeds `max_payload_bytes`; larger content goes by reference."""


class UnauthenticatedError(IoaError):
    """The caller does not say who it is, or shows a key that lets nobody in."""


class ForbiddenError(IoaError):
    """The caller may not do this: another's name, a group it is no member of."""


class NotFoundError(IoaError):
    """The named agent, group or goal does not exist."""


class ConflictError(IoaError):
    """The id is taken by something else: the same goal id with another text, a closed group."""


class AlreadyRunningError(ConflictError):
    """The agent runs already, elsewhere, with the same card. Another process may share its work as one more replica."""


class IdTakenError(ConflictError):
    """Another agent, with another card, holds the id."""


class SupersededError(ConflictError):
    """Another process has taken the agent's id over: this one has to end."""


class NoAgentError(IoaError):
    """No registered agent fits a need."""


class UnavailableError(IoaError):
    """The system cannot be reached, or a part of it does not answer. A retry can help.

    Args:
        message: What happened, in one sentence.
        hint: What the reader can do next; empty when there is nothing to do.
        retry_after: When a retry is worth its while, if that is known. Over the wire it travels with `RateLimitedError` alone.
    """

    def __init__(self, message: str, *, hint: str = "", retry_after: timedelta | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class NotPermittedError(UnavailableError):
    """The server lets this credential not ask, so that nobody has heard it. Asking again helps when another authorization holds."""


class NotYetError(UnavailableError):
    """Nothing is wrong; there is something to wait for, and the work is worth another look later."""


class RateLimitedError(UnavailableError):
    """Whoever asks does so too often, and is to come back after `retry_after`. It travels over the wire with that time."""


class StoreFullError(UnavailableError):
    """The store is full: it accepts no new goal, or no file. It accepts more when old goals and files were removed."""


class OverQuotaError(IoaError):
    """Whoever stores a file would store more than one may: another try will find no more room until files of his own go."""


class ModelError(IoaError):
    """The language model did not give a usable answer."""


class BudgetSpentError(IoaError):
    """Nothing is left of what the goal may cost; another try will find nothing either."""


class TaskError(IoaError):
    """The agent that ran the task raised or was stopped."""


class MissingExtraError(IoaError):
    """A part was asked for whose optional dependencies are not installed."""

    @classmethod
    def of(cls, part: str, extra: str) -> MissingExtraError:
        """Name the part that is missing and the extra that brings it."""
        return cls(f"{part} is not installed.", hint=f"Install it with: {pip_install(extra)}")


ERRORS: dict[type[Exception], ErrorRow] = {
    IoaError: ErrorRow("internal", Fault.SYSTEM, Retry.BOUNDED, "error"),
    InvalidInputError: ErrorRow("invalid_input", Fault.CALLER, Retry.BOUNDED, "info"),
    PayloadTooLargeError: ErrorRow("payload_too_large", Fault.CALLER, Retry.BOUNDED, "info"),
    UnauthenticatedError: ErrorRow("unauthenticated", Fault.CALLER, Retry.BOUNDED, "info"),
    ForbiddenError: ErrorRow("forbidden", Fault.CALLER, Retry.BOUNDED, "info"),
    NotFoundError: ErrorRow("not_found", Fault.CALLER, Retry.BOUNDED, "info"),
    ConflictError: ErrorRow("conflict", Fault.CALLER, Retry.BOUNDED, "info"),
    AlreadyRunningError: ErrorRow("already_running", Fault.CALLER, Retry.BOUNDED, "info"),
    IdTakenError: ErrorRow("id_taken", Fault.CALLER, Retry.BOUNDED, "info"),
    SupersededError: ErrorRow("superseded", Fault.CALLER, Retry.BOUNDED, "info"),
    NoAgentError: ErrorRow("no_agent", Fault.CALLER, Retry.BOUNDED, "info"),
    UnavailableError: ErrorRow("unavailable", Fault.SYSTEM, Retry.ENDLESS, "warning"),
    NotYetError: ErrorRow("not_yet", Fault.SYSTEM, Retry.ENDLESS, "info"),
    RateLimitedError: ErrorRow("rate_limited", Fault.CALLER, Retry.ENDLESS, "info"),
    StoreFullError: ErrorRow("store_full", Fault.SYSTEM, Retry.ENDLESS, "warning"),
    OverQuotaError: ErrorRow("over_quota", Fault.CALLER, Retry.BOUNDED, "info"),
    ModelError: ErrorRow("model", Fault.SYSTEM, Retry.BOUNDED, "warning"),
    BudgetSpentError: ErrorRow("budget", Fault.CALLER, Retry.BOUNDED, "info"),
    TaskError: ErrorRow("task", Fault.AGENT, Retry.BOUNDED, "warning"),
    MissingExtraError: ErrorRow("missing_extra", Fault.CALLER, Retry.BOUNDED, "error"),
    OSError: ErrorRow("unavailable", Fault.SYSTEM, Retry.ENDLESS, "warning"),
    Exception: ErrorRow("crashed", Fault.SYSTEM, Retry.BOUNDED, "error"),
}
"""What each class means. An `OSError` is an outage of the machine; any other exception that is not ours is a bug."""

_BY_CODE = {row.wire_code: kind for kind, row in ERRORS.items() if issubclass(kind, IoaError)}
"""The classes above travel; what other modules add stays where it is raised."""


def row_of(error: Exception | type[Exception]) -> ErrorRow:
    """Return the row of an error's class, or of the nearest base that has one."""
    kind = error if isinstance(error, type) else type(error)
    return next(ERRORS[base] for base in kind.__mro__ if base in ERRORS)


def from_wire(code: str, message: str, hint: str = "") -> IoaError:
    """Rebuild the error that a peer reported; an unknown code becomes a plain `IoaError`."""
    return _BY_CODE.get(code, IoaError)(message, hint=hint)


E = TypeVar("E", bound=IoaError)


def find_error(kind: type[E], error: BaseException) -> E | None:
    """Take the first error of a kind out of the groups that task groups wrap it in."""
    if isinstance(error, kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for one in error.exceptions if (found := find_error(kind, one)) is not None), None)
    return None


def only_error(error: BaseException) -> IoaError | None:
    """Take the one error of IoA out of the groups that task groups wrap it in; None if there is another or more than one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, IoaError) else None


def reason_of(error: Exception) -> str:
    """Say in one line what an error is: the last one of its traceback."""
    return str(error) if isinstance(error, IoaError) else traceback.format_exception_only(error)[-1].strip()
