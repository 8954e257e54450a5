"""`ioa agent run`: joining agents from Python files to the system in reach."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from ioa.cli.reach import listens, places
from ioa.cli.terminal import Terminal
from ioa.cli.worker import host, load_agent, serve_hosted


def join(targets: Sequence[str], replica: int | None, url: str | None, terminal: Terminal) -> None:
    """Serve these agents until SIGTERM. They wait for a system that is not there yet, and outlive its outages.

    Raises:
        InvalidInputError: A target is no agent.
    """
    hosted = [host(load_agent(target), replica) for target in targets]
    names = [one.agent_id for one in hosted]
    chosen, there = asyncio.run(_choose(url))
    if terminal.as_json:
        terminal.line("joining", agents=names, url=chosen)
    else:
        terminal.note(f"joining {', '.join(names)} to {chosen}" + ("" if there else ": nobody answers there yet, waiting"))
    log_format = "console" if sys.stderr.isatty() and not terminal.as_json else "json"
    serve_hosted(hosted, {"IOA_LOG_FORMAT": log_format, **os.environ, "IOA_NATS_URL": chosen})


async def _choose(url: str | None) -> tuple[str, bool]:
    """The first place that answers, else the first one."""
    candidates = places(url, os.environ)
    for place in candidates:
        if await listens(place.url):
            return place.url, True
    return candidates[0].url, False
