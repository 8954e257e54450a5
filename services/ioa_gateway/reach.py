"""The system as the gateway reaches it: as the user of each key, and not at all while it is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ioa.client.client import Client
from ioa.ports.system_client import SystemClient
from ioa.protocol.ids import UserId
from ioa_gateway.keyring import Keyring
from ioa_gateway.limits import CallerLimits
from ioa_gateway.rooms import Rooms


@dataclass(frozen=True)
class Reach:
    """The system.

    Attributes:
        rooms: What happens in groups.
        keyring: Who is let in.
        limits: What each key may use up.
        system_of: The system as a user sees it.
        is_there: Whether there is a connection to it now.
    """

    rooms: Rooms
    keyring: Keyring
    limits: CallerLimits
    system_of: Callable[[UserId], SystemClient]
    is_there: Callable[[], bool]
    _clients: dict[UserId, Client] = field(default_factory=dict)

    def client_of(self, user: UserId) -> Client:
        """Return the system as a user sees it."""
        if user not in self._clients:
            self._clients[user] = Client(self.system_of(user))
        return self._clients[user]
