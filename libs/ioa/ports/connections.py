"""Who is connected from outside of the control plane, and what each connection has sent."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from ioa.protocol.ids import TenantId, UserId


@dataclass(frozen=True)
class ConnectionId:
    """A connection: the server's id, and the number that it gave to the connection. Later ones have larger numbers."""

    server: str
    number: int


@dataclass(frozen=True)
class ShownToken:
    """What let a guest in: by which key it is signed, and whose it is, by whom his inboxes are called; empty where nobody said."""

    key: str
    owner: str


@dataclass(frozen=True)
class SentTotals:
    """What a connection has sent since it began, and by which public key its holder was let in; of a guest by a token, his name.

    `key` is empty where the server does not say it of one that is judged: of who is about to be let in, at first or anew, of the
    services of whose server it is, and of one that has ended. Whose such a connection is follows from what was heard of it before.

    `received` is how many messages the server has sent to it, of which few that it sent may be the cause; unless it is answerable
    for them, somebody else may be. An agent's connection is ended if far too many come, and kept out only if it is answerable.
    Services and admins of a tenant with a name act for many, and may send more.
    `active_ago` is how many seconds before it was counted it last sent or was sent a message, or did something about a
    subscription; what is less than making the list took is not told apart. `tenant` is whose agent, user or service it is.
    """

    connection: ConnectionId
    key: str
    messages: int
    bytes: int
    received: int = 0
    is_answerable: bool = True
    is_agent: bool = False
    subscriptions: int = 0
    is_service: bool = False
    active_ago: float = math.inf
    tenant: TenantId | None = None


@dataclass(frozen=True)
class KeyHolders:
    """What the holders of keys are called, by public key, and the keys of those who act for others and may send more than they.

    `users` is what those are called who are users: who comes by HTTP alone may bear the name of an agent.
    """

    names: Mapping[str, str]
    trusted: frozenset[str]
    users: frozenset[str] = frozenset()


class ConnectionHearer(Protocol):
    """Is told of connections, and by name of those of agents, users, and services and admins of tenants with a name.

    None of it may wait.
    """

    def opened(self, sent: SentTotals) -> None:
        """Hear that somebody was let in: on a new connection, who has sent nothing yet, or anew on one that he has."""

    def closed(self, sent: SentTotals) -> None:
        """Hear that a connection has ended, and not whose."""

    def counted(self, server: str, connections: Sequence[SentTotals]) -> None:
        """Hear which connections a server has, that was asked."""

    def glanced(self, server: str, connections: Sequence[SentTotals], at_seconds: float) -> None:
        """Hear, some times in a row, what those connections of a server had that were active last, and when by its clock."""

    def pulling(self, key: str, messages: int, told_by: TenantId | None = None) -> None:
        """Hear that an agent may be sent so many messages for what it asks, and which tenant tells so, if one does."""

    def refused(self, user: UserId, goals: int, told_by: TenantId | None) -> None:
        """Hear that so many goals of a user were refused, who goes on with them though all are, and which tenant tells so."""

    def traced(self, connection: ConnectionId, told_by: TenantId | None = None) -> None:
        """Hear that a connection had its server write to services in its place, and which tenant tells so, if one does."""

    def uncounted(self, connection: ConnectionId, size: int, told_by: TenantId | None = None) -> None:
        """Hear that a connection has sent so many bytes that its server does not count, and which tenant tells so, if one does."""

    def searched(self, user: UserId, messages: int, told_by: TenantId | None = None) -> None:
        """Hear that the server searches what waits for goals of a user, and as how many messages it counts."""

    def turned_away(self, host: str) -> None:
        """Hear that somebody was not let in who came from an address; if many are, of some of them."""

    def gave_back(self, key: str) -> None:
        """Hear that an agent gave a goal back that it had taken, which counts as well as what it asks."""


class Connections(Protocol):
    """The connections of all servers of a system."""

    def hearing(self, hearer: ConnectionHearer) -> AbstractAsyncContextManager[None]:
        """Tell `hearer` while the block runs."""

    async def count(self) -> None:
        """Ask each server for its connections, and some times in a row for those that were active last; the hearer is told.

        Raises:
            ForbiddenError: Who asks may not, since the authorization of the servers is older than who asks.
        """

    async def keep_out(self, names: Collection[str]) -> None:
        """Tell whoever can refuse them who is not to be let in for now; it replaces what was told before.

        Raises:
            ForbiddenError: As `count` does.
        """

    async def end(self, connection: ConnectionId) -> None:
        """Have a connection ended, if it is still there."""
