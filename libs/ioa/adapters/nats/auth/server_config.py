"""The part of a nats-server's configuration that says who may connect, as what, rendered from `ioa.adapters.nats.auth.roles`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, Field

from ioa.adapters.nats.auth.accounts import AGENTS, CALLOUT, CONTROL_PLANE, USERS
from ioa.adapters.nats.auth.roles import CROSSINGS, Permissions, account_of, is_answered_often, of_callout
from ioa.adapters.nats.streams.topology import STREAMS
from ioa.protocol.ids import TenantId
from ioa.protocol.model import Model
from ioa.protocol.subjects import inbox_prefix_of

_RESPONSE_THRESHOLD = "16s"
"""How long nats-server keeps the route of a reply that crosses accounts: the longest timeout of our requests, and a second."""
_TOKEN_LINE_BYTES = 8 * 1024
"""How long the line may be by which a client says who it is: a token and whatever else, before anybody knows him.

The default is 4 KiB. Of a name in it nats-server tells whom it asks sixteen times as much, and in lists of who is connected
six times."""


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


class Callout(Model):
    """The auth callout, which nats-server asks about unknown keys (NATS ADR-26). Changing it needs a restart of the server.

    Attributes:
        user: Public key of the connection that receives the requests.
        issuer: Public key of the account that signs the replies.
    """

    user: str
    issuer: str


@dataclass(frozen=True)
class User:
    """A public key that may connect.

    Attributes:
        public_key: The key.
        name: The name of its holder, after which an inbox is named.
        may: Its permissions.
    """

    public_key: str
    name: str
    may: Permissions


def authorization(
    users: Sequence[User],
    callout: Callout | None = None,
    tenants: Mapping[TenantId, AccountLimits] | None = None,
    own: AccountLimits | None = None,
) -> str:
    """Render the accounts of a server as JSON, which nats-server can include.

    Args:
        users: The public keys that may connect.
        callout: The auth callout; None if unknown keys are rejected.
        tenants: Limits of the tenants with a name. They include the tenant of each user.
        own: Limits of the tenant without a name. None: the defaults.
    """
    limits = dict(tenants or {})
    accounts = _accounts(None, own or AccountLimits(), users)
    for tenant, bounds in sorted(limits.items()):
        accounts |= _accounts(tenant, bounds, users)
    asked: dict[str, Any] = {}
    if callout is not None:
        accounts[CALLOUT] = {"users": [_user(User(callout.user, "asked", of_callout()))]}
        # The server asks only about keys that no account lists.
        known = {"auth_users": [callout.user], "allowed_accounts": [CALLOUT]}
        block = {"auth_callout": {"issuer": callout.issuer, "account": CALLOUT} | known}
        asked = {"authorization": block, "max_control_line": _TOKEN_LINE_BYTES}
    return _whole(accounts, asked)


def _whole(accounts: Mapping[str, Mapping[str, Any]], others: Mapping[str, Any]) -> str:
    written = ",\n".join(f"{json.dumps(name)}: {_written(account)}" for name, account in accounts.items())
    after = "".join(f",\n{json.dumps(name)}: {json.dumps(value)}" for name, value in others.items())
    return f'{{"accounts": {{\n{written}\n}}{after}}}\n'


def _accounts(tenant: TenantId | None, limits: AccountLimits, users: Sequence[User]) -> dict[str, dict[str, Any]]:
    """Return the three accounts of a tenant. They import from each other, and from no other account."""
    importers: dict[tuple[str, str], list[str]] = defaultdict(list)
    control_plane = account_of(CONTROL_PLANE, tenant)
    accounts: dict[str, dict[str, Any]] = {}
    for side, crossing in CROSSINGS.items():
        crossed = [("service", subject) for subject in crossing.requests] + [("stream", subject) for subject in crossing.pushes]
        for kind, subject in crossed:
            importers[kind, subject].append(account_of(side, tenant))
        accounts[side] = {"imports": [{kind: {"account": control_plane, "subject": subject}} for kind, subject in crossed]}
    exports = [_exported(kind, subject, names) for (kind, subject), names in importers.items()]
    bounds = limits if tenant is None else _of_a_tenant(limits)
    stored = {limit: value for limit in _STORING if (value := getattr(bounds, limit)) is not None}
    accounts = {CONTROL_PLANE: {"jetstream": stored or "enabled", "exports": exports}} | accounts
    for side, account in accounts.items():
        of_account = {limit: getattr(bounds, field) for limit, field in _LIMITED[side].items()}
        account["limits"] = {limit: value for limit, value in of_account.items() if value is not None}
        account["users"] = [_user(one) for one in users if (one.may.account, one.may.tenant) == (side, tenant)]
    return {account_of(side, tenant): account for side, account in accounts.items()}


def _of_a_tenant(limits: AccountLimits) -> AccountLimits:
    """Return what a tenant with a name may have, with what is usual for what was not said."""
    unsaid = {limit: usual for limit, usual in _OF_A_TENANT.items() if getattr(limits, limit) is None}
    bounds = limits.model_copy(update=unsaid)
    if bounds.service_subscriptions is not None or bounds.max_consumers is None:
        return bounds
    return bounds.model_copy(update={"service_subscriptions": bounds.max_consumers + SUBSCRIPTIONS_BESIDES})


def _written(account: Mapping[str, Any]) -> str:
    """Write an account with a line for each of its exports, imports and users: spread out, a thousand agents fit into no Secret."""

    def field(value: object) -> str:
        return "[\n{}]".format(",\n".join(map(json.dumps, value))) if isinstance(value, list) else json.dumps(value)

    return "{" + ",\n".join(f" {json.dumps(name)}: {field(value)}" for name, value in account.items()) + "}"


def _exported(kind: str, subject: str, importers: Sequence[str]) -> dict[str, Any]:
    exported: dict[str, Any] = {kind: subject, "accounts": list(importers)}
    if kind == "service":
        exported["response_threshold"] = _RESPONSE_THRESHOLD
        if is_answered_often(subject):
            exported["response_type"] = "stream"
    return exported


def _user(user: User) -> dict[str, Any]:
    may, owners = user.may, (user.name, user.public_key)
    permissions: dict[str, Any] = {
        "publish": {"allow": list(may.publish)} | ({"deny": list(may.denied)} if may.denied else {}),
        "subscribe": {"allow": [*may.subscribe, *(f"{inbox_prefix_of(owner)}.>" for owner in owners)]},
    }
    if may.answering is not None:
        permissions["allow_responses"] = {"max": may.answering.times, "expires": f"{may.answering.seconds}s"}
    return {"nkey": user.public_key, "permissions": permissions}
