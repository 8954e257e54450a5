"""Every failure IoA can report, by whose fault it is and whether a retry can help.

An error that crosses a process boundary keeps its class: `wire_code` names it on the wire and `from_wire` gives it back.
`ERRORS` is the one table that maps a class to its wire code; the acknowledgement decision follows from `retryable`, the
log level from `fault`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


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


class NoAgentError(IoaError):
    """No registered agent fits a need."""

    wire_code = "no_agent"
    fault = Fault.CALLER


class UnavailableError(IoaError):
    """The system cannot be reached, or a part of it does not answer. A retry can help."""

    wire_code = "unavailable"
    retryable = True


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
        return cls(f"{part} is not installed.", hint=f"Install it with: pip install 'ioa[{extra}]'")


ERRORS: dict[str, type[IoaError]] = {
    error.wire_code: error
    for error in (
        IoaError,
        InvalidInputError,
        PayloadTooLargeError,
        ForbiddenError,
        NotFoundError,
        ConflictError,
        NoAgentError,
        UnavailableError,
        ModelError,
        TaskError,
        MissingExtraError,
    )
}


def from_wire(code: str, message: str, hint: str = "") -> IoaError:
    """Rebuild the error a peer reported; an unknown code becomes a plain `IoaError`."""
    return ERRORS.get(code, IoaError)(message, hint=hint)
