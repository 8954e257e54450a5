"""What the kernel of a machine and a server on it have counted of the server's connections, which addresses tell apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Peer:
    """Who is at the other end of a connection. An address of IPv4 is written as such, also where IPv6 stands in for it."""

    host: str
    port: int


@dataclass(frozen=True)
class SocketRead:
    """A connection, by a number that no other one ever has, and how many bytes its program has read of it since it began.

    Of what is encrypted these are the encrypted bytes.
    """

    socket: int
    peer: Peer
    bytes: int


class Sockets(Protocol):
    """The connections that a kernel shows to this process: those of its own network, whoever's they are."""

    async def read_at(self, port: int) -> Sequence[SocketRead]:
        """Return the open connections to a port of this machine.

        One may be missing now and then, which comes or goes, or stands beside one that does.

        Raises:
            UnavailableError: This kernel tells nobody, or not this process.
        """


@dataclass(frozen=True)
class Counted:
    """What a server has counted of a connection, and the number that it gave to it; `bytes` are those of headers and payloads."""

    number: int
    messages: int
    bytes: int


class CountingServer(Protocol):
    """The one server that this process is connected to."""

    @property
    def id(self) -> str | None:
        """Its id, of which each start has another; None while the connection is away."""

    @property
    def port(self) -> int:
        """Where it listens for clients."""

    @property
    def largest_message(self) -> int:
        """How many bytes a message may have."""

    @property
    def own(self) -> Peer | None:
        """Who this process is to the server if nothing between them writes that anew; None while the connection is away."""

    async def counted(self, wanted: Collection[Peer]) -> Mapping[Peer, Counted]:
        """Ask what it has counted of some connections, and return that, and of others too; nothing of an address that two have.

        Raises:
            UnavailableError: It does not answer.
        """

    async def counted_to_the_end(self, numbers: Collection[int]) -> Mapping[int, Counted]:
        """Ask what it had counted of connections when they ended, by the numbers it gave to them; nothing of those that stand.

        It may return some of them, and be asked of the others again.

        Raises:
            UnavailableError: It does not answer.
        """

    async def tell_uncounted(self, uncounted: Mapping[int, int]) -> None:
        """Tell whoever judges how many bytes connections have sent beyond what it counts, by their numbers. That may be lost."""
