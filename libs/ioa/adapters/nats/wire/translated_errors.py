"""Errors of NATS, translated to errors of the system."""

from __future__ import annotations

from types import TracebackType

import nats.errors
from nats.js.errors import APIError

from ioa.concurrency import heeding_cancellation
from ioa.errors import ERRORS, PayloadTooLargeError, StoreFullError, UnavailableError, row_of

ERRORS[nats.errors.Error] = row_of(UnavailableError)
ERRORS[nats.errors.MaxPayloadError] = row_of(PayloadTooLargeError)

_WRONG_LAST_SEQUENCE = (10071, 10164)
"""JetStream's codes for a wrong expected sequence. A replicated stream returns the second code while another write to the subject
is pending."""
_MESSAGE_TOO_LARGE = 10054
"""JetStream's code for a message above the stream's `max_msg_size`."""
_FULL = (10002, 10023, 10047, 10077)
"""JetStream's codes for a full account, a full server (two codes), and a stream above its `max_bytes`."""
_TOO_MANY = ("maximum messages per subject", "maximum messages exceeded")
"""Descriptions of JetStream's error for too many messages. Errors of other kinds have the same code."""


class TooManyMessagesError(UnavailableError):
    """A stream has the maximum number of messages, in total or on a subject."""


def lost_race(error: APIError) -> bool:
    """Return whether JetStream rejected a write because another write to its subject came first."""
    return error.err_code in _WRONG_LAST_SEQUENCE


class unavailable_unless_answered(heeding_cancellation):  # noqa: N801
    """Raise `UnavailableError` for timeouts, lost connections and rejections of JetStream, and heed cancellation.

    A message that is too large for the server raises `PayloadTooLargeError`, because a retry cannot help. `what` is the store or
    service, as the subject of a sentence.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        super().__exit__(kind, error, traceback)
        code, text = (error.err_code, str(error.description or error)) if isinstance(error, APIError) else (None, "")
        if isinstance(error, nats.errors.MaxPayloadError) or code == _MESSAGE_TOO_LARGE:
            hint = "Send large content as a file, by reference."
            raise PayloadTooLargeError(f"{self._what} does not accept a message of this size.", hint=hint) from error
        if isinstance(error, APIError):
            if any(words in text for words in _TOO_MANY):
                raise TooManyMessagesError(f"{self._what} has too many messages ({text}).") from error
            if code in _FULL:
                hint = "`ioa doctor` lists full stores and the owners of most data."
                raise StoreFullError(f"{self._what} has no room left ({text}).", hint=hint) from error
            raise UnavailableError(f"{self._what}: JetStream rejected the request: {text}.") from error
        if isinstance(error, nats.errors.Error | TimeoutError | OSError):
            raise UnavailableError(f"{self._what} does not answer ({str(error) or type(error).__name__}).") from error
