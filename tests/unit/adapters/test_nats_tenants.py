"""What the rendered authorization promises to tenants: a world of their own, and limits of their own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from ioa.adapters.nats.authorization import (
    AccountLimits,
    authorization,
    names_in,
    read_authorization,
    read_own_limits,
    read_tenants,
)
from ioa.adapters.nats.permissions import Permissions, account_of, of_admin, of_agent, of_user, tenant_of
from ioa.protocol.ids import AgentId, PoolId, TenantId, UserId, check_tenant

ACME, UMBRA = TenantId("acme"), TenantId("umbra-2")
ADA = of_agent(AgentId("ada"), PoolId("sums"))
ANNA = of_user(UserId("anna"))
KEYS = {"A": replace(ADA, tenant=ACME), "B": replace(ANNA, tenant=ACME), "C": replace(ADA, tenant=UMBRA), "D": ANNA}
SMALL = AccountLimits(max_file=1_000_000, agent_connections=7, user_subscriptions=9)


def test_a_system_without_tenants_is_what_it_was() -> None:
    """Accounts of the unnamed tenant are the same with and without named tenants."""
    alone = json.loads(authorization({"D": ANNA}))["accounts"]
    beside = json.loads(authorization(KEYS))["accounts"]
    assert {name: beside[name] for name in alone} == alone


@pytest.mark.parametrize("may", [*KEYS.values(), replace(of_admin(), tenant=ACME)])
def test_somebody_is_told_as_one_of_a_tenant(may: Permissions) -> None:
    """What was rendered for somebody says whose he is, so that it can be rendered again."""
    assert read_authorization(authorization({"KEY": may})) == {"KEY": may}


def test_nothing_crosses_from_one_tenant_to_another() -> None:
    """Each account imports from accounts of its own tenant and exports to these only."""
    accounts = json.loads(authorization(KEYS))["accounts"]
    crossing = {
        (tenant_of(name), tenant_of(other))
        for name, account in accounts.items()
        for other in (
            *(next(iter(one.values()))["account"] for one in account.get("imports", ())),
            *(importer for one in account.get("exports", ()) for importer in one["accounts"]),
        )
    }
    assert crossing == {(None, None), (ACME, ACME), (UMBRA, UMBRA)}


def test_a_tenant_has_limits_of_its_own() -> None:
    """They stand where the server heeds them, and are read back when keys come and go."""
    rendered = authorization(KEYS, tenants={ACME: SMALL})
    accounts = json.loads(rendered)["accounts"]
    assert read_tenants(rendered) == {ACME: SMALL, UMBRA: AccountLimits()}
    usual = {"max_mem": 0, "max_streams": 32, "max_consumers": 2_000}
    stored = [accounts[name]["jetstream"] for name in ("IOA_acme", "IOA_umbra-2", "IOA")]
    assert stored == [usual | {"max_file": 1_000_000}, usual, "enabled"]
    assert accounts["IOA_acme"]["limits"] == {"max_connections": 200, "max_subscriptions": 3_000}
    assert accounts["IOA"]["limits"] == {"max_connections": 200}
    assert accounts["IOA_acme_AGENTS"]["limits"] == {"max_connections": 7, "max_subscriptions": 20_000}
    assert accounts["IOA_acme_USERS"]["limits"] == {"max_connections": 150, "max_subscriptions": 9}


def test_a_system_without_tenants_has_limits_that_its_operator_sets() -> None:
    """They stand in the accounts that bear no tenant's name, and are read back; what was not rendered by us has the usual ones."""
    rendered = authorization(KEYS, own=SMALL)
    accounts = json.loads(rendered)["accounts"]
    assert (read_own_limits(rendered), read_own_limits(authorization(KEYS)), read_own_limits("{}")) == (
        SMALL,
        AccountLimits(),
        AccountLimits(),
    )
    assert accounts["IOA_AGENTS"]["limits"] == {"max_connections": 7, "max_subscriptions": 20_000}
    assert accounts["IOA_acme_AGENTS"]["limits"] == {"max_connections": 250, "max_subscriptions": 20_000}


def test_limits_of_before_are_kept_beside_new_ones() -> None:
    """An older version said nothing of what it did not know: reading it costs no limit that it did say."""
    whole = json.loads(authorization(KEYS, tenants={ACME: SMALL}))
    for name in ("IOA_acme", "IOA_umbra-2"):
        del whole["accounts"][name]["limits"]["max_subscriptions"]
    whole["accounts"]["IOA_acme"]["jetstream"] = {"max_file": 1_000_000}
    assert read_tenants(json.dumps(whole)) == {ACME: SMALL, UMBRA: AccountLimits()}


def test_what_a_tenant_may_have_of_jetstream_can_be_said() -> None:
    """More streams and consumers than is usual, with the subscriptions by which services take from these, or memory."""
    many = json.loads(authorization(KEYS, tenants={ACME: AccountLimits(max_consumers=9_000)}))["accounts"]["IOA_acme"]["limits"]
    assert many["max_subscriptions"] == 10_000
    more = AccountLimits(max_mem=1_000, max_streams=50, max_consumers=9_000, service_subscriptions=3_000)
    rendered = authorization(KEYS, tenants={ACME: more}, own=more)
    stored = [json.loads(rendered)["accounts"][name]["jetstream"] for name in ("IOA_acme", "IOA")]
    assert stored == [{"max_mem": 1_000, "max_streams": 50, "max_consumers": 9_000}] * 2
    assert (read_tenants(rendered)[ACME], read_own_limits(rendered)) == (more, more)


def test_names_are_told_apart_by_their_tenants() -> None:
    """The same name of two tenants is that of two people; what a pool is called is taken too, since goals are addressed to it."""
    assert names_in(authorization(KEYS)) == {"acme/ada", "acme/sums", "acme/anna", "umbra-2/ada", "umbra-2/sums", "anna"}


@pytest.mark.parametrize("name", ["agents", "users", "callout", "a", "clients", "acme-agents"])
def test_no_two_accounts_are_called_alike(name: str) -> None:
    """Whatever a tenant may be called, its accounts are nobody else's, and say whose they are."""
    tenant, sides = TenantId(check_tenant(name)), ("IOA", "IOA_AGENTS", "IOA_USERS")
    found = [account_of(side, tenant) for side in sides]
    assert [tenant_of(one) for one in found] == [tenant] * 3
    assert not {*found} & {*sides, "IOA_CALLOUT", "IOA_CLIENTS", *(account_of(side, TenantId("acme")) for side in sides)}


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
