"""Who may publish and read what: the one place from which every authorization of a server is rendered.

The control plane and JetStream live in one account, agents in another, users and observers in a third; each imports exactly the
subjects below that it needs, and no other account can. Between accounts the server keeps its own books of who waits for which
answer, so that nobody outside can have an answer sent to a subject of the control plane, and no agent to one of the users (a reply
subject is not a publication, and no permission covers it). No one outside may create a consumer either: the subject to which a
consumer delivers is not checked against the permissions of who made it.

That holds for imports with a wildcard alone: to those without one the server hands on answers too, which any request may name as
its reply subject, and whoever stored something says by it what the control plane is told. So each import of requests has one
(`crossing_of`), and what somebody may publish is bounded by his permissions.

Each tenant has three such accounts of its own, and nothing crosses from one tenant's to another's. A system without tenants is the
one tenant that has no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ioa.adapters.nats.accounts import AGENTS, CALLOUT, CONTROL_PLANE, USERS
from ioa.adapters.nats.keys import stream_of, subject_of
from ioa.adapters.nats.topology import (
    ANY_AGENT,
    API_KEYS,
    ARTIFACTS,
    AUDIT,
    BEAT,
    CARDS,
    CONSUMERS,
    DEAD,
    DELIVERING,
    ENDED,
    FILES,
    GATEWAY,
    GOAL_RECORDS,
    GOALS,
    HOOKS,
    KEYS,
    LAUNCH_KEY,
    LEASES,
    LOG,
    MEMBERS,
    OPEN,
    OUTCOMES,
    RESULTS,
    ROUTERS,
    SESSIONS,
    STREAMS,
    TAIL,
    TEAMS,
    TIMERS,
    WEBHOOKS,
    WORK,
    intake_consumer,
    pool_consumer,
)
from ioa.protocol import subjects
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.ids import ADMIN, LOCAL, AgentId, CommId, GoalId, GoalName, PoolId, TenantId, UserId

WHO_AM_I = "$SYS.REQ.USER.INFO"
"""Subject on which nats-server returns the permissions of a connection. It answers in every account, without an import."""

WHO_IS_THIS = "$SYS.REQ.USER.AUTH"
"""Where the server asks an auth callout about somebody whose key it does not know (NATS ADR-26)."""

READS = "$JS.API.DIRECT.GET."
"""Prefix of the subjects of direct gets, which the control plane and the gateway use. Users send read requests to group setup."""
_NEXT = "$JS.API.CONSUMER.MSG.NEXT."
PULLS = f"{_NEXT}{WORK}."
"""Prefix of the subjects on which agents pull goals."""
TAKEN = f"$JS.ACK.{WORK}.>"
"""Subjects on which agents acknowledge the goals that they pulled."""

STANDING = (
    subjects.GET_AGENTS,
    subjects.LIST_AGENTS,
    subjects.INDEX_STATUS,
    subjects.GROUP_STATUS,
    subjects.STORED,
    subjects.CALLOUT_STATUS,
)
"""Where users and observers ask how everything stands."""
SHOWN_ASKER = "Nats-Request-Info"
"""The header in which the server tells who asks, where an import shows it."""
_READ_BY_GROUPS = (RESULTS, LOG, DEAD, stream_of(GOAL_RECORDS), stream_of(ENDED), stream_of(OPEN), AUDIT)
"""Streams that group setup reads for users, operators and auditors."""

_OF_TENANT = re.compile(rf"{CONTROL_PLANE}_([a-z0-9-]+)(?:_[A-Z]+)?")
_API = "$JS.API"
_ANY = "*"
_UPLOADS, _OBJECTS = f"OBJ_{ARTIFACTS}", f"OBJ_{FILES}"


class Service(StrEnum):
    """The services of the control plane."""

    REGISTRY = "registry"
    GROUPS = "groups"
    ROUTER = "router"
    DISCOVERY = "discovery"
    AUTHCALLOUT = "authcallout"
    """Only where third parties are let in."""


OURS = frozenset({LOCAL, ADMIN, *Service, "intake", "group-setup", "observers"})
"""As whom goals are launched by those who come with a password or an admin's key, and as whom services speak of what they did."""


@dataclass(frozen=True)
class Answering:
    """How often, and for how many seconds, somebody may answer a message that was sent to it, wherever the answer goes."""

    times: int
    seconds: int


@dataclass(frozen=True)
class Permissions:
    """What one credential may do, besides reading the answers to its own requests.

    Attributes:
        account: Which of its tenant's three accounts it is for.
        tenant: Whose credential it is.
    """

    account: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answering: Answering | None = None
    tenant: TenantId | None = None


_ANSWERS_ONCE = Answering(times=1, seconds=60)
_ACKNOWLEDGES = Answering(times=10_000, seconds=3_600)
"""What an agent may say of a goal it took from a queue: that it is at work, and at last that it is done. Only of those it took."""


def of_service(service: Service) -> Permissions:
    """Return what a service of the control plane may do."""
    names = (f"ioa-{service}", *(["ioa-files", "ioa-reads"] if service is Service.GROUPS else []))
    answers = (
        *_SERVED[service],
        *(f"$SRV.{verb}" for verb in ("PING", "INFO", "STATS")),
        *(f"$SRV.{verb}.{name}{of}" for verb in ("PING", "INFO", "STATS") for name in names for of in ("", ".*")),
    )
    topology = () if service in (Service.DISCOVERY, Service.AUTHCALLOUT) else _making_topology()
    return Permissions(CONTROL_PLANE, (f"{_API}.STREAM.NAMES", *topology, *_NEEDED[service]), answers, _ANSWERS_ONCE)


def of_agent(agent_id: AgentId, pool: PoolId) -> Permissions:
    """Return what an agent may do: speak as itself, read its own inbox, take goals of its pool and of all, ask for files."""
    publish = (
        subjects.register(pool, agent_id),
        subjects.renew(pool, agent_id),
        subjects.renew_at_all(pool, agent_id),
        subjects.deregister(agent_id),
        subjects.launch(agent_id),
        subjects.invite(agent_id),
        subjects.abandon(agent_id),
        subjects.sync(agent_id),
        subjects.set_aside(agent_id),
        subjects.memberships(agent_id),
        subjects.search(agent_id),
        subjects.report(agent_id),
        subjects.get_file(agent_id),
        subjects.put_file(agent_id),
        subjects.say(CommId(_ANY), agent_id),
        f"{subjects.say(CommId(_ANY), agent_id)}.{_ANY}",
        *(f"{PULLS}{queue}" for queue in (ANY_AGENT, pool_consumer(pool) if pool != _ANY else _ANY)),
    )
    return Permissions(AGENTS, tuple(dict.fromkeys(publish)), (subjects.inbox(agent_id, _ANY),), _ACKNOWLEDGES)


def of_user(user: UserId) -> Permissions:
    """Return the permissions of a user: publish, read, follow, cancel and answer its own goals."""
    publish = (
        subjects.goal_of(user),
        subjects.goal_to(user, AgentId(_ANY)),
        subjects.cancel(user),
        subjects.answer(user),
        WHO_AM_I,
        *_looking(),
        subjects.standing_of(user),
        subjects.search_of(user),
        *(subjects.user_read(user, request) for request in subjects.READ_REQUESTS),
        subjects.get_upload(user),
        subjects.put_upload(user),
        subjects.put_team(user),
        subjects.get_team(user),
        subjects.list_teams(user),
    )
    heard = (subjects.result_of(GoalName(user, GoalId(_ANY))), f"{subjects.ROOT}.live.{user}.*.*")
    return Permissions(USERS, publish, heard)


def of_gateway() -> Permissions:
    """Return the permissions of the gateway: those of every user, reading all goals, and its own stores.

    It enforces the scopes of keys itself. It reads results and logs in the order of the streams, for webhooks.
    """
    anybody = of_user(UserId(_ANY))
    streams = map(_listing, (RESULTS, LOG, stream_of(GOAL_RECORDS)))
    reads = (*(subjects.reader_read(_ANY, request) for request in subjects.READ_REQUESTS), *streams)
    stores = (read(stream_of(bucket)) for bucket in (API_KEYS, WEBHOOKS, GATEWAY) for read in (_listing, _reading))
    keys = (*reads, *stores, *(subject_of(API_KEYS, one) for one in ("once.*", "out.*", "cookie")))
    webhooks = (
        subject_of(WEBHOOKS, _ANY),
        _removing(stream_of(WEBHOOKS)),
        subject_of(GATEWAY, TAIL),
        subjects.ANY_HOOK,
        subjects.dead(DeadReason.WEBHOOK),
        *_working_off(HOOKS, DELIVERING),
        f"{_API}.STREAM.INFO.{HOOKS}",
    )
    return Permissions(USERS, (*anybody.publish, *keys, *webhooks), anybody.subscribe)


def of_observer() -> Permissions:
    """Return what a monitor may do: see that everything runs and count what could not be processed, but read nothing anybody said.

    A dead letter holds what was published, and where a group stands holds its goal and its conclusion: neither is an observer's.
    """
    return Permissions(USERS, (*_looking(), WHO_AM_I, subjects.standing_of(None)), ())


def of_auditor() -> Permissions:
    """Return what somebody who looks into what was done may do: read the audit log, and nothing else."""
    return Permissions(USERS, (subjects.audit_page(subjects.AUDITORS),), (subjects.ANY_AUDIT,))


def of_callout() -> Permissions:
    """Return what an auth callout may do where it is asked: answer."""
    return Permissions(CALLOUT, (), (WHO_IS_THIS,), _ANSWERS_ONCE)


def of_admin() -> Permissions:
    """Everything but the server's own account: for repairs by hand."""
    return Permissions(CONTROL_PLANE, (">",), (">",))


def account_of(account: str, tenant: TenantId | None) -> str:
    """Return what the server calls one of a tenant's accounts, such as `IOA_acme_AGENTS`.

    A tenant's name is in lower case and holds no `_`, so that no two accounts are called alike.
    """
    return account if tenant is None else account.replace(CONTROL_PLANE, f"{CONTROL_PLANE}_{tenant}", 1)


def tenant_of(name: str) -> TenantId | None:
    """Read off what the server calls an account whose it is."""
    found = _OF_TENANT.fullmatch(name)
    return None if found is None else TenantId(found[1])


@dataclass(frozen=True)
class Crossing:
    """The subjects that an account imports: requests to the control plane, and what it sends.

    Of requests on those of `shown` the import shows who asks.
    """

    requests: tuple[str, ...]
    pushes: tuple[str, ...]
    shown: frozenset[str]


def crossings() -> dict[str, Crossing]:
    """Return what crosses over, by the account that imports it."""
    agent = of_agent(AgentId(_ANY), PoolId(_ANY))
    # Nobody outside may ask for the information. Without its import the server answers each of the account's requests to JetStream
    # itself, before JetStream does, by saying that there is none.
    # It stands as it is, since nobody waits for what an answer asks there.
    information = f"{_API}.INFO"
    of_agents = (*agent.publish, TAKEN)
    outside = (of_user(UserId(_ANY)), of_gateway(), of_observer(), of_auditor())
    of_users = [subject for one in outside for subject in one.publish if subject != WHO_AM_I]
    return {
        AGENTS: Crossing((information, *_crossing(of_agents)), _without_covered(agent.subscribe), _shown(of_agents)),
        USERS: Crossing(
            (information, *_crossing(of_users)),
            _without_covered(subject for one in outside for subject in one.subscribe),
            _shown(of_users),
        ),
    }


def crossing_of(subject: str) -> str:
    """Return as what requests on a subject cross over: with a wildcard, so that no answer does.

    Of those without one that is their second part, which no two of them differ by.
    """
    parts = subject.split(".")
    return subject if _ANY in parts or ">" in parts else ".".join((parts[0], _ANY, *parts[2:]))


def _crossing(requests: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(crossing_of, _without_covered(requests))))


def _shown(requests: Iterable[str]) -> frozenset[str]:
    """Return the imported subjects that name no caller; nats-server adds a header with the caller, so that services are fair."""
    served = {pattern for heard in _SERVED.values() for pattern in heard if _ANY not in pattern}
    return frozenset(crossing_of(one) for one in requests if any(covers(pattern, one) for pattern in served))


def is_answered_often(subject: str) -> bool:
    """Whether one request on a subject, or on one that crosses over as it, may be answered by several messages."""
    return subject.startswith(("$SRV.", READS, crossing_of(f"{READS}x").removesuffix("x")))


def _without_covered(found: Iterable[str]) -> tuple[str, ...]:
    """Leave out doubles and subjects that another one covers: the same request must not cross twice."""
    unique = tuple(dict.fromkeys(found))
    return tuple(one for one in unique if not any(other != one and covers(other, one) for other in unique))


def covers(pattern: str, subject: str) -> bool:
    """Whether a pattern with wildcards holds every subject that `subject`, which may be a pattern too, holds."""
    wanted, given = pattern.split("."), subject.split(".")
    for position, part in enumerate(wanted):
        if part == ">":
            return len(given) > position
        if position >= len(given) or given[position] == ">" or part not in (_ANY, given[position]):
            return False
    return len(wanted) == len(given)


def _reading(stream: str) -> str:
    return f"{_API}.STREAM.MSG.GET.{stream}"


def _listing(stream: str) -> str:
    """Read messages past the line in which JetStream answers all other requests, one or many at once."""
    return f"{READS}{stream}"


def _removing(stream: str) -> str:
    """Remove messages by subject. Which subject stands in the request, so that no permission tells."""
    return f"{_API}.STREAM.PURGE.{stream}"


def _looking() -> tuple[str, ...]:
    """How everything stands: services, agents, the index. How JetStream stands group setup tells, by `standing_of`."""
    return (
        *(f"$SRV.{verb}{of}" for verb in ("PING", "INFO", "STATS") for of in ("", ".*")),
        *STANDING,
    )


def _keeping_files() -> tuple[str, ...]:
    """Read and write files: for group setup alone, which knows who may see which."""
    return (
        *(f"$O.{FILES}.{kind}" for kind in ("C.>", "M.*", "P.*")),
        _reading(_OBJECTS),
        _listing(_OBJECTS),
        _reading(_UPLOADS),
    )


def _making_topology() -> tuple[str, ...]:
    """Make and change streams and the shared consumers, but neither delete nor purge any."""
    return (
        f"{_API}.INFO",
        *(f"{_API}.STREAM.{verb}.{stream}" for stream in STREAMS for verb in ("CREATE", "UPDATE", "INFO")),
        *(f"{_API}.CONSUMER.DURABLE.CREATE.{stream}.{name}" for stream, name, _ in CONSUMERS),
        f"{_API}.CONSUMER.DURABLE.CREATE.{GOALS}.{intake_consumer(LOCAL)}",
    )


def _following(bucket: str) -> tuple[str, ...]:
    return _consuming(stream_of(bucket))


def _consuming(stream: str) -> tuple[str, ...]:
    return (
        f"{_API}.STREAM.INFO.{stream}",
        f"{_API}.CONSUMER.CREATE.{stream}",
        f"{_API}.CONSUMER.CREATE.{stream}.>",
        f"{_API}.CONSUMER.INFO.{stream}.*",
        f"{_API}.CONSUMER.DELETE.{stream}.*",
        f"$JS.FC.{stream}.>",
    )


def _looking_up(bucket: str) -> tuple[str, ...]:
    return (f"{_API}.STREAM.INFO.{stream_of(bucket)}", _reading(stream_of(bucket)))


def _paging(bucket: str) -> tuple[str, ...]:
    """Read a bucket that nobody follows, by key and by pages, and remove keys without leaving a marker."""
    return (*_looking_up(bucket), f"{_API}.DIRECT.GET.{stream_of(bucket)}", f"{_API}.STREAM.PURGE.{stream_of(bucket)}")


def _working_off(stream: str, durable: str) -> tuple[str, ...]:
    return (f"{_NEXT}{stream}.{durable}", f"$JS.ACK.{stream}.{durable}.>")


def _writing_logs() -> tuple[str, ...]:
    """Append to logs, and all that follows from it: timers, pushes, results."""
    return (
        subjects.ANY_LOG,
        subjects.ANY_LIVE,
        subjects.ANY_TIMER_SCHEDULE,
        subjects.ANY_INBOX,
        subjects.ANY_RESULT,
        *_reading_logs(),
    )


def _reading_logs() -> tuple[str, ...]:
    return (f"{_API}.STREAM.INFO.{LOG}", _reading(LOG))


_MAKING_POOL_QUEUES = f"{_API}.CONSUMER.DURABLE.CREATE.{WORK}.*"

_OF_GOALS = (LOG, RESULTS, TIMERS, _OBJECTS, stream_of(GOAL_RECORDS))
"""What is removed with a goal, besides what is removed at its end: group setup's janitor may purge it."""

_SERVED = {
    Service.REGISTRY: (
        subjects.ANY_REGISTER,
        subjects.ANY_RENEW,
        subjects.ANY_RENEW_AT_ALL,
        subjects.ANY_DEREGISTER,
        subjects.GET_AGENTS,
        subjects.LIST_AGENTS,
        subjects.REMOVE_AGENT,
    ),
    Service.GROUPS: (
        subjects.ANY_LAUNCH,
        subjects.ANY_INVITE,
        subjects.ANY_ABANDON,
        subjects.ANY_SYNC,
        subjects.ANY_MEMBERSHIPS,
        subjects.ANY_SET_ASIDE,
        subjects.GROUP_STATUS,
        subjects.ANY_CANCEL,
        subjects.ANY_ANSWER,
        subjects.ANY_CANCEL_BY_ADMIN,
        subjects.ANY_ANSWER_BY_ADMIN,
        subjects.PRUNE,
        subjects.ANY_GET_FILE,
        subjects.ANY_PUT_FILE,
        subjects.ANY_GET_UPLOAD,
        subjects.ANY_PUT_UPLOAD,
        subjects.STORED,
        *(subjects.user_read(UserId(_ANY), request) for request in subjects.READ_REQUESTS),
        *(subjects.reader_read(_ANY, request) for request in subjects.READ_REQUESTS),
        subjects.audit_page(_ANY),
        subjects.ANY_STANDING,
        subjects.ANY_PUT_TEAM,
        subjects.ANY_GET_TEAM,
        subjects.ANY_LIST_TEAMS,
        subjects.ANY_GOAL,
        subjects.ANY_ADDRESSED_GOAL,
    ),
    Service.ROUTER: (subjects.ANY_SAY, subjects.ANY_SAY_TO, subjects.ANY_LIVE_PROGRESS),
    Service.DISCOVERY: (subjects.ANY_SEARCH, subjects.INDEX_STATUS, subjects.ANY_REPORT),
    Service.AUTHCALLOUT: (subjects.CALLOUT_STATUS,),
}

_NEEDED = {
    Service.REGISTRY: (
        subjects.ANY_AUDIT,
        *(subject_of(bucket, "*") for bucket in (CARDS, LEASES, SESSIONS)),
        subject_of(LEASES, BEAT),
        *(subject for bucket in (CARDS, LEASES, SESSIONS) for subject in _following(bucket)),
        *(subject for bucket in (CARDS, LEASES, SESSIONS) for subject in _looking_up(bucket)),
        _reading(stream_of(MEMBERS)),
        f"{_API}.STREAM.INFO.{LOG}",
        _MAKING_POOL_QUEUES,
        f"{_API}.CONSUMER.DELETE.{WORK}.*",
    ),
    Service.GROUPS: (
        *_writing_logs(),
        subjects.ANY_AUDIT,
        subjects.WORK,
        subjects.ANY_POOL_WORK,
        _reading(WORK),
        _MAKING_POOL_QUEUES,
        f"{_API}.CONSUMER.INFO.{WORK}.*",
        f"{_API}.STREAM.MSG.DELETE.{WORK}",
        subjects.search(subjects.GROUP_SETUP),
        subjects.ANY_DEAD,
        subject_of(MEMBERS, "*.*"),
        *(subject_of(bucket, "*") for bucket in (OPEN, GOAL_RECORDS, ENDED)),
        *(subject for bucket in (MEMBERS, OPEN) for subject in _paging(bucket)),
        *(subject for bucket in (CARDS, LEASES, SESSIONS) for subject in _following(bucket)),
        *(subject for bucket in (GOAL_RECORDS, ENDED, SESSIONS) for subject in _looking_up(bucket)),
        subject_of(TEAMS, "*.*.*"),
        *_looking_up(TEAMS),
        _removing(stream_of(TEAMS)),
        subject_of(KEYS, LAUNCH_KEY),
        _reading(stream_of(KEYS)),
        _reading(RESULTS),
        *map(_listing, (*_READ_BY_GROUPS, GOALS)),
        _reading(GOALS),
        *(_removing(stream) for stream in _OF_GOALS),
        *_keeping_files(),
        *_working_off(GOALS, "*"),
        f"{_API}.CONSUMER.DURABLE.CREATE.{GOALS}.*",
        f"{_API}.STREAM.LIST",
        *(f"{_API}.CONSUMER.LIST.{stream}" for stream in (GOALS, WORK, TIMERS)),
    ),
    Service.ROUTER: (
        *_writing_logs(),
        subjects.ANY_AUDIT,
        subjects.ANY_DEAD,
        *_following(SESSIONS),
        *(subject for bucket in (MEMBERS, OPEN) for subject in _paging(bucket)),
        subject_of(OPEN, "*"),
        subject_of(OPEN, "*.*"),
        *(subject for bucket in (GOAL_RECORDS, ENDED, SESSIONS) for subject in _looking_up(bucket)),
        _reading(RESULTS),
        *_working_off(TIMERS, ROUTERS),
    ),
    Service.DISCOVERY: (
        *_following(CARDS),
        *_following(LEASES),
        *_following(SESSIONS),
        *_looking_up(SESSIONS),
        *_consuming(OUTCOMES),
        subjects.ANY_OUTCOME,
        _reading(LOG),
    ),
    Service.AUTHCALLOUT: (subjects.ANY_AUDIT,),
}
