"""The permissions of each role, from which the accounts of nats-server are rendered.

The control plane and JetStream are in one account, agents in another, users and observers in a third. The last two import a few
subjects from the first. Between accounts, nats-server delivers a reply only to the account that sent the request, so no caller can
direct a reply to a subject of the control plane or of another role. This holds for imports with a wildcard only: to a subject
without one, the server also delivers replies. No client outside the control plane may create a consumer, because the server does
not check the delivery subject of a consumer against permissions.

Each tenant has three such accounts. Nothing crosses from one tenant to another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ioa.adapters.nats.streams.topology import (
    ANY_AGENT,
    API_KEYS,
    CARDS,
    DELIVERING,
    FILES,
    GOAL_RECORDS,
    HOOKS,
    LEASES,
    LOG,
    MEMBERS,
    NOTIFYING,
    OPEN,
    OUTCOMES,
    RESULTS,
    SESSIONS,
    STREAMS,
    TEAMS,
    TIMERS,
    WEBHOOKS,
    WORK,
    pool_consumer,
    stream_of,
    subject_of,
)
from ioa.protocol import subjects
from ioa.protocol.ids import ADMIN, LOCAL, AgentId, GoalId, GoalName, PoolId, TenantId, UserId
from ioa.protocol.operation.dead_letters import DeadReason

CONTROL_PLANE, AGENTS, USERS = "IOA", "IOA_AGENTS", "IOA_USERS"
"""Names of the three accounts of the tenant without a name."""
CALLOUT = "IOA_CALLOUT"
"""Account in which nats-server asks an auth callout. Only the callout enters it, because the requests contain tokens."""

WHO_AM_I = "$SYS.REQ.USER.INFO"
"""Subject on which nats-server returns the permissions of a connection. It answers in every account, without an import."""
WHO_IS_THIS = "$SYS.REQ.USER.AUTH"
"""Subject on which nats-server asks an auth callout about a connection without a known key (NATS ADR-26)."""

_API = "$JS.API"
READS = f"{_API}.DIRECT.GET."
"""Prefix of the subjects of direct gets, which the control plane and the gateway use. Users send read requests to group setup."""
PULLS = f"{_API}.CONSUMER.MSG.NEXT.{WORK}."
"""Prefix of the subjects on which agents pull goals."""
_ACCOUNT_OF_TENANT = re.compile(rf"{CONTROL_PLANE}_([a-z0-9-]+)(?:_[A-Z]+)?")


class Service(StrEnum):
    """The services of the control plane. `authcallout` runs only if third parties connect by tokens."""

    REGISTRY = "registry"
    GROUPS = "groups"
    ROUTER = "router"
    DISCOVERY = "discovery"
    AUTHCALLOUT = "authcallout"


OURS = frozenset({LOCAL, ADMIN, *Service, "intake", "group-setup", "observers"})
"""Names of the system's own: of the user of a server without keys, of admins, and of services in the audit log."""


class Replies(NamedTuple):
    """How often a connection may reply to one received message, and for how many seconds."""

    times: int
    seconds: int


@dataclass(frozen=True)
class Permissions:
    """The permissions of a credential, in addition to the inbox of its replies. `denied` are exceptions from `publish`."""

    account: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    replies: Replies | None = None
    tenant: TenantId | None = None


_ONE_REPLY = Replies(times=1, seconds=60)
_ACKNOWLEDGEMENTS = Replies(times=10_000, seconds=3_600)
"""Acknowledgements of a pulled goal: progress, and the end."""


def of_service(service: Service) -> Permissions:
    """Return the permissions of a service. Registry, group setup and router share one role."""
    match service:
        case Service.DISCOVERY:
            needed = (
                *(request for stream in (*map(stream_of, (CARDS, LEASES, SESSIONS)), OUTCOMES) for request in _consume(stream)),
                *(f"{_API}.STREAM.MSG.GET.{stream}" for stream in (stream_of(SESSIONS), LOG)),
                subjects.ANY_OUTCOME,
            )
            served = (
                *(subject(subjects.SEARCH) for subject in (subjects.any_agent, subjects.any_user)),
                subjects.GROUP_SEARCH,
                subjects.any_agent(subjects.REPORT),
                *subjects.any_status(subjects.INDEX_STATUS),
                *(f"$SRV.{verb}{of}" for verb in _STATISTICS for of in ("", f".ioa-{service}", f".ioa-{service}.*")),
            )
            return Permissions(CONTROL_PLANE, needed, served, replies=_ONE_REPLY)
        case Service.AUTHCALLOUT:
            return Permissions(CONTROL_PLANE, (subjects.ANY_AUDIT,))
        case _:
            return Permissions(CONTROL_PLANE, (">",), (">",), denied=_RETAINED)


def of_agent(agent_id: AgentId, pool: PoolId) -> Permissions:
    """Return the permissions of an agent: its own requests and inbox, and goals for its pool and for any agent."""
    queues = (f"{PULLS}{queue}" for queue in (ANY_AGENT, pool_consumer(pool)))
    publish = (f"{subjects.ROOT}.agent.{pool}.{agent_id}.>", *queues)
    return Permissions(AGENTS, publish, (subjects.inbox(agent_id, "*"),), replies=_ACKNOWLEDGEMENTS)


def of_user(user: UserId) -> Permissions:
    """Return the permissions of a user: publish, read, follow, cancel and answer its own goals."""
    publish = (subjects.goal_of(user), subjects.goal_to(user, AgentId("*")), f"{subjects.ROOT}.user.{user}.>", *_LOOK)
    return Permissions(USERS, publish, (subjects.result_of(GoalName(user, GoalId("*"))), f"{subjects.ROOT}.live.{user}.*.*"))


def of_gateway() -> Permissions:
    """Return the permissions of the gateway: requests of every user, reads of all goals, and its own stores.

    It enforces the scopes of keys itself. It reads results for webhooks.
    """
    any_user, own = of_user(UserId("*")), (*map(stream_of, (API_KEYS, WEBHOOKS)),)
    publish = (
        *any_user.publish,
        f"{subjects.ROOT}.reader.*.>",
        *(f"{READS}{stream}" for stream in (RESULTS, stream_of(GOAL_RECORDS), *own)),
        *(f"{_API}.STREAM.MSG.GET.{stream}" for stream in own),
        *(subject_of(API_KEYS, key) for key in ("once.*", "out.*", "cookie")),
        subject_of(WEBHOOKS, "*"),
        f"{_API}.STREAM.PURGE.{stream_of(WEBHOOKS)}",
        subjects.ANY_HOOK,
        subjects.dead(DeadReason.WEBHOOK),
        *(f"{_API}.CONSUMER.MSG.NEXT.{queue}" for queue in _GATEWAY_QUEUES),
        *(f"$JS.ACK.{queue}.>" for queue in _GATEWAY_QUEUES),
    )
    return Permissions(USERS, publish, any_user.subscribe)


def of_observer(name: str) -> Permissions:
    """Return the permissions of an observer: status requests, without content."""
    return Permissions(USERS, (f"{subjects.ROOT}.observer.{name}.>", *_LOOK))


def of_auditor(name: str) -> Permissions:
    """Return the permissions of an auditor: read the audit log."""
    return Permissions(USERS, (f"{subjects.ROOT}.auditor.{name}.>", WHO_AM_I), (subjects.ANY_AUDIT,))


def of_callout() -> Permissions:
    """Return the permissions of the auth callout's second connection, which receives the requests of nats-server."""
    return Permissions(CALLOUT, (), (WHO_IS_THIS,), replies=_ONE_REPLY)


def of_admin() -> Permissions:
    """Return the permissions of an admin: everything in the account of the control plane."""
    return Permissions(CONTROL_PLANE, (">",), (">",))


def account_name(account: str, tenant: TenantId | None) -> str:
    """Return the name of a tenant's account, such as `IOA_acme_AGENTS`. Names of tenants contain no capitals and no `_`."""
    return account if tenant is None else account.replace(CONTROL_PLANE, f"{CONTROL_PLANE}_{tenant}", 1)


def read_tenant(account: str) -> TenantId | None:
    """Return the tenant in the name of an account; None for the tenant without a name."""
    found = _ACCOUNT_OF_TENANT.fullmatch(account)
    return None if found is None else TenantId(found[1])


def _consume(stream: str) -> tuple[str, ...]:
    """Return the requests with which a client reads a stream by a consumer of its own."""
    consumer = f"{_API}.CONSUMER"
    return (
        f"{_API}.STREAM.INFO.{stream}",
        *(f"{consumer}.CREATE.{stream}{rest}" for rest in ("", ".>")),
        *(f"{consumer}.{verb}.{stream}.*" for verb in ("INFO", "DELETE")),
        f"$JS.FC.{stream}.>",
    )


_GATEWAY_QUEUES = (f"{RESULTS}.{NOTIFYING}", f"{HOOKS}.{DELIVERING}")
_STATISTICS = ("PING", "INFO", "STATS")
_LOOK = (WHO_AM_I, *(f"$SRV.{verb}{of}" for verb in _STATISTICS for of in ("", ".*")))
_PURGED = (LOG, RESULTS, TIMERS, f"OBJ_{FILES}", *map(stream_of, (GOAL_RECORDS, MEMBERS, OPEN, TEAMS)))
"""Streams from which group setup and routers remove messages: of goals that ended, and of keys."""
_RETAINED = (
    f"{_API}.STREAM.DELETE.>",
    *(f"{_API}.STREAM.PURGE.{stream}" for stream in STREAMS if stream not in _PURGED),
    *(f"{_API}.STREAM.MSG.DELETE.{stream}" for stream in STREAMS if stream != WORK),
)
"""Requests that no service may send: they would remove streams, or messages of streams that only grow."""

REQUESTS_OF: dict[str, tuple[str, ...]] = {
    AGENTS: (f"{_API}.INFO", f"{subjects.ROOT}.agent.>", f"{PULLS}*", f"$JS.ACK.{WORK}.>"),
    USERS: (
        f"{_API}.INFO",
        *(f"{subjects.ROOT}.{role}.>" for role in ("goal", "user", "reader", "observer", "auditor", "hook", "dead")),
        "$SRV.>",
        "$KV.>",
        f"{READS}>",
        *(f"{_API}.STREAM.{verb}.>" for verb in ("MSG.GET", "PURGE")),
        *(f"{_API}.CONSUMER.MSG.NEXT.{stream}.>" for stream in (RESULTS, HOOKS)),
        *(f"$JS.ACK.{stream}.>" for stream in (RESULTS, HOOKS)),
    ),
}
"""Subjects to which agents and users send requests in the control plane. A permission of a role limits its holders further.

Without `$JS.API.INFO`, nats-server answers all JetStream requests of the account with an error. No role may publish to it.
"""
PUSHES_TO = {AGENTS: (subjects.ANY_INBOX,), USERS: (subjects.ANY_RESULT, subjects.ANY_LIVE, subjects.ANY_AUDIT)}
"""Subjects on which the control plane sends messages to agents and users."""
MANY_REPLIES = ("$SRV.>", f"{READS}>")
"""Subjects of requests with several replies."""
