"""The accounts and users in the configuration of a nats-server, rendered from `ioa.adapters.nats.auth.roles`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, Field

from ioa.adapters.nats.auth import roles
from ioa.adapters.nats.streams.topology import STREAMS
from ioa.protocol.ids import TenantId
from ioa.protocol.model import Model
from ioa.protocol.subjects import inbox_prefix_of

_RESPONSE_THRESHOLD = "16s"
"""Time for which nats-server keeps the route of a reply between accounts: the longest timeout of a request, and a second."""
_TOKEN_LINE_BYTES = 8 * 1024
"""Maximum size of the line with which a client connects and which contains its token. The default of 4 KiB is too small."""
_SUBSCRIPTIONS_WITHOUT_USERS = 1_000
"""Subscriptions of a service in addition to one for each consumer of a user's goals."""


class AccountLimits(Model):
    """Limits of a tenant. For each connection that reads nothing, nats-server uses up to 9 MB of memory."""

    model_config = ConfigDict(extra="forbid")

    max_file: int | None = Field(default=None, gt=0, description="bytes that JetStream stores; None: as many as the disk has")
    max_mem: int | None = Field(default=None, ge=0, description="bytes that JetStream stores in memory; IoA stores none")
    max_streams: int | None = Field(default=None, ge=len(STREAMS), description="streams, IoA's included")
    max_consumers: int | None = Field(default=None, gt=0, description="consumers per stream; a pool and a user need one each")
    service_connections: int = Field(default=200, gt=0)
    service_subscriptions: int | None = Field(default=None, gt=0, description="subscriptions per connection")
    agent_connections: int = Field(default=250, gt=0)
    agent_subscriptions: int = Field(default=20_000, gt=0)
    user_connections: int = Field(default=150, gt=0)
    user_subscriptions: int = Field(default=20_000, gt=0)

    def with_defaults_of_tenant(self) -> AccountLimits:
        """Return the limits of a tenant with a name: its admin can create streams and consumers, which use shared memory."""
        defaults = {"max_mem": 0, "max_streams": 32, "max_consumers": 2_000}
        defaults["service_subscriptions"] = (self.max_consumers or defaults["max_consumers"]) + _SUBSCRIPTIONS_WITHOUT_USERS
        return self.model_copy(update={name: value for name, value in defaults.items() if getattr(self, name) is None})


_STORAGE = ("max_file", "max_mem", "max_streams", "max_consumers")
_PREFIXES = {roles.CONTROL_PLANE: "service", roles.AGENTS: "agent", roles.USERS: "user"}
"""Prefixes of the limits of each account."""


class Callout(Model):
    """The auth callout, which nats-server asks about unknown keys (NATS ADR-26). Changing it needs a restart of the server.

    `user` is the public key of the connection that receives the requests, `issuer` the key of the account that signs the replies.
    """

    user: str
    issuer: str


@dataclass(frozen=True)
class User:
    """A public key that may connect, and the name of its holder, which is the owner of an inbox."""

    public_key: str
    name: str
    may: roles.Permissions


def authorization(
    users: Sequence[User],
    callout: Callout | None = None,
    tenants: Mapping[TenantId, AccountLimits] | None = None,
    own: AccountLimits | None = None,
) -> str:
    """Render the accounts of a server as JSON, which nats-server can include.

    Without `callout`, unknown keys are rejected. `tenants` contains the limits of named tenants, `own` the limits of the tenant
    without a name.
    """
    accounts = _accounts(None, own or AccountLimits(), users)
    for tenant, limits in sorted((tenants or {}).items()):
        accounts |= _accounts(tenant, limits.with_defaults_of_tenant(), users)
    others: dict[str, Any] = {}
    if callout is not None:
        accounts[roles.CALLOUT] = {"users": [_user(User(callout.user, "asked", roles.of_callout()))]}
        # The server asks only about keys that no account lists.
        allowed = {"auth_users": [callout.user], "allowed_accounts": [roles.CALLOUT]}
        asked = {"issuer": callout.issuer, "account": roles.CALLOUT, **allowed}
        others = {"authorization": {"auth_callout": asked}, "max_control_line": _TOKEN_LINE_BYTES}
    # Indented, a thousand agents would not fit into a Secret.
    return json.dumps({"accounts": accounts, **others}) + "\n"


def _accounts(tenant: TenantId | None, limits: AccountLimits, users: Sequence[User]) -> dict[str, dict[str, Any]]:
    """Return the three accounts of a tenant. They import from each other, and from no other account."""
    control_plane, importers = roles.account_name(roles.CONTROL_PLANE, tenant), defaultdict[tuple[str, str], list[str]](list)
    storage = {limit: value for limit in _STORAGE if (value := getattr(limits, limit)) is not None}
    accounts: dict[str, dict[str, Any]] = {roles.CONTROL_PLANE: {"jetstream": storage or "enabled"}}
    for name in roles.REQUESTS_OF:
        imported = [("service", one) for one in roles.REQUESTS_OF[name]] + [("stream", one) for one in roles.PUSHES_TO[name]]
        for one in imported:
            importers[one].append(roles.account_name(name, tenant))
        accounts[name] = {"imports": [{kind: {"account": control_plane, "subject": subject}} for kind, subject in imported]}
    accounts[roles.CONTROL_PLANE]["exports"] = [_export(kind, subject, names) for (kind, subject), names in importers.items()]
    for name, account in accounts.items():
        bounds = {f"max_{what}": getattr(limits, f"{_PREFIXES[name]}_{what}") for what in ("connections", "subscriptions")}
        account["limits"] = {limit: value for limit, value in bounds.items() if value is not None}
        account["users"] = [_user(one) for one in users if (one.may.account, one.may.tenant) == (name, tenant)]
    return {roles.account_name(name, tenant): account for name, account in accounts.items()}


def _export(kind: str, subject: str, importers: Iterable[str]) -> dict[str, Any]:
    exported: dict[str, Any] = {kind: subject, "accounts": list(importers)}
    if kind == "service":
        exported["response_threshold"] = _RESPONSE_THRESHOLD
        if subject in roles.MANY_REPLIES:
            exported["response_type"] = "stream"
    return exported


def _user(user: User) -> dict[str, Any]:
    may, inboxes = user.may, (f"{inbox_prefix_of(owner)}.>" for owner in (user.name, user.public_key))
    permissions: dict[str, Any] = {"publish": {"allow": list(may.publish)}, "subscribe": {"allow": [*may.subscribe, *inboxes]}}
    if may.denied:
        permissions["publish"]["deny"] = list(may.denied)
    if may.replies is not None:
        permissions["allow_responses"] = {"max": may.replies.times, "expires": f"{may.replies.seconds}s"}
    return {"nkey": user.public_key, "permissions": permissions}
