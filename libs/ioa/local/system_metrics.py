"""The metrics of a whole system on one machine, on one port: each process serves its own on a Unix socket; here they are merged.

Every sample gets the label `process`. Nothing is served beyond this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ioa.adapters.plain_http import NO_TLS
from ioa.cancellation import TaskGroup
from ioa.telemetry.health import ALIVE, LOOPBACK, NOT_FOUND, Answer, open_http, readiness_answer

_WITHIN_SECONDS = 2.0


@asynccontextmanager
async def open_system_metrics(port: int, sockets: Mapping[str, Path]) -> AsyncIterator[int]:
    """Serve `/metrics`, `/healthz` and `/readyz` of all processes on a port of this machine; yield the port.

    Args:
        port: 0 takes a free one.
        sockets: Where each process serves its own, by its name.

    Raises:
        InvalidInputError: The port cannot be had.
    """
    async with AsyncExitStack() as stack:
        asked = {
            name: await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.AsyncHTTPTransport(uds=str(path), verify=NO_TLS),
                    base_url="http://process",
                    timeout=_WITHIN_SECONDS,
                    trust_env=False,
                )
            )
            for name, path in sockets.items()
        }
        yield await stack.enter_async_context(open_http(lambda path: _answer(path, asked), port, (LOOPBACK,)))


async def _answer(path: str, asked: Mapping[str, httpx.AsyncClient]) -> Answer:
    match path:
        case "/healthz":
            return ALIVE
        case "/readyz":
            answers = await _ask(asked, path)
            return readiness_answer([name for name in asked if name not in answers])
        case "/metrics":
            answers = await _ask(asked, path)
            return "200 OK", CONTENT_TYPE_LATEST, await asyncio.to_thread(_merged, asked, answers)
        case _:
            return NOT_FOUND


async def _ask(asked: Mapping[str, httpx.AsyncClient], path: str) -> dict[str, str]:
    """Ask all processes side by side; who does not answer, or does not say that it is well, is left out."""
    answers: dict[str, str] = {}

    async def ask(name: str, client: httpx.AsyncClient) -> None:
        try:
            answer = await client.get(path)
        except httpx.HTTPError:
            return
        if answer.is_success:
            answers[name] = answer.text

    async with TaskGroup() as group:
        for name, client in asked.items():
            group.create_task(ask(name, client))
    return answers


def _merged(names: Iterable[str], answers: Mapping[str, str]) -> bytes:
    """Put the samples of all processes under one head for each metric."""
    up = Metric("ioa_process_up", "1 while the process answers", "gauge")
    families: dict[str, Metric] = {}
    for name in names:
        up.add_sample(up.name, {"process": name}, name in answers)
        for family in text_string_to_metric_families(answers.get(name, "")):
            merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                merged.add_sample(sample.name, {"process": name, **sample.labels}, sample.value)
    return generate_latest(_Families((up, *families.values())))


@dataclass(frozen=True)
class _Families(Collector):
    """Metrics that are collected already."""

    families: Iterable[Metric]

    def collect(self) -> Iterator[Metric]:
        yield from self.families
