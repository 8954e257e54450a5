"""NATS client that reconnects until it is closed, re-reads its credentials, and waits while disconnected."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import nats
import nats.errors
import structlog
from nats.aio.client import DEFAULT_FLUSH_TIMEOUT, DEFAULT_INBOX_PREFIX, Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport, Transport

from ioa.adapters.nats.auth.tokens import inbox_owner_of, read_token
from ioa.adapters.nats.wire.headers import decode_subject, drop_foreign_status, read_headers
from ioa.adapters.nats.wire.parser import MessageParser
from ioa.adapters.nats.wire.traffic import nats_errors, traffic
from ioa.adapters.secret_stores.nkeys import read_key
from ioa.adapters.system_folder import USER, password_for
from ioa.beside import beside
from ioa.cancellation import fail_after, fail_at
from ioa.errors import InvalidInputError, NotPermittedError, UnavailableError
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.protocol.subjects import inbox_prefix_of
from ioa.retry import pauses

LEAST_MAX_PAYLOAD_BYTES = MAX_PAYLOAD_BYTES + 32_000
"""What nats-server must allow for one message: the largest payload and its headers. The server's own default is 1 MiB."""

_PING_EVERY = timedelta(seconds=2)
_RECONNECT_EVERY = timedelta(milliseconds=250)
_ATTEMPT_TIMEOUT = timedelta(seconds=2)
_FLUSH_SECONDS = 2
_PENDING_BYTES = 64 * 1024 * 1024
_REFUSED, _FULL = "authorization violation", "connections exceeded"
"""Errors of the server before it ends a connection: unknown credentials, and too many connections of the server or account."""
_NOT_PERMITTED = "permissions violation"
_NOT_TO_SUBSCRIBE = re.compile(r'permissions violation for subscription to "([^"]+)"')
_SUBSCRIPTIONS_FULL = "maximum subscriptions exceeded"
_REMEMBERED_REFUSALS = 100
_REFUSED_SECONDS = 5.0
"""Longest pause between attempts to connect with rejected credentials."""
_NO_RESPONDERS_SECONDS = 0.5
"""How long a request without responders is retried. While nats-server reloads, it removes and restores what crosses accounts."""
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.01, 0.1
_CREDENTIALS_HINT = (
    "IOA_NATS_SEED names the seed, IOA_NATS_TOKEN_FILE the token;"
    " for a system that `ioa up` runs on this machine, IOA_DATA names its folder. Otherwise the key may be expired or revoked: ask"
    " the operator (`ioa audit --who NAME`)."
)
_FULL_HINT = (
    "All agents of a system share a limit, and all users. Ask the operator: `quotas.connections` of the chart, or"
    " `ioa credentials create --limit agent_connections=N`, allow more."
)

Connection: TypeAlias = Client
"""An open connection."""

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class NatsSettings:
    """Server and credentials.

    Attributes:
        url: One or several servers of a cluster, separated by commas.
        name: Name of the connection in the server's lists.
        credentials: Path of a `.creds` file.
        seed: An nkey seed or the path of its file. Replies arrive on `_INBOX.<public key>`, which no other key may read.
        ca: Path of the certificates that sign the server's. None: those of the operating system.
        certificate: Path of the client's certificate.
        key: Path of its key.
        token: A token of an identity provider or the path of its file, which is read for each connection.
        data: Folder of a system on this machine, whose password is used without other credentials.
    """

    url: str
    name: str
    credentials: str | None = None
    seed: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    data: Path | None = None
    token: str | Path | None = None

    def password(self) -> str | None:
        """Return the password of a system on this machine; None if there is none."""
        if self.data is None or any(one is not None for one in (self.seed, self.credentials, self.token)):
            return None
        return password_for(self.data, self.url)


_listeners: WeakKeyDictionary[Client, list[Callable[[], None]]] = WeakKeyDictionary()


@contextmanager
def at_renewal(client: Client, listener: Callable[[], None]) -> Iterator[None]:
    """Call `listener` after each reconnect while the block runs. Requests sent before may never be answered."""
    listeners = _listeners.setdefault(client, [])
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


def announce_renewal(client: Client) -> None:
    """Call the listeners of `at_renewal`."""
    for listener in list(_listeners.get(client, ())):
        listener()


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
        NotPermittedError: A subscription was refused, or the credentials belong to another holder now; the block is cancelled.
        InvalidInputError: The server allows only smaller messages than the system sends.
    """
    client = await _connect(settings, patience)
    try:
        if not any_payload:
            check_max_payload(client.max_payload)
        with traffic.watch(client):
            async with beside(client.until_failed()):
                yield client
    finally:
        await _close(client)


@contextmanager
def _gone_if_closed() -> Iterator[None]:
    """Raise ConnectionResetError for a closed socket. uvloop raises RuntimeError, which also means other errors."""
    try:
        yield
    except RuntimeError as error:
        raise ConnectionResetError(f"The connection to NATS is gone: {error}") from error


def check_max_payload(allowed_bytes: int) -> None:
    """Check that a server allows the largest message of the system.

    Raises:
        InvalidInputError: The limit is too low.
    """
    if allowed_bytes < LEAST_MAX_PAYLOAD_BYTES:
        raise InvalidInputError(
            f"The NATS server allows messages of at most {allowed_bytes:,} bytes; {LEAST_MAX_PAYLOAD_BYTES:,} are needed.",
            hint="Set max_payload in the server's configuration to 1MB, its default, or more, and restart it.",
        )


async def _connect(settings: NatsSettings, patience: timedelta | None) -> _LastingClient:
    loop = asyncio.get_running_loop()
    deadline = None if patience is None else loop.time() + patience.total_seconds()
    pause = pauses(0.05, 1.0)
    while True:
        try:
            return await _attempt(settings)
        except (OSError, TimeoutError, nats.errors.Error) as error:
            delay = next(pause)
            if deadline is not None and loop.time() + delay > deadline:
                raise _unreachable(settings.url, error) from None
            log = _log.warning if isinstance(error, (nats.errors.AuthorizationError, _FullError)) else _log.debug
            log("nats_not_there_yet", url=settings.url, error=str(error))
        await asyncio.sleep(delay)


class NotLetInError(UnavailableError):
    """The server rejects the credentials."""


def _unreachable(url: str, error: Exception) -> UnavailableError:
    if isinstance(error, nats.errors.AuthorizationError):
        return NotLetInError(f"The NATS server at {url} rejects the credentials ({error}).", hint=_CREDENTIALS_HINT)
    if isinstance(error, _FullError):
        return UnavailableError(f"The NATS server at {url} accepts no more connections ({error}).", hint=_FULL_HINT)
    if isinstance(error, ssl.SSLError):
        return UnavailableError(
            f"The certificate of the NATS server at {url} is not trusted ({error.reason or error}).",
            hint="Set IOA_NATS_CA to the certificate of its authority.",
        )
    return UnavailableError(
        f"No NATS server answers at {url} ({str(error) or type(error).__name__}).",
        hint="Start the system with `ioa up`, or name a running one with --url or IOA_NATS_URL.",
    )


async def retry_without_responders(request: Callable[[], Awaitable[_T]]) -> _T:
    """Send a request, and again for a moment while the server reports no responders: it may be reloading its configuration.

    Raises:
        NoRespondersError: No service listens.
    """
    end, pause = asyncio.get_running_loop().time() + _NO_RESPONDERS_SECONDS, pauses(_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS)
    while True:
        try:
            return await request()
        except nats.errors.NoRespondersError:
            if asyncio.get_running_loop().time() > end:
                raise
        await asyncio.sleep(next(pause))


class _FullError(nats.errors.Error):
    """The server, or the account, has as many connections as allowed."""


class _SubscriptionsFullError(nats.errors.Error):
    def __str__(self) -> str:
        return (
            "the server allows no more subscriptions of this connection: `service_subscriptions`, `agent_subscriptions` or"
            " `user_subscriptions` of `ioa credentials create --limit` allows more"
        )


class _UnencryptedError(nats.errors.Error):
    def __str__(self) -> str:
        return "the server does not encrypt, but tls:// or a certificate authority is set"


class _OtherHolderError(nats.errors.Error):
    def __str__(self) -> str:
        return "the key or token belongs to another holder now, whose replies this connection cannot read"


class _LastingClient(Client):
    """nats-py's client with these differences.

    - An error of the server ends the connection, not the client, which reconnects until it is closed.
    - Credentials are read for each connection. They must belong to the same holder, because the reply inbox stays the same.
    - It never continues unencrypted if encryption is configured.
    - A request without permission fails as soon as the server reports it.
    - A request waits for the connection. nats-py sends requests after a reconnect whose callers have given up.
    - Messages are parsed by `MessageParser`, and headers by `read_headers`.
    """

    def __init__(self, settings: NatsSettings, shown: _Shown) -> None:
        super().__init__()
        self._ps = MessageParser(self)
        self._settings, self._shown = settings, shown
        self._reconnecting: asyncio.Task[Any] | None = None
        self.closed = asyncio.Event()
        self._back = asyncio.Event()
        self.not_permitted: deque[str] = deque(maxlen=_REMEMBERED_REFUSALS)
        self._requesting = defaultdict[str, set[asyncio.Timeout]](set)
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.refused = asyncio.Event()
        """Set while the server rejects the credentials at a reconnect."""

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # nats-py's signature
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """Send a request once connected; see `retry_without_responders`."""
        if not self.is_connected:
            timeout = await self._wait_for_connection(timeout)
        send = super().request
        async with self._until_not_permitted(subject):
            return await retry_without_responders(
                lambda: send(subject, payload, timeout=timeout, old_style=old_style, headers=headers)
            )

    @asynccontextmanager
    async def _until_not_permitted(self, subject: str) -> AsyncIterator[None]:
        """End the block with a timeout as soon as the server reports that publishing on the subject is not permitted."""
        quoted = _quoted(subject)
        try:
            async with fail_after(None) as until:
                self._requesting[quoted].add(until)
                try:
                    yield
                finally:
                    self._requesting[quoted].discard(until)
                    if not self._requesting[quoted]:
                        del self._requesting[quoted]
        except nats.errors.TimeoutError:
            raise
        except TimeoutError:
            raise nats.errors.TimeoutError from None

    async def until_connected(self) -> bool:
        """Wait while disconnected; return whether it was. Return at once if the client is closed."""
        was_away = False
        while not (self.is_connected or self.is_closed):
            was_away = True
            await self._back.wait()
        return was_away

    def wake_waiting(self) -> None:
        """Wake the callers of `until_connected` after a reconnect or when the client is closed."""
        self._back.set()
        self._back = asyncio.Event()

    async def _wait_for_connection(self, timeout: float) -> float:
        """Return the rest of the timeout once connected."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        try:
            async with fail_at(until):
                await self.until_connected()
        except TimeoutError:
            raise nats.errors.TimeoutError from None
        return until - loop.time()

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        with _gone_if_closed():
            return await super()._flush_pending(force_flush)

    async def flush(self, timeout: int = DEFAULT_FLUSH_TIMEOUT) -> None:  # nats-py's signature
        """Wait until the server has processed what was published."""
        with _gone_if_closed():
            await super().flush(timeout)

    async def _send_subscribe(self, sub: Subscription) -> None:
        with suppress(ConnectionResetError):  # repeated after the reconnect
            await super()._send_subscribe(sub)

    async def _send_unsubscribe(self, sid: int, limit: int = 0) -> None:
        with suppress(ConnectionResetError):
            await super()._send_unsubscribe(sid, limit)

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        # An exception in nats-py's method ends the task that reads, while the connection stays open.
        return (read_headers(headers) or None) if headers else None

    def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None) -> Any:
        # A subject may be no UTF-8, and a status header in a stored message was written by its publisher, not by the server.
        if headers:
            drop_foreign_status(headers, reply)
        return Msg(self, decode_subject(subject), decode_subject(reply) if reply else "", data, headers, _sid=sid)

    async def _process_pong(self) -> None:
        # nats-py's method raises, and its reading ends, if the caller of `flush` has given up.
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    async def _process_err(self, err_msg: str) -> None:
        if _NOT_PERMITTED in err_msg:
            self.not_permitted.append(err_msg)
            for until in [one for quoted, waiting in self._requesting.items() if quoted in err_msg for one in waiting]:
                if not until.expired():  # an expired timeout raises, which would end nats-py's reading
                    until.reschedule(asyncio.get_running_loop().time())
            if refused := _NOT_TO_SUBSCRIBE.search(err_msg):
                hint = (
                    "The permissions of the credential may be older than this version: create them again, and reload nats-server."
                )
                self._fail(NotPermittedError(f"This credential may not subscribe to {refused[1]}.", hint=hint))
            await super()._process_err(err_msg)
        elif _SUBSCRIPTIONS_FULL in err_msg:
            await self._error_cb(_SubscriptionsFullError())
        else:
            _log.warning("nats_ends_connection", error=err_msg.strip("'"))
            await self._process_op_err(nats.errors.Error(f"nats: {err_msg}"))

    async def until_failed(self) -> None:
        """Wait until the connection cannot serve this process any more.

        Raises:
            NotPermittedError: A subscription was refused, or the credentials belong to another holder. The process must restart.
        """
        await self._failed

    def _fail(self, error: NotPermittedError) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)
            self._failed.exception()  # marks it as retrieved

    async def _attempt_reconnect(self) -> None:
        # When a connection is lost while an attempt ends, nats-py starts another one; its cancellation of the first can be lost.
        before, self._reconnecting = self._reconnecting, asyncio.current_task()
        if before is not None:
            await _end(before)
        self._let_go()
        pause = pauses(_RECONNECT_EVERY.total_seconds(), _REFUSED_SECONDS)
        while not self.is_closed:
            try:
                await super()._attempt_reconnect()
            except Exception as error:  # noqa: BLE001 - nats-py closes the client at errors that it does not expect
                _log.warning("nats_reconnects", error=str(error) or type(error).__name__)
                if not self.is_closed:
                    self._status = Client.RECONNECTING
            else:
                return
            await asyncio.sleep(next(pause))

    def _let_go(self) -> None:
        """End the calls of `flush` that wait for a lost connection."""
        for waiting in self._pongs:
            if not waiting.done():
                waiting.set_exception(nats.errors.ConnectionReconnectingError())
                waiting.exception()  # marks it as retrieved
        self._pongs.clear()

    def _connect_command(self) -> bytes:
        asked = self._current_server is not None and self._current_server.uri.scheme == "tls"
        if (asked or self.options.get("tls") is not None) and not self._server_info.get("tls_required"):
            raise _UnencryptedError
        if self._server_info.get("tls_required"):
            _mark_encrypted(self._transport)
        with suppress(InvalidInputError):  # the file may be missing while it is replaced: use the last credentials
            self._show(_shown(self._settings))
        return super()._connect_command()

    def _show(self, shown: _Shown) -> None:
        if shown.inbox_prefix != self._shown.inbox_prefix:
            error = _OtherHolderError()
            self._fail(NotPermittedError(f"{self._settings.seed or self._settings.token}: {error}.", hint="Restart the process."))
            raise error
        if shown.token is not None:
            self.options["token"] = shown.token
        if shown.password is not None:
            self.options["password"] = shown.password
        if shown.seed is not None:
            self._nkeys_seed_str = shown.seed
            self._setup_nkeys_seed_connect()


def _mark_encrypted(transport: Transport | None) -> None:
    """Mark asyncio's protocol as encrypted. nats-py does not, and asyncio warns when the connection ends."""
    if isinstance(transport, TcpTransport) and transport._io_writer is not None:
        protocol = transport._io_writer.transport.get_protocol()
        if protocol is None:
            raise ConnectionResetError("the connection was lost as soon as it was encrypted")
        protocol._over_ssl = True  # type: ignore[attr-defined]


async def until_closed(client: Client) -> None:
    """Wait until a connection of `open_connection` is closed."""
    assert isinstance(client, _LastingClient), "made by open_connection"
    await client.closed.wait()


async def until_connected(client: Client) -> bool:
    """Wait while a connection of `open_connection` is disconnected; return whether it was."""
    assert isinstance(client, _LastingClient), "made by open_connection"
    return await client.until_connected()


async def until_refused(client: Client, lasting: timedelta) -> None:
    """Wait until the server has rejected the credentials of a connection of `open_connection` for so long.

    Raises:
        NotLetInError: It has.
    """
    assert isinstance(client, _LastingClient), "made by open_connection"
    while True:
        await client.refused.wait()
        with suppress(TimeoutError):
            async with fail_after(lasting.total_seconds()):
                await client.until_connected()
        if client.refused.is_set():
            raise NotLetInError("The NATS server rejects this credential.", hint=_CREDENTIALS_HINT)


def may_not_publish(client: Client, subject: str) -> bool:
    """Return whether the server reported lately that this connection may not publish on a subject."""
    return isinstance(client, _LastingClient) and any(_quoted(subject) in refusal for refusal in client.not_permitted)


def _quoted(subject: str) -> str:
    """Return a subject as it occurs in the server's error, which nats-py converts to lower case."""
    return f'"{subject.lower()}"'


async def _attempt(settings: NatsSettings) -> _LastingClient:
    tls = await asyncio.to_thread(_tls_of, settings)
    shown = await asyncio.to_thread(_shown, settings)
    client = _LastingClient(settings, shown)
    turned_away = deque[nats.errors.Error | ssl.SSLError](maxlen=1)
    pause = pauses(_RECONNECT_EVERY.total_seconds(), _REFUSED_SECONDS)

    async def reconnected() -> None:
        nonlocal pause
        pause = pauses(_RECONNECT_EVERY.total_seconds(), _REFUSED_SECONDS)
        client.not_permitted.clear()  # the permissions may have changed
        client.refused.clear()
        _log.info("nats_reconnected", url=settings.url)
        client.wake_waiting()
        announce_renewal(client)

    async def closed() -> None:
        client.closed.set()
        client.wake_waiting()

    async def disconnected() -> None:
        if not client.is_closed:
            _log.warning("nats_disconnected", url=settings.url)

    async def failed(error: Exception) -> None:
        # Failed attempts to reconnect are logged as debug: the disconnection was logged once.
        log = _log.warning if client.is_connected else _log.debug
        if asyncio.current_task() is client._reconnection_task:
            _leave_attempt(client)
            client.refused.clear()
        nats_errors.labels(type(error).__name__).inc()
        log("nats_error", error=str(error) or type(error).__name__)
        why = _why_turned_away(error)
        if why is not None:
            turned_away.append(why)
        if isinstance(why, nats.errors.AuthorizationError | _FullError) and asyncio.current_task() is client._reconnection_task:
            hint = _FULL_HINT if isinstance(why, _FullError) else _CREDENTIALS_HINT
            if isinstance(why, nats.errors.AuthorizationError):
                client.refused.set()
            _log.warning("nats_refused", url=settings.url, error=str(error), hint=hint)
            await asyncio.sleep(next(pause))

    connecting = asyncio.ensure_future(
        client.connect(
            settings.url.split(","),
            name=settings.name,
            user_credentials=settings.credentials,
            tls=tls,
            nkeys_seed_str=shown.seed,
            token=shown.token,
            user=None if shown.password is None else USER,
            password=shown.password,
            inbox_prefix=shown.inbox_prefix,
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=_RECONNECT_EVERY.total_seconds(),  # type: ignore[arg-type]  # a float works; nats-py's hint is too narrow
            connect_timeout=int(_ATTEMPT_TIMEOUT.total_seconds()),
            ping_interval=int(_PING_EVERY.total_seconds()),
            max_outstanding_pings=2,
            pending_size=_PENDING_BYTES,
            reconnected_cb=reconnected,
            disconnected_cb=disconnected,
            closed_cb=closed,
            error_cb=failed,
        )
    )
    await _see_through(client, connecting, turned_away)
    return client


def _why_turned_away(error: Exception) -> nats.errors.Error | ssl.SSLError | None:
    """Return why a server rejects this connection; None if the error states another reason."""
    if isinstance(error, _UnencryptedError | ssl.SSLError):
        return error
    said = str(error).lower()
    if _FULL in said:
        return _FullError(*error.args)
    return nats.errors.AuthorizationError() if _REFUSED in said else None


async def _see_through(
    client: Client, connecting: asyncio.Future[None], turned_away: Sequence[nats.errors.Error | ssl.SSLError]
) -> None:
    """Wait for an attempt to connect; if it fails, end its tasks and close its socket."""
    try:
        await asyncio.wait([connecting], timeout=_ATTEMPT_TIMEOUT.total_seconds() * 2)
        await _end(connecting)
        if connecting.cancelled():  # nats-py retries, and reports errors only to its callback
            raise turned_away[-1] if turned_away else TimeoutError
        connecting.result()
        if not client.is_connected:  # nats-py accepts a ping as a success, while the server waits for an auth callout
            await _close(client)
            raise TimeoutError("the server does not accept the credentials in time")
    except BaseException:
        await _end(connecting)
        if client.is_connected:
            await _close(client)
        else:
            _leave_attempt(client)
        raise


@dataclass(frozen=True)
class _Shown:
    """Credentials, and the inbox of replies. A system on this machine has a new password after each start."""

    seed: str | None = None
    token: str | None = None
    password: str | None = None
    inbox_prefix: bytes = DEFAULT_INBOX_PREFIX


def _shown(settings: NatsSettings) -> _Shown:
    """Read the credentials.

    Raises:
        InvalidInputError: They cannot be read, or a seed and a token are set.
    """
    if settings.seed is not None and settings.token is not None:
        raise InvalidInputError("A seed and a token are set.", hint="Set either IOA_NATS_SEED or IOA_NATS_TOKEN_FILE.")
    if settings.seed is not None:
        key = read_key(settings.seed)
        return _Shown(seed=key.seed, inbox_prefix=inbox_prefix_of(key.inbox_owner).encode())
    if settings.token is not None:
        token = read_token(settings.token)
        return _Shown(token=token, inbox_prefix=inbox_prefix_of(inbox_owner_of(token)).encode())
    return _Shown(password=settings.password())


def _leave_attempt(client: Client) -> None:
    """End the tasks and the socket that nats-py leaves after a failed attempt."""
    for task in (client._reading_task, client._ping_interval_task, client._flusher_task):
        if task is not None:
            task.cancel()
    if client._transport is not None:
        client._transport.close()  # type: ignore[no-untyped-call]


def _tls_of(settings: NatsSettings) -> ssl.SSLContext | None:
    if settings.ca is None and settings.certificate is None:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ca)
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, settings.key)
    except OSError as error:
        paths = ", ".join(path for path in (settings.ca, settings.certificate, settings.key) if path)
        raise InvalidInputError(f"The certificates of NATS ({paths}) cannot be used: {error.strerror or error}.") from None
    return context


async def _close(client: Client) -> None:
    """Send what is buffered and close."""
    try:
        if client.is_connected:
            await client.flush(timeout=_FLUSH_SECONDS)
    except (TimeoutError, nats.errors.Error, OSError) as error:
        _log.debug("nats_not_flushed", error=str(error) or type(error).__name__)
    finally:
        await _close_for_good(client)


async def _close_for_good(client: Client) -> None:
    """Close a client, and again while it reconnects: nats-py cancels its reconnecting task once, which can be lost."""
    ended: asyncio.Task[None] | None = None
    while not client.is_closed or client._reconnection_task is not ended:
        await _close_once(client)
        if (reconnecting := client._reconnection_task) is not None:
            await _end(reconnecting)
        ended = reconnecting


async def _close_once(client: Client) -> None:
    try:
        await client.close()
    except asyncio.CancelledError:
        # nats-py awaits the end of the socket in two tasks, and cancels the one that reconnects, and with it the awaited future.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
    except (OSError, RuntimeError):
        # The buffer could not be sent. nats-py stops half-way, with its tasks running; without the buffer a second call succeeds.
        client._pending, client._pending_data_size = [], 0
        client._status = Client.DISCONNECTED


async def _end(task: asyncio.Future[None]) -> None:
    """Cancel a task of nats-py until it has ended.

    `asyncio.wait_for` of Python 3.11 loses a cancellation that coincides with the end of the awaited future (python/cpython#86296).
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_RECONNECT_EVERY.total_seconds())
