"""One place where the many ways of NATS not answering become one error that says a retry can help."""

from __future__ import annotations

from types import TracebackType

import nats.errors
from nats.js.errors import APIError

from ioa.cancellation import heeding_cancellation
from ioa.errors import ERRORS, PayloadTooLargeError, StoreFullError, UnavailableError, row_of

ERRORS[nats.errors.Error] = row_of(UnavailableError)
ERRORS[nats.errors.MaxPayloadError] = row_of(PayloadTooLargeError)

_WRONG_LAST_SEQUENCE = (10071, 10164)
"""JetStream's codes for an expected sequence that is not the last one; the second comes from a replicated stream in which another
write to the subject is on its way."""

_MESSAGE_TOO_LARGE = 10054
"""JetStream's code for a message beyond the stream's `max_msg_size`."""


_FULL = (10002, 10023, 10047, 10077)
"""JetStream's codes for no room: in the account, for its server twice, and under the stream's `max_bytes`."""


def lost_race(error: APIError) -> bool:
    """Whether JetStream refused a write because somebody else wrote to its subject first."""
    return error.err_code in _WRONG_LAST_SEQUENCE


class unavailable_unless_stored:  # noqa: N801
    """Turn time-outs, lost connections and refusals of JetStream into `UnavailableError`. For writes that do not wait by nats-py.

    What is too large for the server is `PayloadTooLargeError`: sending it again can never help.

    Args:
        what: What was asked, as the subject of a sentence.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is not None:
            _raise_unavailable(self._what, error)


class unavailable_unless_answered(heeding_cancellation):  # noqa: N801
    """The same for everything that waits by nats-py, and heed cancellation."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        super().__exit__(kind, error, traceback)
        if error is not None:
            _raise_unavailable(self._what, error)


def _raise_unavailable(what: str, error: BaseException) -> None:
    if isinstance(error, nats.errors.MaxPayloadError) or (isinstance(error, APIError) and error.err_code == _MESSAGE_TOO_LARGE):
        raise PayloadTooLargeError(
            f"{what} does not take a message of this size.", hint="Send large content as a file: it travels by reference."
        ) from error
    if isinstance(error, APIError) and error.err_code in _FULL:
        raise StoreFullError(
            f"{what} has no room left ({error.description}).", hint="`ioa doctor` says what is full and who fills it."
        ) from error
    if isinstance(error, APIError):
        raise UnavailableError(f"{what} was refused by JetStream: {error.description or error}.") from error
    if isinstance(error, nats.errors.Error | TimeoutError | OSError):
        raise UnavailableError(f"{what} is out of reach ({str(error) or type(error).__name__}).") from error
