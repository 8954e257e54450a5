"""The whole system on one machine: nats-server, one process for all services, and the processes of the agents.

It has the same code and the same subjects as a cluster. A process that dies is started again; the processes end with their starter.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING

import structlog

from ioa import distribution
from ioa.adapters.child_processes import ending_with_parent, stop_process
from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from ioa.adapters.system_folder import USER, make_private, new_password, note_password, remove_password
from ioa.concurrency import TaskGroup, beside, fail_after
from ioa.errors import InvalidInputError, UnavailableError
from ioa.local.pool import Pool
from ioa.retry import pauses
from ioa.runtime.exit_code import ExitCode
from ioa.runtime.known_settings import LOOPBACK, refuse_unknown, variable

if TYPE_CHECKING:
    from ioa.adapters.nats.wire.connection import NatsSettings

SERVICES, AGENTS = "services", "agents"
"""Names of the two shared processes."""

_START_PATIENCE = timedelta(seconds=60)
_STOP_GRACE = timedelta(seconds=12)
_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS = 0.5, 10.0
_HEALTHY_AFTER_SECONDS = 10.0
_ATTEMPTS = 5
_LEAVING_SECONDS = 0.5
"""How much earlier than its starter a process may end when both receive SIGTERM, as from systemd and Docker."""
_CHECK_INTERVAL_SECONDS = 5.0
_ROOM_BYTES = 16 * 1024 * 1024
_LAST_LINES_BYTES = 2_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class EmbeddedSystem:
    """A running system. Only a user that can read its folder may connect.

    Attributes:
        url: Address of nats-server.
        pids: Process ids by name.
        data: The folder.
        metrics: URLs of the processes' metrics by name; empty if none are served.
        http_port: Port of the gateway; 0 if there is none.
    """

    url: str
    pids: Mapping[str, int]
    data: Path
    metrics: Mapping[str, str]
    http_port: int = 0

    def nats(self, name: str) -> NatsSettings:
        """Return the settings of a connection to it."""
        from ioa.adapters.nats.wire.connection import NatsSettings  # the services start before it is imported

        return NatsSettings(self.url, name, data=self.data)


@asynccontextmanager
async def open_embedded_system(
    data_dir: Path,
    port: int | None,
    pool: Pool,
    metrics: int | None = None,
    web: int | None = None,
) -> AsyncIterator[EmbeddedSystem]:
    """Start everything; yield when every service answers and all agents of the pool are found; stop everything at the end.

    Args:
        data_dir: Folder of everything durable, which only its owner may enter. On the same folder, the next system continues.
        port: Port of nats-server; None picks a free one.
        pool: The agents to run.
        metrics: Port of the services' metrics on this machine, 0: a free port. Each process of agents takes a free port. None:
            no process serves metrics.
        web: Port of the gateway on this machine; 0 picks a free one, None starts no gateway.

    Raises:
        InvalidInputError: A variable of the environment or of an agent is no setting, or is a port for all processes. Or other
            users may enter the folder.
        UnavailableError: A process did not start; the message contains the end of its log.
        ConflictError: The folder or the port is in use.
        MissingExtraError: nats-server is not installed.
    """
    data_dir, metrics_port = data_dir.absolute(), variable("metrics_port")  # noqa: ASYNC240 - looks at no file
    if (shared := os.environ.get(metrics_port, "0")) != "0":
        message = f"{metrics_port} is {shared}, but a system on one machine is many processes, and each would want that port."
        raise InvalidInputError(message, hint="Unset it and use `ioa up --metrics PORT`.")
    http = 0 if web is None else web or _free_port()
    programs = [_services(data_dir, pool, http), *_agents(pool, data_dir)]
    for program in programs:
        refuse_unknown({**os.environ, **program.env})
    urls: dict[str, str] = {}
    if metrics is not None:
        for one in programs:
            own = metrics if metrics and one.name == SERVICES else _free_port()
            one.env[metrics_port] = str(own)
            urls[one.name] = f"http://{LOOPBACK}:{own}/metrics"
    await asyncio.to_thread(make_private, data_dir)
    password = new_password()
    authorization = json.dumps({"authorization": {"user": USER, "password": password}})
    nats = open_nats_server(data_dir / "nats", port or _free_port(), authorization=authorization, start=False)
    async with nats as server:
        await asyncio.to_thread(note_password, data_dir, server.url, password)
        env = {**os.environ, variable("data"): str(data_dir), variable("nats_url"): server.url}
        supervisor = _Supervisor(data_dir / "logs", env, server.lock_descriptor)
        try:
            async with supervisor.keep(programs):
                await server.start()  # while the programs are loaded
                async with beside(keep_server(server, data_dir, supervisor.pids, supervisor.ending)):
                    try:
                        await supervisor.until_ready()
                        yield EmbeddedSystem(server.url, supervisor.pids, data_dir, urls, http)
                    finally:
                        server.note_stopping()
        finally:
            await asyncio.to_thread(remove_password, data_dir)


async def keep_server(server: NatsServer, data_dir: Path, pids: dict[str, int], ending: asyncio.Event) -> None:
    """Start nats-server again when it ends, on the same port and folder, until cancelled. Clients reconnect.

    A server that does not store durably although its disk has space is ended, too. While the system is `ending`, the server is
    needed for the last reports, and its restart is not logged as a warning.
    """
    while True:
        pids["nats-server"] = server.pid
        async with beside(_end_when_stuck(server, data_dir)):
            code = await server.wait()
        if code >= 0:
            await asyncio.sleep(_LEAVING_SECONDS)  # perhaps this process receives SIGTERM, too
        log = _log.debug if ending.is_set() else _log.warning
        log("process_died", name="nats-server", code=code)
        await server.start()
        log("process_restarted", name="nats-server", pid=server.pid)


async def _end_when_stuck(server: NatsServer, data_dir: Path) -> None:
    error = None
    while True:
        await asyncio.sleep(_CHECK_INTERVAL_SECONDS)
        before, error = error, await server.write_error()
        if error is None:
            continue
        if (await asyncio.to_thread(shutil.disk_usage, data_dir)).free >= _ROOM_BYTES:
            _log.warning("nats_server_ended", why="it has stopped storing, and its disk has room", error=error)
            await server.stop()
            return
        if before is None:
            _log.error("disk_full", folder=str(data_dir), error=error, hint="Free some space: no goal continues before.")


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _services(data_dir: Path, pool: Pool, http: int) -> Program:
    agents, packages = sum(agent.replicas for agent in pool.agents), [name.replace("-", "_") for name in distribution.SERVICES]
    env = {"IOA_VECTORS_FOLDER": str(data_dir / "index")}
    if http:
        packages.append("ioa_gateway")
        env |= gateway_environment(http)
    return Program(SERVICES, "ioa.local.services", [str(agents), str(http), *packages], env)


def gateway_environment(port: int) -> dict[str, str]:
    """Return the gateway's settings. Its sessions are valid for this run only: later, another user may have the port."""
    return {"IOA_HTTP_PORT": str(port), "IOA_HTTP_RUN": new_password()}


def _agents(pool: Pool, data_dir: Path) -> Iterator[Program]:
    """Yield the process of the agents that share one, and the processes of the others."""
    common = {"IOA_AGENT_DATA": str(data_dir / "agents")}
    shared = [agent.target for agent in pool.agents if not agent.has_own_process for _ in range(agent.replicas)]
    if shared:
        yield Program(AGENTS, "ioa.hosting", shared, common)
    for agent in pool.agents:
        source, _, attribute = agent.target.rpartition(":")
        for replica in range(agent.replicas if agent.has_own_process else 0):
            name, env = f"agent-{Path(source).stem}-{attribute}", common | agent.env
            if agent.replicas > 1:
                name, env = f"{name}-{replica}", env | {"IOA_REPLICA": str(replica)}
            yield Program(name, "ioa.hosting", [agent.target], env)


@dataclass(frozen=True)
class Program:
    """A Python module to run as a process. Its output goes to `<logs>/<name>.log`."""

    name: str
    module: str
    arguments: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)


async def start_program(
    program: Program, log: Path, env: Mapping[str, str], inherited: Sequence[int] = (), *, reports: bool = False
) -> Process:
    """Start a program. It ends with this process, also if this process is killed (Linux).

    Args:
        program: The program.
        log: File for its output.
        env: Its environment.
        inherited: Descriptors that stay open in it.
        reports: Whether its standard output is a pipe instead.
    """
    command = [sys.executable, "-P", "-m", program.module, *program.arguments]
    with log.open("ab") as output:
        # Its own session, so that Ctrl-C in a terminal reaches only the starter, which drains before it stops the others.
        return await asyncio.create_subprocess_exec(
            *ending_with_parent(command, Signals.SIGKILL),
            stdin=DEVNULL,
            stdout=PIPE if reports else output,
            stderr=output,
            env=dict(env),
            start_new_session=True,
            pass_fds=inherited,
        )


@dataclass
class _Supervisor:
    """Keep programs running until the block ends.

    Attributes:
        logs: Folder of their logs.
        env: Their environment.
        lock: Descriptor of the lock of the system's folder. The programs inherit it, so that the next system waits for their end.
        pids: Process ids by name.
        ending: Set when the system stops.
    """

    logs: Path
    env: Mapping[str, str]
    lock: int
    pids: dict[str, int] = field(default_factory=dict)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the services report that all is ready, and when a program has died."""
    _is_ready: bool = False
    _deaths: dict[str, list[int]] = field(default_factory=dict)
    _log_starts: dict[str, int] = field(default_factory=dict)
    """Size of each program's log when the program was started last."""

    @asynccontextmanager
    async def keep(self, programs: Sequence[Program]) -> AsyncIterator[None]:
        """Run programs; a program that dies is started again, after a pause that grows while it dies soon."""
        self.logs.mkdir(parents=True, exist_ok=True)
        async with TaskGroup() as group:
            services, *agents = [group.create_task(self._keep(program)) for program in programs]
            try:
                yield
            finally:
                self.ending.set()
                for wave in (agents, [services]):  # agents first, so that their last reports still find the services
                    for keeper in wave:
                        keeper.cancel()
                    if wave:
                        await asyncio.wait(wave)

    async def until_ready(self) -> None:
        """Wait until the services report that all is ready.

        Raises:
            UnavailableError: A program cannot start, or it takes too long.
        """
        seconds = _START_PATIENCE.total_seconds()
        try:
            async with fail_after(seconds):
                while not self._is_ready:
                    await self._changed.wait()
                    self._changed.clear()
                    self._raise_if_failed()
        except TimeoutError:
            raise UnavailableError(f"The system is not ready after {seconds:.0f} s.", hint=f"See {self.logs}.") from None

    def _raise_if_failed(self) -> None:
        for name, codes in self._deaths.items():
            # A part of a system that was killed may still be closing what a new one wants to open: give it a few attempts.
            if ExitCode.BAD_USE in codes or len(codes) >= _ATTEMPTS:
                log = self.logs / f"{name}.log"
                last = log.read_bytes()[self._log_starts[name] :][-_LAST_LINES_BYTES:].decode(errors="replace").strip()
                message = f"{name} ended with code {codes[-1]} while starting:\n{last or 'It wrote nothing.'}"
                raise UnavailableError(message, hint=f"Its whole log is {log}.")

    async def _keep(self, program: Program) -> None:
        loop, name, log = asyncio.get_running_loop(), program.name, self.logs / f"{program.name}.log"
        pause = pauses(_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS)
        while True:
            started = loop.time()
            self._log_starts[name] = log.stat().st_size if log.exists() else 0
            process = await start_program(program, log, {**self.env, **program.env}, [self.lock], reports=name == SERVICES)
            self.pids[name] = process.pid
            if name in self._deaths:
                _log.warning("process_restarted", name=name, pid=process.pid)
            try:
                while process.stdout is not None and (line := await process.stdout.readline()):
                    if line == b"ready\n":
                        self._is_ready = True
                        self._changed.set()
                code = await process.wait()
            finally:
                await stop_process(process, _STOP_GRACE.total_seconds())
            self._deaths.setdefault(name, []).append(code)
            self._changed.set()
            if loop.time() - started > _HEALTHY_AFTER_SECONDS:
                pause = pauses(_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS)
            await asyncio.sleep(next(pause))
            if self.ending.is_set():  # SIGTERM reached all processes, as from systemd and Docker
                return
            _log.warning("process_died", name=name, code=code)
