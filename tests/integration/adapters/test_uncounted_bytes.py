"""What a real kernel and a real server count of the same connections, whatever they come by, agrees but for what is not counted."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from nats.aio.client import Client

from ioa.adapters.kernel_sockets import KernelSockets
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.counted import NatsCountingServer
from ioa.adapters.nats.flood_tellers import ToldOfFloods
from ioa.adapters.nats.permissions import of_agent, of_user
from ioa.adapters.nats.server import open_nats_server
from ioa.adapters.nats.sinks import taking
from ioa.cli.credentials import AUTHORIZATION, FolderSecrets, plan_of
from ioa.errors import UnavailableError
from ioa.hosting.cluster_credentials import make_credentials
from ioa.hosting.uncounted import OF_A_CONNECTION, OF_A_MESSAGE
from ioa.hosting.uncounted_watch import UncountedWatch
from ioa.ports.sockets import Counted, Peer
from ioa.protocol import subjects
from ioa.protocol.ids import MAX_ID_CHARS, AgentId, PoolId, UserId
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security.secured import passed_over
from tests.rig.certificates import written_certificate
from tests.rig.deadline import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only the kernel of Linux is asked")

_USER = "u" * MAX_ID_CHARS
_LONGEST = "c" * MAX_ID_CHARS
_SOON = timedelta(seconds=20)
_MB = 1_000_000
_LARGEST = 1_000_000
_RECORD_ADDS = 29
"""How many bytes TLS adds to a message that is sent alone."""
"""How many bytes the messages of a large upload have."""


def _longest_subject() -> str:
    """The longest of those that an agent or a user may publish on, all names as long as they may be."""
    pool, agent = PoolId("p" * MAX_ID_CHARS), AgentId("a" * MAX_ID_CHARS)
    publish = *of_agent(agent, pool).publish, *of_user(UserId(_USER)).publish
    return max((subject.replace("*", _LONGEST) for subject in publish), key=len)


@contextmanager
def _accepted() -> Iterator[tuple[int, socket.socket, socket.socket]]:
    """Yield a port, and both ends of a connection to it."""
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server,
        socket.create_connection(("127.0.0.1", server.getsockname()[1])) as ours,
        server.accept()[0] as theirs,
    ):
        yield server.getsockname()[1], ours, theirs


@dataclass
class _Watched:
    """A server that is watched, how somebody connects to it, and how many bytes were told of, by connection."""

    url: str
    ca: str | None
    folder: Path
    watch: UncountedWatch
    server: NatsCountingServer
    told: dict[int, int] = field(default_factory=dict)

    def settings(self, name: str) -> NatsSettings:
        """How somebody connects."""
        return NatsSettings(self.url, name, seed=str(self.folder / name / "seed"), ca=self.ca)

    @asynccontextmanager
    async def user(self) -> AsyncIterator[Client]:
        """Connect as the user."""
        async with open_connection(self.settings(_USER), patience=_SOON) as client:
            yield client

    async def look_while(self, work: asyncio.Task[None]) -> None:
        """Look many times a second, more often than a gate does, until something is done."""
        while not work.done():
            await self.watch.look()
            await asyncio.sleep(0.02)
        await work
        await self.watch.look()


@pytest.fixture(params=["127.0.0.1", "IPv4 as IPv6", "::1", "TLS"])
async def watched(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[_Watched]:
    """A server that clients come to by each of the ways that there are."""
    plan = plan_of([], [_USER], [], ["admin"], [])
    folder = tmp_path / "credentials"
    await asyncio.to_thread(make_credentials, plan, FolderSecrets(folder), NEW_YEAR)
    rendered = json.loads(await asyncio.to_thread((folder / AUTHORIZATION / "authorization.conf").read_text))
    ca, config = None, dict[str, object]({"host": "127.0.0.1" if request.param == "127.0.0.1" else "::"})
    if request.param == "TLS":
        certificate, key = await asyncio.to_thread(written_certificate, tmp_path)
        ca, config["tls"] = str(certificate), {"cert_file": str(certificate), "key_file": str(key)}
    async with open_nats_server(tmp_path / "nats", None, authorization=json.dumps({**rendered, **config})) as server:
        url = server.url.replace("nats://", "tls://") if ca else server.url
        url = url.replace("127.0.0.1", "[::1]") if request.param == "::1" else url
        settings = NatsSettings(url, "gate", seed=str(folder / "admin" / "seed"), ca=ca)
        async with open_connection(settings, patience=_SOON) as client:
            counting = NatsCountingServer(client)
            found = _Watched(url, ca, folder, UncountedWatch(KernelSockets(), counting), counting)

            def tell(data: bytes) -> None:
                for one in ToldOfFloods.model_validate_json(data).uncounted:
                    assert one.server == counting.id
                    found.told[one.number] = found.told.get(one.number, 0) + one.bytes

            async with taking(client, subjects.PULLED, lambda message: tell(message.data)):
                await found.watch.look()
                yield found


async def test_nobody_is_told_of_who_only_works(watched: _Watched) -> None:
    """Small messages by the thousand on the longest subjects there are, large ones as fast as they go, and connecting anew."""
    subject, reply = _longest_subject(), f"{subjects.inbox_prefix_of('U' * 56)}.{'x' * 22}.{'y' * 22}"
    assert len(subject) + len(reply) + len("HPUB    1048576 1048576\r\n\r\n") + _RECORD_ADDS < OF_A_MESSAGE * 3 / 4

    async def work() -> None:
        async with watched.user() as client:
            for _ in range(5):
                for _ in range(1_000):
                    await client.publish(subject, b"x", reply=reply)
                await client.flush()
            for _ in range(100):
                await client.publish(subject, bytes(_LARGEST))
                await client.flush()
        for _ in range(50):
            async with watched.user() as client:
                for number in range(20):
                    await client.subscribe(f"{client._inbox_prefix.decode()}.{number}")
                await client.publish(subject, bytes(_LARGEST // 2))
                await client.flush()

    await watched.look_while(asyncio.create_task(work()))
    assert watched.told == {}


async def test_what_the_server_passes_over_is_told(watched: _Watched) -> None:
    """By the number by which the registry knows a connection, and no more than was sent."""
    message = passed_over("ioa.v1.registry.remove")

    async def flood(client: Client) -> None:
        for _ in range(5 * _MB // len(message)):
            await client._send_command(message)
        await client.flush()

    async def told(number: int) -> int:
        await watched.watch.look()
        return watched.told.get(number, 0)

    async with watched.user() as client:
        await watched.look_while(asyncio.create_task(flood(client)))
        number = client.client_id or 0
        await eventually(partial(told, number), lambda told: told > 3 * _MB, within=_SOON)
    assert watched.told.keys() == {number}
    assert watched.told[number] <= 5.1 * _MB


async def test_the_kernel_counts_what_the_server_has_read(watched: _Watched) -> None:
    """Each connection by its own address, as the server knows it; what it has counted is within the room that messages have."""
    async with watched.user() as client:
        for _ in range(500):
            await client.publish("ioa.v1.anything", bytes(1_000))
        await client.flush()

        async def counted() -> Mapping[Peer, Counted]:
            return await watched.server.counted({watched.server.own or Peer("", 0)})

        def whole(found: Mapping[Peer, Counted]) -> bool:
            return Counted(client.client_id or 0, 500, 500_000) in found.values()

        found = await eventually(counted, whole, within=_SOON)
        [peer] = [peer for peer, one in found.items() if one.number == client.client_id]
        shown = {one.peer: one.bytes for one in await KernelSockets().read_at(watched.server.port)}
        assert shown.keys() == found.keys()
        assert 500_000 < shown[peer] <= 500_000 + 500_000 // 256 + 500 * OF_A_MESSAGE + OF_A_CONNECTION


async def test_the_server_tells_what_it_counted_until_a_connection_ended(watched: _Watched) -> None:
    """It tells nothing of one that stands, so that nobody is judged by what has not come yet."""
    async with watched.user() as client:
        number = client.client_id or 0
        await client.publish("ioa.v1.anything", bytes(1_000))
        await client.flush()
        assert await watched.server.counted_to_the_end([number]) == {}
    found = await eventually(partial(watched.server.counted_to_the_end, [number]), bool, within=_SOON)
    assert found == {number: Counted(number, 1, 1_000)}


async def test_what_has_come_and_was_not_read_does_not_count() -> None:
    """A server that is busy has not counted it either."""
    with _accepted() as (port, ours, theirs):
        ours.sendall(bytes(1_000))
        theirs.recv(400)
        [shown] = await KernelSockets().read_at(port)
        assert (shown.peer, shown.bytes) == (Peer(*ours.getsockname()[:2]), 400)
        ours.shutdown(socket.SHUT_WR)
        theirs.recv(1_000)
        [still] = await KernelSockets().read_at(port)
        assert (still.socket, still.peer) == (shown.socket, shown.peer)
        assert still.bytes in (1_000, 1_001), "the end counts as one"


async def test_a_kernel_that_tells_nobody_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has no such sockets, as some sandboxes, or other systems than Linux."""

    def refuse(*_: object) -> None:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(UnavailableError, match="Protocol not supported"):
        await KernelSockets().read_at(4222)


async def test_a_kernel_without_such_connections_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so at the end of an empty answer, here for a protocol that there is not; it is not that there are none."""
    monkeypatch.setattr(socket, "IPPROTO_TCP", 77)
    with pytest.raises(UnavailableError, match="No such file"):
        await KernelSockets().read_at(4222)


async def test_a_port_that_nobody_listens_at_has_no_connections() -> None:
    """That is no error."""
    assert await KernelSockets().read_at(1) == []
