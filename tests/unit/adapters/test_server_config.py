"""The rendered authorization: permissions, accounts and limits of tenants, and the connection limits of the chart."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from ioa.adapters.nats.auth import roles
from ioa.adapters.nats.auth.roles import Service, account_name, of_agent, of_service, of_user, read_tenant
from ioa.adapters.nats.auth.server_config import AccountLimits, User, authorization
from ioa.adapters.nats.delivery.work_queue import _PULL_SECONDS
from ioa.adapters.nats.requests.request import SEARCH_TIMEOUT
from ioa.adapters.nats.wire.embedded_server import MAX_SUBSCRIBED_PARTS
from ioa.protocol.ids import AgentId, PoolId, TenantId, UserId, check_tenant
from tools.subjects_page import covers

_ROOT = Path(__file__).parents[3]
ACME, UMBRA = TenantId("acme"), TenantId("umbra-2")
ADA = of_agent(AgentId("ada"), PoolId("sums"))
ANNA = of_user(UserId("anna"))
KEYS = [
    User("A", "ada", replace(ADA, tenant=ACME)),
    User("B", "anna", replace(ANNA, tenant=ACME)),
    User("C", "ada", replace(ADA, tenant=UMBRA)),
    User("D", "anna", ANNA),
]
BOTH = {ACME: AccountLimits(), UMBRA: AccountLimits()}
SMALL = AccountLimits(max_file=1_000_000, agent_connections=7, user_subscriptions=9)
OUTSIDE = {"agent": ADA, "user": ANNA, "observer": roles.of_observer("eye"), "auditor": roles.of_auditor("tom")}
EVERYBODY = OUTSIDE | {service.value: of_service(service) for service in Service}


def test_reply_routes_are_kept_longer_than_our_requests_wait() -> None:
    """A reply that arrives while its caller waits is delivered, also to a pull."""
    accounts = json.loads(authorization([User("KEY", "ada", ADA)]))["accounts"]
    exported = [one for one in accounts["IOA"]["exports"] if "service" in one]
    assert {one["response_threshold"] for one in exported} == {"16s"}
    assert max(timedelta(seconds=_PULL_SECONDS), SEARCH_TIMEOUT) < timedelta(seconds=16)
    (pulls,) = (one for one in exported if one["service"] == f"{roles.PULLS}*")
    assert "response_type" not in pulls, "all that have been answered would be kept as well"


def test_nothing_crosses_twice() -> None:
    """Two imports that hold the same subject would deliver one request twice."""
    for subjects in (*roles.REQUESTS_OF.values(), *roles.PUSHES_TO.values()):
        assert [(a, b) for a in subjects for b in subjects if a != b and covers(a, b)] == []


def test_who_does_no_more_than_he_should_subscribes_to_subjects_of_few_parts() -> None:
    """The server takes none with many, each of which takes it memory; below an inbox and what a service is sent there is room."""
    listened = [one for may in EVERYBODY.values() for one in may.subscribe]
    assert max(len(one.split(".")) for one in listened) < MAX_SUBSCRIBED_PARTS


def test_a_system_without_tenants_is_what_it_was() -> None:
    """Accounts of the unnamed tenant are the same with and without named tenants."""
    alone = json.loads(authorization(KEYS[3:]))["accounts"]
    beside = json.loads(authorization(KEYS, tenants=BOTH))["accounts"]
    assert {name: beside[name] for name in alone} == alone


def test_nothing_crosses_from_one_tenant_to_another() -> None:
    """Each account imports from accounts of its own tenant and exports to these only."""
    accounts = json.loads(authorization(KEYS, tenants=BOTH))["accounts"]
    crossing = {
        (read_tenant(name), read_tenant(other))
        for name, account in accounts.items()
        for other in (
            *(next(iter(one.values()))["account"] for one in account.get("imports", ())),
            *(importer for one in account.get("exports", ()) for importer in one["accounts"]),
        )
    }
    assert crossing == {(None, None), (ACME, ACME), (UMBRA, UMBRA)}


def test_a_tenant_has_limits_of_its_own() -> None:
    """The limits are in the accounts that nats-server applies them to."""
    accounts = json.loads(authorization(KEYS, tenants={**BOTH, ACME: SMALL}))["accounts"]
    usual = {"max_mem": 0, "max_streams": 32, "max_consumers": 2_000}
    stored = [accounts[name]["jetstream"] for name in ("IOA_acme", "IOA_umbra-2", "IOA")]
    assert stored == [usual | {"max_file": 1_000_000}, usual, "enabled"]
    assert accounts["IOA_acme"]["limits"] == {"max_connections": 200, "max_subscriptions": 3_000}
    assert accounts["IOA"]["limits"] == {"max_connections": 200}
    assert accounts["IOA_acme_AGENTS"]["limits"] == {"max_connections": 7, "max_subscriptions": 20_000}
    assert accounts["IOA_acme_USERS"]["limits"] == {"max_connections": 150, "max_subscriptions": 9}
    own = json.loads(authorization(KEYS, tenants=BOTH, own=SMALL))["accounts"]
    assert [own[name]["limits"]["max_connections"] for name in ("IOA_AGENTS", "IOA_acme_AGENTS")] == [7, 250]


def test_what_a_tenant_may_have_of_jetstream_can_be_said() -> None:
    """More streams and consumers than is usual, with the subscriptions by which services take from these, or memory."""
    many = json.loads(authorization(KEYS, tenants={ACME: AccountLimits(max_consumers=9_000)}))["accounts"]["IOA_acme"]["limits"]
    assert many["max_subscriptions"] == 10_000
    more = AccountLimits(max_mem=1_000, max_streams=50, max_consumers=9_000, service_subscriptions=3_000)
    rendered = authorization(KEYS, tenants={**BOTH, ACME: more}, own=more)
    stored = [json.loads(rendered)["accounts"][name]["jetstream"] for name in ("IOA_acme", "IOA")]
    assert stored == [{"max_mem": 1_000, "max_streams": 50, "max_consumers": 9_000}] * 2


@pytest.mark.parametrize("name", ["agents", "users", "callout", "a", "clients", "acme-agents"])
def test_no_two_accounts_are_called_alike(name: str) -> None:
    """Whatever a tenant may be called, its accounts are nobody else's, and say whose they are."""
    tenant, sides = TenantId(check_tenant(name)), ("IOA", "IOA_AGENTS", "IOA_USERS")
    found = [account_name(side, tenant) for side in sides]
    assert [read_tenant(one) for one in found] == [tenant] * 3
    assert not {*found} & {*sides, "IOA_CALLOUT", "IOA_CLIENTS", *(account_name(side, TenantId("acme")) for side in sides)}


@pytest.mark.parametrize("name", ["", "Acme", "a_b", "-a", "a-", "a.b", "x" * 21, "a/b"])
def test_a_name_that_accounts_and_folders_cannot_hold_is_refused(name: str) -> None:
    """Upper case and `_` would make two accounts alike; the rest no server or cluster takes."""
    with pytest.raises(ValueError, match="no tenant's name"):
        check_tenant(name)


@pytest.mark.parametrize("limits", [{"max_file": 0}, {"connections": 5}, {"agent_connections": "many"}])
def test_a_limit_that_holds_nobody_is_refused(limits: dict[str, object]) -> None:
    """A misspelt limit, or none at all, is not taken for one."""
    with pytest.raises(ValidationError):
        AccountLimits.model_validate(limits)


@pytest.mark.parametrize("side", ["services", "agents", "users"])
def test_the_chart_and_what_is_rendered_without_it_bound_connections_alike(side: str) -> None:
    """Who runs nats-server without the chart has as many, if nothing else is said."""
    said = yaml.safe_load((_ROOT / "helm/ioa/values.yaml").read_text(encoding="utf-8"))["quotas"]["connections"]
    assert said[side] == getattr(AccountLimits(), f"{side.removesuffix('s')}_connections")
