"""The system as the gateway reaches it: as the user of each key, and not at all while it is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import Counter
from starlette.requests import Request

from ioa.client.client import Client
from ioa.errors import UnavailableError
from ioa.protocol.ids import UserId
from ioa_gateway.callers import NOBODY, Caller
from ioa_gateway.calls import MAX_FILE_BYTES, ApiCall, WebhookParts, left, sent
from ioa_gateway.keyring import Keyring
from ioa_gateway.limits import CallerLimits
from ioa_gateway.rooms import Rooms
from ioa_gateway.seats import Seats
from ioa_gateway.sessions import session_cookie

requests = Counter("ioa_gateway_requests_total", "Requests by HTTP, by route and status", ["route", "status"])


@dataclass(frozen=True)
class Reach:
    """The system.

    Attributes:
        rooms: What happens in groups.
        keyring: Who is let in.
        limits: What each key may use up.
        hooks: What webhooks need.
        system_of: The system as a user sees it.
        seats: The seats of people that it speaks for.
        is_there: Whether there is a connection to it now.
    """

    rooms: Rooms
    keyring: Keyring
    limits: CallerLimits
    hooks: WebhookParts
    system_of: Callable[[UserId], Client]
    seats: Seats
    is_there: Callable[[], bool]
    _clients: dict[UserId, Client] = field(default_factory=dict)

    def client_of(self, user: UserId) -> Client:
        """Return the system as a user sees it."""
        if user not in self._clients:
            self._clients[user] = self.system_of(user)
        return self._clients[user]

    def sent(self, caller: Caller, request: Request, most: int) -> AsyncIterator[bytes]:
        """Yield a body as it comes, for as long as its sender is let in: bodies take long, and keys are revoked meanwhile.

        Raises:
            UnauthenticatedError: The sender's key lets in no more.
            PayloadTooLargeError: It has more bytes than that.
            HTTPException: It does not come, or very slowly.
        """
        return sent(request, most, lambda: None if caller is NOBODY else self.keyring.check(caller))

    def admitted(self, caller: Caller, request: Request) -> ApiCall:
        """Return what somebody who was let in asks, as routes are given it.

        Raises:
            UnavailableError: There is no connection to the system now.
        """
        if not self.is_there():
            raise UnavailableError("The system is out of reach.", hint="Try again soon; nothing is lost.")
        return ApiCall(
            caller=caller,
            client=self.client_of(caller.user),
            rooms=self.rooms,
            keyring=self.keyring,
            limits=self.limits,
            hooks=self.hooks,
            path=request.path_params,
            headers=request.headers,
            session=session_cookie(request),
            is_secure=request.url.scheme == "https",
            sent=self.sent(caller, request, MAX_FILE_BYTES),
            left=partial(left, request.receive),
            seats=self.seats,
        )
