"""What a server does not count is told by what its kernel counts, and nobody is told of who only works."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ioa.errors import UnavailableError
from ioa.hosting.uncounted import LOOKED_AT, OF_A_CONNECTION, OF_A_MESSAGE, ON_THE_WAY, UncountedBytes
from ioa.hosting.uncounted_watch import UncountedWatch
from ioa.ports.sockets import Counted, Peer, SocketRead

MB = 1_000_000
LARGEST = 1_048_576
_NOTHING = Counted(7, 0, 0)
EVE, GATE = Peer("192.0.2.7", 40_000), Peer("127.0.0.1", 50_000)
_RECORD_BYTES, _RECORD_ADDS = 16_384, 29
"""TLS 1.2 with AES-GCM, which adds most of those that are used."""


@dataclass
class Server:
    """A connection as its kernel and its server see it; `look` is one look at it, as `UncountedWatch` does it."""

    judge: UncountedBytes = field(default_factory=lambda: UncountedBytes(LARGEST))
    read: int = 0
    counted: Counted = _NOTHING
    peer: Peer = EVE
    asked: int = 0

    def shown(self) -> list[SocketRead]:
        """What the kernel shows."""
        return [SocketRead(1, self.peer, self.read)]

    def send(self, size: int, messages: int = 0, head: int = 0) -> None:
        """Have so many bytes read, of which messages of as many together are counted."""
        self.read += size + messages * head
        if messages:
            self.counted = replace(self.counted, messages=self.counted.messages + messages, bytes=self.counted.bytes + size)

    def end(self) -> int:
        """End it, and return how many bytes are told."""
        self.judge.looked([])
        return sum(self.judge.ended(dict.fromkeys(self.judge.gone(), self.counted)).values())

    def look(self) -> int:
        """Look once, and return how many bytes are told."""
        self.judge.looked(self.shown())
        told = 0
        if self.judge.suspects():
            self.asked += 1
            told += sum(self.judge.judged({self.peer: self.counted}, self.shown()).values())
        return told


def _begun() -> Server:
    """A connection that began between two looks."""
    server = Server()
    server.judge.looked([])
    return server


def _on_the_wire(head: int, size: int) -> int:
    """How many bytes a message takes, encrypted."""
    plain = head + size
    return plain + _RECORD_ADDS * -(-plain // _RECORD_BYTES)


@given(
    messages=st.lists(st.tuples(st.integers(0, OF_A_MESSAGE - 2 * _RECORD_ADDS), st.integers(0, LARGEST)), min_size=1, max_size=60),
    steps=st.lists(
        st.tuples(st.integers(0, 3 * MB), st.integers(0, ON_THE_WAY // 2), st.integers(0, 2 * MB), st.floats(0, 1)), max_size=30
    ),
    is_new=st.booleans(),
)
def test_nobody_is_told_of_who_sends_messages_alone(
    messages: Sequence[tuple[int, int]], steps: Sequence[tuple[int, int, int, float]], is_new: bool
) -> None:
    """However large they are, wherever in one of them the kernel is looked at, and however far the server is behind it."""
    ends = list(accumulate(_on_the_wire(head, size) for head, size in messages))
    sizes = [0, *accumulate(size for _, size in messages)]
    judge, at, told = UncountedBytes(LARGEST), 0, 0
    judge.looked([] if is_new else [SocketRead(1, EVE, 0)])
    for further, behind, meanwhile, part in steps:
        first = min(at + further, ends[-1])
        at = min(first + meanwhile, ends[-1])
        slowest = max(first - behind, 0)
        done = bisect_right(ends, slowest + int(part * (at - slowest)))
        judge.looked([SocketRead(1, EVE, first)])
        if judge.suspects():
            told += sum(judge.judged({EVE: Counted(7, done, sizes[done])}, [SocketRead(1, EVE, at)]).values())
    assert told == 0


@given(uncounted=st.lists(st.integers(0, 5 * MB), max_size=30), honest=st.lists(st.integers(0, 50), max_size=30))
def test_all_that_is_not_counted_is_told_but_for_what_may_be_on_its_way(uncounted: list[int], honest: list[int]) -> None:
    """Messages between that leave no room for more hide nothing; at the end what was on its way is told too."""
    server, told = _begun(), 0
    for number, size in enumerate(uncounted):
        server.send(100 * (messages := honest[number] if number < len(honest) else 0), messages, OF_A_MESSAGE)
        server.send(size)
        told += server.look()
    still = server.read - server.counted.bytes - OF_A_MESSAGE * server.counted.messages - OF_A_CONNECTION - told
    assert -len(uncounted) * LOOKED_AT <= told <= sum(uncounted)
    assert still <= LARGEST + ON_THE_WAY + LOOKED_AT
    ended = server.end()
    assert told + ended <= sum(uncounted)
    assert server.end() == 0, "it is told once"


def test_three_mb_a_second_are_told_from_the_first_seconds_on() -> None:
    """A flood that the server does not count at all: what begins with it is room for one message, and no more."""
    server, told = _begun(), list[int]()
    for _ in range(4):
        server.send(3 * MB)
        told.append(server.look())
    assert told == [3 * MB - OF_A_CONNECTION - LARGEST - ON_THE_WAY, 3 * MB, 3 * MB, 3 * MB]


def test_long_subjects_for_answers_are_told_of() -> None:
    """Of a message that counts as two bytes the server keeps hundreds until it is answered; those of ours are shorter."""
    server, told = _begun(), 0
    for _ in range(4):
        server.send(2 * 5_000, 5_000, head=900)
        told += server.look()
    assert told > 5 * MB


def test_what_comes_while_the_server_is_asked_is_not_lost() -> None:
    """A server that is busy answers late: of a flood nearly all may come meanwhile, and is seen in the next look."""
    judge, read, told = UncountedBytes(LARGEST), 0, 0
    judge.looked([])
    for _ in range(10):
        judge.looked([SocketRead(1, EVE, read := read + LOOKED_AT)])
        told += sum(judge.judged({EVE: Counted(7, 0, 0)}, [SocketRead(1, EVE, read := read + 3 * MB)]).values())
    assert told == 9 * 3 * MB + 10 * LOOKED_AT - OF_A_CONNECTION - LARGEST - ON_THE_WAY


def test_nobody_saves_up() -> None:
    """An hour of small messages leaves room, which counts in the look that sees their end, and in none after it."""
    server = _begun()
    for _ in range(3_600):
        server.send(50 * 10, 50, head=90)
        assert server.look() == 0
    server.send(3 * MB)
    server.look()
    told = 0
    for _ in range(3):
        server.send(3 * MB)
        told += server.look()
    assert told >= 3 * 3 * MB - LARGEST - ON_THE_WAY


def test_who_comes_anew_with_each_message_is_told_of_too() -> None:
    """What was on its way of a connection that ended never comes: 1 MB on each of many is a flood."""
    judge = UncountedBytes(LARGEST)
    judge.looked([])
    told = 0
    for number in range(1, 11):
        shown = [SocketRead(number, EVE, MB)]
        judge.looked(shown)
        told += sum(judge.ended({gone: Counted(gone, 0, 0) for gone in judge.gone()}).values())
        told += sum(judge.judged({EVE: Counted(number, 0, 0)}, shown).values())
    judge.looked([])
    told += sum(judge.ended({gone: Counted(gone, 0, 0) for gone in judge.gone()}).values())
    assert told == 10 * (MB - OF_A_CONNECTION)


def test_nobody_is_told_of_who_ends_behind_a_message_that_came_slowly() -> None:
    """Its last bytes are few, and have the server count all of it, which was on its way until then."""
    server = _begun()
    for _ in range(16):
        server.send(LOOKED_AT - 1_000)
        assert server.look() == 0
    server.read += 15_000
    server.counted = replace(server.counted, messages=1, bytes=server.read)
    assert server.look() == 0
    assert server.end() == 0


def test_what_the_server_counted_since_the_last_look_is_its_own() -> None:
    """A short command that sends 512 kB and ends may be seen in the middle of it, and then no more."""
    server = _begun()
    server.send(500_000)
    assert server.look() == 0
    server.counted = replace(server.counted, messages=1, bytes=512_000)
    assert server.end() == 0


def test_nothing_is_told_of_who_has_not_ended() -> None:
    """The kernel may leave out a connection that stands, of which the server does not say that it ended."""
    server = _begun()
    server.send(MB)
    server.look()
    server.judge.looked([])
    assert [*server.judge.gone()] == [7] and not server.judge.ended({})
    server.send(3 * MB)
    assert server.look() == 4 * MB - OF_A_CONNECTION - LARGEST - ON_THE_WAY


def test_the_kernel_may_leave_a_connection_out() -> None:
    """It is no new one when it is shown again, and what it had sent before does not count twice."""
    server = _begun()
    for _ in range(20):
        server.send(100 * MB, 100)
        assert server.look() == 0
        assert server.end() == 0
    assert server.asked == 20


def test_what_came_before_the_first_look_is_nobodys_fault() -> None:
    """A gate that starts anew does not know when that was sent."""
    server = Server(read=10**9)
    assert server.look() == 0
    server.send(LOOKED_AT)
    assert server.look() == 0, "nobody knows yet what the server had counted before"
    server.send(10 * MB)
    assert server.look() == 10 * MB - LARGEST - ON_THE_WAY


def test_two_with_one_address_are_not_told_apart_and_let_be() -> None:
    """That is so where one comes to two addresses of the server, from one port."""
    judge = UncountedBytes(LARGEST)
    judge.looked([])
    shown = [SocketRead(1, EVE, 9 * MB), SocketRead(2, EVE, 10)]
    judge.looked(shown)
    assert not judge.judged({EVE: Counted(7, 0, 0)}, shown)


def test_the_server_is_asked_of_those_alone_who_have_sent_much() -> None:
    """A thousand that are idle have it asked once in minutes: a list of connections holds up all others."""
    server = _begun()
    for _ in range(600):
        server.send(600, 1)
        server.look()
    assert server.asked == 600 * 600 // LOOKED_AT


class _Kernel:
    """Shows what it is told to, or tells nobody."""

    def __init__(self) -> None:
        self.shown: list[SocketRead] | None = []

    async def read_at(self, port: int) -> Sequence[SocketRead]:
        """Return it."""
        assert port == 4222
        if self.shown is None:
            raise UnavailableError("The kernel does not tell of TCP connections: it says 93.")
        return self.shown


@dataclass
class _Server:
    """Counts nothing but what it is told to, and remembers what was told."""

    id: str | None = "S1"
    port: int = 4222
    largest_message: int = LARGEST
    own: Peer | None = GATE
    is_away: bool = False
    told: list[Mapping[int, int]] = field(default_factory=list)

    async def counted(self, wanted: Collection[Peer]) -> Mapping[Peer, Counted]:
        """Return that nobody has sent anything."""
        if self.is_away:
            raise UnavailableError("nats-server does not list its connections: TimeoutError.")
        return dict.fromkeys(wanted, Counted(7, 0, 0))

    async def counted_to_the_end(self, numbers: Collection[int]) -> Mapping[int, Counted]:
        """Return that they have ended, and sent nothing."""
        return {number: Counted(number, 0, 0) for number in numbers}

    async def tell_uncounted(self, uncounted: Mapping[int, int]) -> None:
        """Remember it."""
        self.told.append(uncounted)


async def test_what_is_seen_is_told() -> None:
    """While the server does not answer nothing is, and what came meanwhile is told when it does."""
    kernel, server = _Kernel(), _Server()
    watch = UncountedWatch(kernel, server)
    kernel.shown = own = [SocketRead(1, GATE, 900)]
    await watch.look()
    kernel.shown = [*own, SocketRead(2, EVE, 3 * MB)]
    server.is_away = True
    await watch.look()
    assert server.told == []
    server.is_away = False
    await watch.look()
    assert server.told == [{7: 3 * MB - OF_A_CONNECTION - LARGEST - ON_THE_WAY}]


async def test_what_was_on_its_way_is_told_when_the_server_says_that_it_never_came() -> None:
    """The gate asks of a connection that the kernel shows no more what was counted of it until it ended."""
    kernel, server = _Kernel(), _Server()
    watch = UncountedWatch(kernel, server)
    kernel.shown = own = [SocketRead(1, GATE, 900)]
    await watch.look()
    kernel.shown = [*own, SocketRead(2, EVE, MB)]
    await watch.look()
    assert server.told == []
    kernel.shown = own
    await watch.look()
    await watch.look()
    assert server.told == [{7: MB - OF_A_CONNECTION}]


async def test_another_server_is_looked_at_anew() -> None:
    """It counts from nothing, and gives the same numbers again."""
    kernel, server = _Kernel(), _Server()
    watch = UncountedWatch(kernel, server)
    kernel.shown = own = [SocketRead(1, GATE, 900)]
    await watch.look()
    server.id, server.own = None, None
    await watch.look()
    server.id, server.own = "S2", GATE
    kernel.shown = [*own, SocketRead(2, EVE, 50 * MB)]
    await watch.look()
    assert server.told == []


@pytest.mark.parametrize(
    ("shown", "why"),
    [(None, "does not tell"), ([], "other connections"), ([SocketRead(2, EVE, 9 * MB)], "other connections")],
    ids=["no kernel that tells", "another network", "a server of another network at the same port"],
)
async def test_a_kernel_that_does_not_show_the_server_is_told_of_once(shown: list[SocketRead] | None, why: str) -> None:
    """Nobody is judged then, and when it does it is said again."""
    kernel, server = _Kernel(), _Server()
    watch = UncountedWatch(kernel, server)
    kernel.shown = shown
    with capture_logs() as logs:
        await watch.look()
        await watch.look()
        assert not logs, "the kernel may leave a connection out"
        await watch.look()
        await watch.look()
        kernel.shown = [SocketRead(1, GATE, 900)]
        await watch.look()
    assert [line["event"] for line in logs] == ["uncounted_not_watched", "uncounted_watched"]
    assert why in logs[0]["why"]
    assert "network namespace" in logs[0]["hint"]
    assert server.told == []
