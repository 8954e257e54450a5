"""Every failure IoA can report, by whose fault it is and whether a retry can help.

An error that crosses a process boundary keeps its class: `wire_code` names it on the wire and `from_wire` gives it back.
`ERRORS` is the one table that maps a class to its wire code; the acknowledgement decision follows from `retryable`, the
log level from `fault`.
"""

from __future__ import annotations

import traceback
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, TypeVar

from ioa.distribution import pip_install


class Fault(StrEnum):
    """Whose fault an error is: the caller's, the system's, or the agent's that ran a task."""

    CALLER = "caller"
    SYSTEM = "system"
    AGENT = "agent"


class IoaError(Exception):
    """Say what happened, whose fault it is and what to do next.

    Args:
        message: What happened, in one sentence.
        hint: What the reader can do next; empty when there is nothing to do.
    """

    wire_code: ClassVar[str] = "internal"
    fault: ClassVar[Fault] = Fault.SYSTEM
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class InvalidInputError(IoaError):
    """The payload cannot be what it claims to be: wrong type, missing field, malformed id."""

    wire_code = "invalid_input"
    fault = Fault.CALLER


class PayloadTooLargeError(InvalidInputError):
    """The payload exceeds `max_payload_bytes`; larger content goes by reference."""

    wire_code = "payload_too_large"


class ForbiddenError(IoaError):
    """The caller may not do this: another's name, a group it is no member of."""

    wire_code = "forbidden"
    fault = Fault.CALLER


class NotFoundError(IoaError):
    """The named agent, group or goal does not exist."""

    wire_code = "not_found"
    fault = Fault.CALLER


class ConflictError(IoaError):
    """The id is taken by something else: the same goal id with another text, a closed group."""

    wire_code = "conflict"
    fault = Fault.CALLER


class AlreadyRunningError(ConflictError):
    """The agent runs already, elsewhere, with the same card. Another process may share its work as one more replica."""

    wire_code = "already_running"


class IdTakenError(ConflictError):
    """Another agent, with another card, holds the id."""

    wire_code = "id_taken"


class SupersededError(ConflictError):
    """Another process has taken the agent's id over: this one has to end."""

    wire_code = "superseded"


class NoAgentError(IoaError):
    """No registered agent fits a need."""

    wire_code = "no_agent"
    fault = Fault.CALLER


class UnavailableError(IoaError):
    """The system cannot be reached, or a part of it does not answer. A retry can help.

    Args:
        message: What happened, in one sentence.
        hint: What the reader can do next; empty when there is nothing to do.
        retry_after: When a retry is worth its while, if that is known. It does not travel over the wire.
    """

    wire_code = "unavailable"
    retryable = True

    def __init__(self, message: str, *, hint: str = "", retry_after: timedelta | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class UnknownVersionError(UnavailableError):
    """Data is of a version that this process does not know. Another one may, or this one after its upgrade."""

    wire_code = "unknown_version"


class ModelError(IoaError):
    """The language model did not give a usable answer."""

    wire_code = "model"


class TaskError(IoaError):
    """The agent that ran the task raised or was stopped."""

    wire_code = "task"
    fault = Fault.AGENT


class MissingExtraError(IoaError):
    """A part was asked for whose optional dependencies are not installed."""

    wire_code = "missing_extra"
    fault = Fault.CALLER

    @classmethod
    def of(cls, part: str, extra: str) -> MissingExtraError:
        """Name the part that is missing and the extra that brings it."""
        return cls(f"{part} is not installed.", hint=f"Install it with: {pip_install(extra)}")


ERRORS: dict[str, type[IoaError]] = {
    error.wire_code: error
    for error in (
        IoaError,
        InvalidInputError,
        PayloadTooLargeError,
        ForbiddenError,
        NotFoundError,
        ConflictError,
        AlreadyRunningError,
        IdTakenError,
        SupersededError,
        NoAgentError,
        UnavailableError,
        UnknownVersionError,
        ModelError,
        TaskError,
        MissingExtraError,
    )
}


def from_wire(code: str, message: str, hint: str = "") -> IoaError:
    """Rebuild the error a peer reported; an unknown code becomes a plain `IoaError`."""
    return ERRORS.get(code, IoaError)(message, hint=hint)


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
