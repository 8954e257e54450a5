"""All services of a system on one machine, in one process: `python -m ioa.local.services AGENTS HTTP_PORT PACKAGE…`.

The process writes the line `ready` to its standard output when every service answers, as many agents as AGENTS are online,
discovery has indexed every card, and HTTP is served on HTTP_PORT (0: not at all).
"""

from __future__ import annotations

import ioa.telemetry  # noqa: F401  # before structlog
from ioa.concurrency import beside

# isort: split

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from importlib import import_module

import structlog

from ioa.adapters.nats.inspection import NatsInspection, open_inspection
from ioa.concurrency import TaskGroup
from ioa.distribution import SERVICES
from ioa.hosting.place import listens
from ioa.runtime.hidden_keys import hide_keys
from ioa.runtime.known_settings import LOOPBACK
from ioa.runtime.process import StopSignal, run_process
from ioa.runtime.settings import ProcessSettings, settings_from

_POLL_SECONDS = 0.03
_PATIENCE = timedelta(seconds=60)


async def serve(settings: ProcessSettings, stop: StopSignal, *, packages: Sequence[str], agents: int, http: int) -> None:
    """Run services until `stop` is set. If one fails, all end, and the process is started again."""
    environment, stops = dict(os.environ), list[StopSignal]()
    async with TaskGroup() as group, beside(_report_ready(settings, agents, http)):
        for package in packages:
            stops.append(own := StopSignal())
            own.task = group.create_task(_serve_one(package, environment, own))
        await stop.wait()
        for own in stops:
            own.set()


async def _serve_one(package: str, environment: Mapping[str, str], stop: StopSignal) -> None:
    structlog.contextvars.bind_contextvars(service=package.replace("_", "-"))
    module = import_module(f"{package}.__main__")
    settings = settings_from(module.SETTINGS, environment)
    hide_keys(settings, os.environ)
    await module.serve(settings, stop)


async def _report_ready(settings: ProcessSettings, agents: int, http: int) -> None:
    async with open_inspection(settings.nats("ioa-up"), patience=_PATIENCE) as inspection:
        while True:
            if await is_ready(inspection, agents) and (not http or await listens(f"http://{LOOPBACK}:{http}")):
                sys.stdout.write("ready\n")
                sys.stdout.flush()
                return
            await asyncio.sleep(_POLL_SECONDS)


async def is_ready(inspection: NatsInspection, agents: int) -> bool:
    """Return whether all services answer, and this number of agents is online and indexed."""
    for name in SERVICES:
        if not await inspection.answers(name):
            return False
    known = await inspection.system.agents(online_only=False)
    online = sum(status.online for status in known)
    return agents <= online and (await inspection.system.index_status()).cards >= len(known)


if __name__ == "__main__":
    agents, http, *packages = sys.argv[1:]
    for package in packages:
        import_module(f"{package}.__main__")
    run_process(ProcessSettings, partial(serve, packages=packages, agents=int(agents), http=int(http)), name="ioa-services")
