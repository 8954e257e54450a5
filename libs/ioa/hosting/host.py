"""Running agents: loading them from files, choosing their brain, and serving until SIGTERM."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import structlog

from ioa.adapters.folder_lock import FolderLock, locked_folder
from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.otlp import open_live_spans
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions, Stop
from ioa.agent.definition import AgentDefinition
from ioa.beside import together
from ioa.cancellation import fail_after
from ioa.errors import AlreadyRunningError, InvalidInputError, IoaError
from ioa.hosting.brains import Mind, check_models, open_minds
from ioa.hosting.deployment import as_deployed, replica_of
from ioa.hosting.place import wait_for_place
from ioa.hosting.settings import WorkerSettings
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.clock import Clock, IdSource
from ioa.protocol.ids import AgentId, parse_agent_id
from ioa.retry import pauses
from ioa.runtime.process import StopSignal, run_process
from ioa.telemetry import readiness

_MAX_REPLICAS = 100
"""How many processes may run one agent without being told which replica each is."""
_HOLDER_PATIENCE = timedelta(seconds=2)
"""How long the folder's holder may take to note that it is stopping, before this process joins as another replica."""
_FIRST_RESTART_SECONDS, _LONGEST_RESTART_SECONDS = 0.2, 10.0
_NAMED = 5
"""How many agents a connection is named after."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Hosted:
    """An agent and the id it has here: its own, or its own with a replica's number."""

    agent: AgentDefinition
    agent_id: AgentId


def load_agent(target: str) -> AgentDefinition:
    """Load `module:attribute` or `path/to/file.py:attribute`.

    Raises:
        InvalidInputError: There is no such file, module or attribute, or it is no `Agent`.
    """
    source, _, attribute = target.rpartition(":")
    if not source:
        raise InvalidInputError(f"{target!r} names no agent.", hint="Write MODULE:ATTR or FILE.py:ATTR, such as echo.py:agent.")
    module = _load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    found = getattr(module, attribute, None)
    if not isinstance(found, AgentDefinition):
        what = "has no such attribute" if found is None else f"holds a {type(found).__name__} there"
        raise InvalidInputError(f"{source} {what}: {attribute!r}.", hint="It must be an ioa.Agent.")
    return found


def host(agent: AgentDefinition, replica: int | None = None) -> Hosted:
    """Give an agent its id: replica 2 of `writer` is `writer-2`."""
    return Hosted(agent, parse_agent_id(agent.agent_id if replica is None else f"{agent.agent_id}-{replica}"))


def serve(agents: Sequence[AgentDefinition]) -> None:
    """Join the system in reach with these agents, and serve until SIGTERM; see `wait_for_place`."""
    replica = replica_of(os.environ)
    hosted = [host(agent, replica) for agent in as_deployed(agents, os.environ)]
    place = asyncio.run(wait_for_place(None, os.environ, _tell))
    _tell(f"joining {place.url} ({place.source})")
    serve_hosted(hosted, {**os.environ, "IOA_NATS_URL": place.url})


def _tell(text: str) -> None:
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
    hosted = [
        host(agent, number if count > 1 else replica)
        for agent, count in zip(agents, times.values(), strict=True)
        for number in range(count)
    ]
    serve_hosted(hosted, os.environ)


def serve_hosted(hosted: Sequence[Hosted], environment: Mapping[str, str]) -> None:
    """Join the system that the environment names with these agents under these ids, and serve until SIGTERM."""
    for one in hosted:
        _ = one.agent.function
    check_models([one.agent for one in hosted], environment)
    run_process(WorkerSettings, functools.partial(_serve, hosted, environment), environment, name="ioa-agent")


async def _serve(hosted: Sequence[Hosted], environment: Mapping[str, str], settings: WorkerSettings, stop: StopSignal) -> None:
    hosted = await asyncio.to_thread(in_sandbox, hosted, settings)
    names = ",".join(one.agent_id for one in hosted[:_NAMED])
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_live_spans(environment))
        client = await stack.enter_async_context(open_connection(settings.nats(names)))
        minds = await stack.enter_async_context(open_minds([one.agent for one in hosted], environment))
        minded = list(zip(hosted, minds, strict=True))
        await Crew(settings, NatsAgentNetwork(client), SystemClock(), RandomIds()).serve(minded, stop)


def in_sandbox(hosted: Sequence[Hosted], settings: WorkerSettings) -> Sequence[Hosted]:
    """Add the level of the sandbox, as a tag, to the cards of agents that run untrusted code.

    Raises:
        MissingExtraError: The sandbox does not work on this machine.
    """
    if not any(one.agent.needs_sandbox for one in hosted):
        return hosted
    from ioa.sandbox import level_here  # few agents run code

    return [
        replace(one, agent=one.agent.with_card(tags=(*one.agent.tags, f"sandbox:{level_here(settings.sandbox)}")))
        if one.agent.needs_sandbox
        else one
        for one in hosted
    ]


class Crew:
    """The agents of one process, and what they have in common."""

    def __init__(
        self,
        settings: WorkerSettings,
        network: AgentNetwork,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._settings = settings
        self._network = network
        self._clock = clock
        self._ids = ids
        self._settled: asyncio.Queue[Exception | None] = asyncio.Queue()
        """Of each agent that it has joined, or the error that it has ended with."""

    async def until_joined(self, agents: int) -> None:
        """Wait until so many agents have joined.

        Raises:
            Exception: The error of the first that has ended instead.
        """
        for _ in range(agents):
            if (error := await self._settled.get()) is not None:
                raise error

    async def serve(self, hosted: Sequence[tuple[Hosted, Mind]], stop: Stop) -> None:
        """Run agents concurrently until `stop` is set. An agent that ends with an error starts again after a pause.

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
                if len(errors) == len(hosted):
                    raise next(iter(errors.values()))
                missing = readiness.needs(f"{one.agent_id}, which has ended with an error", lambda: False)
                with missing, suppress(TimeoutError):
                    async with fail_after(pause):
                        return await stop.wait()
                del errors[one.agent_id]
            return None

        await together(*(take_part(one, mind) for one, mind in hosted))

    async def _run(self, one: Hosted, mind: Mind, stop: Stop) -> None:
        """Run an agent until `stop` is set. If another process runs it and is not stopping, run another replica of the agent.

        Raises:
            ConflictError: The id belongs to another process, and no other may be taken.
            IoaError: The agent's folder or memory cannot be used.
        """
        try:
            return await self._run_as(one, one.agent_id, mind, stop, self._options.takeover)
        except AlreadyRunningError as error:
            if self._settings.has_own_key:
                raise
            refusal = error
        for number in range(2, _MAX_REPLICAS + 1):
            agent_id = parse_agent_id(f"{one.agent_id}-{number}")
            _log.warning("joins_as_replica", agent_id=agent_id, of=one.agent_id, why=refusal.message)
            try:
                return await self._run_as(one, agent_id, mind, stop, timedelta(0))
            except AlreadyRunningError as error:
                refusal = error
        raise refusal

    @property
    def _options(self) -> RuntimeOptions:
        settings = self._settings
        return RuntimeOptions(
            settings.agent_data,
            settings.tasks_at_once,
            settings.goals_at_once,
            settings.drain,
            task_timeout=settings.task_timeout,
            plans=settings.plan_teams,
            keep=settings.agent_keep,
        )

    async def _run_as(self, one: Hosted, agent_id: AgentId, mind: Mind, stop: Stop, takeover: timedelta) -> None:
        folder, session = self._settings.agent_data / agent_id, new_session(self._clock, self._ids)
        options = replace(self._options, files=folder / "groups", takeover=takeover)
        patience = _HOLDER_PATIENCE if agent_id == one.agent_id else timedelta(0)
        async with (
            locked_folder(folder, session, patience=patience) as lock,
            open_sqlite_store(folder / "memory.sqlite") as store,
            one.agent.opened() as opened,
        ):
            ports = AgentPorts(self._network, store, self._clock, self._ids, mind.brain, mind.chat)
            client = AgentRuntime(opened, one.agent.card_as(agent_id), ports, session, options)
            await client.run(_NotedStop(stop, lock, self._settings.stops_within), lambda: self._settled.put_nowait(None))


@dataclass(frozen=True)
class _NotedStop:
    """A stop that is noted in the lock of the agent's folder, for the process that waits for it."""

    stop: Stop
    lock: FolderLock
    within: timedelta

    async def wait(self) -> None:
        """Wait for the stop, and note it."""
        await self.stop.wait()
        self.lock.note_stopping(self.within)


def _load_file(path: Path) -> object:
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path}.")
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):  # another agent of the same file
        return loaded
    name = path.stem if loaded is None else str(path.with_suffix(""))
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # As when it is run as a script: its folder is searched for what it imports, and it can be found by name.
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[name] = module
    with _loading(str(path)):
        specification.loader.exec_module(module)
    return module


def _load_module(name: str) -> object:
    # As `python -m` would, which an installed command does not: modules of this folder can be named.
    sys.path.insert(0, str(Path.cwd()))
    with _loading(name):
        return importlib.import_module(name)


@contextmanager
def _loading(what: str) -> Iterator[None]:
    """Run an author's module, and tell of what goes wrong in it only what is the author's."""
    try:
        yield
    except IoaError:
        raise
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"{what} needs the module {error.name!r}, which is not installed.",
            hint="Is the name right? What the examples need comes with the extra `examples`.",
        ) from None
    except Exception as error:  # noqa: BLE001 - an author's module may raise anything
        told = traceback.TracebackException.from_exception(error)
        for one in _chain(told):
            one.stack = traceback.StackSummary.from_list(frame for frame in one.stack if not _is_ours(frame.filename))
        raise InvalidInputError(f"{what} cannot be loaded:\n{''.join(told.format()).rstrip()}", hint="Mend the file.") from None


def _chain(told: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """Yield an exception and those that it came from."""
    yield told
    for earlier in (told.__cause__, told.__context__):
        if earlier is not None:
            yield from _chain(earlier)


def _is_ours(filename: str) -> bool:
    """Whether a frame is of what loads modules, not of one that was loaded."""
    return filename == __file__ or filename.startswith("<frozen importlib") or Path(filename).parent.name == "importlib"
