"""Waiting until a system on one machine is ready: `python -m ioa.local.readiness AGENTS HTTP_PORT`, told where by the environment.

It is a process of its own, so that the one that starts the system, and stays, need not import what knows how to ask.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from functools import partial

from ioa.adapters.nats.inspection import NatsInspection, open_inspection
from ioa.hosting.place import listens
from ioa.runtime.process import StopSignal, run_process
from ioa.runtime.service_spec import service_specs
from ioa.runtime.settings import ProcessSettings, variable
from ioa.telemetry.health import LOOPBACK

_POLL_SECONDS = 0.1
_PATIENCE = timedelta(seconds=60)


async def wait_until_ready(settings: ProcessSettings, _stop: StopSignal, *, agents: int, http: int) -> None:
    """Return when every service answers, so many agents are online, discovery knows every card, and HTTP is served.

    Args:
        settings: Where the system is.
        agents: How many agents there are to be.
        http: Where HTTP is to be served on this machine; 0 if it is not.
    """
    async with open_inspection(settings.nats("ioa-up"), patience=_PATIENCE) as inspection:
        while True:
            if await _is_ready(inspection, agents) and (not http or await listens(f"http://{LOOPBACK}:{http}")):
                return
            await asyncio.sleep(_POLL_SECONDS)


async def _is_ready(inspection: NatsInspection, agents: int) -> bool:
    for spec in service_specs():
        if not await inspection.answers(spec.name):
            return False
    known = await inspection.system.agents(online_only=False)
    online = sum(status.online for status in known)
    return agents <= online and (await inspection.system.index_status()).cards >= len(known)


if __name__ == "__main__":
    # It is gone in a moment: nobody asks for its metrics.
    told = {name: value for name, value in os.environ.items() if name not in (variable("metrics_port"), variable("metrics_socket"))}
    run_process(ProcessSettings, partial(wait_until_ready, agents=int(sys.argv[1]), http=int(sys.argv[2])), told)
