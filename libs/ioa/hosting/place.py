"""Find the system that a program connects to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.adapters.system_folder import PRIVATE_URL, read_url
from ioa.concurrency import fail_after
from ioa.errors import UnavailableError
from ioa.runtime.known_settings import variable
from ioa.runtime.settings import DEFAULT_URL, ProcessSettings, settings_from

PATIENCE = timedelta(seconds=3)
_NATS_PORT = 4222
_SEARCH_INTERVAL = timedelta(milliseconds=500)
"""Time between two searches for a system that does not run yet."""


@dataclass(frozen=True)
class Place:
    """The address of a system that may run, and where the address is written."""

    url: str
    source: str


def places(url: str | None, environment: Mapping[str, str], data: Path | None = None) -> list[Place]:
    """List the places to search, in order: the named place, otherwise every likely place.

    Args:
        url: The server that an option names.
        environment: May name a server, or the folder of a system on this machine.
        data: That folder, if an option names it.
    """
    if url:
        return [Place(url, "--url")]
    if environment.get("IOA_NATS_URL"):
        return [Place(environment["IOA_NATS_URL"], "IOA_NATS_URL")]
    data = data or Path(environment.get(variable("data"), ProcessSettings.model_fields["data"].default))
    noted = read_url(data)
    likely = [Place(noted, str(data / PRIVATE_URL))] if noted else []
    return likely if noted == DEFAULT_URL else [*likely, Place(DEFAULT_URL, "the default")]


async def wait_for_place(url: str | None, environment: Mapping[str, str], note: Callable[[str], object]) -> Place:
    """Return the place that `url` or IOA_NATS_URL names, otherwise the first likely place where a program listens.

    The likely places are read again until one answers, because `ioa up` writes its address when it starts.

    Args:
        url: The server that an option names.
        environment: May name a server, or the folder of a system on this machine.
        note: Receives the list of places, each time it changes.
    """
    last = ""
    while True:
        candidates = places(url, environment)
        for place in candidates:
            if url or environment.get("IOA_NATS_URL") or await listens(place.url):
                return place
        if (tried := _listed(candidates)) != last:
            note(f"waiting for a system: nothing answers at {tried}")
            last = tried
        await asyncio.sleep(_SEARCH_INTERVAL.total_seconds())


async def find_place(url: str | None, name: str, data: Path | None = None) -> NatsSettings:
    """Return how to connect to the first place where a program listens.

    Args:
        url: The server that an option names.
        name: The name of the connection.
        data: The folder of a system on this machine. None: as the environment names it.

    Raises:
        UnavailableError: No program listens; the message names each place.
    """
    settings, candidates = settings_from(ProcessSettings, os.environ), places(url, os.environ, data)
    for place in candidates:
        if await listens(place.url):
            return replace(settings.nats(name), url=place.url, data=data or settings.data)
    raise UnavailableError(
        f"No system is in reach: nothing answers at {_listed(candidates)}.",
        hint="Start one with `ioa up`, or name a running one with --url or IOA_NATS_URL.",
    )


def _listed(candidates: Sequence[Place]) -> str:
    return " or ".join(f"{place.url} ({place.source})" for place in candidates)


async def listens(url: str) -> bool:
    """Whether a program listens at one of these addresses. It is faster than a connection of NATS, which retries."""
    for one in url.split(","):
        try:
            parts = urlsplit(one if "://" in one else f"nats://{one}")
            async with fail_after(PATIENCE.total_seconds()):
                _, writer = await asyncio.open_connection(parts.hostname or "127.0.0.1", parts.port or _NATS_PORT)
        except (OSError, ValueError, TimeoutError):
            continue
        writer.close()
        return True
    return False
