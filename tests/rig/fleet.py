"""A whole system of processes under load, to be killed one by one: control plane, agents, and goals for them.

All processes are forks of one that has imported everything, so that a system starts, and a killed process is back, in a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.wire.connection import Connection, NatsSettings, open_connection
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.adapters.system_clock import SystemClock
from ioa.agent.send import until_answered
from ioa.client.seat import PersonReply, PersonSeat
from ioa.client.waiting import Awaited
from ioa.errors import ConflictError, NotFoundError, UnavailableError
from ioa.group.requests import CancelGoal
from ioa.local.local_system import Program
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, AgentId, GoalId
from ioa.protocol.registry import Acknowledged, Agents, ListAgents
from tests.rig.deadline import eventually
from tests.rig.evidence import collect, wait_for_rest, without_result
from tests.rig.forks import ChildProcess, ForkServer
from tests.rig.load_brain import PERSON, TEAMS
from tests.rig.load_worker import Notes, WitnessedNetwork, environment_of
from tests.rig.log_checker import Absence, Evidence
from tests.rig.oracle import QUICK_KINDS, answer_to
from tests.rig.pings import replicas_answering
from tests.rig.standstill import freeze, thaw

ROUTERS, GROUPS, REGISTRIES = ("router-0", "router-1"), ("groups-0", "groups-1"), ("registry-0", "registry-1")
DISCOVERY = "discovery-0"
CONTROL_PLANE = (*ROUTERS, *GROUPS, *REGISTRIES)
WORKERS = ("worker-0", "worker-1")
ROSTER = tuple(AgentId(f"load-{number}") for number in range(6))

_STOP_GRACE_SECONDS = 15.0
_LOAD_WORKER = "tests.rig.load_worker"
_PATIENCE = timedelta(seconds=60)
_LOOKS_AFTER_SECONDS, _AWAY = (0.1, 0.8), 0.3
"""How often a person looks whether something is up to it, and which part of that it leaves alone at first."""


class Fleet:
    """Processes by name: `router-0`, `groups-1`, `worker-0` … Made by `open_fleet`."""

    def __init__(
        self, client: Connection, forks: ForkServer, folder: Path, env: Mapping[str, str], credentials: Path | None = None
    ) -> None:
        self.client = client
        self._forks = forks
        self._folder = folder
        self._env = env
        self._credentials = credentials
        self._running: dict[str, ChildProcess] = {}
        self._forgetful: set[AgentId] = set()
        self._locks: dict[str, list[sqlite3.Connection]] = {}
        self._published: dict[GoalId, bytes] = {}
        self._texts: dict[GoalId, str] = {}
        self._away: dict[AgentId, datetime] = {}
        self._absences: list[Absence] = []
        self.goals: list[GoalId] = []
        self._lost: set[GoalId] = set()

    async def start(self, *names: str, fault_point: str | None = None, env: Mapping[str, str] | None = None) -> None:
        """Start processes; `fault_point` is where they are to die (see `ioa.telemetry.fault_points`)."""
        for name in names:
            module, told = self._program(name)
            told |= {**self._env, **(env or {})} | ({"FAULT_POINT": fault_point} if fault_point else {})
            if module != _LOAD_WORKER:  # a service rejects settings that it does not know
                told = {name: value for name, value in told.items() if not name.startswith("IOA_LOAD_")}
            arguments = (str(self._clock_of(name)), module)
            self._running[name] = await self._forks.start(Program(name, "tests.rig.skewed_process", arguments, told))
            self._returned(name)
            if fault_point:
                self._left(name)  # it may die at any time from now on

    async def kill(self, name: str) -> None:
        """End a process by SIGKILL, by its own pid, and return once it is gone."""
        self._left(name)
        os.kill(self._running[name].pid, signal.SIGKILL)
        await self.died(name)

    def freeze(self, name: str) -> None:
        """Stop a process without ending it: to the others it is cut off, while its connections stay open."""
        self._left(name)
        freeze(self.pid(name))

    def thaw(self, name: str) -> None:
        """Let a frozen process go on; one that was killed meanwhile stays dead."""
        if self.is_running(name):
            thaw(self.pid(name))
            self._returned(name)

    def set_clock(self, name: str, ahead: timedelta) -> None:
        """Set the clock of a process, as it is or as it will be started; zero sets it right."""
        changed = self._clock_of(name).with_suffix(".new")
        changed.write_text(str(ahead.total_seconds()))
        changed.replace(self._clock_of(name))

    async def died(self, name: str) -> int:
        """Wait until a process has ended and return its exit code (negative: the signal)."""
        return await self._running[name].wait()

    async def die_under_load(self, name: str, fault_point: str, *, seed: int, goals: int = 10) -> int:
        """Start a process anew so that it dies at a fault point, give it goals until it has, and return its exit code.

        So many goals are open that it always has something to do, and no more: all of them have to end before a test does.

        Raises:
            AssertionError: It never gets there.
        """
        if self.is_running(name):
            await self.kill(name)
        await self.start(name, fault_point=fault_point)
        load = seed

        async def died_or_short_of_goals() -> bool:
            nonlocal load
            if not self.has_died(name) and len(await without_result(self.client, self.goals)) < goals:
                await self.publish_mix(goals, load)
                load += 1_000
            return self.has_died(name)

        try:
            await eventually(died_or_short_of_goals, within=_PATIENCE)
        except AssertionError:
            raise AssertionError(f"{name} never reached {fault_point}.\n{self.logs()}") from None
        return await self.died(name)

    def is_running(self, name: str) -> bool:
        """Whether a process has been started and has not ended."""
        return name in self._running and not self._running[name].has_ended

    def has_died(self, name: str) -> bool:
        """Whether a process has been started and has ended."""
        return name in self._running and self._running[name].has_ended

    def pid(self, name: str) -> int:
        """The id of a process."""
        return self._running[name].pid

    async def stop(self, *names: str) -> None:
        """End processes by SIGTERM."""
        for name in names:
            self._left(name)
            await self._running.pop(name).stop(_STOP_GRACE_SECONDS)

    async def wipe(self, worker: str) -> None:
        """Take away the memory of a dead worker's agents."""
        for agent_id in agents_of(worker):
            await asyncio.to_thread(shutil.rmtree, self.memory_of(agent_id).parent, ignore_errors=True)
            self._forgetful.add(agent_id)

    def lock_memory(self, worker: str) -> None:
        """Lock the memory files of a worker's agents, so that their writes fail."""
        self._left(worker)
        for agent_id in agents_of(worker):
            connection = sqlite3.connect(self.memory_of(agent_id), isolation_level=None)
            connection.execute("BEGIN EXCLUSIVE")
            self._locks.setdefault(worker, []).append(connection)

    def unlock_memory(self, worker: str) -> None:
        """Let a worker's agents write again."""
        for connection in self._locks.pop(worker, []):
            connection.close()
        if self.is_running(worker):
            self._returned(worker)

    async def back_up(self, worker: str) -> None:
        """Copy the memory of a worker's agents, running or not, as SQLite copies databases."""
        for agent_id in agents_of(worker):
            if self.memory_of(agent_id).exists():
                await asyncio.to_thread(_copy, self.memory_of(agent_id), self._folder / f"{agent_id}.backup")

    async def restore(self, worker: str) -> None:
        """Give a dead worker's agents the memory that was copied, or none."""
        await self.wipe(worker)
        for agent_id in agents_of(worker):
            if (self._folder / f"{agent_id}.backup").exists():
                await asyncio.to_thread(_copy, self._folder / f"{agent_id}.backup", self.memory_of(agent_id))

    def memory_of(self, agent_id: AgentId) -> Path:
        """An agent's SQLite file."""
        return self._folder / "agents" / agent_id / "memory.sqlite"

    async def until_online(self, *agents: AgentId) -> None:
        """Wait until the registry counts these agents, or the whole roster, as alive."""
        wanted = set(agents or ROSTER)
        await eventually(self._online, wanted.issubset, within=_PATIENCE)

    async def until_serving(self) -> None:
        """Wait until the whole control plane answers: before it does, each process makes the streams as they should be."""
        running = Counter(self._program(name)[0] for name in self._running if name not in WORKERS and self.is_running(name))

        async def answering() -> Counter[str]:
            return Counter({module: await replicas_answering(self.client, module) for module in running})

        await eventually(answering, running.__eq__, within=_PATIENCE)

    async def publish(
        self,
        goal_id: GoalId,
        kind: str,
        *,
        timeout: timedelta = timedelta(seconds=90),
        max_turns: int = 40,
        agent: AgentId | None = None,
        seed: str | None = None,
    ) -> None:
        """Publish a goal as a user does, until the server has it. The same goal may be published again.

        Its words end in `seed`, its id unless told: who decides by them decides the same where they are the same.
        """
        goal = f"load {kind} {seed or goal_id}"
        team, seconds = TEAMS.get(kind), timeout.total_seconds()
        order = GoalOrder(goal=goal, goal_id=goal_id, timeout=seconds, max_turns=max_turns, agent=agent, team=team)
        data = order.model_dump_json(exclude_none=True).encode()
        self._texts[goal_id], self._published[goal_id] = goal, data
        await self.publish_again(goal_id)

    async def publish_again(self, goal_id: GoalId) -> None:
        """Publish the very same goal."""
        if goal_id not in self.goals:
            self.goals.append(goal_id)

        async def put() -> None:
            with unavailable_unless_answered("The goal's stream"):
                await self.client.jetstream().publish(subjects.goal_of(LOCAL), self._published[goal_id], timeout=2)

        await until_answered(put)

    async def publish_mix(self, count: int, seed: int) -> list[GoalId]:
        """Publish so many goals of every kind at once, some of them short of turns, as `seed` will have it."""
        chance = random.Random(seed)
        numbers = range(len(self.goals), len(self.goals) + count)  # so that a few at a time are of every kind, too
        names = {GoalId(f"goal-{seed}-{number}"): QUICK_KINDS[number % len(QUICK_KINDS)] for number in numbers}
        async with asyncio.TaskGroup() as group:
            for goal_id, kind in names.items():
                group.create_task(self.publish(goal_id, kind, max_turns=2 if chance.random() < 0.1 else 40))
        return list(names)

    async def sit(self, chance: random.Random) -> None:
        """Sit in the seat of the teams' person, for ever: answer most of what is up to it, and say everything twice at once."""
        seat = PersonSeat(WitnessedNetwork(self.client, Notes(self._notes_of(PERSON)), twice=True), PERSON, SystemClock())
        while True:
            await asyncio.sleep(chance.uniform(*_LOOKS_AFTER_SECONDS))
            with contextlib.suppress(UnavailableError):
                waiting = [awaited async for awaited in seat.awaited()]
                for awaited in waiting:
                    await _answer(seat, awaited, chance)

    async def cancel(self, goal_id: GoalId) -> None:
        """Cancel a goal as a user does."""
        request = CancelGoal(goal_id=goal_id)
        await until_answered(NatsRequester(self.client).request, subjects.user(LOCAL, subjects.CANCEL), request, Acknowledged)

    async def rest(self, *, within: timedelta = timedelta(seconds=120)) -> None:
        """Wait until all goals have ended and everybody knows."""
        await wait_for_rest(self.client, self.goals, within=within, members=ROSTER)

    async def evidence(self, *, within: timedelta = timedelta(seconds=120)) -> Evidence:
        """Wait for rest, and collect what there is to judge."""
        await self.rest(within=within)
        notes = [self._notes_of(name) for name in (*WORKERS, PERSON)]
        return await collect(
            self.client,
            self.goals,
            notes,
            frozenset(self._forgetful),
            answers={goal_id: answer for goal_id in self.goals if (answer := answer_to(self._texts.get(goal_id, "")))},
            absences=self._known_absences(),
            lost=frozenset(self._lost) - frozenset(self.goals),
        )

    async def forget(self) -> None:
        """Begin anew, after a store was lost: what was published before counts only if it is published again."""
        self._lost.update(self.goals)
        self.goals.clear()
        for worker in (*WORKERS, PERSON):
            if self._notes_of(worker).exists():
                await asyncio.to_thread(os.truncate, self._notes_of(worker), 0)

    def logs(self) -> str:
        """The end of every process's log, for a test that failed."""
        shown = [f"--- {path.name} ---\n" + path.read_text(errors="replace")[-3_000:] for path in self._folder.glob("*.log")]
        return "\n".join(shown)

    def has_logged(self, words: str) -> bool:
        """Whether any process has logged these words since it was first started."""
        return any(words in path.read_text(errors="replace") for path in self._folder.glob("*.log"))

    def _program(self, name: str) -> tuple[str, dict[str, str]]:
        part = name.partition("-")[0]
        if name in WORKERS:
            seeds = {"IOA_LOAD_CREDENTIALS": str(self._credentials)} if self._credentials else {}
            return _LOAD_WORKER, environment_of(agents_of(name), ROSTER, self._folder / "agents", self._notes_of(name)) | seeds
        return f"ioa_{part}", {"IOA_NATS_SEED": str(self._credentials / part / "seed")} if self._credentials else {}

    def _clock_of(self, name: str) -> Path:
        return self._folder / f"{name}.clock"

    def _left(self, name: str) -> None:
        if name in WORKERS:
            for agent_id in agents_of(name):
                self._away.setdefault(agent_id, datetime.now(UTC))

    def _returned(self, name: str) -> None:
        if name in WORKERS:
            for agent_id in agents_of(name):
                if (since := self._away.pop(agent_id, None)) is not None:
                    self._absences.append(Absence(agent_id, since, datetime.now(UTC)))

    def _known_absences(self) -> list[Absence]:
        now = datetime.now(UTC)
        return [*self._absences, *(Absence(agent_id, since, now) for agent_id, since in self._away.items())]

    def _notes_of(self, worker: str) -> Path:
        return self._folder / f"{worker}.jsonl"

    async def _online(self) -> set[AgentId]:
        try:
            found = await NatsRequester(self.client).request(
                subjects.user(LOCAL, subjects.LIST_AGENTS), ListAgents(online_only=True), Agents
            )
        except UnavailableError:
            return set()
        return {status.card.agent_id for status in found.agents}


async def _answer(seat: PersonSeat, awaited: Awaited, chance: random.Random) -> None:
    """Answer, unless the person has gone for a coffee; that it came too late is nothing to worry about."""
    if chance.random() < _AWAY:
        return
    if awaited.kind == "conclude":  # which a person does where no agent is left to do it
        reply = PersonReply("Nobody is left to ask.", choose=Reason.FAILED)
    else:
        reply = PersonReply(f"I have heard turn {awaited.state.turn}.", fields={blank.name: "yes" for blank in awaited.offer.form})
    with contextlib.suppress(ConflictError, NotFoundError):
        await seat.answer(awaited.item, reply)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copy:
        original.backup(copy)


def agents_of(worker: str) -> Sequence[AgentId]:
    """The agents that run in a worker process: every second one of the roster."""
    return ROSTER[int(worker.partition("-")[2]) :: len(WORKERS)]


@asynccontextmanager
async def open_fleet(
    url: str, folder: Path, env: Mapping[str, str] | None = None, *, credentials: Path | None = None
) -> AsyncIterator[Fleet]:
    """Be ready to start processes on a NATS server or cluster; whatever runs at the end is killed.

    Args:
        url: Where NATS is.
        folder: Holds logs, the agents' memories and their notes.
        env: Settings for every process, such as `IOA_LEASE`; the URL is set already.
        credentials: Folder with the seeds of the services, the load agents and an admin; None: connect without credentials.
    """
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    seed = str(credentials / "admin" / "seed") if credentials else None
    async with open_connection(NatsSettings(url, "fleet", seed=seed)) as client:
        fleet = Fleet(client, ForkServer(folder, {"IOA_NATS_URL": url}), folder, env or {}, credentials)
        try:
            yield fleet
        finally:
            for name in list(fleet._running):
                if fleet.is_running(name):
                    await fleet.kill(name)
                await fleet.stop(name)
