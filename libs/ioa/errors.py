"""Errors of IoA, and one table of their classes.

`ERRORS` maps a class to its code on the wire, its fault, the number of attempts, and its log level. Services, queues and commands
read the row of an error with `row_of`. A class without a row has the row of its base class; a module adds the rows of its classes.
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
    """What a class of errors means. Without other values, it is an error of the caller, tried five times and logged as info."""

    wire_code: str
    fault: Fault = Fault.CALLER
    retry: Retry = Retry.BOUNDED
    level: Literal["info", "warning", "error"] = "info"


class IoaError(Exception):
    """An error with a hint for the reader.

    Args:
        message: The cause, in one sentence.
        hint: The reader's next step; empty if there is none.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class InvalidInputError(IoaError):
    """The input is invalid: wrong type, missing field, malformed id."""


class DeclinedError(InvalidInputError):
    """The agent does not do tasks of this kind. Another agent may do it."""


class PayloadTooLargeError(InvalidInputError):
    """The payload exceeds `max_payload_bytes`; larger content goes by reference."""


class UnauthenticatedError(IoaError):
    """The caller has no key, or its key is invalid."""


class ForbiddenError(IoaError):
    """The caller lacks the permission: another's name, or a group of which it is not a member."""


class NotFoundError(IoaError):
    """The named agent, group or goal does not exist."""


class ConflictError(IoaError):
    """The state conflicts with the request: the same goal id with another text, a closed group."""


class AlreadyRunningError(ConflictError):
    """The agent runs already in another process, with the same card. Another replica may share its work."""


class IdTakenError(ConflictError):
    """Another agent, with another card, holds the id."""


class SupersededError(ConflictError):
    """Another process has taken over the agent's id: this process must end."""


class NoAgentError(IoaError):
    """No registered agent fits a need."""


class UnavailableError(IoaError):
    """The system cannot be reached, or a part of it does not answer. A retry can help.

    Args:
        message: The cause, in one sentence.
        hint: The reader's next step; empty if there is none.
        retry_after: Time to wait before a retry, if known. Only `RateLimitedError` contains it on the wire.
    """

    def __init__(self, message: str, *, hint: str = "", retry_after: timedelta | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class NotPermittedError(UnavailableError):
    """The server rejects the request of this credential. A retry helps after the authorization has changed."""


class NotYetError(UnavailableError):
    """The work must wait for something; it is tried again later."""


class RateLimitedError(UnavailableError):
    """The caller exceeded its rate limit; retry after `retry_after`."""


class StoreFullError(UnavailableError):
    """The store is full: it accepts no new goal, or no file. It accepts more when old goals and files were removed."""


class OverQuotaError(IoaError):
    """The owner of a file exceeded its quota. A retry helps after files of this owner were removed."""


class ModelError(IoaError):
    """The language model did not give a usable answer."""


class BudgetSpentError(IoaError):
    """The budget of the goal is spent. A retry does not help."""


class TaskError(IoaError):
    """The agent that ran the task raised or was stopped."""


class MissingExtraError(IoaError):
    """The optional dependencies of a part are not installed."""

    @classmethod
    def of(cls, part: str, extra: str) -> MissingExtraError:
        """Return the error for a part and the extra that installs it."""
        return cls(f"{part} is not installed.", hint=f"Install it with: {pip_install(extra)}")


ERRORS: dict[type[Exception], ErrorRow] = {
    IoaError: ErrorRow("internal", Fault.SYSTEM, Retry.BOUNDED, "error"),
    InvalidInputError: ErrorRow("invalid_input"),
    PayloadTooLargeError: ErrorRow("payload_too_large"),
    UnauthenticatedError: ErrorRow("unauthenticated"),
    ForbiddenError: ErrorRow("forbidden"),
    NotFoundError: ErrorRow("not_found"),
    ConflictError: ErrorRow("conflict"),
    AlreadyRunningError: ErrorRow("already_running"),
    IdTakenError: ErrorRow("id_taken"),
    SupersededError: ErrorRow("superseded"),
    NoAgentError: ErrorRow("no_agent"),
    UnavailableError: ErrorRow("unavailable", Fault.SYSTEM, Retry.ENDLESS, "warning"),
    NotYetError: ErrorRow("not_yet", Fault.SYSTEM, Retry.ENDLESS),
    RateLimitedError: ErrorRow("rate_limited", retry=Retry.ENDLESS),
    StoreFullError: ErrorRow("store_full", Fault.SYSTEM, Retry.ENDLESS, "warning"),
    OverQuotaError: ErrorRow("over_quota"),
    ModelError: ErrorRow("model", Fault.SYSTEM, Retry.BOUNDED, "warning"),
    BudgetSpentError: ErrorRow("budget"),
    TaskError: ErrorRow("task", Fault.AGENT, Retry.BOUNDED, "warning"),
    MissingExtraError: ErrorRow("missing_extra", level="error"),
    OSError: ErrorRow("unavailable", Fault.SYSTEM, Retry.ENDLESS, "warning"),
    Exception: ErrorRow("crashed", Fault.SYSTEM, Retry.BOUNDED, "error"),
}
"""An `OSError` is an outage of the machine; any other exception of another library is a bug."""

_BY_CODE = {row.wire_code: kind for kind, row in ERRORS.items() if issubclass(kind, IoaError)}
"""Classes that are sent over the wire: the classes of this module."""


def row_of(error: Exception | type[Exception]) -> ErrorRow:
    """Return the row of an error's class, or of the nearest base that has one."""
    kind = error if isinstance(error, type) else type(error)
    return next(ERRORS[base] for base in kind.__mro__ if base in ERRORS)


def from_wire(code: str, message: str, hint: str = "") -> IoaError:
    """Rebuild the error that a peer reported; an unknown code becomes a plain `IoaError`."""
    return _BY_CODE.get(code, IoaError)(message, hint=hint)


E = TypeVar("E", bound=IoaError)


def find_error(kind: type[E], error: BaseException) -> E | None:
    """Return the first error of a class in nested exception groups."""
    if isinstance(error, kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for one in error.exceptions if (found := find_error(kind, one)) is not None), None)
    return None


def only_error(error: BaseException) -> IoaError | None:
    """Return the only error in nested exception groups if it is one of IoA; otherwise None."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, IoaError) else None


def reason_of(error: Exception) -> str:
    """Return an error in one line: the last line of its traceback."""
    return str(error) if isinstance(error, IoaError) else traceback.format_exception_only(error)[-1].strip()
