"""Running agents: choosing their ids and brains, and serving until SIGTERM."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from ioa.adapters.folder_lock import FolderLock, locked_folder
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.otlp import open_live_spans
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions, Stop
from ioa.agent.definition import AgentDefinition
from ioa.concurrency import beside, fail_after, together
from ioa.errors import AlreadyRunningError, InvalidInputError, IoaError
from ioa.hosting.brains import Mind, open_minds
from ioa.hosting.loading import as_deployed, load_agent, replica_of
from ioa.hosting.place import wait_for_place
from ioa.hosting.settings import WorkerSettings
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.clock import Clock, IdSource
from ioa.protocol.ids import AgentId, parse_agent_id
from ioa.retry import pauses
from ioa.runtime.process import StopSignal, run_process
from ioa.telemetry import readiness

_MAX_REPLICAS = 100
"""Maximum number of processes that run one agent without a replica number each."""
_HOLDER_PATIENCE = timedelta(seconds=2)
"""How long the folder's holder may take to note that it is stopping, before this process joins as another replica."""
_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS = 0.2, 10.0
_NAMED = 5
"""Maximum number of agents in the name of a connection."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Hosted:
    """An agent and the id it has here: its own, or its own with a replica's number."""

    agent: AgentDefinition
    agent_id: AgentId


def host(agent: AgentDefinition, replica: int | None = None) -> Hosted:
    """Give an agent its id: replica 2 of `writer` is `writer-2`.

    Raises:
        InvalidInputError: The agent has no function for its tasks, or the id is not valid.
    """
    _ = agent.function
    return Hosted(agent, parse_agent_id(agent.agent_id if replica is None else f"{agent.agent_id}-{replica}"))


def check_distinct(agent_ids: Sequence[str]) -> None:
    """Reject an id that two agents have.

    Raises:
        InvalidInputError: There is one.
    """
    if twice := [agent_id for agent_id, number in Counter(agent_ids).items() if number > 1]:
        raise InvalidInputError(f"There are two agents called {', '.join(twice)}.", hint="Give each agent its own id.")


def serve(agents: Sequence[AgentDefinition]) -> None:
    """Join the system in reach with these agents, and serve until SIGTERM; see `wait_for_place`."""
    replica = replica_of(os.environ)
    hosted = [host(agent, replica) for agent in as_deployed(agents, os.environ)]
    place = asyncio.run(wait_for_place(None, os.environ, _note))
    _note(f"joining {place.url} ({place.source})")
    serve_hosted(hosted, {**os.environ, "IOA_NATS_URL": place.url})


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def serve_targets(targets: Sequence[str]) -> None:
    """Join the system that `IOA_NATS_URL` names with agents of files or modules, and serve until SIGTERM.

    Args:
        targets: As `load_agent` reads them. A target that occurs several times runs as that many replicas, numbered from 0.

    Raises:
        InvalidInputError: A target is no agent.
    """
    times, replica = Counter(targets), replica_of(os.environ)
    agents = as_deployed([load_agent(target) for target in times], os.environ)
    numbers = [range(count) if count > 1 else [replica] for count in times.values()]
    hosted = [host(agent, number) for agent, each in zip(agents, numbers, strict=True) for number in each]
    serve_hosted(hosted, os.environ)


def serve_hosted(hosted: Sequence[Hosted], environment: Mapping[str, str]) -> None:
    """Join the system that the environment names with these agents under these ids, and serve until SIGTERM."""
    run_process(WorkerSettings, functools.partial(_serve, hosted, environment), environment, name="ioa-agent")


async def _serve(hosted: Sequence[Hosted], environment: Mapping[str, str], settings: WorkerSettings, stop: StopSignal) -> None:
    nats = settings.nats(",".join(one.agent_id for one in hosted[:_NAMED]))
    async with open_crew(hosted, nats, settings, environment) as crew:
        await crew.serve(stop)


@asynccontextmanager
async def open_crew(
    hosted: Sequence[Hosted], nats: NatsSettings, settings: WorkerSettings, environment: Mapping[str, str]
) -> AsyncIterator[Crew]:
    """Open the connection and the brains of agents that run in one process."""
    hosted = await asyncio.to_thread(in_sandbox, hosted, settings)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_live_spans(environment, "ioa-agent"))
        minds = await stack.enter_async_context(open_minds([one.agent for one in hosted], environment))
        network = NatsAgentNetwork(await stack.enter_async_context(open_connection(nats)))
        yield Crew(list(zip(hosted, minds, strict=True)), settings, network, SystemClock(), RandomIds())


def in_sandbox(hosted: Sequence[Hosted], settings: WorkerSettings) -> Sequence[Hosted]:
    """Add the level of the sandbox, as a tag, to the cards of agents that run untrusted code.

    Raises:
        MissingExtraError: The sandbox does not work on this machine.
    """
    if not any(one.agent.needs_sandbox for one in hosted):
        return hosted
    from ioa.sandbox import level_here  # few agents run code

    tag = f"sandbox:{level_here(settings.sandbox)}"
    return [
        replace(one, agent=one.agent.with_card(tags=(*one.agent.tags, tag))) if one.agent.needs_sandbox else one for one in hosted
    ]


def runtime_options(settings: WorkerSettings) -> RuntimeOptions:
    """Return the options of agents in a process; `files` is the folder of all agents."""
    return RuntimeOptions(
        settings.agent_data,
        settings.tasks_at_once,
        settings.goals_at_once,
        settings.drain,
    )


@dataclass
class Crew:
    """The agents of a process.

    Args:
        members: Each agent with its brain.
        settings: Settings of the process.
        network: The system.
        clock: The time.
        ids: Source of ids.
        options: Options of each agent. Default: the `runtime_options` of the settings.
    """

    members: Sequence[tuple[Hosted, Mind]]
    settings: WorkerSettings
    network: AgentNetwork
    clock: Clock
    ids: IdSource
    options: RuntimeOptions | None = None

    def __post_init__(self) -> None:
        self._settled: asyncio.Queue[Exception | None] = asyncio.Queue()
        """An item for each agent that has joined: None; and for each that has ended: its error."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the agents while the block runs, which begins when all of them have joined.

        Raises:
            Exception: The error of the first agent that has ended instead.
        """
        stop = StopSignal()
        async with beside(self.serve(stop), stop=stop.set):
            for _ in self.members:
                if (error := await self._settled.get()) is not None:
                    raise error
            yield

    async def serve(self, stop: Stop) -> None:
        """Run the agents concurrently until `stop` is set. An agent that ends with an error starts again after a pause.

        The process is not ready meanwhile. If all agents have ended with an error, the first error is raised, so that the
        supervisor starts the process again.
        """
        errors: dict[AgentId, Exception] = {}

        async def take_part(one: Hosted, mind: Mind) -> None:
            for pause in pauses(_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS):
                try:
                    return await self._run(one, mind, stop)
                except Exception as error:  # noqa: BLE001 - other agents of the process continue
                    errors[one.agent_id] = error
                    self._settled.put_nowait(error)
                    why = str(error) if isinstance(error, IoaError) else ""
                    _log.error("agent_ended", agent_id=one.agent_id, error=why, exc_info=not why)
                if len(errors) == len(self.members):
                    raise next(iter(errors.values()))
                missing = readiness.needs(f"{one.agent_id}, which has ended with an error", lambda: False)
                with missing, suppress(TimeoutError):
                    async with fail_after(pause):
                        return await stop.wait()
                del errors[one.agent_id]
            return None

        await together(*(take_part(*member) for member in self.members))

    async def _run(self, one: Hosted, mind: Mind, stop: Stop) -> None:
        """Run an agent until `stop` is set. If another process runs it and is not stopping, run another replica of the agent.

        Raises:
            ConflictError: The id belongs to another process, and no other may be taken.
            IoaError: The agent's folder or memory cannot be used.
        """
        agent_id = one.agent_id
        for number in range(2, _MAX_REPLICAS + 2):
            try:
                await self._run_as(one, agent_id, mind, stop)
                return
            except AlreadyRunningError as error:
                if self.settings.has_own_key or number > _MAX_REPLICAS:
                    raise
                agent_id = parse_agent_id(f"{one.agent_id}-{number}")
                _log.warning("joins_as_replica", agent_id=agent_id, of=one.agent_id, why=error.message)

    async def _run_as(self, one: Hosted, agent_id: AgentId, mind: Mind, stop: Stop) -> None:
        folder, session = self.settings.agent_data / agent_id, new_session(self.clock, self.ids)
        options = replace(self.options or runtime_options(self.settings), files=folder / "groups")
        patience = _HOLDER_PATIENCE
        if agent_id != one.agent_id:  # do not wait for the id of another replica
            options, patience = replace(options, takeover=timedelta(0)), timedelta(0)
        async with (
            locked_folder(folder, session, patience=patience) as lock,
            open_sqlite_store(folder / "memory.sqlite") as store,
            one.agent.opened() as opened,
            beside(_note_stop(stop, lock, self.settings.stops_within)),
        ):
            ports = AgentPorts(self.network, store, self.clock, self.ids, mind.brain, mind.chat)
            client = AgentRuntime(opened, one.agent.card_as(agent_id), ports, session, options)
            await client.run(stop, lambda: self._settled.put_nowait(None))


async def _note_stop(stop: Stop, lock: FolderLock, within: timedelta) -> None:
    """Note a stop in the lock of the agent's folder, for a process that waits for it."""
    await stop.wait()
    lock.note_stopping(within)
