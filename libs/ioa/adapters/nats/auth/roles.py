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

from ioa.adapters.nats.auth.accounts import AGENTS, CALLOUT, CONTROL_PLANE, USERS
from ioa.adapters.nats.streams.compare_and_set import stream_of, subject_of
from ioa.adapters.nats.streams.topology import (
    ANY_AGENT,
    API_KEYS,
    CARDS,
    DELIVERING,
    FILES,
    GATEWAY,
    GOAL_RECORDS,
    HOOKS,
    LEASES,
    LOG,
    MEMBERS,
    OPEN,
    OUTCOMES,
    RESULTS,
    SESSIONS,
    STREAMS,
    TAIL,
    TEAMS,
    TIMERS,
    WEBHOOKS,
    WORK,
    pool_consumer,
)
from ioa.protocol import subjects
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.ids import ADMIN, LOCAL, AgentId, GoalId, GoalName, PoolId, TenantId, UserId

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


_OF_TENANT = re.compile(rf"{CONTROL_PLANE}_([a-z0-9-]+)(?:_[A-Z]+)?")
_API = "$JS.API"
_ANY = "*"
_OBJECTS = f"OBJ_{FILES}"


class Service(StrEnum):
    """The services of the control plane."""

    REGISTRY = "registry"
    GROUPS = "groups"
    ROUTER = "router"
    DISCOVERY = "discovery"
    AUTHCALLOUT = "authcallout"
    """Only where third parties are let in."""


OURS = frozenset({LOCAL, ADMIN, *Service, "intake", "group-setup", "observers"})
"""Names of the system's own: of the user of a server without keys, of admins, and of services in the audit log."""


@dataclass(frozen=True)
class Answering:
    """How often a holder may reply to a message that it received, and for how many seconds."""

    times: int
    seconds: int


@dataclass(frozen=True)
class Permissions:
    """The permissions of a credential, in addition to the inbox of its replies.

    Attributes:
        account: One of the three accounts of the tenant.
        publish: Subjects that it may publish to.
        subscribe: Subjects that it may subscribe to.
        denied: Subjects among `publish` that it may not publish to.
        answering: Permission to reply to messages that it receives.
        tenant: The tenant of the credential.
    """

    account: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    denied: tuple[str, ...] = ()
    answering: Answering | None = None
    tenant: TenantId | None = None


_ANSWERS_ONCE = Answering(times=1, seconds=60)
_ACKNOWLEDGES = Answering(times=10_000, seconds=3_600)
"""Acknowledgements of goals that an agent took from a queue: progress, and the end."""


def of_service(service: Service) -> Permissions:
    """Return the permissions of a service. Registry, group setup and router share one role."""
    if service in _WRITERS:
        return Permissions(CONTROL_PLANE, (">",), (">",), denied=_KEPT)
    own = ("", f".ioa-{service}", f".ioa-{service}.*")
    served = (*_SERVED[service], *(f"$SRV.{verb}{of}" for verb in ("PING", "INFO", "STATS") for of in own))
    return Permissions(CONTROL_PLANE, (f"{_API}.STREAM.NAMES", *_NEEDED[service]), served, answering=_ANSWERS_ONCE)


def of_agent(agent_id: AgentId, pool: PoolId) -> Permissions:
    """Return the permissions of an agent: its own requests and inbox, and goals for its pool and for any agent."""
    queues = (*(f"{PULLS}{queue}" for queue in (ANY_AGENT, pool_consumer(pool))),)
    publish = (f"{subjects.ROOT}.agent.{pool}.{agent_id}.>", *queues)
    return Permissions(AGENTS, publish, (subjects.inbox(agent_id, _ANY),), answering=_ACKNOWLEDGES)


def of_user(user: UserId) -> Permissions:
    """Return the permissions of a user: publish, read, follow, cancel and answer its own goals."""
    publish = (
        subjects.goal_of(user),
        subjects.goal_to(user, AgentId(_ANY)),
        f"{subjects.ROOT}.user.{user}.>",
        WHO_AM_I,
        *_STATISTICS,
    )
    heard = (subjects.result_of(GoalName(user, GoalId(_ANY))), f"{subjects.ROOT}.live.{user}.*.*")
    return Permissions(USERS, publish, heard)


def of_gateway() -> Permissions:
    """Return the permissions of the gateway: requests of every user, reads of all goals, and its own stores.

    It enforces the scopes of keys itself. It reads results and logs in the order of the streams, for webhooks.
    """
    anybody = of_user(UserId(_ANY))
    streams = map(_listing, (RESULTS, LOG, stream_of(GOAL_RECORDS)))
    reads = (f"{subjects.ROOT}.reader.*.>", *streams)
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


def of_observer(name: str) -> Permissions:
    """Return the permissions of an observer: status requests, without content."""
    return Permissions(USERS, (f"{subjects.ROOT}.observer.{name}.>", WHO_AM_I, *_STATISTICS), ())


def of_auditor(name: str) -> Permissions:
    """Return the permissions of an auditor: read the audit log."""
    return Permissions(USERS, (f"{subjects.ROOT}.auditor.{name}.>", WHO_AM_I), (subjects.ANY_AUDIT,))


def of_callout() -> Permissions:
    """Return the permissions of the auth callout's second connection, which receives the requests of nats-server."""
    return Permissions(CALLOUT, (), (WHO_IS_THIS,), answering=_ANSWERS_ONCE)


def of_admin() -> Permissions:
    """Return the permissions of an admin: everything in the account of the control plane."""
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
    """The subjects that an account imports from the control plane: of requests and of messages to it."""

    requests: tuple[str, ...]
    pushes: tuple[str, ...]


_INFORMATION = f"{_API}.INFO"
"""Without this import, the server itself answers all JetStream requests of the account, by an error. No role outside may publish to
it."""
CROSSINGS = {
    AGENTS: Crossing(
        (_INFORMATION, f"{subjects.ROOT}.agent.>", f"{PULLS}*", TAKEN),
        (subjects.ANY_INBOX,),
    ),
    USERS: Crossing(
        (
            _INFORMATION,
            *(f"{subjects.ROOT}.{role}.>" for role in ("goal", "user", "reader", "observer", "auditor", "hook", "dead")),
            "$SRV.>",
            "$KV.>",
            f"{READS}>",
            f"{_API}.STREAM.MSG.GET.>",
            f"{_API}.STREAM.PURGE.>",
            f"{_API}.STREAM.INFO.>",
            f"{_NEXT}{HOOKS}.>",
            f"$JS.ACK.{HOOKS}.>",
        ),
        (subjects.ANY_RESULT, subjects.ANY_LIVE, subjects.ANY_AUDIT),
    ),
}
"""The imports of the accounts of agents and users. A permission of a role limits its holders further."""


def is_answered_often(subject: str) -> bool:
    """Return whether a request on an imported subject can have several replies."""
    return subject in ("$SRV.>", f"{READS}>")


def _reading(stream: str) -> str:
    return f"{_API}.STREAM.MSG.GET.{stream}"


def _listing(stream: str) -> str:
    """Read messages past the line in which JetStream answers all other requests, one or many at once."""
    return f"{READS}{stream}"


def _removing(stream: str) -> str:
    """Remove messages by subject. Which subject stands in the request, so that no permission tells."""
    return f"{_API}.STREAM.PURGE.{stream}"


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


def _working_off(stream: str, durable: str) -> tuple[str, ...]:
    return (f"{_NEXT}{stream}.{durable}", f"$JS.ACK.{stream}.{durable}.>")


_STATISTICS = tuple(f"$SRV.{verb}{of}" for verb in ("PING", "INFO", "STATS") for of in ("", ".*"))
_WRITERS = (Service.REGISTRY, Service.GROUPS, Service.ROUTER)
_PURGED = (LOG, RESULTS, TIMERS, _OBJECTS, *map(stream_of, (GOAL_RECORDS, MEMBERS, OPEN, TEAMS)))
"""Streams from which group setup and routers remove messages: of goals that ended, and of keys."""
_KEPT = (
    f"{_API}.STREAM.DELETE.>",
    *(f"{_API}.STREAM.PURGE.{stream}" for stream in STREAMS if stream not in _PURGED),
    *(f"{_API}.STREAM.MSG.DELETE.{stream}" for stream in STREAMS if stream != WORK),
)
"""Requests that no service may send: they would remove streams, or messages of streams that only grow."""
_SERVED = {
    Service.DISCOVERY: (
        subjects.any_agent(subjects.SEARCH),
        subjects.any_user(subjects.SEARCH),
        subjects.GROUP_SEARCH,
        subjects.any_agent(subjects.REPORT),
        *subjects.any_status(subjects.INDEX_STATUS),
    ),
    Service.AUTHCALLOUT: subjects.any_status(subjects.CALLOUT_STATUS),
}
_NEEDED = {
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
