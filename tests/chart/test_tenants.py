"""Tenants: what the chart makes of each, and that it leaves the one without a name as it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ioa.adapters.nats.auth.roles import Service, account_name
from ioa.adapters.nats.auth.server_config import AccountLimits
from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.adapters.secret_stores.nkeys import public_key_of, read_key
from ioa.hosting.cluster_credentials import Plan, make_credentials
from ioa.hosting.credentials import load_roster
from ioa.protocol.ids import TenantId
from tests.chart.rendering import CHART, RefusedError, Rendered, environment_of, render

pytestmark = pytest.mark.chart

_VALUES: Mapping[str, Any] = yaml.safe_load((CHART / "ci" / "tenants.yaml").read_text())
_WITHOUT = {"qdrant": {"enabled": True}, "tls": {"existingSecret": "t"}}
ACME, UMBRA = TenantId("acme"), TenantId("umbra")


def _plan(rendered: Rendered) -> Plan:
    return Plan.model_validate_json(rendered.one("ConfigMap", "ioa-credentials")["data"]["plan.json"])


def _secret_of(pod: Mapping[str, Any], volume: str = "credentials") -> str:
    [found] = [one for one in pod["volumes"] if one["name"] == volume]
    return str(found["secret"]["secretName"])


def test_the_tenant_without_a_name_stays_as_it_was() -> None:
    """Whoever adds a tenant changes nothing of what is there but how much it may store, who is let in, and NATS's pods."""
    before = {(one["kind"], one["metadata"]["name"]): one for one in render(_WITHOUT).manifests}
    after = {(one["kind"], one["metadata"]["name"]): one for one in render({**_VALUES, **_WITHOUT}).manifests}
    changed = {
        name for kind, name in before if before[kind, name] != after[kind, name] and kind not in ("ConfigMap", "Role", "Secret")
    }
    services = {f"ioa-{name}" for name in ("registry", "groups", "router", "discovery")}
    assert changed - {"ioa-nats", "ioa-nats-headless"} == services
    for name in services:
        old, new = (environment_of(one["Deployment", name]) for one in (before, after))
        assert {key for key in old if old[key] != new[key]} == {"IOA_STORE_BYTES"}
        assert int(new["IOA_STORE_BYTES"]) == int(old["IOA_STORE_BYTES"]) - 3_000_000_000


def test_each_pod_is_let_into_its_own_tenant(tmp_path: Path) -> None:
    """The seed that a service or an agent mounts is that of its tenant and role, and the server is told each tenant's limits."""
    rendered = render({**_VALUES, "quotas": {"connections": {"agents": 900}}})
    plan = _plan(rendered)
    make_credentials(plan, FolderSecrets(tmp_path))
    roster = load_roster(FolderSecrets(tmp_path), plan.authorization)
    conf = (tmp_path / plan.authorization / "authorization.conf").read_text()
    known, accounts = {one.keys[0].public_key: one for one in roster.holders}, json.loads(conf)["accounts"]
    pods = dict(rendered.pods())
    for tenant in (ACME, UMBRA):
        for service in (one for one in Service if one is not Service.AUTHCALLOUT):
            seed = read_key(str(tmp_path / _secret_of(pods[f"Deployment/ioa-{tenant}-{service}"]) / "seed")).seed
            assert (known[public_key_of(seed)].tenant, known[public_key_of(seed)].name) == (tenant, service)
            assert public_key_of(seed) in {user["nkey"] for user in accounts[account_name("IOA", tenant)]["users"]}
    assert roster.tenants == {
        ACME: AccountLimits(max_file=3 * 2_000_000_000, agent_connections=300),  # a stream has three copies
        UMBRA: AccountLimits(max_file=3 * 1_000_000_000),
    }
    assert roster.limits == AccountLimits(agent_connections=900)
    assert environment_of(rendered.one("Deployment", "ioa-acme-router"))["IOA_STORE_BYTES"] == "2000000000"


def test_a_tenant_shares_no_index_and_is_scaled_by_its_own_queue() -> None:
    """Its discovery reaches no Qdrant, by no variable and no network policy; KEDA looks into its account, at its pool."""
    rendered = render(_VALUES)
    ports = {
        name: {port["port"] for rule in rendered.one("NetworkPolicy", name)["spec"]["egress"] for port in rule["ports"]}
        for name in ("ioa-discovery", "ioa-acme-discovery")
    }
    assert ports == {"ioa-discovery": {53, 4222, 6333}, "ioa-acme-discovery": {53, 4222}}
    assert "IOA_QDRANT_URL" not in environment_of(rendered.one("Deployment", "ioa-acme-discovery"))
    assert rendered.one("Deployment", "ioa-acme-discovery")["spec"]["replicas"] == 1
    [trigger] = rendered.one("ScaledObject", "ioa-acme-writer")["spec"]["triggers"]
    assert (trigger["metadata"]["account"], trigger["metadata"]["consumer"]) == ("IOA_acme", "pool-writer")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "umbra"}, "Two tenants are called"),
        ({"users": [{"name": "router", "role": "user"}]}, "bears the name of a component"),
        ({"agentPools": [{"name": "anna", "target": "a.py:a"}]}, "Two of the components"),
        ({"name": "Acme"}, "name"),
        ({"storeBytes": None}, "storeBytes"),
    ],
)
def test_what_would_fail_later_is_refused(change: Mapping[str, Any], why: str) -> None:
    """Names that meet, tenants that are not there, and a tenant without a bound to what it stores."""
    values = copy.deepcopy(dict(_VALUES))
    values["tenants"][0] |= change
    with pytest.raises(RefusedError, match=why):
        render(values)
