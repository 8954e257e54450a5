"""NATS client that reconnects until it is closed, re-reads its credentials, and waits while disconnected."""

from __future__ import annotations

import asyncio
import re
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import nats.errors
import structlog
from nats.aio.client import DEFAULT_BUFFER_SIZE, Client
from nats.aio.msg import Msg
from nats.aio.transport import TcpTransport
from nats.js.api import Header
from nats.protocol import command
from prometheus_client import Counter, Gauge

from ioa.adapters.nats.auth.nats_credentials import Credentials, read_credentials, tls_context
from ioa.adapters.nats.wire.message_parser import MessageParser, decode_subject, drop_foreign_status, read_headers
from ioa.adapters.nats.wire.subscriptions import MessageSink, announce_renewal
from ioa.adapters.system_folder import USER, password_for
from ioa.concurrency import beside, fail_after, fail_at, heeding_cancellation
from ioa.errors import InvalidInputError, NotPermittedError, UnavailableError
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.retry import pauses
from ioa.telemetry import readiness
from ioa.telemetry.process_metrics import before_scrapes

LEAST_MAX_PAYLOAD_BYTES = MAX_PAYLOAD_BYTES + 32_000
"""Least `max_payload` of nats-server: the largest payload and its headers. The server's default is 1 MiB."""

_STEP_SECONDS = 2
"""Timeout of each step of an attempt to connect, and time between two pings."""
_RECONNECT_SECONDS, _REFUSED_SECONDS = 0.25, 5.0
"""Pause between attempts to connect to the same server, and longest pause while it rejects the connection."""
_FLUSH_SECONDS = 2
_PENDING_BYTES = 64 * 1024 * 1024
_NOT_PERMITTED, _SUBSCRIPTIONS_FULL = "permissions violation", "maximum subscriptions exceeded"
_NOT_TO_SUBSCRIBE = re.compile(r'permissions violation for subscription to "([^"]+)"')
_NO_RESPONDERS = "503"
_NO_RESPONDERS_SECONDS = 0.5
"""How long a request without responders is retried. While nats-server reloads, it removes and restores what crosses accounts."""
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.01, 0.1
_NONCE_BYTES = 8
"""Random bytes in the inbox of requests. nats-py's ids can be guessed, because services publish theirs."""
_REFUSED, _FULL = "authorization violation", "connections exceeded"
"""Errors of the server before it ends a connection, in lower case: unknown credentials, and the limit of the server or account."""
_REFUSED_HINT = (
    "IOA_NATS_SEED names the seed, IOA_NATS_TOKEN the token;"
    " for a system that `ioa up` runs on this machine, IOA_DATA names its folder. Otherwise the key may be expired or revoked: ask"
    " the operator (`ioa credentials list`)."
)
_FULL_HINT = (
    "All agents of a system share a limit, and all users. Ask the operator: `quotas.connections` of the chart, or"
    " `ioa credentials create --limit agent_connections=N`, allow more."
)
_SUBSCRIBE_HINT = "The permissions of the credential may be older than this version: create them again, and reload nats-server."

Connection: TypeAlias = Client
"""An open connection."""

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)

nats_errors = Counter("ioa_nats_errors_total", "Errors of the server or the client library, by class", ["kind"])
nats_connected = Gauge("ioa_nats_connected", "1 while every NATS connection of the process is connected")
nats_reconnects = Counter("ioa_nats_reconnects_total", "Reconnects to NATS")
nats_messages = Counter("ioa_nats_messages_total", "Messages over NATS, acknowledgements included", ["direction"])
nats_bytes = Counter("ioa_nats_bytes_total", "Payload bytes over NATS", ["direction"])

_clients = set[Client]()


@dataclass(frozen=True)
class NatsSettings:
    """Servers (`url`, separated by commas), `name` of the connection in the server's lists, and credentials.

    Attributes:
        credentials: Path of a `.creds` file.
        seed, token: An nkey seed, or a token of an identity provider, or the path of its file, which is read for each connection.
        ca: Path of the certificates of the authorities. None: the operating system's authorities.
        certificate: Path of the client's certificate and its key.
        data: Folder of a system on this machine, whose password is used without other credentials.
    """

    url: str
    name: str
    credentials: str | None = None
    seed: str | None = None
    ca: str | None = None
    certificate: str | None = None
    data: Path | None = None
    token: str | None = None

    def read_credentials(self) -> Credentials:
        """Read the credentials; without any, the password of a system on this machine, which it changes at each start."""
        password = None
        if self.data is not None and (self.seed, self.credentials, self.token) == (None, None, None):
            password = password_for(self.data, self.url)
        return read_credentials(self.seed, self.token, password)


@asynccontextmanager
async def open_connection(
    settings: NatsSettings, *, patience: timedelta | None = None, any_payload: bool = False
) -> AsyncIterator[Client]:
    """Connect; flush and close at the end.

    Args:
        settings: Server and credentials.
        patience: How long to wait for the first connection; None: until a server answers.
        any_payload: Whether to accept a server that allows only smaller messages than the system sends.

    Raises:
        UnavailableError: No server answered within `patience`.
        NotPermittedError: A subscription was refused; the block is cancelled.
        InvalidInputError: The server allows only smaller messages than the system sends, or the credentials cannot be read.
    """
    client = _LastingClient(settings)
    await client.open(patience)
    try:
        if not any_payload:
            check_max_payload(client.max_payload)
        with watch_traffic(client):
            async with beside(_wait(client.failed)):
                yield client
    finally:
        await client.end()


def check_max_payload(allowed_bytes: int) -> None:
    """Raise `InvalidInputError` if a server does not allow the largest message of the system."""
    if allowed_bytes < LEAST_MAX_PAYLOAD_BYTES:
        raise InvalidInputError(
            f"The NATS server allows messages of at most {allowed_bytes:,} bytes; {LEAST_MAX_PAYLOAD_BYTES:,} are needed.",
            hint="Set max_payload in the server's configuration to 1MB, its default, or more, and restart it.",
        )


class NotLetInError(UnavailableError):
    """The server rejects the credentials."""


def _unreachable(url: str, error: Exception) -> UnavailableError:
    """Return the error of a connection that a server does not accept."""
    text = str(error) or type(error).__name__
    if _REFUSED in text.lower():
        return NotLetInError(f"The NATS server at {url} rejects the credentials ({text}).", hint=_REFUSED_HINT)
    if _FULL in text.lower():
        return UnavailableError(f"The NATS server at {url} accepts no more connections ({text}).", hint=_FULL_HINT)
    if isinstance(error, ssl.SSLError):
        text, hint = error.reason or text, "Set IOA_NATS_CA to the certificate of its authority."
        return UnavailableError(f"The certificate of the NATS server at {url} is not trusted ({text}).", hint=hint)
    hint = "Start the system with `ioa up`, or name a running one with --url or IOA_NATS_URL."
    return UnavailableError(f"No NATS server answers at {url} ({text}).", hint=hint)


async def retry_without_responders(request: Callable[[], Awaitable[_T]]) -> _T:
    """Send a request, and again for a moment while no responders are reported: the server may be reloading its configuration."""
    end, pause = asyncio.get_running_loop().time() + _NO_RESPONDERS_SECONDS, pauses(_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS)
    while True:
        try:
            return await request()
        except nats.errors.NoRespondersError:
            if asyncio.get_running_loop().time() > end:
                raise
        await asyncio.sleep(next(pause))


@contextmanager
def watch_traffic(client: Client) -> Iterator[None]:
    """Count the traffic of a connection while the block runs. The process is not ready while it is disconnected."""
    counted = dict.fromkeys(client.stats, 0)

    def count() -> None:
        nonlocal counted
        nats_connected.set(min(one.is_connected for one in _clients))
        for direction in ("in", "out"):
            for metric, name in ((nats_messages, f"{direction}_msgs"), (nats_bytes, f"{direction}_bytes")):
                metric.labels(direction).inc(client.stats[name] - counted[name])
        counted = dict(client.stats)

    _clients.add(client)
    try:
        with readiness.needs("NATS", lambda: client.is_connected), before_scrapes(count):
            yield
    finally:
        count()
        _clients.remove(client)


class _Transport(TcpTransport):
    """A socket. Writing to a closed one raises ConnectionResetError also on uvloop, which raises RuntimeError."""

    def write(self, payload: bytes) -> None:
        self.writelines([payload])

    def writelines(self, payload: Sequence[bytes]) -> None:
        try:
            super().writelines(payload)  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            raise ConnectionResetError(f"The connection to NATS is gone: {error}") from error

    async def connect_tls(self, *args: Any) -> None:
        await super().connect_tls(*args)
        self._io_writer._protocol._over_ssl = True  # type: ignore[union-attr]  # otherwise asyncio warns when the connection ends


class RequestNotPermittedError(nats.errors.Error):
    """The server reported that this connection may not publish on the subject of a request."""


async def _wait(failed: asyncio.Future[None]) -> None:
    await failed


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    """End a wait with an error, unless it has ended."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # marks it as retrieved


class _LastingClient(Client):
    """nats-py's client with these differences.

    - An error of the server ends the connection, not the client, which reconnects until it is closed.
    - Credentials are read for each connection.
    - It never continues unencrypted if encryption is configured.
    - A request without permission fails as soon as the server reports it.
    - A request waits for the connection. nats-py sends requests after a reconnect whose timeouts have expired.
    - Messages are parsed by `MessageParser`, and headers by `read_headers`.
    """

    def __init__(self, settings: NatsSettings) -> None:
        super().__init__()
        self._ps = MessageParser(self)
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._back = asyncio.Event()
        self._replies = ""
        self._numbers = count()
        self._requests: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        """Subjects and replies of the requests that wait, by their inboxes."""
        self.failed: asyncio.Future[None] = self._loop.create_future()
        """Raises `NotPermittedError` after a subscription was refused. The process must restart."""
        self.refused = asyncio.Event()
        """Set while the server rejects the credentials of attempts to connect."""

    async def open(self, patience: timedelta | None) -> None:
        """Connect for the first time; see `open_connection`."""
        settings, deadline = self._settings, None if patience is None else self._loop.time() + patience.total_seconds()
        tls = await asyncio.to_thread(tls_context, settings.ca, settings.certificate)
        credentials = await asyncio.to_thread(settings.read_credentials)
        first = partial(
            self.connect,
            settings.url.split(","),
            name=settings.name,
            user_credentials=settings.credentials,
            tls=tls,
            inbox_prefix=credentials.inbox_prefix,
            allow_reconnect=False,
            connect_timeout=_STEP_SECONDS,
            ping_interval=_STEP_SECONDS,
            max_outstanding_pings=2,
            pending_size=_PENDING_BYTES,
            error_cb=self.report,
        )
        try:
            await self._attempt_until_connected(first, deadline)
        except BaseException:
            self.abandon()
            raise
        self.options["allow_reconnect"] = True

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,
        old_style: bool = False,  # noqa: ARG002 - nats-py's signature
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """Send a request once connected; see `retry_without_responders`.

        Raises nats-py's errors, and `RequestNotPermittedError` if the server reported that the request is not permitted.
        """
        if not self.is_connected:
            deadline = self._loop.time() + timeout
            try:
                async with fail_at(deadline):
                    await self.until_connected()
            except TimeoutError:
                raise nats.errors.TimeoutError from None
            timeout = deadline - self._loop.time()
        return await retry_without_responders(lambda: self._exchange(subject, payload, headers, timeout))

    async def _exchange(self, subject: str, payload: bytes, headers: dict[str, Any] | None, timeout: float) -> Msg:
        if not self._replies:  # the server processes the subscription before the requests that follow
            self._replies = f"{self.new_inbox()}{secrets.token_hex(_NONCE_BYTES)}"
            await self.subscribe(f"{self._replies}.*", future=MessageSink(self._receive_reply))
        inbox = f"{self._replies}.{next(self._numbers)}"
        reply: asyncio.Future[Msg] = self._loop.create_future()
        self._requests[inbox] = subject, reply
        expiry = self._loop.call_later(timeout, _fail, reply, nats.errors.TimeoutError())
        try:
            await self.publish(subject, payload, reply=inbox, headers=headers)
            return await reply
        finally:
            expiry.cancel()
            del self._requests[inbox]

    def _receive_reply(self, message: Msg) -> None:
        _, reply = self._requests.get(message.subject, ("", None))
        if reply is None or reply.done():
            return
        if message.headers and message.headers.get(Header.STATUS) == _NO_RESPONDERS:
            reply.set_exception(nats.errors.NoRespondersError())
        else:
            reply.set_result(message)

    async def until_connected(self) -> None:
        """Wait while disconnected. Return at once if the client is closed."""
        while not (self.is_connected or self.is_closed):
            await self._back.wait()

    def _wake_waiting(self) -> None:
        self._back.set()
        self._back.clear()

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        # An exception in nats-py's method ends the task that reads, while the connection stays open.
        return (read_headers(headers) or None) if headers else None

    def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None) -> Any:
        # A subject may be no UTF-8, and a status header in a stored message was written by its publisher, not by the server.
        if headers:
            drop_foreign_status(headers, reply)
        return Msg(self, decode_subject(subject), decode_subject(reply) if reply else "", data, headers, _sid=sid)

    async def _process_pong(self) -> None:
        # nats-py's method raises, and its reading ends, if the call of `flush` has ended.
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    async def _process_err(self, err_msg: str) -> None:
        error = nats.errors.Error(f"nats: {err_msg}")
        if _NOT_PERMITTED not in err_msg and _SUBSCRIPTIONS_FULL not in err_msg:
            _log.warning("nats_ends_connection", error=err_msg.strip("'"))
            await self._process_op_err(error)
            return
        await self._error_cb(error)
        for subject, reply in self._requests.values():
            if f'"{subject.lower()}"' in err_msg:  # nats-py converts the error to lower case
                _fail(reply, RequestNotPermittedError(*error.args))
        if refused := _NOT_TO_SUBSCRIBE.search(err_msg):
            _fail(self.failed, NotPermittedError(f"This credential may not subscribe to {refused[1]}.", hint=_SUBSCRIBE_HINT))

    async def report(self, error: Exception) -> None:
        """Count and log an error. Failed attempts to reconnect are logged as debug: the disconnection was logged once."""
        nats_errors.labels(type(error).__name__).inc()
        log = _log.warning if self.is_connected else _log.debug
        log("nats_error", error=str(error) or type(error).__name__)

    async def _attempt_reconnect(self) -> None:
        # nats-py's method ends at errors that it does not expect, and leaves the sockets of failed attempts open.
        self.abandon()
        _log.warning("nats_disconnected", url=self._settings.url)
        await self._attempt_until_connected(self._reconnect)
        self.stats["reconnects"] += 1
        nats_reconnects.inc()
        _log.info("nats_reconnected", url=self._settings.url)
        self._wake_waiting()
        announce_renewal(self)

    async def _attempt_until_connected(self, attempt: Callable[[], Awaitable[None]], deadline: float | None = None) -> None:
        """Connect to one server after the other until one accepts, or until the deadline, once each server was tried."""
        pause = pauses(_RECONNECT_SECONDS, _REFUSED_SECONDS)
        for attempts in count(1):
            try:
                with heeding_cancellation():
                    async with fail_after(2 * _STEP_SECONDS):
                        await attempt()
                break
            except Exception as error:  # noqa: BLE001 - the next attempt may succeed
                self.abandon()
                self._status = Client.RECONNECTING
                if error is not self._err:  # `connect` has reported its error
                    await self.report(error)
                failure = _unreachable(self._settings.url, error)
                if deadline is not None and attempts >= len(self._server_pool) and self._loop.time() >= deadline:
                    raise failure from None
                self.refused.clear()
                if isinstance(failure, NotLetInError):
                    self.refused.set()
                if failure.hint in (_REFUSED_HINT, _FULL_HINT):
                    _log.warning("nats_refused", error=failure.message, hint=failure.hint)
                    await asyncio.sleep(next(pause))
            attempt = self._reconnect
        self.refused.clear()

    async def _reconnect(self) -> None:
        self._ps.reset()
        await self._select_next_server()
        await self._process_connect_init()
        for sid, subscription in self._subs.items():
            self._transport.write(command.sub_cmd(subscription._subject, subscription._queue or "", sid))  # type: ignore[union-attr]
        await self.flush()

    async def _select_next_server(self) -> None:
        # nats-py's method tries until a server answers.
        server = self._server_pool.pop(0)
        self._server_pool.append(server)
        if server.last_attempt is not None:
            await asyncio.sleep(server.last_attempt + _RECONNECT_SECONDS - time.monotonic())
        server.last_attempt = time.monotonic()
        self._current_server, self._transport = server, _Transport()  # type: ignore[no-untyped-call]
        await self._transport.connect(server.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])

    async def _process_connect_init(self) -> None:
        await super()._process_connect_init()
        if not self.is_connected:  # nats-py accepts a ping as a success, while the server waits for an auth callout
            raise TimeoutError("the server does not accept the credentials in time")

    def _connect_command(self) -> bytes:
        encrypts = self._current_server is not None and self._current_server.uri.scheme == "tls"
        if (encrypts or self.options.get("tls") is not None) and not self._server_info.get("tls_required"):
            raise nats.errors.Error("the server does not encrypt, but tls:// or a certificate authority is set")
        with suppress(InvalidInputError):  # the file may be missing while it is replaced: use the last credentials
            credentials = self._settings.read_credentials()
            self.options.update(token=credentials.token, password=credentials.password, user=credentials.password and USER)
            if credentials.seed is not None:
                self._nkeys_seed_str = credentials.seed
                self._setup_nkeys_seed_connect()
        return super()._connect_command()

    def abandon(self) -> None:
        """End the tasks, the socket and the calls of `flush` of a connection."""
        for task in (self._reading_task, self._ping_interval_task, self._flusher_task):
            if task is not None:
                task.cancel()
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]
        for pong in self._pongs:
            _fail(pong, nats.errors.ConnectionReconnectingError())
        self._pongs.clear()

    async def end(self) -> None:
        """Send buffered messages and close."""
        try:
            if self.is_connected:
                await self.flush(_FLUSH_SECONDS)
        except (TimeoutError, nats.errors.Error, OSError) as error:
            _log.debug("nats_not_flushed", error=str(error) or type(error).__name__)
        finally:
            while (reconnecting := self._reconnection_task) is not None and not reconnecting.done():
                reconnecting.cancel()
                await asyncio.wait([reconnecting])
            self._pending, self._pending_data_size = [], 0  # writing to a lost socket would end nats-py's method halfway
            await self.close()
            self._wake_waiting()


async def until_connected(client: Client) -> None:
    """Wait while a connection of `open_connection` is disconnected."""
    assert isinstance(client, _LastingClient), "made by open_connection"
    await client.until_connected()


async def until_refused(client: Client, lasting: timedelta) -> None:
    """Raise `NotLetInError` once the server has rejected the credentials of a connection for so long."""
    assert isinstance(client, _LastingClient), "made by open_connection"
    while True:
        await client.refused.wait()
        with suppress(TimeoutError):
            async with fail_after(lasting.total_seconds()):
                await client.until_connected()
        if client.refused.is_set():
            raise NotLetInError("The NATS server rejects this credential.", hint=_REFUSED_HINT)
