"""The whole system on one machine: nats-server, the four services and a pool of agents, each a process of its own.

It is the same code with the same subjects as on a cluster. A process that dies is started again; the system ends when its
starter does.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from ioa.adapters.nats.auth.roles import CONTROL_PLANE
from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from ioa.adapters.system_folder import USER, make_private, new_password, note_password
from ioa.beside import beside
from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.roster import read_roster
from ioa.local.fork_server import ForkServer, Program
from ioa.local.log_rotation import keep_logs_bounded
from ioa.local.pool import Pool
from ioa.retry import pauses
from ioa.runtime.exit_code import ExitCode
from ioa.runtime.known_settings import refuse_unknown
from ioa.runtime.process import background
from ioa.runtime.service_spec import service_specs
from ioa.runtime.settings import variable
from ioa.telemetry.health import LOOPBACK

_ROSTER = "nats/roster.json"
"""Where among credentials it stands who is let in."""
_PRELOADED = ("ioa.hosting.__main__", "ioa.hosting.agent", "ioa.adapters.nats.inspection", "concurrent.futures.thread", "uvloop")
"""What the processes have in common besides the services that say so. What is not installed is left out."""

_START_PATIENCE = timedelta(seconds=60)
_STOP_GRACE = timedelta(seconds=12)
_POLL_SECONDS = 0.1
_FIRST_RESTART_SECONDS = 0.2
_LONGEST_RESTART_SECONDS = 10.0
_HEALTHY_AFTER_SECONDS = 10.0
_ATTEMPTS = 5
_TOLD_TO_END = (0, -signal.SIGTERM)
_LEAVING_SECONDS = 0.5
"""How much earlier than its starter a process may end when all of them are told to, as systemd and Docker do."""
_LOOK_EVERY_SECONDS = 5.0
_ROOM_BYTES = 16 * 1024 * 1024
_LAST_LINES_BYTES = 2_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class EmbeddedSystem:
    """A system that runs, and the processes it is made of, by name; `metrics_port` and `http_port` are 0 if none was asked for.

    Only who can read its folder is let in.
    """

    url: str
    pids: Mapping[str, int]
    data: Path
    metrics_port: int = 0
    http_port: int = 0

    def nats(self, name: str) -> NatsSettings:
        """Return the settings of a connection to it."""
        return NatsSettings(self.url, name, data=self.data)


@asynccontextmanager
async def open_embedded_system(
    data_dir: Path,
    port: int | None,
    pool: Pool,
    metrics: int | None = None,
    guests: Path | None = None,
    web: int | None = None,
    imported: Sequence[str] = (),
) -> AsyncIterator[EmbeddedSystem]:
    """Start everything and yield when every part answers and as many agents as the pool has can be found; stop it all on leaving.

    Args:
        data_dir: Holds all that is durable, and is its owner's alone. Started again on the same folder, the system carries on.
        port: Where nats-server listens; None picks a free one.
        pool: The agents to run.
        metrics: Where the metrics of all processes are served on this machine; 0 picks a free port, None serves none.
        guests: The folder of credentials by which third parties are let in, made with `--callout`; None lets in nobody else.
        web: Where HTTP is served on this machine; 0 picks a free port, None serves none.
        imported: What the script that this process began with imports: each process that is started runs it again, unless its name
            is `__main__` (see `multiprocessing`), and would have a copy of its own of all that.

    Raises:
        InvalidInputError: A variable of the environment, or of an agent in the pool, is no setting, or is a port for all. Or the
            port for metrics cannot be had, or others may enter the folder, or its system lets in guests and this one does not, or
            the other way round.
        UnavailableError: A part did not start; the message shows the end of its log.
        ConflictError: The folder or the port is in use.
        MissingExtraError: nats-server is not installed.
    """
    data_dir = await asyncio.to_thread(data_dir.absolute)
    http = 0 if web is None else web or await asyncio.to_thread(_free_port)
    entrances = [*([] if guests is None else [_callout(guests)]), *([gateway_program(http)] if http else [])]
    programs = [*_services(data_dir), *entrances, *_agents(pool, data_dir)]
    _refuse_shared_port(os.environ)
    for program in programs:
        refuse_unknown({**os.environ, **(program.env or {})})
    async with AsyncExitStack() as stack:
        sockets: dict[str, Path] = {}
        if metrics is not None:
            # Not in the data folder, whose path may be longer than that of a socket may be.
            sockets = _sockets(programs, Path(stack.enter_context(TemporaryDirectory(prefix="ioa-metrics-"))))
            programs = [
                replace(program, env={**(program.env or {}), variable("metrics_socket"): str(path)})
                for program, path in zip(programs, sockets.values(), strict=True)
            ]
        await asyncio.to_thread(make_private, data_dir)
        await asyncio.to_thread(refuse_other_account, data_dir / "nats", is_open=guests is not None)
        password = new_password()
        asking = await asyncio.to_thread(authorization_of, guests, password)
        env = {variable("data"): str(data_dir)}
        ending = asyncio.Event()
        supervisor = _Supervisor(data_dir / "logs", env, ending, imported)
        async with beside(supervisor.warm_up(), stop=lambda: None):  # imports take as long as the server needs to start
            server = await stack.enter_async_context(open_nats_server(data_dir / "nats", port, authorization=asking))
        served = 0
        if metrics is not None:
            from ioa.local.system_metrics import open_system_metrics  # imports httpx, which most systems do not need

            # After the lock of the folder is held: a system that is stopping uses the port until then.
            served = await stack.enter_async_context(open_system_metrics(metrics, sockets))
        await asyncio.to_thread(note_password, data_dir, server.url, password)
        env[variable("nats_url")] = server.url
        pids: dict[str, int] = {"nats-server": server.pid}
        system = EmbeddedSystem(server.url, pids, data_dir, served, http)
        watching = (keep_server(server, data_dir, pids, ending), keep_logs_bounded(data_dir / "logs"))
        async with background(*watching), supervisor.keep(programs, pids):
            try:
                await supervisor.until_ready(sum(agent.replicas for agent in pool.agents), http)
                yield system
            finally:
                server.note_stopping()


def authorization_of(guests: Path | None, password: str) -> str:
    """Say who is let in: whoever knows the password, as an admin, and guests, if any are, as their tokens say."""
    owner = {"user": USER, "password": password}
    if guests is None:
        return json.dumps({"authorization": owner})
    rendered = json.loads(read_roster((guests / _ROSTER).read_bytes()).render())
    rendered["accounts"][CONTROL_PLANE]["users"].append(owner)
    return json.dumps(rendered)


def refuse_other_account(nats: Path, *, is_open: bool) -> None:
    """Refuse a folder whose streams would not be seen: with guests they are in an account of the control plane's, else in none."""
    plain, control_plane = (nats / "jetstream" / account for account in ("$G", CONTROL_PLANE))
    if (plain if is_open else control_plane).exists():
        raise InvalidInputError(
            f"The system in {nats.parent} was made {'without' if is_open else 'with'} --callout.",
            hint="Start it as it was made, or choose another folder with --data.",
        )


def _sockets(programs: Sequence[Program], folder: Path) -> dict[str, Path]:
    return {program.name.removeprefix("ioa_"): folder / str(number) for number, program in enumerate(programs)}


async def keep_server(server: NatsServer, data_dir: Path, pids: dict[str, int], ending: asyncio.Event) -> None:
    """Start nats-server again whenever it dies, on the same port and folder; everybody reconnects by themselves.

    It is ended, and so started again, when it does not store durably and its disk has room. While the system is `ending`
    it is wanted too, for the last reports, but nobody needs to be told.
    """
    while True:
        async with background(_end_when_stuck(server, data_dir)):
            code = await server.wait()
        if code >= 0:
            await asyncio.sleep(_LEAVING_SECONDS)  # it was told to end, and perhaps so were we
        tell = _log.debug if ending.is_set() else _log.warning
        tell("process_died", name="nats-server", code=code)
        await server.start()
        pids["nats-server"] = server.pid
        tell("process_restarted", name="nats-server", pid=server.pid)


async def _end_when_stuck(server: NatsServer, data_dir: Path) -> None:
    error = None
    while True:
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
        before, error = error, await server.write_error()
        if error is None:
            continue
        if (await asyncio.to_thread(shutil.disk_usage, data_dir)).free >= _ROOM_BYTES:
            _log.warning("nats_server_ended", why="it has stopped storing, and its disk has room", error=error)
            await server.stop()
            return
        if before is None:
            _log.error("disk_full", folder=str(data_dir), error=error, hint="Make room: everybody waits until there is.")


def _refuse_shared_port(environment: Mapping[str, str]) -> None:
    """Refuse what only the first of the processes could have: a port. With 0 each takes a free one."""
    port = environment.get(variable("metrics_port"), "0")
    if port != "0":
        raise InvalidInputError(
            f"{variable('metrics_port')} is {port}, but a system on one machine is many processes, and each would want that port.",
            hint="Unset it and say `ioa up --metrics PORT`, which serves those of all processes on one port.",
        )


def _services(data_dir: Path) -> list[Program]:
    env = {"IOA_VECTORS_FOLDER": str(data_dir / "index")}
    return [Program(spec.package, spec.package, env=env) for spec in service_specs()]


def _callout(guests: Path) -> Program:
    env = {"IOA_CALLOUT_KEYS": str(guests / "callout"), "IOA_CALLOUT_ROSTER": str(guests / _ROSTER)}
    return Program("ioa_authcallout", "ioa_authcallout", env=env)


def gateway_program(port: int) -> Program:
    """Say how HTTP is served: in sessions of this run alone, since others of the machine may take the port when it has ended."""
    return Program("ioa_gateway", "ioa_gateway", env={"IOA_HTTP_PORT": str(port), "IOA_HTTP_RUN": new_password()})


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _agents(pool: Pool, data_dir: Path) -> list[Program]:
    programs = []
    for agent in pool.agents:
        for replica in range(agent.replicas):
            numbered = [str(replica)] if agent.replicas > 1 else []
            source, _, attribute = agent.target.rpartition(":")
            name = "-".join(["agent", Path(source).stem, attribute, *numbered])
            env = {"IOA_AGENT_DATA": str(data_dir / "agents"), variable("left_out"): "; ".join(pool.left_out)} | agent.env
            programs.append(Program(name, "ioa.hosting", [agent.target, *numbered], env))
    return programs


class _Supervisor:
    """Keep programs running until the block ends."""

    def __init__(self, logs: Path, env: Mapping[str, str], ending: asyncio.Event, imported: Sequence[str]) -> None:
        self._logs = logs
        self._ending = ending
        preloaded = [f"{spec.package}.__main__" for spec in service_specs() if spec.is_preloaded]
        self._fork_server = ForkServer(logs, env, (*imported, *_PRELOADED, *preloaded))
        self._deaths: dict[str, list[int]] = {}
        self._began_at_byte: dict[str, int] = {}

    async def warm_up(self) -> None:
        """Import the modules that most programs need."""
        await self._fork_server.warm_up()

    @asynccontextmanager
    async def keep(self, programs: Sequence[Program], pids: dict[str, int]) -> AsyncIterator[None]:
        """Run programs; those that die are started again, after a pause that grows while they die soon."""
        self._logs.mkdir(parents=True, exist_ok=True)
        await self._fork_server.until_orphans_ended()
        async with TaskGroup() as group:
            keepers = [group.create_task(self._keep(program, pids)) for program in programs]
            try:
                yield
            finally:
                self._ending.set()
                # Agents first, so that their last reports still find the services.
                services = {*(spec.package for spec in service_specs()), "ioa_authcallout", "ioa_gateway"}
                agents = [keeper for keeper, program in zip(keepers, programs, strict=True) if program.module not in services]
                for wave in (agents, keepers):
                    for keeper in wave:
                        keeper.cancel()
                    if wave:
                        await asyncio.wait(wave)

    async def until_ready(self, agents: int, http: int) -> None:
        """Wait until every service answers, enough agents are online, discovery knows every card, and HTTP is served, if at all.

        A fork looks, so that this process, which stays, need not import what knows how to ask.
        """
        looker = Program("readiness", "ioa.local.readiness", [str(agents), str(http)])
        looking = await self._fork_server.start(looker)
        try:
            async with fail_after(_START_PATIENCE.total_seconds()):
                while not looking.has_ended:
                    self._raise_if_failed()
                    await asyncio.sleep(_POLL_SECONDS)
                code = await looking.wait()
        except TimeoutError:
            raise UnavailableError(
                f"The system is not ready after {_START_PATIENCE.total_seconds():.0f} s.", hint=f"See {self._logs}."
            ) from None
        finally:
            await looking.stop(_STOP_GRACE.total_seconds())
        if code:
            log = self._fork_server.log_of(looker)
            raise UnavailableError(f"Nobody could tell whether the system is ready (code {code}).", hint=f"See {log}.")

    def _raise_if_failed(self) -> None:
        for name, codes in self._deaths.items():
            # A part of a system that was killed may still be closing what a new one wants to open: give it a few attempts.
            if ExitCode.BAD_USE not in codes and len(codes) < _ATTEMPTS:
                continue
            log = self._logs / f"{name}.log"
            raise UnavailableError(
                f"{name} ended with code {codes[-1]} while starting:\n{_tail(log, self._began_at_byte[name])}",
                hint=f"Its whole log is {log}.",
            )

    async def _keep(self, program: Program, pids: dict[str, int]) -> None:
        loop = asyncio.get_running_loop()
        pause = pauses(_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS)
        while True:
            started = loop.time()
            self._began_at_byte[program.name] = await asyncio.to_thread(_size, self._fork_server.log_of(program))
            process = await self._fork_server.start(program)
            pids[program.name] = process.pid
            if program.name in self._deaths:
                _log.warning("process_restarted", name=program.name, pid=process.pid)
            try:
                code = await process.wait()
            finally:
                await process.stop(_STOP_GRACE.total_seconds())
            if code in _TOLD_TO_END:
                await asyncio.sleep(_LEAVING_SECONDS)  # perhaps so were we, and it has only ended first
                if self._ending.is_set():
                    return
            self._deaths.setdefault(program.name, []).append(code)
            _log.warning("process_died", name=program.name, code=code)
            if loop.time() - started > _HEALTHY_AFTER_SECONDS:
                pause = pauses(_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS)
            await asyncio.sleep(next(pause))


def _tail(path: Path, since: int) -> str:
    """Return the end of what a process wrote since it was started last, at this byte of a log that may be older."""
    data = path.read_bytes() if path.exists() else b""
    written = data[since:] if since <= len(data) else data  # else somebody has begun the log anew
    return written[-_LAST_LINES_BYTES:].decode(errors="replace").strip() or "It wrote nothing."


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
