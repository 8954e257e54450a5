"""Services as processes of their own, for tests that kill them: started, waited for, killed, and their logs shown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nats.aio.client import Client

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.local.local_system import Program
from tests.rig.forks import ChildProcess, ForkServer
from tests.rig.pings import replicas_answering

_STOP_GRACE = timedelta(seconds=10)
_TAIL_LINES = 40


@dataclass(frozen=True)
class Replica:
    """One running process of a service."""

    module: str
    child: ChildProcess
    log_path: Path

    @property
    def pid(self) -> int:
        """The process id."""
        return self.child.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return not self.child.has_ended

    async def kill(self) -> None:
        """End the process by SIGKILL, as a crash would, and return once it is gone."""
        if self.is_running:
            os.kill(self.pid, signal.SIGKILL)
        await self.child.wait()

    async def stop(self) -> int:
        """End the process by SIGTERM and return its exit code.

        Raises:
            TimeoutError: It did not end in time; it was killed.
        """
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_GRACE.total_seconds()):
                return await self.child.wait()
        except TimeoutError:
            await self.kill()
            raise


class ServiceProcesses:
    """Services on one NATS server. Made by `open_services`."""

    def __init__(self, client: Client, forks: ForkServer, logs: Path, env: Mapping[str, str]) -> None:
        self._client = client
        self._forks = forks
        self._logs = logs
        self._env = env
        self._started: list[Replica] = []

    async def start(self, *modules: str, replicas: int = 2, within: timedelta = timedelta(seconds=30)) -> None:
        """Start services such as `ioa_router` and return once every replica of each answers a ping (NATS ADR-32).

        Raises:
            AssertionError: A replica ended, or did not answer in time; the message holds the end of its log.
        """
        before = {module: len(self.running(module)) for module in modules}
        for module in modules:
            for _ in range(replicas):
                self._started.append(await self._spawn(module))
        for module in modules:
            await self.answering(module, before[module] + replicas, within=within)

    async def answering(self, module: str, replicas: int, *, within: timedelta = timedelta(seconds=30)) -> None:
        """Wait until so many replicas of a service answer.

        Raises:
            AssertionError: They do not.
        """
        deadline = asyncio.get_running_loop().time() + within.total_seconds()
        while (found := await replicas_answering(self._client, module)) != replicas:
            ended = [replica for replica in self._started if replica.module == module and not replica.is_running]
            died = [replica for replica in ended if await replica.child.wait() not in (0, -signal.SIGKILL, -signal.SIGTERM)]
            if died or asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"{found} replicas of {module} answer, not {replicas}.\n{self.logs()}")

    def running(self, module: str) -> list[Replica]:
        """The replicas of a service that run, oldest first."""
        return [replica for replica in self._started if replica.module == module and replica.is_running]

    async def kill_all(self) -> None:
        """Leave nothing behind."""
        for replica in self._started:
            await replica.child.stop(0)

    def logs(self) -> str:
        """The end of every process's log."""
        shown = []
        for replica in self._started:
            lines = replica.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
            shown.append("\n".join([f"--- {replica.log_path.name} ({'runs' if replica.is_running else 'ended'}) ---", *lines]))
        return "\n".join(shown)

    async def _spawn(self, module: str) -> Replica:
        name = f"{module}-{len(self._started)}"
        # Discovery removes an index in a folder of its own choice, which a process that is killed does not.
        program = Program(name, module, env={"IOA_VECTORS_FOLDER": str(self._logs / f"{name}-index"), **self._env})
        return Replica(module, await self._forks.start(program), self._forks.log_of(program))


@asynccontextmanager
async def open_services(
    nats_url: str, logs: Path, env: Mapping[str, str] | None = None, *, show_logs: bool = True
) -> AsyncIterator[ServiceProcesses]:
    """Be ready to start services on a NATS server; whatever still runs at the end is killed.

    Args:
        nats_url: Where NATS is.
        logs: A folder for the processes' output.
        env: Settings for every service, such as `IOA_LEASE`; the URL is set already.
        show_logs: Write the end of every log to standard output when all is over.
    """
    await asyncio.to_thread(logs.mkdir, parents=True, exist_ok=True)
    told = {"IOA_NATS_URL": nats_url, **(env or {})}
    async with open_connection(NatsSettings(nats_url, "service-processes")) as client:
        services = ServiceProcesses(client, ForkServer(logs, {}), logs, told)
        try:
            yield services
        finally:
            await services.kill_all()
            if show_logs:
                sys.stdout.write(services.logs() + "\n")
