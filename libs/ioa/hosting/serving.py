"""Agents in an event loop of the author's: for programs that do other things as well, and for notebooks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.otlp import open_live_spans
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.agent.definition import AgentDefinition
from ioa.beside import beside
from ioa.errors import InvalidInputError
from ioa.hosting.brains import check_models, open_minds
from ioa.hosting.host import Crew, host, in_sandbox
from ioa.hosting.place import find_place
from ioa.hosting.settings import WorkerSettings
from ioa.runtime.process import StopSignal
from ioa.runtime.settings import settings_from
from ioa.telemetry.logs import handed_to_logging


@asynccontextmanager
async def serving(agents: Sequence[AgentDefinition], url: str | None = None) -> AsyncIterator[None]:
    """Serve agents in this event loop during the block, which begins when all of them have joined.

    Settings come from the environment, as for `ioa agent run`. Log lines go to Python's own logging, unless structlog is
    configured. At the end of the block, running tasks may continue for `IOA_DRAIN` (5 s). When all agents have ended with an error,
    the block is cancelled, and the first error raised.

    Args:
        agents: The agents; their ids differ.
        url: Where NATS is; by default the system in reach, as for `ioa.connect`.

    Raises:
        InvalidInputError: An agent or a setting is not valid, two agents have one id, or there is none.
        UnavailableError: No system is in reach, and the message names each place that was tried.
        IoaError: An agent cannot join.
    """
    environment = dict(os.environ)
    settings = settings_from(WorkerSettings, environment)
    hosted = [host(agent) for agent in agents]
    for one in hosted:
        _ = one.agent.function
    if not hosted:
        raise InvalidInputError("There is no agent to serve.")
    if len({one.agent_id for one in hosted}) < len(hosted):
        raise InvalidInputError("Two of these agents have one id.", hint="Give each an id of its own.")
    check_models(agents, environment)
    stop = StopSignal()
    async with AsyncExitStack() as stack:
        stack.enter_context(handed_to_logging())
        await stack.enter_async_context(open_live_spans(environment))
        hosted = list(await asyncio.to_thread(in_sandbox, hosted, settings))
        place, _ = await find_place(url, ",".join(one.agent_id for one in hosted))
        client = await stack.enter_async_context(open_connection(place))
        minds = await stack.enter_async_context(open_minds(agents, environment))
        crew, minded = Crew(settings, NatsAgentNetwork(client), SystemClock(), RandomIds()), list(zip(hosted, minds, strict=True))
        async with beside(crew.serve(minded, stop), stop=stop.set):
            await crew.until_joined(len(hosted))
            yield
