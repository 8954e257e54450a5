"""Running agents: loading them from files, choosing their brain, and serving until SIGTERM."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pydantic import Field

from ioa.adapters.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats_connection import open_connection
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.agent.client import AgentClient, ClientOptions
from ioa.agent.sdk import Agent
from ioa.cli.brains import open_brain
from ioa.cli.deployment import as_deployed, replica_of
from ioa.errors import InvalidInputError
from ioa.protocol.ids import AgentId, parse_agent_id
from ioa.runtime.process import ProcessSettings, StopSignal, run_process

_NAMED = 5
"""How many agents a connection is named after."""


class WorkerSettings(ProcessSettings):
    """What a process that runs agents is told."""

    agent_data: Path = Field(default=Path(".ioa/agents"), description="where each agent keeps its memory")
    drain: timedelta = Field(default=timedelta(seconds=5), description="how long running tasks may go on after SIGTERM")
    tasks_at_once: int = Field(default=4, ge=1)
    goals_at_once: int = Field(default=8, ge=1)


@dataclass(frozen=True)
class Hosted:
    """An agent and the id it has here: its own, or its own with a replica's number."""

    agent: Agent
    agent_id: AgentId


def load_agent(target: str) -> Agent:
    """Load `module:attribute` or `path/to/file.py:attribute`.

    Raises:
        InvalidInputError: There is no such file, module or attribute, or it is no `Agent`.
    """
    source, _, attribute = target.rpartition(":")
    if not source:
        raise InvalidInputError(f"{target!r} names no agent.", hint="Write MODULE:ATTR or FILE.py:ATTR, such as echo.py:agent.")
    module = _load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    found = getattr(module, attribute, None)
    if not isinstance(found, Agent):
        what = "has no such attribute" if found is None else f"holds a {type(found).__name__} there"
        raise InvalidInputError(f"{source} {what}: {attribute!r}.", hint="It must be an ioa.Agent.")
    return found


def host(agent: Agent, replica: int | None = None) -> Hosted:
    """Give an agent its id: replica 2 of `writer` is `writer-2`."""
    return Hosted(agent, parse_agent_id(agent.agent_id if replica is None else f"{agent.agent_id}-{replica}"))


def serve(agents: Sequence[Agent]) -> None:
    """Join the system that `IOA_NATS_URL` names with these agents, and serve until SIGTERM."""
    replica = replica_of(os.environ)
    serve_hosted([host(agent, replica) for agent in as_deployed(agents, os.environ)], os.environ)


def serve_hosted(hosted: Sequence[Hosted], environment: Mapping[str, str]) -> None:
    """Join the system that the environment names with these agents under these ids, and serve until SIGTERM."""
    for one in hosted:
        _ = one.agent.function
    run_process(WorkerSettings, functools.partial(_serve, hosted, environment), environment, name="ioa-agent")


async def _serve(hosted: Sequence[Hosted], environment: Mapping[str, str], settings: WorkerSettings, stop: StopSignal) -> None:
    names = ",".join(one.agent_id for one in hosted[:_NAMED])
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_connection(settings.nats(names)))
        brain = await stack.enter_async_context(open_brain(environment))
        network, clock, ids = NatsAgentNetwork(client), SystemClock(), RandomIds()
        async with asyncio.TaskGroup() as group:
            for one in hosted:
                folder = settings.agent_data / one.agent_id
                store = await stack.enter_async_context(open_sqlite_store(folder / "memory.sqlite"))
                options = ClientOptions(folder / "groups", settings.tasks_at_once, settings.goals_at_once, settings.drain)
                card = one.agent.card_as(one.agent_id)
                group.create_task(AgentClient(one.agent, card, brain, network, store, clock, ids, options).run(stop))


def _load_file(path: Path) -> object:
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path}.")
    name = path.stem
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # As when it is run as a script: its folder is searched for what it imports, and it can be found by name.
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"{path} needs the module {error.name!r}, which is not installed.",
            hint="Install it; what the examples need comes with: pip install 'ioa[examples]'",
        ) from error
    return module


def _load_module(name: str) -> object:
    # As `python -m` would, which an installed command does not: modules of this folder can be named.
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InvalidInputError(f"There is no module {name!r}: {error}.") from None
