"""One crowded group beside small goals and goals that only their deadline ends, in a system of processes, and how each fared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from nats.aio.client import Client

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.local.programs import Program
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId
from tests.rig.deadline import eventually
from tests.rig.forks import ForkServer

BIG = tuple(AgentId(f"big-{number}") for number in range(4))
SMALL = (AgentId("small-0"), AgentId("small-1"))
_TURNS = 1_000
_PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True)
class Fared:
    """How a goal went: from its publication to its result, and how long after its deadline that was (negative: before)."""

    result: GoalResult
    seconds: float
    late_seconds: float


@dataclass
class Beside:
    """What went on beside a crowded group. Each list is in the order in which the goals ended."""

    small: list[Fared] = field(default_factory=list)
    stuck: list[Fared] = field(default_factory=list)


class Crowd:
    """Agents that are ready, and a way to give them goals. Made by `open_crowd`."""

    def __init__(self, client: Client) -> None:
        self._system = NatsSystemClient(client)

    async def crowded(self, tasks: int, seconds: float, *, timeout: timedelta) -> Fared:
        """Have one group give out so many tasks, each of which takes so long."""
        return await self._give(f"crowd {tasks} {seconds:g}", BIG[0], timeout)

    async def small(self, number: int, *, timeout: timedelta = timedelta(seconds=60)) -> Fared:
        """Have a group of two say something and do one task at once."""
        return await self._give(f"small {number}", SMALL[0], timeout)

    async def stuck(self, number: int, *, timeout: timedelta = timedelta(seconds=6)) -> Fared:
        """Give a goal that only its deadline ends."""
        return await self._give(f"stuck {number}", SMALL[0], timeout)

    async def beside(self, running: asyncio.Task[Fared], *, every: timedelta, stuck_every: timedelta | None = None) -> Beside:
        """Give small goals, one after the other at fixed times, until a goal has ended; and now and then one that gets stuck."""
        found, loop = Beside(), asyncio.get_running_loop()

        async def one(goal: asyncio.Task[Fared], into: list[Fared]) -> None:
            into.append(await goal)

        async def keep_giving(into: list[Fared], pause: float, *, stuck: bool) -> None:
            start, number = loop.time(), 0
            while not running.done():
                goal = self.stuck(number) if stuck else self.small(number)
                group.create_task(one(group.create_task(goal), into))
                number += 1
                await asyncio.wait([running], timeout=max(0.0, start + number * pause - loop.time()))

        async with asyncio.TaskGroup() as group:
            group.create_task(keep_giving(found.small, every.total_seconds(), stuck=False))
            if stuck_every is not None:
                group.create_task(keep_giving(found.stuck, stuck_every.total_seconds(), stuck=True))
        return found

    async def present(self) -> None:
        """Wait until every agent is online."""

        async def missing() -> set[AgentId]:
            online = {status.card.agent_id for status in await self._system.agents(online_only=True)}
            return {*BIG, *SMALL} - online

        await eventually(missing, until=lambda left: not left, within=_PATIENCE)

    async def _give(self, words: str, leader: AgentId, timeout: timedelta) -> Fared:
        started = time.perf_counter()
        goal_id = await self._system.submit(GoalOrder(goal=words, agent=leader, timeout=timeout.total_seconds(), max_turns=_TURNS))
        result = await self._system.wait_for_result(goal_id)
        seconds = time.perf_counter() - started
        return Fared(result, seconds, seconds - timeout.total_seconds())


@asynccontextmanager
async def open_crowd(client: Client, url: str, folder: Path) -> AsyncIterator[Crowd]:
    """Start the agents, each team in a process of its own, on a system whose services run; stop them at the end."""
    await asyncio.to_thread(folder.mkdir, parents=True)
    forks = ForkServer(folder, {"IOA_NATS_URL": url, "IOA_LOG_LEVEL": "warning"})
    crowd = Crowd(client)
    async with AsyncExitStack() as stack:
        for team in (BIG, SMALL):
            told = {"IOA_AGENT_DATA": str(folder / team[0]), "IOA_TASKS_AT_ONCE": "2000"}
            process = await forks.start(Program(team[0], "tests.rig.crowd_worker", team, told))
            stack.push_async_callback(process.stop, 0)
        await crowd.present()
        yield crowd
