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
from ioa.hosting.settings import WorkerSettings
from ioa.runtime.known_settings import variable
from ioa.runtime.process import StopSignal
from ioa.runtime.settings import settings_from
from ioa.telemetry.library_logs import handed_to_logging


@asynccontextmanager
async def serving(agents: Sequence[AgentDefinition], url: str | None = None) -> AsyncIterator[None]:
    """Serve agents in this event loop for as long as the block, which begins when all of them have joined.

    They are the agents that `ioa agent run` would run: settings come from the environment, and each keeps its memory below
    `IOA_AGENT_DATA`. What they log goes to Python's own logging, unless structlog is configured. When the block ends, tasks that
    run may go on for `IOA_DRAIN` (5 s). An agent that ends later with an error is logged; when none is left, the block is
    cancelled, and the first error raised.

    Args:
        agents: Who serves, each under its own id.
        url: Where NATS is; what `IOA_NATS_URL` says by default.

    Raises:
        InvalidInputError: An agent or a setting is not valid, two agents have one id, or there is none.
        UnavailableError: The system, or something that an agent needs, cannot be reached.
        IoaError: An agent cannot join.
    """
    environment = {**os.environ, **({} if url is None else {variable("nats_url"): url})}
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
        client = await stack.enter_async_context(open_connection(settings.nats(",".join(one.agent_id for one in hosted))))
        minds = await stack.enter_async_context(open_minds(agents, environment))
        crew, minded = Crew(settings, NatsAgentNetwork(client), SystemClock(), RandomIds()), list(zip(hosted, minds, strict=True))
        async with beside(crew.serve(minded, stop), stop=stop.set):
            await crew.until_joined(len(hosted))
            yield
