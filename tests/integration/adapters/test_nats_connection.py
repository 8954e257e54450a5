"""Leaving a connection behind."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.transport import TcpTransport
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError

from ioa.adapters.nats.auth.roles import WHO_AM_I
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.wire import connection as nats_connection
from ioa.adapters.nats.wire.connection import (
    NatsSettings,
    RequestNotPermittedError,
    open_connection,
    retry_without_responders,
    until_refused,
)
from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.adapters.secret_stores.nkeys import Key, create_seed, public_key_of
from ioa.adapters.system_folder import USER, note_password
from ioa.errors import InvalidInputError, NotPermittedError, PayloadTooLargeError, UnavailableError
from ioa.group.requests import CancelGoal
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId
from ioa.protocol.registry import Acknowledged
from ioa.runtime.process import loop_factory
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash


async def test_writing_to_a_closed_socket_raises_connection_reset(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uvloop raises RuntimeError, which is not handled as a lost connection."""

    def write(_payload: object) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    async with open_connection(NatsSettings(nats_url, "bereft")) as client:
        assert isinstance(client._transport, TcpTransport) and client._transport._io_writer is not None
        with monkeypatch.context() as patched:
            patched.setattr(client._transport._io_writer, "writelines", write)
            with pytest.raises(ConnectionResetError, match="The connection to NATS is gone"):
                await client.flush()


async def test_cancelled_wait_for_the_server_keeps_the_connection_receiving(nats_url: str) -> None:
    """The server's answer came for somebody who had gone, at which reading ended: nothing was heard for five seconds."""
    async with open_connection(NatsSettings(nats_url, "impatient")) as client:
        heard, renewed = asyncio.Event(), list[None]()
        await client.subscribe("anything", cb=_setting(heard))
        with at_renewal(client, lambda: renewed.append(None)):
            for _ in range(3):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0):
                        await client.flush()
            await client.flush()
            await client.publish("anything", b"")
            async with asyncio.timeout(10):
                await heard.wait()
        assert renewed == []


def _setting(event: asyncio.Event) -> Callable[[Msg], Coroutine[Any, Any, None]]:
    async def note(_message: Msg) -> None:
        event.set()

    return note


async def test_request_without_responders_is_repeated(nats_url: str) -> None:
    """Who asks where somebody is just about to listen gets his answer; where nobody comes he is told so before long."""
    async with open_connection(NatsSettings(nats_url, "asking")) as client:
        asked = 0

        async def answer(message: Msg) -> None:
            await message.respond(b"here")

        async def ask() -> Msg:
            nonlocal asked
            asked += 1
            if asked == 2:
                await client.subscribe("late", cb=answer)
            return await Client.request(client, "late", b"")

        assert ((await retry_without_responders(ask)).data, asked) == (b"here", 2)
        with pytest.raises(NoRespondersError):
            await client.request("nobody", b"")


def test_request_without_time_left_times_out_on_uvloop(tmp_path: Path) -> None:
    """For a deadline that has passed, uvloop returns a handle without a time; later requests have their own deadlines."""

    async def ask() -> bytes:
        async with open_nats_server(tmp_path, None) as server, open_connection(NatsSettings(server.url, "asking")) as client:
            await client.subscribe("silent", cb=_pass)
            for _ in range(3):
                asked = (client.request("silent", b"", timeout=seconds) for seconds in (0.2, 0, 0, 0.1))
                results = await asyncio.gather(*asked, return_exceptions=True)
                assert [type(one) for one in results] == [NatsTimeoutError] * 4
            return (await client.request(WHO_AM_I, timeout=5)).data

    factory = loop_factory()
    assert factory is not None
    with asyncio.Runner(loop_factory=factory) as runner:
        assert b"USER" in runner.run(ask()).upper()


class Silence:
    """A server that takes connections and says nothing, as one that is frozen does."""

    def __init__(self) -> None:
        self.taken = self.left = 0

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold a connection until the other side closes it."""
        self.taken += 1
        await reader.read()
        self.left += 1
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def open_silence() -> AsyncIterator[tuple[Silence, str]]:
    """A silent server and its URL."""
    silence = Silence()
    server = await asyncio.start_server(silence.hear, "127.0.0.1")
    async with server:
        yield silence, f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def short_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt to connect may take a second."""
    monkeypatch.setattr(nats_connection, "_STEP_SECONDS", 1)


@pytest.mark.usefixtures("short_attempts")
async def test_a_first_attempt_that_fails_leaves_no_socket_open() -> None:
    """Whoever gives up a server that says nothing is gone for good."""
    async with open_silence() as (silence, url):
        with pytest.raises(UnavailableError):
            async with open_connection(NatsSettings(url, "patient"), patience=timedelta(seconds=1)):
                pass
        await eventually(lambda: (silence.taken, silence.left), lambda seen: seen[0] == seen[1] > 0)


@pytest.mark.usefixtures("short_attempts")
async def test_attempts_to_reconnect_leave_no_sockets_open(nats_server: NatsServer) -> None:
    """While a server says nothing, there is one connection to it at most."""
    async with open_silence() as (silence, url):
        async with open_connection(NatsSettings(f"{nats_server.url},{url}", "patient")):
            await crash(nats_server)
            await eventually(lambda: silence.taken, lambda taken: taken > 2)
            assert silence.taken - silence.left <= 1
        await eventually(lambda: (silence.taken, silence.left), lambda seen: seen[0] == seen[1])


async def test_whatever_breaks_an_attempt_another_one_is_made(nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that nats-py does not expect, as event loops have their own for lost connections, leave no deaf client behind."""
    broken = ["write", "read"]

    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        connect = client._process_connect_init

        async def break_and_connect() -> None:
            if len(broken) == 1:
                await connect()
            if broken:
                raise RuntimeError(broken.pop())
            await connect()

        monkeypatch.setattr(client, "_process_connect_init", break_and_connect)
        await _crash_and_renew(nats_server, client)
    assert not broken


async def _crash_and_renew(server: NatsServer, client: Client) -> None:
    """Start a server again, and wait until a client has reconnected and its messages arrive."""
    renewed = asyncio.Event()
    with at_renewal(client, renewed.set):
        await crash(server)
        await server.start()
        async with asyncio.timeout(20):
            await renewed.wait()
    await client.flush()


async def test_what_was_given_up_is_not_asked_when_the_server_is_back(nats_server: NatsServer) -> None:
    """Of what is asked while there is no server only that is sent later for which somebody still waits."""
    heard: list[bytes] = []

    async def answer(message: Msg) -> None:
        heard.append(message.data)
        await message.respond(b"here")

    async with open_connection(NatsSettings(nats_server.url, "asking")) as client:
        await client.subscribe("somebody", cb=answer)
        await crash(nats_server)
        await eventually(lambda: not client.is_connected)
        for number in range(3):
            with pytest.raises(NatsTimeoutError):
                await client.request("somebody", b"%d" % number, timeout=0.05)
        patient = asyncio.create_task(client.request("somebody", b"patient", timeout=20))
        await asyncio.sleep(0)
        await nats_server.start()
        assert ((await patient).data, heard) == (b"here", [b"patient"])


async def _pass(_message: Msg) -> None:
    """Do nothing with it."""


_SMALL = json.dumps({"max_payload": 64 * 1024})


async def test_a_server_that_takes_too_little_is_refused(tmp_path: Path) -> None:
    """Nobody starts on a server whose limit for one message is below what the system sends; the error names the setting."""
    async with open_nats_server(tmp_path, None, authorization=_SMALL) as server:
        with pytest.raises(InvalidInputError, match=r"at most 65,536 bytes; 1,032,000 are needed. Set max_payload"):
            async with open_connection(NatsSettings(server.url, "small")):
                pass
        async with open_connection(NatsSettings(server.url, "doctor"), any_payload=True) as client:
            requester = NatsRequester(client)
            with pytest.raises(PayloadTooLargeError):
                await requester.request("somebody", CancelGoal(goal_id=GoalId("g"), why="x" * 100_000), Acknowledged)
            with pytest.raises(PayloadTooLargeError), unavailable_unless_answered("The store"):
                await client.publish("somebody", b"x" * 100_000)


async def test_connection_with_tls_never_sends_plain_text(nats_url: str) -> None:
    """Whoever stands between a client and its server cannot have it do without by saying that the server needs none."""
    settings = NatsSettings(nats_url.replace("nats://", "tls://"), "test")
    with pytest.raises(UnavailableError, match="does not encrypt"):
        async with open_connection(settings, patience=timedelta(0)):
            pass


async def test_refused_subscription_ends_the_block(tmp_path: Path) -> None:
    """A process that may not subscribe must restart once it is permitted: the error names the subject."""
    may = {"subscribe": ["_INBOX.>", "heard"]}
    refusing = json.dumps({"authorization": {"users": [{"user": "u", "password": "p", "permissions": may}]}})
    async with open_nats_server(tmp_path / "nats", None, authorization=refusing) as server, asyncio.timeout(10):
        with pytest.raises(NotPermittedError, match=r"may not subscribe to news\.new"):
            async with open_connection(NatsSettings(server.url.replace("//", "//u:p@"), "early")) as client:
                await client.subscribe("heard")
                await client.subscribe("News.new")
                await asyncio.Event().wait()


async def test_request_without_permission_fails_at_once(tmp_path: Path) -> None:
    """All requests on the subject fail when the server reports it, and the connection stays open."""
    may = {"publish": ["allowed"], "subscribe": ["_INBOX.>"]}
    refusing = json.dumps({"authorization": {"users": [{"user": "u", "password": "p", "permissions": may}]}})
    async with (
        asyncio.timeout(20),
        open_nats_server(tmp_path / "nats", None, authorization=refusing) as server,
        open_connection(NatsSettings(server.url.replace("//", "//u:p@"), "asking")) as client,
    ):
        asked = (client.request("Ioa.say", b"", timeout=60) for _ in range(2))
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert ([type(one) for one in results], client.is_connected) == ([RequestNotPermittedError] * 2, True)


async def test_a_client_that_was_refused_once_is_let_in_no_more_only_if_the_server_goes_on_refusing(tmp_path: Path) -> None:
    """A server that is started anew may refuse somebody for a moment; while it is away nobody knows whether it would."""
    port: int | None = None
    async with AsyncExitStack() as stack:
        for password in ("first", "second"):
            asking = json.dumps({"authorization": {"user": "u", "password": password}})
            async with open_nats_server(tmp_path / "nats", port, authorization=asking) as server:
                if port is None:
                    port, url = int(server.url.rpartition(":")[2]), server.url.replace("//", "//u:first@")
                    client = await stack.enter_async_context(open_connection(NatsSettings(url, "waits")))
                    told = asyncio.create_task(until_refused(client, timedelta(seconds=3)))
                    stack.callback(told.cancel)
                else:
                    assert isinstance(client, nats_connection._LastingClient)
                    await asyncio.wait_for(client.refused.wait(), 20)
        await asyncio.sleep(4)
        assert not told.done()
        async with open_nats_server(tmp_path / "nats", port, authorization=asking):
            with pytest.raises(nats_connection.NotLetInError):
                await asyncio.wait_for(told, 20)


async def test_who_finds_no_room_is_told_so_and_comes_in_when_there_is(tmp_path: Path) -> None:
    """A server that has as many connections as an account may have answers: to start one would help nobody."""
    limited = json.dumps({"accounts": {"A": {"users": [{"user": "u", "password": "p"}], "limits": {"max_connections": 1}}}})
    async with open_nats_server(tmp_path / "nats", None, authorization=limited) as server, asyncio.TaskGroup() as waiting:
        settings = NatsSettings(server.url.replace("//", "//u:p@"), "one of two")

        async def come_in() -> None:
            async with open_connection(settings, patience=timedelta(seconds=20)) as late:
                await late.flush()

        async with open_connection(settings, patience=timedelta(seconds=10)):
            with pytest.raises(UnavailableError, match="accepts no more connections") as told:
                async with open_connection(settings, patience=timedelta(seconds=1)):
                    pass
            assert "agent_connections" in (told.value.hint or "")
            late = waiting.create_task(come_in())
        await late


async def test_a_client_is_let_in_again_by_the_password_of_the_next_start(tmp_path: Path) -> None:
    """A system on this machine has a new password with each start; a client reads it when it connects again, however late."""
    url, passwords, renewed = "", ("first", "second"), asyncio.Event()
    async with AsyncExitStack() as stack:
        for start, password in enumerate(passwords):
            asking = json.dumps({"authorization": {"user": USER, "password": password}})
            port = int(url.rpartition(":")[2]) if url else None
            async with open_nats_server(tmp_path / "nats", port, authorization=asking) as server:
                url = server.url
                if start:
                    with pytest.raises(UnavailableError, match="rejects the credentials"):  # meanwhile the client is refused, too
                        await stack.enter_async_context(
                            open_connection(NatsSettings(url, "late", data=tmp_path), patience=timedelta(seconds=1))
                        )
                note_password(tmp_path, url, password)
                if not start:
                    client = await stack.enter_async_context(open_connection(NatsSettings(url, "stays", data=tmp_path)))
                    stack.enter_context(at_renewal(client, renewed.set))
                else:
                    async with asyncio.timeout(20):
                        await renewed.wait()
                    assert client.is_connected


def _by_key(key: Key) -> tuple[bytes, str]:
    """Return what the file of a key holds, and the configuration of a server that lets in it alone, as `ioa credentials` does."""
    may = {"subscribe": [f"{subjects.inbox_prefix_of(key.inbox_owner)}.>"]}
    return key.written(), json.dumps({"authorization": {"users": [{"nkey": public_key_of(key.seed), "permissions": may}]}})


def _by_token(subject: str, number: int) -> tuple[bytes, str]:
    claims = base64.urlsafe_b64encode(json.dumps({"iss": "us", "sub": subject, "jti": number}).encode()).decode().rstrip("=")
    return f"a.{claims}.b".encode(), json.dumps({"authorization": {"token": f"a.{claims}.b"}})


_HELD = Key(create_seed())
_REPLACED = [
    pytest.param("seed", [_by_key(_HELD), _by_key(Key(create_seed(), _HELD.inbox_owner)), _by_key(Key(create_seed()))], id="seed"),
    pytest.param("token", [_by_token("anna", 1), _by_token("anna", 2)], id="token"),
]


@pytest.mark.parametrize(("kind", "credentials"), _REPLACED)
async def test_next_credentials_of_the_same_holder_are_used_and_those_of_another_end_the_block(
    tmp_path: Path, kind: str, credentials: list[tuple[bytes, str]]
) -> None:
    """A client reads its credentials for each connection. With the third ones, of another holder, it cannot read its replies."""
    shown, port, renewed = tmp_path / "shown", None, asyncio.Event()
    settings = NatsSettings("", "stays", seed=str(shown)) if kind == "seed" else NatsSettings("", "stays", token=str(shown))

    async def stay(settings: NatsSettings) -> None:
        async with open_connection(settings) as client:
            await client.subscribe(client.new_inbox())
            with at_renewal(client, renewed.set):
                renewed.set()
                await asyncio.Event().wait()

    async with AsyncExitStack() as stack:
        for number, (written, authorization) in enumerate(credentials):
            shown.write_bytes(written)
            async with open_nats_server(tmp_path / "nats", port, authorization=authorization) as server, asyncio.timeout(20):
                if port is None:
                    port, settings = int(server.url.rpartition(":")[2]), replace(settings, url=server.url)
                    staying = asyncio.ensure_future(stay(settings))
                    stack.callback(staying.cancel)
                if number == 2:
                    with pytest.raises(NotPermittedError, match="may not subscribe"):
                        await staying
                else:
                    await renewed.wait()
                    renewed.clear()
