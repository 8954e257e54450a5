"""The nats-server of a system on one machine: found, configured, started, watched and stopped.

- The server picks its own port if none is requested, and writes it to its ports file, so that no other program can take the port.
- The server is ready when its greeting reports JetStream. It greets only after JetStream has recovered.
- A data folder belongs to one server, which inherits the lock on it: the lock holds until the server and its starter have ended.
- Monitoring needs no credentials and lists connections and their subscriptions. Therefore its paths begin with a random one, which
  only readers of the configuration know.
- The server never outlives its starter. On Linux the kernel ends it; elsewhere it continues after SIGKILL of its
  starter, and the next start on the folder reports it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from signal import Signals
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import structlog

from ioa.adapters.child_processes import ending_with_parent, stop_process
from ioa.adapters.folder_lock import FolderLock, locked_folder
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.concurrency import fail_after
from ioa.errors import ConflictError, MissingExtraError, UnavailableError

STORE = "jetstream"
"""The folder that JetStream makes in its `store_dir`."""
_HOST, _CONFIGURATION_FILE = "127.0.0.1", "nats-server.conf"
MAX_SUBSCRIBED_PARTS = 16
"""Maximum tokens in the subject of a subscription, of which the system needs nine."""
_CONFIGURATION: dict[str, Any] = {
    "host": _HOST,
    "server_name": "ioa",
    "http": f"{_HOST}:-1",
    "max_payload": 1024 * 1024,
    "max_pending": 8 * 1024 * 1024,  # unread bytes, and seconds of a write, at which a slow client is disconnected
    "write_deadline": "2s",
    "max_sub_tokens": MAX_SUBSCRIBED_PARTS,
    "ping_interval": "3s",  # a client that hangs leaves its queue groups within 9 s
    "ping_max": 2,
    "logfile_size_limit": 16 * 1024 * 1024,
    "logfile_max_num": 2,
}
_POLL_SECONDS = 0.01
_STOP_GRACE_SECONDS, _HEALTH_SECONDS = 10.0, 2.0
_STOPS_WITHIN, _HOLDER_PATIENCE = timedelta(seconds=45), timedelta(seconds=3)
"""How long a system that is stopping may hold its folder while it drains, and may take to note that it is stopping."""
_WRITE_ERROR = "write error"
_PATH_BYTES = 16

_log = structlog.get_logger(__name__)


@dataclass(eq=False)
class NatsServer:
    """A nats-server process that `open_nats_server` started. It may be stopped and started again, on the same port and folder."""

    _binary: Path
    _folder: Path
    _port: int | None
    _start_timeout: timedelta
    _lock: FolderLock
    _configuration: dict[str, Any]
    _process: asyncio.subprocess.Process | None = None
    _monitor: str = ""
    _store: int | None = None

    @property
    def log_path(self) -> Path:
        """The server's log."""
        return self._folder / "nats-server.log"

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://{_HOST}:{self._port}"

    @property
    def lock_descriptor(self) -> int:
        """Descriptor of the folder's lock: a process that inherits it holds the folder until it ends."""
        return self._lock.descriptor

    @property
    def pid(self) -> int:
        """The process id of the server that runs now or ran last."""
        return self._running.pid

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def start(self) -> None:
        """Start the server and return once it answers and JetStream runs.

        Raises:
            ConflictError: Another program listens on the port.
            UnavailableError: The server ended or did not answer in time; the message contains the last line of its log.
        """
        log_start = await asyncio.to_thread(self._write_configuration)
        self._process = await self._spawn()
        timeout = self._start_timeout.total_seconds()
        try:
            async with fail_after(timeout):
                await self._until_ready(log_start)
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                message = f"nats-server did not answer within {timeout:g} s."
                raise UnavailableError(message, hint=f"Its log: {self.log_path}") from None
            raise

    def note_stopping(self) -> None:
        """Write into the folder's lock that the system is stopping: its successor waits for the lock instead of failing."""
        self._lock.note_stopping(_STOPS_WITHIN)

    async def stop(self) -> None:
        """End the server: SIGTERM, at which it flushes and closes its files, then SIGKILL after ten seconds."""
        if self._process is not None:
            await stop_process(self._process, _STOP_GRACE_SECONDS)

    async def wait(self) -> int:
        """Wait until the server has ended and return its exit code (negative: the signal)."""
        return await self._running.wait()

    async def write_error(self) -> str | None:
        """Return why the server does not store durably; None if it does, or does not answer.

        After a failed write, as on a full disk, nats-server 2.15 rejects all messages of the stream until its restart. After its
        folder was removed, it acknowledges messages and returns them from files that no longer have a name.
        """
        store = self._folder / STORE
        if self._store is not None and await asyncio.to_thread(_inode, store) != self._store:
            return f"the folder {store} was removed"
        error = await asyncio.to_thread(_error_at, f"{self._monitor}{self._configuration['http_base_path']}/healthz")
        return error if _WRITE_ERROR in error else None

    def _write_configuration(self) -> int:
        """Write the configuration, remove the ports files of earlier servers, and return the size of the log."""
        for stale in self._folder.glob("*.ports"):
            stale.unlink()
        configuration = self._configuration | {"port": -1 if self._port is None else self._port}
        # nats-server reads JSON as a configuration file.
        (self._folder / _CONFIGURATION_FILE).write_text(json.dumps(configuration, indent=2, ensure_ascii=False) + "\n", "utf-8")
        return self.log_path.stat().st_size if self.log_path.exists() else 0

    async def _spawn(self) -> asyncio.subprocess.Process:
        command = ending_with_parent([str(self._binary), "-c", str(self._folder / _CONFIGURATION_FILE)], Signals.SIGTERM)
        with self.log_path.open("ab") as log:
            # Its own session, so that Ctrl-C in a terminal reaches only the starter, which drains before it stops the server.
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(self._lock.descriptor,),
            )

    async def _until_ready(self, log_start: int) -> None:
        while True:
            if self._running.returncode is not None:
                raise await asyncio.to_thread(self._start_error, log_start)
            with suppress(OSError, json.JSONDecodeError):  # the ports file is not complete, or the server does not listen
                ports = await asyncio.to_thread((self._folder / f"{self._binary.name}_{self.pid}.ports").read_text)
                urls = json.loads(ports)
                port = int(urls["nats"][0].rpartition(":")[2])
                if (await _greeting(port)).get("jetstream"):
                    self._port, self._monitor = port, urls["monitoring"][0]
                    self._store = await asyncio.to_thread(_inode, self._folder / STORE)
                    return
            await asyncio.sleep(_POLL_SECONDS)

    def _start_error(self, log_start: int) -> ConflictError | UnavailableError:
        """Return why the server ended, from its log lines since the start."""
        text = self.log_path.read_bytes()[log_start:].decode("utf-8", "replace")
        if "address already in use" in text:
            hint = "Choose another port, or stop that program."
            return ConflictError(f"Port {self._port} on {_HOST} is in use by another program.", hint=hint)
        lines = [line for line in text.splitlines() if line.strip()] or ["its log is empty"]
        reason = next((line.partition("[FTL] ")[2] for line in lines if "[FTL] " in line), lines[-1])
        return UnavailableError(f"nats-server did not start: {reason.rstrip('.')}.", hint=f"Its log: {self.log_path}")


def find_nats_server() -> Path:
    """Find the executable of the extra `server`, otherwise an executable on PATH."""
    found = shutil.which("nats-server", path=sysconfig.get_path("scripts")) or shutil.which("nats-server")
    if found is None:
        raise MissingExtraError.of("nats-server", "server")
    return Path(found).resolve()


@asynccontextmanager
async def open_nats_server(
    data_dir: Path,
    port: int | None,
    *,
    start_timeout: timedelta = timedelta(seconds=30),
    authorization: str = "{}",
    start: bool = True,
) -> AsyncIterator[NatsServer]:
    """Run a nats-server with JetStream on `data_dir` until the block ends. The next server on the folder has what this one stored.

    Every acknowledged write survives the death of the process; a power failure may lose the writes of the last second.

    Args:
        data_dir: Folder of the streams, the configuration and the log; created if it is missing. One server at a time.
        port: None: a free port.
        start_timeout: Includes the recovery of the stored data.
        authorization: Accounts and permissions as JSON, rendered by `ioa.adapters.nats.auth.server_config`; may contain any other
            option of nats-server. Without accounts everything is permitted.
        start: Whether to start the server. False only locks the folder; `NatsServer.start` starts it.

    Raises:
        MissingExtraError: There is no nats-server.
        ConflictError: The port or the folder is in use.
        UnavailableError: The folder cannot be written, or the server did not start; the message contains the last line of its log.
    """
    executable, data_dir = await asyncio.to_thread(find_nats_server), await asyncio.to_thread(data_dir.absolute)
    configuration = _CONFIGURATION | {
        "http_base_path": f"/{secrets.token_hex(_PATH_BYTES)}",
        "ports_file_dir": str(data_dir),
        "pid_file": str(data_dir / "nats.pid"),
        "log_file": str(data_dir / "nats-server.log"),
        "jetstream": {"store_dir": str(data_dir), "sync_interval": "1s"},
    }
    session = new_session(SystemClock(), RandomIds())
    async with locked_folder(data_dir, session, patience=_HOLDER_PATIENCE) as lock:
        server = NatsServer(executable, data_dir, port, start_timeout, lock, configuration | json.loads(authorization))
        try:
            if start:
                await server.start()
            yield server
        finally:
            await server.stop()


async def _greeting(port: int) -> dict[str, Any]:
    """Connect and return the server's description of itself (its `INFO` line), empty if it sends none."""
    reader, writer = await asyncio.open_connection(_HOST, port)
    try:
        line = await reader.readline()
    finally:
        writer.close()
    return dict(json.loads(line.removeprefix(b"INFO "))) if line.startswith(b"INFO ") else {}


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _error_at(url: str) -> str:
    """Request a page of the monitoring; return its text if the status is an error, otherwise an empty text."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=_HEALTH_SECONDS):
            return ""
    except HTTPError as error:
        return error.read().decode("utf-8", "replace")
    except OSError:
        return ""
