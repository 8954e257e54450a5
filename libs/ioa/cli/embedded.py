"""The whole system on one machine: nats-server, the four services and a pool of agents, each a process of its own.

It is the same code with the same subjects as on a cluster. A process that dies is started again; the system ends when its
starter does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import structlog

from ioa.adapters.nats_connection import NatsSettings
from ioa.adapters.nats_server import NatsServer, open_nats_server
from ioa.cli.failures import ExitCode
from ioa.cli.nursery import Nursery, Program
from ioa.cli.pool import Pool
from ioa.errors import UnavailableError
from ioa.runtime.process import background
from ioa.runtime.system import System, open_system

SERVICES = ("ioa_registry", "ioa_discovery", "ioa_groups", "ioa_router")

_PRELOADED = ("ioa.cli.main", "ioa.cli.joining", "ioa_registry.__main__", "ioa_groups.__main__", "ioa_router.__main__")
"""What the processes have in common; discovery's own libraries are its alone."""

_START_PATIENCE = timedelta(seconds=60)
_STOP_GRACE = timedelta(seconds=12)
_POLL_SECONDS = 0.1
_FIRST_RESTART_SECONDS = 0.2
_LONGEST_RESTART_SECONDS = 10.0
_HEALTHY_AFTER_SECONDS = 10.0
_ATTEMPTS = 5
_LAST_LINES_BYTES = 2_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class EmbeddedSystem:
    """A system that runs, and the processes it is made of, by name."""

    url: str
    pids: Mapping[str, int]


@asynccontextmanager
async def open_embedded_system(data_dir: Path, port: int | None, pool: Pool) -> AsyncIterator[EmbeddedSystem]:
    """Start everything and yield when every part answers and as many agents as the pool has can be found; stop it all on leaving.

    Args:
        data_dir: Holds all that is durable. Started again on the same folder, the system carries on.
        port: Where nats-server listens; None picks a free one.
        pool: The agents to run.

    Raises:
        UnavailableError: A part did not start; the message shows the end of its log.
        ConflictError: The folder or the port is in use.
        MissingExtraError: nats-server is not installed.
    """
    data_dir = await asyncio.to_thread(data_dir.absolute)
    async with open_nats_server(data_dir / "nats", port) as server:
        programs = [*_services(data_dir), *_agents(pool, data_dir)]
        env = {"IOA_NATS_URL": server.url}
        supervisor = _Supervisor(data_dir / "logs", env)
        pids: dict[str, int] = {"nats-server": server.pid}
        async with background(_keep_server(server, pids)), supervisor.keep(programs, pids):
            await supervisor.until_ready(server.url, sum(agent.replicas for agent in pool.agents))
            yield EmbeddedSystem(server.url, pids)


async def _keep_server(server: NatsServer, pids: dict[str, int]) -> None:
    """Start nats-server again whenever it dies, on the same port and folder; everybody reconnects by themselves."""
    while True:
        code = await server.wait()
        _log.warning("process_died", name="nats-server", code=code)
        await server.start()
        pids["nats-server"] = server.pid


def _services(data_dir: Path) -> list[Program]:
    return [
        Program(name, name, env={"IOA_INDEX_FOLDER": str(data_dir / "index")} if name == "ioa_discovery" else None)
        for name in SERVICES
    ]


def _agents(pool: Pool, data_dir: Path) -> list[Program]:
    programs = []
    for agent in pool.agents:
        for replica in range(agent.replicas):
            numbered = ["--replica", str(replica)] if agent.replicas > 1 else []
            source, _, attribute = agent.target.rpartition(":")
            name = "-".join(["agent", Path(source).stem, attribute, *numbered[1:]])
            env = {"IOA_AGENT_DATA": str(data_dir / "agents")} | agent.env
            programs.append(Program(name, "ioa.cli", ["agent", "run", agent.target, *numbered], env))
    return programs


class _Supervisor:
    """Keep programs running until the block ends."""

    def __init__(self, logs: Path, env: Mapping[str, str]) -> None:
        self._logs = logs
        self._nursery = Nursery(logs, env, _PRELOADED)
        self._deaths: dict[str, list[int]] = {}

    @asynccontextmanager
    async def keep(self, programs: Sequence[Program], pids: dict[str, int]) -> AsyncIterator[None]:
        """Run programs; those that die are started again, after a pause that grows while they die soon."""
        self._logs.mkdir(parents=True, exist_ok=True)
        async with asyncio.TaskGroup() as group:
            keepers = [group.create_task(self._keep(program, pids)) for program in programs]
            try:
                yield
            finally:
                # Agents first, so that their last reports still find the services.
                agents = [keeper for keeper, program in zip(keepers, programs, strict=True) if program.name not in SERVICES]
                for wave in (agents, keepers):
                    for keeper in wave:
                        keeper.cancel()
                    if wave:
                        await asyncio.wait(wave)

    async def until_ready(self, url: str, agents: int) -> None:
        """Wait until every service answers, enough agents are online, and discovery knows every card."""
        async with open_system(NatsSettings(url, "ioa-up"), patience=_START_PATIENCE) as system:
            try:
                async with asyncio.timeout(_START_PATIENCE.total_seconds()):
                    while not await self._is_ready(system, agents):
                        self._raise_if_failed()
                        await asyncio.sleep(_POLL_SECONDS)
            except TimeoutError:
                raise UnavailableError(
                    f"The system is not ready after {_START_PATIENCE.total_seconds():.0f} s.", hint=f"See {self._logs}."
                ) from None

    async def _is_ready(self, system: System, agents: int) -> bool:
        for service in SERVICES:
            if not await system.answers(service.replace("_", "-")):
                return False
        known = await system.agents(online_only=False)
        online = sum(status.online for status in known)
        return agents <= online and (await system.index_status()).cards >= len(known)

    def _raise_if_failed(self) -> None:
        for name, codes in self._deaths.items():
            # A part of a system that was killed may still be closing what a new one wants to open: give it a few attempts.
            if ExitCode.BAD_USE not in codes and len(codes) < _ATTEMPTS:
                continue
            raise UnavailableError(
                f"{name} ended with code {codes[-1]} while starting:\n{_tail(self._logs / f'{name}.log')}",
                hint=f"Its whole log is {self._logs / name}.log.",
            )

    async def _keep(self, program: Program, pids: dict[str, int]) -> None:
        loop = asyncio.get_running_loop()
        pause = _FIRST_RESTART_SECONDS
        while True:
            started = loop.time()
            process = await self._nursery.start(program)
            pids[program.name] = process.pid
            try:
                code = await process.wait()
            finally:
                await process.stop(_STOP_GRACE.total_seconds())
            self._deaths.setdefault(program.name, []).append(code)
            _log.warning("process_died", name=program.name, code=code)
            pause = _FIRST_RESTART_SECONDS if loop.time() - started > _HEALTHY_AFTER_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_RESTART_SECONDS)


def _tail(path: Path) -> str:
    data = path.read_bytes() if path.exists() else b""
    return data[-_LAST_LINES_BYTES:].decode(errors="replace").strip()
