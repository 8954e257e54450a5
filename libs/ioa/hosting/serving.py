"""Agents in an event loop of the author's: for programs that do other things as well, and for notebooks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ioa.agent.definition import AgentDefinition
from ioa.errors import InvalidInputError
from ioa.hosting.host import check_distinct, host, open_crew
from ioa.hosting.place import find_place
from ioa.hosting.settings import WorkerSettings
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
    environment, hosted = dict(os.environ), [host(agent) for agent in agents]
    settings = settings_from(WorkerSettings, environment)
    names = [one.agent_id for one in hosted]
    if not names:
        raise InvalidInputError("There is no agent to serve.")
    check_distinct(names)
    with handed_to_logging():
        nats = await find_place(url, ",".join(names))
        async with open_crew(hosted, nats, settings, environment) as crew, crew.running():
            yield
