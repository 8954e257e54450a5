"""The nats-server of a system on one machine: found, configured, started, watched and stopped.

Rules that hold here:

- The server picks its own port when none is asked for and says which in its ports file, so that no port can be lost in between.
- Ready means answered: the server's greeting was read and says that JetStream runs. It greets only after JetStream has recovered.
- A data folder belongs to one server. The lock on it is inherited by the server, so it holds until both the server and its
  starter are gone, in whatever order they die.
- Its monitoring asks nobody who he is, and tells who is connected and what they read. So it is found only by whoever can read the
  configuration: every path of it begins with one that nobody can guess.
- The server never outlives its starter. On Linux the kernel ends it (see `_LAUNCHER`); elsewhere a starter that was killed with
  SIGKILL leaves it behind, and the next start on the folder says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import sys
import sysconfig
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from signal import Signals
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import structlog

from ioa.cancellation import fail_after
from ioa.children import send_signal
from ioa.errors import ConflictError, InvalidInputError, MissingExtraError, UnavailableError

# Runs in the child before it becomes nats-server: asks the kernel to send it SIGTERM (15) when its parent dies
# (PR_SET_PDEATHSIG, 1), and gives up if the parent died before that. The request survives execv, and the process id stays. A
# `preexec_fn` would do the same without the 20 ms, but may deadlock in a process that has threads.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started nats-server is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""
STORE = "jetstream"
"""The folder that JetStream makes in its `store_dir`."""
_HOST = "127.0.0.1"
_MAX_PENDING_BYTES, _WRITE_DEADLINE = 8 * 1024 * 1024, "2s"
"""How much may wait for a client that reads slowly, and how long a write may take, before it is disconnected."""
MAX_SUBSCRIBED_PARTS = 16
"""How many parts the subject of a subscription may have; ours have nine at most.

The server keeps a level of its tree for each, of some 380 bytes, and a line of the wire has room for two thousand: 0.75 MB for one
subscription of 4 kB, on each server."""
_PING_INTERVAL, _PING_MAX = timedelta(seconds=3), 2
"""A client that hangs leaves its queue groups within 9 s, instead of 6 minutes. One that was heard in between is not pinged."""
_POLL = 0.01
_STOP_GRACE = timedelta(seconds=10)
_LEFT_BEHIND = timedelta(seconds=10)
"""How long a server whose system was killed may take to close its files."""
_STOPPING = timedelta(seconds=45)
"""How long a system that is stopping may hold its folder: its agents drain, then its services and the server end."""
_HOLDER_PATIENCE = timedelta(seconds=3)
"""How long the system that holds the folder may take to note that it is stopping."""
_STOPPING_NOTE = "stopping"
_ASK_SECONDS = 2.0
_WRITE_ERROR = "write error"
_PATH_BYTES = 16
_LOG_LIMIT_BYTES = 16 * 1024 * 1024

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ClusterNode:
    """One server of a JetStream cluster: its name, the cluster's, its route's port, and the route ports of all."""

    server_name: str
    cluster_name: str
    route_port: int
    route_ports: Sequence[int]


@dataclass(frozen=True)
class _Settings:
    binary: Path
    data_dir: Path
    port: int | None
    sync_interval: timedelta
    max_payload_bytes: int
    start_timeout: timedelta
    lock_fd: int
    node: ClusterNode | None
    authorization: str | None
    monitor_path: str

    @property
    def config_path(self) -> Path:
        return self.data_dir / "nats-server.conf"

    @property
    def log_path(self) -> Path:
        return self.data_dir / "nats-server.log"

    @property
    def store_path(self) -> Path:
        return self.data_dir / STORE


class NatsServer:
    """A nats-server process that `open_nats_server` started. It may be stopped and started again, on the same port and folder."""

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings
        self._port = settings.port
        self._monitor = ""
        self._process: asyncio.subprocess.Process | None = None
        self._store: int | None = None
        self.version = ""

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://{_HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """The process id of the server that runs now or ran last."""
        if self._process is None:
            raise RuntimeError("nats-server was never started")
        return self._process.pid

    @property
    def log_path(self) -> Path:
        """Where the server writes its log."""
        return self._settings.log_path

    async def start(self) -> None:
        """Start the server and return once it answers and JetStream runs. Does nothing when it runs already.

        Raises:
            ConflictError: Something else listens on the port.
            UnavailableError: The server ended or did not answer in time; the message holds the last line of its log.
        """
        if self._process is not None and self._process.returncode is None:
            return
        log_start = await asyncio.to_thread(_write_config, self._settings, self._port)
        self._process = process = await _spawn(self._settings)
        try:
            async with fail_after(self._settings.start_timeout.total_seconds()):
                await self._until_ready(process, log_start)
        except TimeoutError:
            await self.stop()
            raise UnavailableError(
                f"nats-server did not answer within {self._settings.start_timeout.total_seconds():g} s.",
                hint=f"Its log: {self.log_path}",
            ) from None
        except BaseException:
            await self.stop()
            raise

    def note_stopping(self) -> None:
        """Write into the folder's lock that the system is stopping: its successor waits for the lock instead of failing."""
        os.pwrite(self._settings.lock_fd, f"{os.getpid()} {_STOPPING_NOTE}\n".encode("ascii"), 0)

    async def stop(self) -> None:
        """End the server: SIGTERM, which flushes and closes what it holds, then SIGKILL after ten seconds."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        send_signal(process, Signals.SIGTERM)
        try:
            async with fail_after(_STOP_GRACE.total_seconds()):
                await process.wait()
        except TimeoutError:
            send_signal(process, Signals.SIGKILL)
            await process.wait()
        except asyncio.CancelledError:
            send_signal(process, Signals.SIGKILL)
            raise

    async def wait(self) -> int:
        """Wait until the server has ended, for whatever reason, and return its exit code (negative: the signal)."""
        if self._process is None:
            raise RuntimeError("nats-server was never started")
        return await self._process.wait()

    async def write_error(self) -> str | None:
        """Return why the server does not store durably; None if it does, or does not answer.

        After a failed write, as on a full disk, nats-server 2.15 rejects all messages of the stream until its restart. After its
        folder was removed, it acknowledges messages and returns them from files that no longer have a name.
        """
        if self._store is not None and await asyncio.to_thread(_inode, self._settings.store_path) != self._store:
            return f"the folder {self._settings.store_path} was removed"
        said = await asyncio.to_thread(_error_at, f"{self._monitor}{self._settings.monitor_path}/healthz")
        return said if _WRITE_ERROR in said else None

    async def _until_ready(self, process: asyncio.subprocess.Process, log_start: int) -> None:
        ports_path = self._settings.data_dir / f"{self._settings.binary.name}_{process.pid}.ports"
        while True:
            if process.returncode is not None:
                raise await asyncio.to_thread(_start_error, self._settings, self._port, log_start)
            ports = await asyncio.to_thread(_read_ports, ports_path)
            greeting = await _greeting(ports.client) if ports is not None else None
            if ports is not None and greeting is not None and greeting.get("jetstream"):
                self._port, self._monitor, self.version = ports.client, ports.monitor, str(greeting["version"])
                self._store = await asyncio.to_thread(_inode, self._settings.store_path)
                return
            await asyncio.sleep(_POLL)


def find_nats_server(binary: Path | None = None) -> Path:
    """Find the executable: the one named, else the one that came with the extra `server`, else the one on PATH.

    Raises:
        InvalidInputError: The one named is no executable file.
        MissingExtraError: There is none.
    """
    if binary is not None:
        if not (binary.is_file() and os.access(binary, os.X_OK)):
            raise InvalidInputError(f"{binary} is no executable file.", hint="Name a nats-server binary.")
        return binary.resolve()
    found = shutil.which("nats-server", path=sysconfig.get_path("scripts")) or shutil.which("nats-server")
    if found is None:
        raise MissingExtraError.of("nats-server", "server")
    return Path(found).resolve()


@asynccontextmanager
async def open_nats_server(
    data_dir: Path,
    port: int | None,
    *,
    sync_interval: timedelta = timedelta(seconds=1),
    binary: Path | None = None,
    max_payload_bytes: int = 1024 * 1024,
    start_timeout: timedelta = timedelta(seconds=30),
    node: ClusterNode | None = None,
    authorization: str | None = None,
) -> AsyncIterator[NatsServer]:
    """Run a nats-server with JetStream on `data_dir` until the block ends. What it stored is there again the next time.

    Args:
        data_dir: Holds the streams, the configuration and the log; created when missing. One server at a time.
        port: None takes a free one.
        sync_interval: How much of the last acknowledged writes a power cut may cost; zero syncs every write. The death of the
            process costs nothing.
        binary: See `find_nats_server`.
        max_payload_bytes: The largest message it takes.
        start_timeout: Covers the recovery of what is stored, which takes longer the more there is.
        node: Its place in a cluster; None runs it alone.
        authorization: Accounts and permissions, rendered by `ioa.adapters.nats.auth.server_config`; None permits everything.

    Raises:
        MissingExtraError: There is no nats-server.
        ConflictError: The port or the folder is in use.
        InvalidInputError: The folder cannot be created or written.
        UnavailableError: The server did not start; the message holds the last line of its log.
    """
    executable = await asyncio.to_thread(find_nats_server, binary)
    data_dir = await asyncio.to_thread(data_dir.absolute)
    with contextlib.ExitStack() as stack:
        lock_fd = await _locked(stack, data_dir)
        monitor_path = f"/{secrets.token_hex(_PATH_BYTES)}"
        settings = _Settings(
            binary=executable,
            data_dir=data_dir,
            port=port,
            sync_interval=sync_interval,
            max_payload_bytes=max_payload_bytes,
            start_timeout=start_timeout,
            lock_fd=lock_fd,
            node=node,
            authorization=authorization,
            monitor_path=monitor_path,
        )
        server = NatsServer(settings)
        try:
            await server.start()
            yield server
        finally:
            await server.stop()


async def _locked(stack: contextlib.ExitStack, data_dir: Path) -> int:
    """Lock the folder; wait for a system that is stopping or was killed.

    Raises:
        ConflictError: Another system holds the lock, and is not stopping or does not end in time.
        InvalidInputError: The folder cannot be created or locked.
    """
    loop, waits = asyncio.get_running_loop(), False
    begin = loop.time()
    while True:
        try:
            return stack.enter_context(_lock(data_dir))
        except BlockingIOError:
            owner, is_stopping = _owner(data_dir)
            who = "a nats-server that was left behind" if owner is None else f"process {owner}"
            patience = _LEFT_BEHIND if owner is None else _STOPPING if is_stopping else _HOLDER_PATIENCE
            if loop.time() >= begin + patience.total_seconds():
                raise ConflictError(
                    f"The folder {data_dir} is in use by another system ({who}).", hint="Stop that one, or choose another folder."
                ) from None
            if not waits and (is_stopping or owner is None):
                waits = True
                _log.warning("waits_for_folder", folder=str(data_dir), holder=who, at_most_seconds=patience.total_seconds())
        except OSError as error:
            raise InvalidInputError(f"The folder {data_dir} cannot be used: {error.strerror}.", hint="Choose another.") from error
        await asyncio.sleep(_POLL)


@contextmanager
def _lock(data_dir: Path) -> Iterator[int]:
    data_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _owner(data_dir: Path) -> tuple[int | None, bool]:
    """Return the process id of the system that locked the folder, None if that process has ended; and whether it is stopping."""
    try:
        text, _, note = (data_dir / "lock").read_text(encoding="ascii").strip().partition(" ")
        pid, is_stopping = int(text), note == _STOPPING_NOTE
        os.kill(pid, 0)
    except (ValueError, ProcessLookupError):
        return None, False
    except PermissionError:  # it runs as another user
        return pid, is_stopping
    return pid, is_stopping


def _write_config(settings: _Settings, port: int | None) -> int:
    """Write the server's configuration, clear what an earlier one left behind, and return how long its log is already."""
    for stale in settings.data_dir.glob("*.ports"):
        stale.unlink()
    lines: dict[str, Any] = {
        "host": _HOST,
        "port": -1 if port is None else port,
        "server_name": "ioa" if settings.node is None else settings.node.server_name,
        "http": f"{_HOST}:-1",
        "http_base_path": settings.monitor_path,
        "max_payload": settings.max_payload_bytes,
        "max_pending": _MAX_PENDING_BYTES,
        "write_deadline": _WRITE_DEADLINE,
        "max_sub_tokens": MAX_SUBSCRIBED_PARTS,
        "ping_interval": f"{round(_PING_INTERVAL.total_seconds())}s",
        "ping_max": _PING_MAX,
        "ports_file_dir": str(settings.data_dir),
        "pid_file": str(settings.data_dir / "nats.pid"),
        "log_file": str(settings.log_path),
        "logfile_size_limit": _LOG_LIMIT_BYTES,
        "logfile_max_num": 2,
        "jetstream": {
            "store_dir": str(settings.data_dir),
            "sync_interval": f"{round(settings.sync_interval / timedelta(milliseconds=1))}ms"
            if settings.sync_interval
            else "always",
        },
    }
    if settings.node is not None:
        lines["cluster"] = {
            "name": settings.node.cluster_name,
            "listen": f"{_HOST}:{settings.node.route_port}",
            "routes": [f"nats://{_HOST}:{port}" for port in settings.node.route_ports],
        }
    if settings.authorization is not None:
        lines |= json.loads(settings.authorization)
    # nats-server reads JSON as a configuration file.
    settings.config_path.write_text(json.dumps(lines, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return settings.log_path.stat().st_size if settings.log_path.exists() else 0


async def _spawn(settings: _Settings) -> asyncio.subprocess.Process:
    command = [str(settings.binary), "-c", str(settings.config_path)]
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
    with settings.log_path.open("ab") as log:
        # Its own session, so that Ctrl-C in a terminal reaches only the starter, which drains before it stops the server.
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(settings.lock_fd,),
        )


@dataclass(frozen=True)
class _Ports:
    client: int
    monitor: str


def _read_ports(path: Path) -> _Ports | None:
    """Read where clients and HTTP requests are heard off the server's ports file; None while it is not written, or only in part."""
    try:
        urls = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return _Ports(int(urls["nats"][0].rsplit(":", 1)[1]), urls["monitoring"][0])


async def _greeting(port: int) -> dict[str, Any] | None:
    """Connect and read what the server says of itself (its `INFO` line); None while it says nothing."""
    try:
        reader, writer = await asyncio.open_connection(_HOST, port)
    except OSError:
        return None
    try:
        line = await reader.readline()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if not line.startswith(b"INFO "):
        return None
    greeting: dict[str, Any] = json.loads(line.removeprefix(b"INFO "))
    return greeting


def _start_error(settings: _Settings, port: int | None, log_start: int) -> ConflictError | UnavailableError:
    """Say why the server ended, from what it wrote to its log since it was started."""
    with settings.log_path.open("rb") as log:
        log.seek(log_start)
        text = log.read().decode("utf-8", "replace")
    if "address already in use" in text:
        return ConflictError(
            f"Port {port} on {_HOST} is in use by another program.", hint="Choose another port, or stop that program."
        )
    lines = [line for line in text.splitlines() if line.strip()]
    reason = next((line.partition("[FTL] ")[2] for line in lines if "[FTL] " in line), lines[-1] if lines else "it said nothing")
    return UnavailableError(f"nats-server did not start: {reason.rstrip('.')}.", hint=f"Its log: {settings.log_path}")


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _error_at(url: str) -> str:
    """Request a page of the monitoring; return its text if the status is an error, otherwise an empty text."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=_ASK_SECONDS):
            return ""
    except HTTPError as error:
        return error.read().decode("utf-8", "replace")
    except OSError:
        return ""
