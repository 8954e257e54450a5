"""Examining a system: what is asked of it and of this machine, in which order. `examination` judges the answers."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from ioa.adapters.nats.inspection import NatsInspection, open_inspection
from ioa.adapters.nats.streams.topology import STREAMS
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.embedded_server import STORE, find_nats_server
from ioa.beside import together
from ioa.cli.examination import (
    Finding,
    Health,
    agents_finding,
    callout_finding,
    clock_finding,
    dead_letter_findings,
    disk_finding,
    goals_finding,
    index_finding,
    inodes_finding,
    model_finding,
    models_finding,
    payload_finding,
    probe_finding,
    queues_finding,
    quotas_finding,
    sandbox_finding,
    server_finding,
    storage_finding,
    store_files_finding,
    stores_finding,
    topology_finding,
)
from ioa.cli.probe import send_probe
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, NotPermittedError, UnavailableError
from ioa.hosting.configured_model import ask_model, model_of
from ioa.hosting.place import Place, listens, places
from ioa.protocol.standing import StoreStanding
from ioa.runtime.exit_code import ExitCode
from ioa.runtime.service_spec import service_specs
from ioa.runtime.settings import ProcessSettings, settings_from
from ioa.telemetry.logs import configure_logs

Facts = TypeVar("Facts")

_PROBE_BYTES = 1024 * 1024
_ANSWER_PATIENCE = timedelta(seconds=3)
_INDEX_PATIENCE = timedelta(seconds=3)
_GROUNDS = ("jetstream", "services")
"""The checks without which most others would say nothing."""
_WHO_EXAMINES = "Users, observers and admins may: name the seed of one by IOA_NATS_SEED. Auditors read `ioa audit`, and no more."


@dataclass(frozen=True)
class Examined:
    """All findings about the system at `url`, which is None if there is none."""

    url: str | None
    findings: list[Finding]

    @property
    def code(self) -> ExitCode:
        """The exit code of the whole examination."""
        if self.url is None:
            return ExitCode.UNREACHABLE
        return ExitCode.FAILED if any(one.health is Health.PROBLEM for one in self.findings) else ExitCode.DONE


async def examine(url: str | None, data: Path, *, probes: bool = False) -> Examined:
    """Run every check that makes sense given what the checks before it found; with `probes`, a goal is sent through as well."""
    configure_logs("error", "console")
    settings = settings_from(ProcessSettings, os.environ)
    candidates = places(url, os.environ, data)
    place = await _first_that_listens(candidates)
    if place is None:
        return Examined(None, [_unreachable(candidates)])
    async with AsyncExitStack() as stack:
        try:
            nats_settings = replace(settings.nats("ioa-doctor"), url=place.url, data=data)
            inspection = await stack.enter_async_context(open_inspection(nats_settings, patience=_ANSWER_PATIENCE))
        except UnavailableError as error:
            return Examined(
                None, [Finding("server", Health.PROBLEM, error.message, "Is it NATS that listens there? " + error.hint)]
            )
        return Examined(place.url, [finding async for finding in findings(inspection, data, probes=probes)])


async def _first_that_listens(candidates: list[Place]) -> Place | None:
    for place in candidates:
        if await listens(place.url):
            return place
    return None


def _unreachable(candidates: list[Place]) -> Finding:
    tried = " or ".join(f"{place.url} ({place.source})" for place in candidates)
    hint = "Start the system with `ioa up`, or name a running one with --url or IOA_NATS_URL."
    try:
        find_nats_server()
    except IoaError as error:
        hint = f"{error.message} {error.hint}, then start the system with `ioa up`; or name a running one with --url."
    return Finding("server", Health.PROBLEM, f"Nothing answers at {tried}.", hint)


async def findings(inspection: NatsInspection, data: Path, *, probes: bool = False) -> AsyncIterator[Finding]:
    """Run the checks in order, up to the first without which the others would say nothing.

    Who asks for too much is named whatever else is found: it may be why.
    """
    yield server_finding(inspection.server_version)
    yield payload_finding(inspection.max_payload_bytes)
    async for finding in _whose(inspection):
        yield finding
    try:
        standing = await inspection.standing()
    except NotPermittedError:
        yield Finding("credential", Health.PROBLEM, "This credential may not see how the system stands.", _WHO_EXAMINES)
        return
    stands = True
    async for finding in _grounds(inspection, standing, data):
        yield finding
        stands = stands and not (finding.check in _GROUNDS and finding.health is Health.PROBLEM)
    if stands:
        async for finding in _at_work(inspection, standing):
            yield finding
    if (quotas := await _quotas(inspection, stands=stands)) is not None:
        yield quotas
    if stands:
        async for finding in _left_over(inspection):
            yield finding
        if probes:
            yield await _asked(_probe, inspection.system)


async def _whose(inspection: NatsInspection) -> AsyncIterator[Finding]:
    if (tenant := await inspection.tenant()) is not None:
        yield Finding("tenant", Health.OK, f"what follows is of the tenant {tenant}; others are not seen from there")


async def _quotas(inspection: NatsInspection, *, stands: bool) -> Finding | None:
    """List rejected callers; None if the system is incomplete and no caller was rejected."""
    try:
        found = await inspection.rejected_callers(_service_names() if stands else ())
    except IoaError as error:
        return Finding("quotas", Health.PROBLEM, error.message, error.hint)
    return quotas_finding(found.callers, found.missing) if stands or found.callers else None


async def _grounds(inspection: NatsInspection, standing: StoreStanding | None, data: Path) -> AsyncIterator[Finding]:
    """Look at what everything stands on, up to the first of `_GROUNDS` that does not hold."""
    jetstream = storage_finding(standing)
    yield jetstream
    if standing is None or jetstream.health is Health.PROBLEM:
        return
    yield topology_finding(standing)
    yield await _judged("clock", inspection.clock_difference(), clock_finding)
    yield await asyncio.to_thread(_disk, data)
    yield await _model()
    yield await asyncio.to_thread(sandbox_finding)
    yield await _services(inspection)


async def _at_work(inspection: NatsInspection, standing: StoreStanding | None) -> AsyncIterator[Finding]:
    assert standing is not None, "without it the examination has ended"
    for check in (_agents, _models, _index, partial(_stores, standing)):
        yield await _asked(check, inspection.system)
    queues = [(stream.name, queue) for stream in standing.streams for queue in stream.queues]
    yield queues_finding(queues)
    yield goals_finding(queues)


async def _left_over(inspection: NatsInspection) -> AsyncIterator[Finding]:
    callout = await inspection.callout()
    if callout is not None:
        yield callout_finding(callout)
    try:
        letters = await inspection.dead_letter_kinds()
    except IoaError as error:
        yield Finding("dead letters", Health.PROBLEM, error.message, error.hint)
    else:
        for finding in dead_letter_findings(letters):
            yield finding


def _disk(data: Path) -> Finding:
    if not (data / "nats").is_dir():
        return Finding("disk", Health.OK, "the server's folder is not on this machine or not in --data; not checked")
    usage, inodes = shutil.disk_usage(data), os.statvfs(data)
    return (
        store_files_finding(_streams_without_files(data / "nats" / STORE), data)
        or inodes_finding(inodes.f_files, inodes.f_favail, data)
        or written_finding(data)
        or disk_finding(usage.total, usage.free, data)
    )


def _streams_without_files(store: Path) -> list[str]:
    """Return the streams of which no account has files: after their folder was removed, the server still answers."""
    return [stream for stream in STREAMS if not any(store.glob(f"*/streams/{stream}/meta.inf"))]


def written_finding(data: Path) -> Finding | None:
    """Write where the server does, since quotas, rights and broken disks show in no figure; None if that works."""
    try:
        with tempfile.TemporaryFile(dir=data / "nats") as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return Finding(
            "disk",
            Health.PROBLEM,
            f"{data / 'nats'} cannot be written: {error.strerror}.",
            "Make room there, or mend its rights; the server refuses to store meanwhile.",
        )
    return None


async def _model() -> Finding:
    try:
        settings = model_of(os.environ)
    except InvalidInputError as error:
        return Finding("model", Health.PROBLEM, error.message, error.hint)
    return model_finding(None if settings is None else await ask_model(settings, thoroughly=True))


async def _judged(check: str, asked: Awaitable[Facts], judge: Callable[[Facts], Finding]) -> Finding:
    try:
        return judge(await asked)
    except IoaError as error:
        return Finding(check, Health.PROBLEM, error.message, error.hint)


def _service_names() -> list[str]:
    return [spec.name for spec in service_specs()]


async def _services(inspection: NatsInspection) -> Finding:
    names = _service_names()
    answers = await together(*map(inspection.answers, names))
    silent = [name for name, answered in zip(names, answers, strict=True) if not answered]
    if silent:
        modules = ", ".join(f"python -m {name.replace('-', '_')}" for name in silent)
        return Finding(
            "services",
            Health.PROBLEM,
            f"No answer from {', '.join(silent)}.",
            f"`ioa up` runs all of them; one by one: {modules}. Their logs are in the data folder's logs/.",
        )
    return Finding("services", Health.OK, ", ".join(name.removeprefix("ioa-") for name in names))


async def _asked(check: Callable[[NatsSystemClient], Awaitable[Finding]], system: NatsSystemClient) -> Finding:
    try:
        return await check(system)
    except IoaError as error:
        name = check.func.__name__ if isinstance(check, partial) else check.__name__
        return Finding(name.strip("_"), Health.PROBLEM, error.message, error.hint)


async def _agents(system: NatsSystemClient) -> Finding:
    agents = await system.agents()
    return agents_finding(sum(status.online for status in agents), len(agents))


async def _models(system: NatsSystemClient) -> Finding:
    return models_finding(await system.agents(online_only=True))


async def _stores(standing: StoreStanding, system: NatsSystemClient) -> Finding:
    return stores_finding(standing, await system.stored())


async def _index(system: NatsSystemClient) -> Finding:
    """Compare the index with the registry; one that has just not caught up gets a little time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _INDEX_PATIENCE.total_seconds()
    while True:
        status, known = await system.index_status(), len(await system.agents())
        if status.cards == known or loop.time() > deadline:
            return index_finding(status.cards, known, status.model_id)
        await asyncio.sleep(0.2)


async def _probe(system: NatsSystemClient) -> Finding:
    try:
        return probe_finding(await send_probe(system))
    except ForbiddenError as error:
        told = f"Not sent: {error.message}"
        return Finding("probe", Health.WARNING, told, "Run `ioa doctor --probe` with a user's credential.")
