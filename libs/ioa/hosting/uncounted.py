"""What a connection has sent of which nats-server counts nothing, told by what its kernel has handed over of it.

The server counts messages, and of each the headers and the payload. It counts no other command (who subscribes, ends that, or asks
whether it is there), and no message that it passes over. Its kernel counts every byte. Between two looks a connection has sent
nothing else than what the server counts if the kernel handed over no more than that, and for each message the room that its
subject, the subject for the answer, and the numbers take, and what encryption adds. Rules that hold here:

- **No time is measured.** A look reads the kernel, then the server, then the kernel again. What came in between the server may have
  counted or not: as much of it as came is held against nobody.
- **What is on its way to be counted is let be**: as much as one message may have may have been handed over and not be counted yet.
- **Nobody saves up.** Room that messages leave counts for one look, and never for the next.
- **The server is asked only of those of whom the kernel has handed over much**, since it holds up everybody meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ioa.ports.sockets import Counted, Peer, SocketRead

OF_A_MESSAGE = 512
"""For how many bytes a message has room besides headers and payload, encrypted in a record of its own. The longest that our clients
send take less than three quarters. Somebody may fill the rest by subjects for answers, which the server keeps."""
OF_BYTES = 256
"""For how many bytes counted there is room for one more: encryption adds 22 or 29 to each 16 kB."""
OF_A_CONNECTION = 16_384
"""For how many bytes a connection has room that begins: with certificates both ways that takes some kB."""
LOOKED_AT = 65_536
"""Of how many bytes handed over since a connection was judged last it is judged again."""
ON_THE_WAY = 131_072
"""How much may be handed over and not be counted yet, besides one message: the server reads 64 kB at once."""
_FORGOTTEN = 5
"""After how many looks in a row that did not show a connection it is forgotten: the kernel may leave one out."""


_NOTHING = Counted(0, 0, 0)


@dataclass
class _Connection:
    """A connection: what had been read and counted of it when it was judged last, and what of that may be on its way.

    That is less than nothing where more was counted than read, which was read a moment later.
    """

    peer: Peer
    read: int
    counted: Counted | None
    on_its_way: int = 0
    unseen: int = 0


class UncountedBytes:
    """Judges the connections of one server, look after look. `largest_message` is how many bytes a message may have.

    What was sent before the first look nobody is told of, nor until the server was asked of a connection once.
    """

    def __init__(self, largest_message: int) -> None:
        self._most_on_the_way = largest_message + ON_THE_WAY
        self._known: dict[int, _Connection] = {}
        self._now: Mapping[int, SocketRead] = {}
        self._has_looked = False

    def looked(self, sockets: Sequence[SocketRead]) -> None:
        """Take in what the kernel shows."""
        self._now = {one.socket: one for one in sockets}
        for number, one in self._now.items():
            if number not in self._known:
                new = _Connection(one.peer, 0, _NOTHING, -OF_A_CONNECTION)
                self._known[number] = new if self._has_looked else _Connection(one.peer, one.bytes, None)
        self._has_looked = True
        for number in [*self._known]:
            known = self._known[number]
            known.unseen = 0 if number in self._now else known.unseen + 1
            if known.unseen >= _FORGOTTEN:
                del self._known[number]

    def gone(self) -> Collection[int]:
        """Return the numbers of those whom the kernel shows no more, and of whom something was on its way: `ended` is told."""
        known = (one for one in self._known.values() if one.unseen and one.on_its_way > 0)
        return [one.counted.number for one in known if one.counted is not None]

    def ended(self, counted: Mapping[int, Counted]) -> Mapping[int, int]:
        """Take in what the server had counted when connections ended, by their numbers; of others it has not said that they did.

        Returns:
            How many bytes more they have sent of which the server counted nothing. What was on its way then never comes.
        """
        found = dict[int, int]()
        for known in self._known.values():
            before = known.counted
            if not known.unseen or before is None or (last := counted.get(before.number)) is None:
                continue
            if (surely := known.on_its_way - _room_for(last, before)) > 0:
                found[last.number] = surely
            known.on_its_way = 0
        return found

    def suspects(self) -> Collection[Peer]:
        """Return of whom the server is to be asked, which then `judged` is told."""
        return {one.peer for number, one in self._now.items() if self._is_suspect(self._known[number], one.bytes)}

    @staticmethod
    def _is_suspect(known: _Connection, read: int) -> bool:
        """Whether it has sent much, or more while much was on its way: that may be counted by now, and would be told at its end."""
        return read - known.read >= LOOKED_AT or (known.on_its_way >= LOOKED_AT and read > known.read)

    def judged(self, counted: Mapping[Peer, Counted], after: Sequence[SocketRead]) -> Mapping[int, int]:
        """Take in what the server has counted by now, and what the kernel shows after that.

        Returns:
            How many bytes more each connection has sent for certain of which the server counts nothing, by its number.
        """
        found = Counter[int]()
        twice = {peer for peer, times in Counter(one.peer for one in self._now.values()).items() if times > 1}
        for socket in after:
            before, known, now = self._now.get(socket.socket), self._known.get(socket.socket), counted.get(socket.peer)
            if before is None or known is None or now is None or socket.peer in twice:
                continue
            counted_early = before.bytes - socket.bytes
            if known.counted is None:
                known.on_its_way = counted_early
            else:
                known.on_its_way += before.bytes - known.read - _room_for(now, known.counted)
                known.on_its_way = max(known.on_its_way, counted_early)
            if (surely := known.on_its_way - self._most_on_the_way) > 0:
                found[now.number] += surely
                known.on_its_way -= surely
            known.read, known.counted = before.bytes, now
        return found


def _room_for(now: Counted, before: Counted) -> int:
    """Return how many bytes the kernel hands over at most for what a server has counted."""
    size = now.bytes - before.bytes
    return size + size // OF_BYTES + OF_A_MESSAGE * (now.messages - before.messages)
