"""Connections to NATS that outlive every outage: endless reconnects, short pings, a first connect that retries."""

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

from ioa.adapters.nats.headers import drop_foreign_status, read_headers, readable
from ioa.adapters.nats.receiving import MessageParser, StraightReader
from ioa.adapters.nats.tokens import inbox_owner_of, read_token
from ioa.adapters.nats.traffic import nats_errors, traffic
from ioa.adapters.nkey_seeds import read_key
from ioa.adapters.system_folder import USER, password_for
from ioa.beside import beside
from ioa.cancellation import fail_after, fail_at, heeding_cancellation
from ioa.errors import InvalidInputError, UnavailableError
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
"""What the server says before it ends a connection: that it knows nobody by that name, or has as many connections as it, or the
account, may have."""
_NOT_PERMITTED = "permissions violation"
_NOT_TO_BE_HEARD = re.compile(r'permissions violation for subscription to "([^"]+)"')
_SUBSCRIPTIONS_FULL = "maximum subscriptions exceeded"
"""What it says when it leaves out a subscription, not which, of a connection that has as many as it may have, and keeps."""
_REMEMBERED_REFUSALS = 100
_FIRST_DEAF_PAUSE, _LONGEST_DEAF_PAUSE = 1.0, 30.0
"""How long a subscription that was refused waits before it is asked for again, in seconds."""
_REFUSED_SECONDS = 5.0
"""How long somebody waits at most who is let in no more before asking again."""
_UNHEARD_SECONDS = 0.5
"""For how long what nobody hears is asked again. A server that reads its configuration anew takes away and gives back what crosses
accounts, and JetStream's own requests; that took 0.03 s at most (1,000 agents, two cores)."""
_FIRST_UNHEARD_PAUSE, _LONGEST_UNHEARD_PAUSE = 0.01, 0.1
_WHO = (
    "IOA_NATS_SEED names the seed, IOA_NATS_TOKEN_FILE the token;"
    " for a system that `ioa up` runs on this machine, IOA_DATA names its folder. If that is right, the key is let in no more, or"
    " is kept out for a while for flooding, which the server does not tell: ask who runs the system (`ioa doctor`, `ioa audit`)."
)
_WHOSE_CONNECTIONS = (
    "All agents of a system, and all users, have so many together. Ask who runs it: `quotas.connections` of the chart, or"
    " `ioa credentials create --limit agent_connections=N`, allow more, and `ioa doctor` names who holds too many."
)

Connection: TypeAlias = Client
"""An open connection, for whoever hands it on to adapters."""

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class NatsSettings:
    """Where NATS is and who connects.

    Attributes:
        url: May name several servers of a cluster, with commas between.
        name: What the server shows of the connection.
        credentials: Path of a `.creds` file.
        seed: An nkey seed or the path of its file. Answers then come to `_INBOX.<public key>`, which nobody else may read.
        ca: Path of the certificates that the server's is checked against; None trusts what the system trusts.
        certificate: Path of the certificate to show to the server.
        key: Path of its key.
        token: A token of an identity provider, or the path of its file, which is read anew for each connection.
        data: The folder of a system on this machine. Its password is told to its server, if nothing else says who connects.
        asks_to_read: Whether group setup is asked for what streams hold, as by all who may not ask JetStream itself.
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
    asks_to_read: bool = False

    def password(self) -> str | None:
        """Read the password of a system on this machine; None if there is none to tell."""
        if self.data is None or any(one is not None for one in (self.seed, self.credentials, self.token)):
            return None
        return password_for(self.data, self.url)


_listeners: WeakKeyDictionary[Client, list[Callable[[], None]]] = WeakKeyDictionary()


@contextmanager
def at_renewal(client: Client, listener: Callable[[], None]) -> Iterator[None]:
    """Call `listener` whenever a connection of `open_connection` is renewed while the block runs.

    What was asked over the connection before may never be answered.
    """
    listeners = _listeners.setdefault(client, [])
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


def announce_renewal(client: Client) -> None:
    """Tell the listeners of `at_renewal` that what was asked over the connection before may never be answered."""
    for listener in list(_listeners.get(client, ())):
        listener()


@asynccontextmanager
async def open_connection(
    settings: NatsSettings, *, patience: timedelta | None = None, any_payload: bool = False
) -> AsyncIterator[Client]:
    """Connect, and drain and close at the end.

    Args:
        settings: Where to and as whom.
        patience: How long to wait for the first connection; None waits until there is a server.
        any_payload: Connect although the server takes smaller messages than the system sends, to tell so.

    Raises:
        UnavailableError: No server answered within `patience`. Or the key, or the token, was made anew, or is another's, since: its
            holder hears nothing of what was asked before, so that the block is cancelled, and whoever opens it again goes on.
        InvalidInputError: The server takes smaller messages than the system sends.
    """
    client = await _connect(settings, patience)
    try:
        if not any_payload:
            check_max_payload(client.max_payload)
        with traffic.watch(client):
            async with beside(client.subscribe_again(), client.end_with_key()):
                yield client
    finally:
        await _close(client)


@contextmanager
def _gone_if_closed() -> Iterator[None]:
    """Call a socket that is closed a lost connection. uvloop calls it a RuntimeError, which nobody would take for what it is."""
    try:
        yield
    except RuntimeError as error:
        raise ConnectionResetError(f"The connection to NATS is gone: {error}") from error


def write_at_once(client: Client) -> None:
    """Have what was published written now, as what somebody waits for: the first that is of all that a packet has brought about."""
    if isinstance(client, _LastingClient):
        client.write_at_once()


def check_max_payload(allowed_bytes: int) -> None:
    """See that a server takes every message that the system may send.

    Raises:
        InvalidInputError: It does not, and no retry helps.
    """
    if allowed_bytes < LEAST_MAX_PAYLOAD_BYTES:
        raise InvalidInputError(
            f"The NATS server takes messages of {allowed_bytes:,} bytes at most; {LEAST_MAX_PAYLOAD_BYTES:,} are needed.",
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
    """The server answers, and lets nobody in as who asks."""


def _unreachable(url: str, error: Exception) -> UnavailableError:
    if isinstance(error, nats.errors.AuthorizationError):
        return NotLetInError(f"The NATS server at {url} lets nobody in as this ({error}).", hint=_WHO)
    if isinstance(error, _FullError):
        return UnavailableError(f"The NATS server at {url} takes no more connections ({error}).", hint=_WHOSE_CONNECTIONS)
    if isinstance(error, ssl.SSLError):
        return UnavailableError(
            f"The NATS server at {url} encrypts, and is not trusted ({error.reason or error}).",
            hint="IOA_NATS_CA names the certificate of its authority.",
        )
    return UnavailableError(
        f"No NATS server answers at {url} ({str(error) or type(error).__name__}).",
        hint="Start the system with `ioa up`, or name a running one with --url or IOA_NATS_URL.",
    )


async def asking_until_heard(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Ask, and ask again for a moment while the server says that nobody listens: it may be reading its configuration anew.

    What nobody has heard can be repeated, whatever it asks for.

    Raises:
        NoRespondersError: Nobody has come to listen.
    """
    until, pause = asyncio.get_running_loop().time() + _UNHEARD_SECONDS, pauses(_FIRST_UNHEARD_PAUSE, _LONGEST_UNHEARD_PAUSE)
    while True:
        try:
            return await ask()
        except nats.errors.NoRespondersError:
            if asyncio.get_running_loop().time() > until:
                raise
        await asyncio.sleep(next(pause))


class _FullError(nats.errors.Error):
    """The server has as many connections as it takes, or as this one's account may have."""


class _SubscriptionsFullError(nats.errors.Error):
    def __str__(self) -> str:
        return (
            "the server takes no more subscriptions of this connection: `service_subscriptions`, `agent_subscriptions` or"
            " `user_subscriptions` of `ioa credentials create --limit` allows more"
        )


class _UnencryptedError(nats.errors.Error):
    def __str__(self) -> str:
        return "the server there does not encrypt, as tls:// and a certificate authority ask for"


class _AnotherHolderError(nats.errors.Error):
    def __str__(self) -> str:
        return "what is shown now is no later key or token of the same holder, who alone reads the answers to this connection"


class _LastingClient(Client):
    """nats-py's client, for whom no word of the server is the last one, and whose key may be replaced while it runs.

    What the server refuses on a standing connection (this key is let in no more, this token has run out) ends that connection;
    nats-py's own client would close for good. It would also talk in clear to whoever says that no encryption is needed.

    What it shows is read anew for each connection, and has to be the same holder's: where answers come stays as it was first, and
    nobody else may read there. Another one would be let in, and hear nothing.

    A subscription that is refused is asked for again: a server that reads its configuration anew may allow it, and tells nobody.
    Nor does one that has left it out since there were too many, once there are fewer; a new connection would lack it, too.

    A request that this key may not make ends as soon as the server says so, which is no answer: it would be waited for in vain.

    A request waits for the connection. nats-py keeps all that is published while there is none, and sends it later: whoever asked
    again and again in vain would ask so many times at once then, and be slowed down for it.

    Headers are read by `read_headers`, and the lines of messages by `MessageParser`, since strangers write them.
    """

    def __init__(self, settings: NatsSettings, shown: _Shown) -> None:
        super().__init__()
        self._ps = MessageParser(self)
        self.asks_to_read = settings.asks_to_read
        self._settings, self._shown = settings, shown
        self._is_another = asyncio.Event()
        self._reconnecting: asyncio.Task[Any] | None = None
        self.closed = asyncio.Event()
        self._back = asyncio.Event()
        self.not_permitted: deque[str] = deque(maxlen=_REMEMBERED_REFUSALS)
        self._asking = defaultdict[str, set[asyncio.Timeout]](set)
        self._deaf_to: set[str] = set()
        self._lacks_some = False
        self._times_full = 0
        self._received_before: dict[int, int] = {}
        """How much each subscription had brought when the connection was made."""
        self._is_deaf = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_to_write = self._has_written = False
        """Whether what is pending is written as soon as the loop goes round, and whether something was written at once since it
        has, or since something was received."""
        self.refused = asyncio.Event()
        """Set while the server refuses to have this connection back."""

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # nats-py's signature
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """Ask as nats-py does once there is a connection, and again what nobody has heard; see `asking_until_heard`."""
        if not self.is_connected:
            timeout = await self._wait_for_connection(timeout)
        ask = super().request
        async with self._until_not_permitted(subject):
            return await asking_until_heard(lambda: ask(subject, payload, timeout=timeout, old_style=old_style, headers=headers))

    @asynccontextmanager
    async def _until_not_permitted(self, subject: str) -> AsyncIterator[None]:
        """Wait for what is asked on a subject, until the server says that it may not be."""
        quoted = _quoted(subject)
        try:
            async with fail_after(None) as until:
                self._asking[quoted].add(until)
                try:
                    yield
                finally:
                    self._asking[quoted].discard(until)
                    if not self._asking[quoted]:
                        del self._asking[quoted]
        except nats.errors.TimeoutError:
            raise
        except TimeoutError:
            raise nats.errors.TimeoutError from None

    async def until_connected(self) -> bool:
        """Wait while there is no connection; whether that was so. One that is closed comes back no more: nats-py says so then."""
        was_away = False
        while not (self.is_connected or self.is_closed):
            was_away = True
            await self._back.wait()
        return was_away

    def wake_waiting(self) -> None:
        """Have whoever waits for the connection look again: it was made anew, or is closed."""
        self._back.set()
        self._back = asyncio.Event()

    async def _wait_for_connection(self, timeout: float) -> float:
        """Return how much is left of the time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        try:
            async with fail_at(until):
                await self.until_connected()
        except TimeoutError:
            raise nats.errors.TimeoutError from None
        return until - loop.time()

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        flusher = self._flusher_task
        if not force_flush and self.is_connected and flusher is not None and not flusher.done():
            if self._pending:
                self._write_soon()
            return None
        # Until nats-py has seen that a server is gone, its task that writes has ended, and who publishes writes to a closed socket.
        with _gone_if_closed():
            return await super()._flush_pending(force_flush)

    async def flush(self, timeout: int = DEFAULT_FLUSH_TIMEOUT) -> None:  # nats-py's signature
        """Wait until the server has read what is pending. nats-py's own writes its ping before that."""
        if self.is_connected:
            self._write_pending()
        with _gone_if_closed():
            await super().flush(timeout)

    async def _send_subscribe(self, sub: Subscription) -> None:
        with suppress(ConnectionResetError):  # the next connection asks for it
            await super()._send_subscribe(sub)

    async def _send_unsubscribe(self, sid: int, limit: int = 0) -> None:
        with suppress(ConnectionResetError):  # the next connection wants as many of it, or does not ask for it
            await super()._send_unsubscribe(sid, limit)

    def write_at_once(self) -> None:
        """Write what is pending now, and not when the loop has gone round; the first that is since something was received."""
        if not self.is_connected:
            return
        if self._has_written:
            self._write_soon()
        else:
            self._has_written = True
            self._write_pending()

    def on_received(self) -> None:
        """Note that something was received: what is written at once for it need not be gathered with what was before."""
        self._has_written = False

    def _write_soon(self) -> None:
        """Have all that is published until the loop goes round written then. nats-py wakes a task, which takes far longer."""
        if not self._is_to_write:
            self._is_to_write = True
            self._loop.call_soon(self._write_gathered)

    def _write_gathered(self) -> None:
        self._is_to_write = self._has_written = False
        if self.is_connected:
            self._write_pending()
        else:  # it was on its way to a server that is gone, and is not for the next one: whoever asked has given up by then
            self._pending, self._pending_data_size = [], 0

    def _write_pending(self) -> None:
        """Write what is pending. What the server does not take up at once is left to nats-py's task, which waits for it."""
        transport, queue = self._transport, self._flush_queue
        if not self._pending:
            return
        writer = transport._io_writer if isinstance(transport, TcpTransport) else None
        if writer is None or writer.transport.get_write_buffer_size() or writer.transport.is_closing():
            if queue is not None and queue.empty():
                queue.put_nowait(self._loop.create_future())
            return
        writer.writelines(self._pending)
        self._pending, self._pending_data_size = [], 0

    async def _read_loop(self) -> None:
        if isinstance(self._transport, TcpTransport):
            StraightReader(self, self._transport, self.on_received)
        await super()._read_loop()

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        # Where nats-py's own fails, its reading ends, and the connection stays open, deaf.
        return (read_headers(headers) or None) if headers else None

    def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None) -> Any:
        # nats-server hands on subjects that are no UTF-8. Where nats-py's own reads one, its reading ends, as at headers.
        # And it takes a goal whose publisher wrote a status for a word of the server that there is none, and asks for ever.
        if headers:
            drop_foreign_status(headers, reply)
        return Msg(self, readable(subject), readable(reply) if reply else "", data, headers, _sid=sid)

    async def _process_pong(self) -> None:
        # Where nobody waits for it any more, nats-py's own fails to tell him, by which its reading ends, as at headers.
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = self._loop.create_future()
        await super()._process_pong()

    async def _process_err(self, err_msg: str) -> None:
        if _NOT_PERMITTED in err_msg:
            self.not_permitted.append(err_msg)
            for until in [one for quoted, waiting in self._asking.items() if quoted in err_msg for one in waiting]:
                if not until.expired():  # else it takes no other time, and nats-py's reading would end by that
                    until.reschedule(asyncio.get_running_loop().time())
            if refused := _NOT_TO_BE_HEARD.search(err_msg):
                self._deaf_to.add(refused[1])
                self._is_deaf.set()
            await super()._process_err(err_msg)
        elif _SUBSCRIPTIONS_FULL in err_msg:
            self._times_full += 1
            self._lacks_some = True
            self._is_deaf.set()
            await self._error_cb(_SubscriptionsFullError())
        else:
            _log.warning("nats_ends_connection", error=err_msg.strip("'"))
            await self._process_op_err(nats.errors.Error(f"nats: {err_msg}"))

    async def subscribe_again(self) -> None:
        """Ask for the subscriptions that were refused until they are not, ever less often; for ever."""
        while True:
            await self._is_deaf.wait()
            pause = pauses(_FIRST_DEAF_PAUSE, _LONGEST_DEAF_PAUSE)
            while self._deaf_to or self._lacks_some:
                await asyncio.sleep(next(pause))
                refused, self._deaf_to = self._deaf_to, set()
                again = [one for one in self._subs.values() if one.subject.lower() in refused]
                with heeding_cancellation(), suppress(nats.errors.Error, OSError, TimeoutError):
                    for subscription in again:
                        await self._ask_again_for(subscription)
                    await self.flush(_FLUSH_SECONDS)  # behind what the server says of them
                    if self._lacks_some:
                        await self._ask_for_left_out()
            self._is_deaf.clear()

    async def end_with_key(self) -> None:
        """Wait until what is shown is another's.

        Raises:
            UnavailableError: It is.
        """
        await self._is_another.wait()
        raise UnavailableError(
            f"What {self._settings.seed or self._settings.token} holds was made anew while this ran, and may not read its answers.",
            hint="Start this again, and it goes on by the new one. `ioa credentials rotate` replaces a key under what runs.",
        )

    async def _ask_for_left_out(self) -> None:
        """Ask for whatever may have been left out, the newest first and one by one, until the server is full again.

        What has brought something is there. To ask once more for what is there changes nothing.
        """
        before = self._times_full
        for sid, subscription in reversed(list(self._subs.items())):
            if sid in self._subs and subscription._received == self._received_before.get(sid, 0):
                await self._ask_again_for(subscription)
                await self.flush(_FLUSH_SECONDS)
            if self._times_full != before:
                return
        self._lacks_some = False

    async def _ask_again_for(self, subscription: Subscription) -> None:
        """Ask for a subscription of which nothing came over this connection, and for as many messages as it is for."""
        await self._send_subscribe(subscription)
        if subscription._max_msgs:
            await self._send_unsubscribe(subscription._id, subscription._max_msgs - subscription._received)

    async def _attempt_reconnect(self) -> None:
        # Where a connection is lost again while one attempt ends, nats-py starts another. It cancels the first, which may miss
        # that: both would connect, and leave the tasks of one connection running when the client is closed.
        before, self._reconnecting = self._reconnecting, asyncio.current_task()
        if before is not None:
            await _end(before)
        self._let_go()
        pause = pauses(_RECONNECT_EVERY.total_seconds(), _REFUSED_SECONDS)
        while not self.is_closed:
            try:
                await super()._attempt_reconnect()
            except Exception as error:  # noqa: BLE001 - nats-py expects few, and gives up for good at any other, which nobody hears
                _log.warning("nats_connects_anew", error=str(error) or type(error).__name__)
                if not self.is_closed:
                    self._status = Client.RECONNECTING
            else:
                return
            await asyncio.sleep(next(pause))

    def _let_go(self) -> None:
        """Tell who waits for the server to have done all he asked for that it has not.

        nats-py lets him wait ten seconds more, and meanwhile asks the server anew for what he is giving up.
        """
        for waiting in self._pongs:
            if not waiting.done():
                waiting.set_exception(nats.errors.ConnectionReconnectingError())
                waiting.exception()  # for most nobody waits, of which asyncio would tell
        self._pongs.clear()

    def _connect_command(self) -> bytes:
        self._received_before = {sid: one._received for sid, one in self._subs.items()}
        asked = self._current_server is not None and self._current_server.uri.scheme == "tls"
        if (asked or self.options.get("tls") is not None) and not self._server_info.get("tls_required"):
            raise _UnencryptedError
        if self._server_info.get("tls_required"):
            _tell_that_it_encrypts(self._transport)
        with suppress(InvalidInputError):  # it may be just being replaced, or gone: the last one is shown again
            self._show(_shown(self._settings))
        return super()._connect_command()

    def _show(self, shown: _Shown) -> None:
        if shown.inbox_prefix != self._shown.inbox_prefix:
            self._is_another.set()
            raise _AnotherHolderError
        if shown.token is not None:
            self.options["token"] = shown.token
        if shown.password is not None:
            self.options["password"] = shown.password
        if shown.seed is not None:
            self._nkeys_seed_str = shown.seed
            self._setup_nkeys_seed_connect()


def _tell_that_it_encrypts(transport: Transport | None) -> None:
    """Tell asyncio's reader that it reads by TLS, which nats-py forgets: asyncio would warn of it when the connection ends."""
    if isinstance(transport, TcpTransport) and transport._io_writer is not None:
        protocol = transport._io_writer.transport.get_protocol()
        if protocol is None:
            raise ConnectionResetError("the connection was lost as soon as it was encrypted")
        protocol._over_ssl = True  # type: ignore[attr-defined]


async def until_closed(client: Client) -> None:
    """Wait until a connection of `open_connection` is closed for good, by whatever closed it."""
    assert isinstance(client, _LastingClient), "no other client tells"
    await client.closed.wait()


async def until_connected(client: Client) -> bool:
    """Wait while a connection of `open_connection` is away, which would send all later; return whether it was."""
    assert isinstance(client, _LastingClient), "no other client tells"
    return await client.until_connected()


async def until_refused(client: Client, lasting: timedelta) -> None:
    """Wait until the server has refused to have a connection of `open_connection` back for so long; for whoever gives up then.

    Raises:
        NotLetInError: It has.
    """
    assert isinstance(client, _LastingClient), "no other client tells"
    while True:
        await client.refused.wait()
        with suppress(TimeoutError):
            async with fail_after(lasting.total_seconds()):
                await client.until_connected()
        if client.refused.is_set():
            raise NotLetInError("The NATS server lets this credential in no more.", hint=_WHO)


def may_not_publish(client: Client, subject: str) -> bool:
    """Whether the server has lately refused what this connection published on a subject: it tells so, but not as an answer."""
    return isinstance(client, _LastingClient) and any(_quoted(subject) in refusal for refusal in client.not_permitted)


def _quoted(subject: str) -> str:
    """Return a subject as the server names it where it refuses it, in small letters as nats-py hands that on."""
    return f'"{subject.lower()}"'


def asks_to_read(client: Client) -> bool:
    """Whether what streams hold is asked of group setup over this connection, and not of JetStream."""
    return isinstance(client, _LastingClient) and client.asks_to_read


async def _attempt(settings: NatsSettings) -> _LastingClient:
    tls = await asyncio.to_thread(_tls_of, settings)
    shown = await asyncio.to_thread(_shown, settings)
    client = _LastingClient(settings, shown)
    turned_away = deque[nats.errors.Error | ssl.SSLError](maxlen=1)
    pause = pauses(_RECONNECT_EVERY.total_seconds(), _REFUSED_SECONDS)

    async def reconnected() -> None:
        nonlocal pause
        pause = pauses(_RECONNECT_EVERY.total_seconds(), _REFUSED_SECONDS)
        client.not_permitted.clear()  # another authorization may hold by now
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
        # While there is no server, each attempt to reconnect fails alike; that it is gone was said once.
        log = _log.warning if client.is_connected else _log.debug
        if asyncio.current_task() is client._reconnection_task:
            _leave_attempt(client)
            client.refused.clear()  # whether a server that is away would refuse it nobody knows
        nats_errors.labels(type(error).__name__).inc()
        log("nats_error", error=str(error) or type(error).__name__)
        why = _why_turned_away(error)
        if why is not None:
            turned_away.append(why)
        if isinstance(why, nats.errors.AuthorizationError | _FullError) and asyncio.current_task() is client._reconnection_task:
            hint = _WHOSE_CONNECTIONS if isinstance(why, _FullError) else _WHO
            if isinstance(why, nats.errors.AuthorizationError):
                client.refused.set()
            _log.warning("nats_refused", url=settings.url, error=str(error), hint=hint)
            await asyncio.sleep(next(pause))  # it may be let in again; until then it asks ever less often

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
    """Return for what a server that answers does not have this connection; None if that is not what an error says."""
    if isinstance(error, _UnencryptedError | ssl.SSLError):
        return error
    said = str(error).lower()
    if _FULL in said:
        return _FullError(*error.args)
    return nats.errors.AuthorizationError() if _REFUSED in said else None


async def _see_through(
    client: Client, connecting: asyncio.Future[None], turned_away: Sequence[nats.errors.Error | ssl.SSLError]
) -> None:
    """Wait for an attempt to connect, and leave nothing of one that fails."""
    try:
        await asyncio.wait([connecting], timeout=_ATTEMPT_TIMEOUT.total_seconds() * 2)
        await _end(connecting)
        if connecting.cancelled():  # nats-py asks again and again, and tells nobody but its callback why it was turned away
            raise turned_away[-1] if turned_away else TimeoutError
        connecting.result()
        if not client.is_connected:  # nats-py takes a ping for a yes: the server asks an auth callout, which does not answer
            await _close(client)
            raise TimeoutError("the server does not say whether it lets in")
    except BaseException:
        await _end(connecting)
        if client.is_connected:
            await _close(client)
        else:
            _leave_attempt(client)
        raise


@dataclass(frozen=True)
class _Shown:
    """What says who connects, and where answers to it come. A system on this machine has a new password with each start."""

    seed: str | None = None
    token: str | None = None
    password: str | None = None
    inbox_prefix: bytes = DEFAULT_INBOX_PREFIX


def _shown(settings: NatsSettings) -> _Shown:
    """Read who connects.

    Raises:
        InvalidInputError: Nothing usable says so, or two things do.
    """
    if settings.seed is not None and settings.token is not None:
        raise InvalidInputError("A seed and a token both say who connects.", hint="Set IOA_NATS_SEED, or IOA_NATS_TOKEN_FILE.")
    if settings.seed is not None:
        key = read_key(settings.seed)
        return _Shown(seed=key.seed, inbox_prefix=inbox_prefix_of(key.inbox_owner).encode())
    if settings.token is not None:
        token = read_token(settings.token)
        return _Shown(token=token, inbox_prefix=inbox_prefix_of(inbox_owner_of(token)).encode())
    return _Shown(password=settings.password())


def _leave_attempt(client: Client) -> None:
    """End what nats-py leaves of an attempt to connect that came to nothing.

    Its socket, which a frozen server takes, and the tasks of a connection that broke while it was set up.
    """
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
    """Send what is buffered and close. Subscriptions were ended by whoever made them, so there is nothing to drain."""
    try:
        if client.is_connected:
            await client.flush(timeout=_FLUSH_SECONDS)
    except (TimeoutError, nats.errors.Error, OSError) as error:
        _log.debug("nats_not_flushed", error=str(error) or type(error).__name__)
    finally:
        await _close_for_good(client)


async def _close_for_good(client: Client) -> None:
    """Close a client, and again while it connects once more: nats-py cancels what reconnects once, and that may be dropped."""
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
        # nats-py waits for the socket's end in two tasks. It cancels the one that reconnects, and with it what both wait for.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
    except (OSError, RuntimeError):
        # What was buffered could not be sent to a server that is gone (uvloop calls that a RuntimeError). nats-py stops
        # half-way then, with its tasks running; without the buffer, closing once more succeeds.
        client._pending, client._pending_data_size = [], 0
        client._status = Client.DISCONNECTED


async def _end(task: asyncio.Future[None]) -> None:
    """Cancel a task of nats-py until it has ended.

    `asyncio.wait_for` of Python 3.11, by which nats-py waits, drops a cancellation that comes together with the end of what is
    waited for (python/cpython#86296), such as with a connection that has just been made or refused.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_RECONNECT_EVERY.total_seconds())
