"""Making requests to services. An error that one reports is raised here as the class it was raised as there."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.in_turns import asking
from ioa.adapters.nats.patience import waited_for
from ioa.adapters.nats.reply_headers import error_in, patience_headers
from ioa.adapters.nats.request_metrics import asked, asked_seconds
from ioa.cancellation import heeding_cancellation
from ioa.errors import IoaError, NotPermittedError, PayloadTooLargeError, RateLimitedError, UnavailableError, row_of
from ioa.protocol.codec import MAX_ANSWER_BYTES, decode, encode
from ioa.protocol.model import Model
from ioa.protocol.subjects import kind_of

_FIRST_PART = 0.1
"""For which part of his patience somebody waits for the first answer to what may be asked twice. A server that reads its
configuration anew loses answers that cross accounts, and tells so to who answered alone."""
_USUAL_PAUSE = timedelta(seconds=1)
"""How long a caller that asked too often waits if it is told nothing that can be read."""
_NOT_PERMITTED_HINT = (
    "IOA_NATS_SEED names whose it is. Users, observers and admins see who there is and how all stands, users and admins read goals,"
    " auditors the audit log, agents nothing of it. One that could before may again after `ioa credentials upgrade`."
)

Reply = TypeVar("Reply", bound=Model)


class NatsRequester:
    """Make requests to services.

    Args:
        client: The connection.
        timeout: How long an answer is waited for if nothing else is said; as long as is usual there (`waited_for`) if None.
    """

    def __init__(self, client: Client, timeout: timedelta | None = None) -> None:
        self._client = client
        self._timeout = timeout

    async def request(
        self, subject: str, request: Model, reply: type[Reply], *, timeout: timedelta | None = None, is_repeatable: bool = False
    ) -> Reply:
        """Ask and wait for the answer; where whoever asks does so too often, wait for as long as it is told, and ask again.

        Args:
            subject: Where it is answered.
            request: What is asked.
            reply: What the answer is.
            timeout: How long to wait for it. Longer than usual helps those alone whose requests cross over from no account.
            is_repeatable: Whether to do it twice is to do it once. It is asked a second time then, when a tenth of the time has
                passed without an answer: one may be lost on its way.

        Raises:
            UnavailableError: Nobody serves the subject, or nobody answered in time.
            RateLimitedError: It was asked too often, again and again for as long as an answer is waited for.
            IoaError: What the service reported, as the class it was raised as.
        """
        message = await self.ask(subject, encode(request), timeout=timeout, is_repeatable=is_repeatable)
        return decode(reply, message.data, max_payload_bytes=MAX_ANSWER_BYTES)

    async def ask(self, subject: str, data: bytes, *, timeout: timedelta | None = None, is_repeatable: bool = False) -> Msg:
        """Do the same with what is written already, and return the answer as it came.

        Raises:
            IoaError: As `request` does.
        """
        kind, code, started = kind_of(subject), "ok", time.perf_counter()
        try:
            return await self._ask_until_admitted(subject, data, timeout or self._timeout or waited_for(subject), is_repeatable)
        except IoaError as error:
            code = row_of(error).wire_code
            raise
        except asyncio.CancelledError:
            code = "cancelled"
            raise
        finally:
            asked.labels(kind, code).inc()
            asked_seconds.labels(kind).observe(time.perf_counter() - started)

    async def _ask_until_admitted(self, subject: str, data: bytes, timeout: timedelta, is_repeatable: bool) -> Msg:
        until = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                async with asking(self._client):
                    return await self._ask_for_answer(subject, data, timeout, is_repeatable)
            except RateLimitedError as error:
                pause = (error.retry_after or _USUAL_PAUSE).total_seconds()
                if time.monotonic() + pause > until:
                    raise
            await asyncio.sleep(pause)

    async def _ask_for_answer(self, subject: str, data: bytes, timeout: timedelta, is_repeatable: bool) -> Msg:
        try:
            message = await self._ask(subject, data, timeout, is_repeatable=is_repeatable)
        except nats.errors.NoRespondersError:
            raise UnavailableError(f"Nobody serves {subject}.", hint="Is the service running? `ioa doctor` tells.") from None
        except nats.errors.MaxPayloadError:
            raise PayloadTooLargeError(f"What was to be asked of {subject} is larger than the server allows.") from None
        except (nats.errors.Error, TimeoutError, OSError) as error:
            if may_not_publish(self._client, subject):
                raise NotPermittedError(f"This credential may not ask for {kind_of(subject)}.", hint=_NOT_PERMITTED_HINT) from None
            raise UnavailableError(f"{subject} did not answer ({str(error) or type(error).__name__}).") from None
        reported = error_in(message.headers or {})
        if reported is not None:
            raise reported
        return message

    async def _ask(self, subject: str, data: bytes, timeout: timedelta, *, is_repeatable: bool) -> Msg:
        """Ask once, or twice if there is no answer; who answers is told each time how long that one is waited for."""
        if is_repeatable:
            first = timeout * _FIRST_PART
            with suppress(TimeoutError):
                return await self._ask(subject, data, first, is_repeatable=False)
            timeout -= first
        headers = patience_headers(timeout)
        with heeding_cancellation():
            return await self._client.request(subject, data, timeout=timeout.total_seconds(), headers=headers)
