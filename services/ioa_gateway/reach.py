"""The parts of the gateway that handlers share, and how a request is read and becomes an `ApiCall`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from prometheus_client import Counter
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ioa.cancellation import fail_after
from ioa.client.client import Client
from ioa.errors import PayloadTooLargeError, UnavailableError
from ioa.protocol.ids import UserId
from ioa_gateway.callers import NOBODY, Caller
from ioa_gateway.calls import MAX_FILE_BYTES, ApiCall, WebhookParts, wait_for_disconnect
from ioa_gateway.event_streams import EventStreams
from ioa_gateway.keyring import Keyring
from ioa_gateway.limits import CallerLimits
from ioa_gateway.seats import Seats
from ioa_gateway.sessions import session_cookie

BODY_SILENCE = timedelta(seconds=60)
"""Timeout of each part of a body."""
_BODY_RATE = 10_000
"""Minimum rate of a body after its first minute, in bytes per second."""

requests = Counter("ioa_gateway_requests_total", "Requests by HTTP, by route and status", ["route", "status"])


@dataclass(frozen=True)
class Reach:
    """The parts of the gateway that all requests share.

    Attributes:
        streams: Followed groups.
        keyring: Authenticates callers.
        limits: Limits of keys.
        hooks: The parts that webhooks need.
        system_of: Opens a client for a user.
        seats: Seats of people.
        is_there: Whether the gateway is connected to the system.
    """

    streams: EventStreams
    keyring: Keyring
    limits: CallerLimits
    hooks: WebhookParts
    system_of: Callable[[UserId], Client]
    seats: Seats
    is_there: Callable[[], bool]
    _clients: dict[UserId, Client] = field(default_factory=dict)

    def client_of(self, user: UserId) -> Client:
        """Return the client of a user."""
        if user not in self._clients:
            self._clients[user] = self.system_of(user)
        return self._clients[user]

    async def sent(self, caller: Caller, request: Request, most: int) -> AsyncIterator[bytes]:
        """Yield the body of a request as it arrives, at most `most` bytes.

        Raises:
            UnauthenticatedError: The caller's key is no longer valid.
            PayloadTooLargeError: The body is too long.
            HTTPException: The body does not arrive, or too slowly.
        """
        now, silence = asyncio.get_running_loop().time, BODY_SILENCE.total_seconds()
        size, waited, parts = 0, 0.0, request.stream()
        while True:
            begun = now()
            try:
                async with fail_after(min(silence, silence + size / _BODY_RATE - waited)):
                    part = await anext(parts, None)
            except TimeoutError:
                raise HTTPException(408, "The body did not come.") from None
            waited += now() - begun  # without the time that storing a part takes
            if caller is not NOBODY:
                self.keyring.check(caller)
            if part is None:
                return
            size += len(part)
            if size > most:
                raise PayloadTooLargeError(
                    f"The body has more than {most:,} bytes.", hint="Files go to /v1/uploads, up to 100 MB each."
                )
            yield part

    def admitted(self, caller: Caller, request: Request) -> ApiCall:
        """Return the request of an authenticated caller as routes read it.

        Raises:
            UnavailableError: The gateway is not connected to the system.
        """
        if not self.is_there():
            raise UnavailableError("The system is out of reach.", hint="Try again soon; nothing is lost.")
        return ApiCall(
            caller=caller,
            client=self.client_of(caller.user),
            streams=self.streams,
            keyring=self.keyring,
            limits=self.limits,
            hooks=self.hooks,
            path=request.path_params,
            headers=request.headers,
            session=session_cookie(request),
            is_secure=request.url.scheme == "https",
            sent=self.sent(caller, request, MAX_FILE_BYTES),
            left=partial(wait_for_disconnect, request.receive),
            seats=self.seats,
        )
