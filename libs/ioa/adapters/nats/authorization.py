"""The part of a nats-server's configuration that says who may connect, as what, rendered from `ioa.adapters.nats.permissions`."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ConfigDict, Field

from ioa.adapters.nats.accounts import AGENTS, CALLOUT, CONTROL_PLANE, USERS
from ioa.adapters.nats.keys import subject_of
from ioa.adapters.nats.permissions import (
    Permissions,
    Service,
    account_of,
    crossings,
    is_answered_often,
    of_admin,
    of_agent,
    of_auditor,
    of_callout,
    of_gateway,
    of_observer,
    of_service,
    of_user,
    tenant_of,
)
from ioa.adapters.nats.topology import API_KEYS, STREAMS, WORK, pool_consumer
from ioa.errors import InvalidInputError
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, PoolId, TenantId, UserId, full_name
from ioa.protocol.model import Model
from ioa.protocol.subjects import inbox_prefix_of

_RESPONSE_THRESHOLD = "16s"
"""How long nats-server keeps the route of a reply that crosses accounts: the longest timeout of our requests, and a second."""
_TOKEN_LINE_BYTES = 8 * 1024
"""How long the line may be by which a client says who it is: a token and whatever else, before anybody knows him.

The default is 4 KiB. Of a name in it nats-server tells whom it asks sixteen times as much, and in lists of who is connected
six times."""
_INBOX = re.compile(re.escape(inbox_prefix_of("")) + r"(U[A-Z2-7]{55})\.>")
_SERVICE = re.compile(r"\$SRV\.PING\.ioa-([a-z]+)")
_AGENT = re.compile(r"ioa\.v1\.comm\.\*\.say\.([A-Za-z0-9_-]+)")
_USER = re.compile(r"ioa\.v1\.groups\.cancel\.([A-Za-z0-9_-]+)")
_COOKIE = subject_of(API_KEYS, "cookie")
_POOL = re.compile(rf"\$JS\.API\.CONSUMER\.MSG\.NEXT\.{WORK}\.{pool_consumer(PoolId(''))}([A-Za-z0-9_-]+)")


class AccountLimits(Model):
    """What all of a tenant may have together: a hostile agent can use up its agents' share, and nobody else's.

    For each connection that reads nothing the server keeps 9 MB: those of agents and users have to fit into its memory.
    """

    model_config = ConfigDict(extra="forbid")

    max_file: int | None = Field(
        default=None, gt=0, description="how many bytes JetStream stores; as many as there is room for if None"
    )
    max_mem: int | None = Field(default=None, ge=0, description="how many bytes of them in memory, where nothing of ours is")
    max_streams: int | None = Field(default=None, ge=len(STREAMS), description="how many streams there are, ours included")
    max_consumers: int | None = Field(
        default=None, gt=0, description="how many consumers each stream has: one for a pool, and for a user who launches goals"
    )
    service_connections: int = Field(default=200, gt=0)
    service_subscriptions: int | None = Field(default=None, gt=0, description="on each connection, as all numbers of subscriptions")
    agent_connections: int = Field(default=250, gt=0)
    agent_subscriptions: int = Field(default=20_000, gt=0)
    user_connections: int = Field(default=150, gt=0)
    user_subscriptions: int = Field(default=20_000, gt=0)


_STORING = ("max_file", "max_mem", "max_streams", "max_consumers")
_OF_A_TENANT = {"max_mem": 0, "max_streams": 32, "max_consumers": 2_000}
"""What a tenant with a name has if nothing else is said: its admin makes streams and consumers as he likes, each of which takes
memory of a server that is everybody's. Whose server it is, who has the tenant without a name, is bounded by what he says alone."""
SUBSCRIPTIONS_BESIDES = 1_000
"""How many subscriptions a service has at most, besides one for each consumer from which it takes the goals of a user."""

_LIMITED = {
    CONTROL_PLANE: {"max_connections": "service_connections", "max_subscriptions": "service_subscriptions"},
    AGENTS: {"max_connections": "agent_connections", "max_subscriptions": "agent_subscriptions"},
    USERS: {"max_connections": "user_connections", "max_subscriptions": "user_subscriptions"},
}
"""What nats-server calls the limits, in each of the accounts."""


@dataclass(frozen=True)
class Callout:
    """Who is asked about everybody whose key is not known here (NATS ADR-26). The server takes no other one at a reload.

    Attributes:
        user: The public key of who is asked.
        issuer: That of the account's key which signs the answers.
    """

    user: str
    issuer: str


def authorization(
    users: Mapping[str, Permissions],
    callout: Callout | None = None,
    tenants: Mapping[TenantId, AccountLimits] | None = None,
    own: AccountLimits | None = None,
) -> str:
    """Render the accounts of a server, in JSON, which nats-server reads and includes like its own notation.

    Args:
        users: What each may do, by public key.
        callout: Who says what everybody else may do; nobody else is let in if None.
        tenants: What each may use up; those of `users` that are not named here have the usual limits.
        own: What the tenant without a name may use up; the usual limits if None.
    """
    limits = {may.tenant: AccountLimits() for may in users.values() if may.tenant is not None} | dict(tenants or {})
    accounts = _accounts(None, own or AccountLimits(), users)
    for tenant, bounds in sorted(limits.items()):
        accounts |= _accounts(tenant, bounds, users)
    asked: dict[str, Any] = {}
    if callout is not None:
        accounts[CALLOUT] = {"users": [_user(callout.user, of_callout())]}
        # Who is let in by a key is so into an account that is not delegated, and nobody is asked about him: keys come and go by a
        # reload, and need no callout to connect.
        known = {"auth_users": [callout.user], "allowed_accounts": [CALLOUT]}
        block = {"auth_callout": {"issuer": callout.issuer, "account": CALLOUT} | known}
        asked = {"authorization": block, "max_control_line": _TOKEN_LINE_BYTES}
    return _whole(accounts, asked)


def _whole(accounts: Mapping[str, Mapping[str, Any]], others: Mapping[str, Any]) -> str:
    written = ",\n".join(f"{json.dumps(name)}: {_written(account)}" for name, account in accounts.items())
    after = "".join(f",\n{json.dumps(name)}: {json.dumps(value)}" for name, value in others.items())
    return f'{{"accounts": {{\n{written}\n}}{after}}}\n'


def _accounts(tenant: TenantId | None, limits: AccountLimits, users: Mapping[str, Permissions]) -> dict[str, dict[str, Any]]:
    """Return the three accounts of a tenant. They import from each other, and from no other account."""
    importers: dict[tuple[str, str], list[str]] = defaultdict(list)
    control_plane = account_of(CONTROL_PLANE, tenant)
    accounts: dict[str, dict[str, Any]] = {}
    for side, crossing in crossings().items():
        crossed = [("service", subject) for subject in crossing.requests] + [("stream", subject) for subject in crossing.pushes]
        for kind, subject in crossed:
            importers[kind, subject].append(account_of(side, tenant))
        accounts[side] = {
            "imports": [_imported(kind, control_plane, subject, shown=subject in crossing.shown) for kind, subject in crossed]
        }
    exports = [_exported(kind, subject, names) for (kind, subject), names in importers.items()]
    bounds = limits if tenant is None else _of_a_tenant(limits)
    stored = {limit: value for limit in _STORING if (value := getattr(bounds, limit)) is not None}
    accounts = {CONTROL_PLANE: {"jetstream": stored or "enabled", "exports": exports}} | accounts
    for side, account in accounts.items():
        of_account = {limit: getattr(bounds, field) for limit, field in _LIMITED[side].items()}
        account["limits"] = {limit: value for limit, value in of_account.items() if value is not None}
        account["users"] = [_user(key, may) for key, may in sorted(users.items()) if (may.account, may.tenant) == (side, tenant)]
    return {account_of(side, tenant): account for side, account in accounts.items()}


def _of_a_tenant(limits: AccountLimits) -> AccountLimits:
    """Return what a tenant with a name may have, with what is usual for what was not said."""
    unsaid = {limit: usual for limit, usual in _OF_A_TENANT.items() if getattr(limits, limit) is None}
    bounds = limits.model_copy(update=unsaid)
    if bounds.service_subscriptions is not None or bounds.max_consumers is None:
        return bounds
    return bounds.model_copy(update={"service_subscriptions": bounds.max_consumers + SUBSCRIPTIONS_BESIDES})


def read_tenants(rendered: str) -> dict[TenantId, AccountLimits]:
    """Tell from what was rendered which tenants with a name there are, and what each may use up; none if it was not rendered."""
    return {tenant: limits for tenant, limits in _read_limits(rendered).items() if tenant is not None}


def read_own_limits(rendered: str) -> AccountLimits:
    """Tell from what was rendered what the tenant without a name may use up; the usual limits if it was not rendered."""
    return _read_limits(rendered).get(None, AccountLimits())


def _read_limits(rendered: str) -> dict[TenantId | None, AccountLimits]:
    found: dict[TenantId | None, dict[str, object]] = defaultdict(dict)
    try:
        for name, account in json.loads(rendered)["accounts"].items():
            tenant = tenant_of(name)
            side = name if tenant is None else name.replace(f"_{tenant}", "", 1)
            if side not in _LIMITED:
                continue
            held = account["limits"]
            found[tenant] |= {field: held[limit] for limit, field in _LIMITED[side].items() if limit in held}
            if isinstance(stored := account.get("jetstream"), dict):
                found[tenant] |= {limit: stored[limit] for limit in _STORING if limit in stored}
        return {tenant: _said(tenant, AccountLimits.model_validate(limits)) for tenant, limits in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _said(tenant: TenantId | None, limits: AccountLimits) -> AccountLimits:
    """Leave out what is usual: it follows from the version that renders it."""
    if tenant is None:
        return limits
    rest = limits.model_copy(update={limit: None for limit, usual in _OF_A_TENANT.items() if getattr(limits, limit) == usual})
    unsaid = rest.model_copy(update={"service_subscriptions": None})
    return unsaid if _of_a_tenant(unsaid) == _of_a_tenant(rest) else rest


def read_callout(rendered: str) -> Callout | None:
    """Tell from what was rendered who is asked about those without a key; None if nobody is."""
    try:
        block = json.loads(rendered)["authorization"]["auth_callout"]
        [user] = block["auth_users"]
        return Callout(user, block["issuer"])
    except (ValueError, KeyError, TypeError):
        return None


def names_in(rendered: str) -> frozenset[str]:
    """Return what agents, pools and users are called whose keys this version's authorization lets in, as `full_name` has it."""
    everybody = read_authorization(rendered).values()
    return frozenset(full_name(may.tenant, name) for may in everybody for name in names_of(may))


def names_of(may: Permissions) -> frozenset[str]:
    """Return what an agent and its pool, or a user, are called, by what they may do; nobody else bears a name there."""
    found = (named.fullmatch(one) for one in may.publish for named in (_AGENT, _POOL, _USER))
    return frozenset(match[1] for match in found if match)


def read_authorization(rendered: str) -> dict[str, Permissions]:
    """Return the permissions of each public key in a rendered authorization.

    Raises:
        InvalidInputError: `authorization` did not render it, or a role cannot be determined.
    """
    try:
        accounts = {name: account for name, account in json.loads(rendered)["accounts"].items() if name != CALLOUT}
        users = [
            (tenant_of(name), user["nkey"], user["permissions"]) for name, account in accounts.items() for user in account["users"]
        ]
        allowed = {key: (tenant, [*may["publish"]["allow"]], [*may["subscribe"]["allow"]]) for tenant, key, may in users}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInputError(
            "This is no authorization that `ioa credentials create` has written.", hint="Run that again, and name everybody."
        ) from None
    return {
        key: replace(_role(key, publish, subscribe), inbox_of=_other_inbox(key, subscribe), tenant=tenant)
        for key, (tenant, publish, subscribe) in allowed.items()
    }


def _other_inbox(key: str, subscribe: Sequence[str]) -> str | None:
    owners = [match[1] for one in subscribe if (match := _INBOX.fullmatch(one)) and match[1] != key]
    return owners[0] if owners else None


def _role(key: str, publish: Sequence[str], subscribe: Sequence[str]) -> Permissions:
    """Determine a role by permissions that no other role has."""
    if ">" in publish:
        return of_admin()
    services = {match[1] for one in subscribe if (match := _SERVICE.fullmatch(one))} & set(Service)
    agents = {match[1] for one in publish if (match := _AGENT.fullmatch(one))}
    pools = {match[1] for one in publish if (match := _POOL.fullmatch(one))}
    match [*services], [*agents], [*pools]:
        case [service], [], []:
            return of_service(Service(service))
        case [], [agent], [pool]:
            return of_agent(AgentId(agent), PoolId(pool))
        case [], [], [] if _COOKIE in publish:
            return of_gateway()
        case [], [], [] if user := user_of(publish):
            return of_user(user)
        case [], [], [] if subjects.LIST_AGENTS in publish:
            return of_observer()
        case [], [], [] if subjects.ANY_AUDIT in subscribe:
            return of_auditor()
        case _:
            raise InvalidInputError(
                f"What {key} is cannot be told from the authorization.", hint="Run `ioa credentials create`, and name everybody."
            )


def user_of(publish: Iterable[str]) -> UserId | None:
    """Tell whose goals somebody may publish who may publish on these subjects; None if those of nobody or of several."""
    match [match[1] for one in publish if (match := _USER.fullmatch(one))]:
        case [user]:
            return UserId(user)
        case _:
            return None


def agent_of(publish: Iterable[str]) -> AgentId | None:
    """Tell as which agent somebody speaks who may publish on these subjects; None if he is none."""
    return next((AgentId(match[1]) for one in publish if (match := _AGENT.fullmatch(one))), None)


def role_of(may: Permissions) -> str:
    """Name the role of somebody whom this version's authorization lets in, as `ioa credentials create` names it."""
    fixed = {of_admin().publish: "admin", of_gateway().publish: "gateway", of_observer().publish: "observer"}
    fixed |= {of_auditor().publish: "auditor", **{of_service(service).publish: "service" for service in Service}}
    return fixed.get(may.publish) or ("agent" if user_of(may.publish) is None else "user")


def _written(account: Mapping[str, Any]) -> str:
    """Write an account with a line for each of its exports, imports and users: spread out, a thousand agents fit into no Secret."""

    def field(value: object) -> str:
        return "[\n{}]".format(",\n".join(map(json.dumps, value))) if isinstance(value, list) else json.dumps(value)

    return "{" + ",\n".join(f" {json.dumps(name)}: {field(value)}" for name, value in account.items()) + "}"


def _imported(kind: str, account: str, subject: str, *, shown: bool) -> dict[str, Any]:
    return {kind: {"account": account, "subject": subject}} | ({"share": True} if shown and kind == "service" else {})


def _exported(kind: str, subject: str, importers: Sequence[str]) -> dict[str, Any]:
    exported: dict[str, Any] = {kind: subject, "accounts": list(importers)}
    if kind == "service":
        exported["response_threshold"] = _RESPONSE_THRESHOLD
        if is_answered_often(subject):
            exported["response_type"] = "stream"
    return exported


def _user(public_key: str, may: Permissions) -> dict[str, Any]:
    owners = dict.fromkeys((public_key, may.inbox_of or public_key))
    permissions: dict[str, Any] = {
        "publish": {"allow": list(may.publish)},
        "subscribe": {"allow": [*may.subscribe, *(f"{inbox_prefix_of(owner)}.>" for owner in owners)]},
    }
    if may.answering is not None:
        permissions["allow_responses"] = {"max": may.answering.times, "expires": f"{may.answering.seconds}s"}
    return {"nkey": public_key, "permissions": permissions}
