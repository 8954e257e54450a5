"""What the chart's Job is told to make: for each tenant its own keys, and for each change of keys the restarts it needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ioa.adapters.nats.auth.server_config import AccountLimits
from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.adapters.secret_stores.nkeys import public_key_of, read_key
from ioa.hosting.cluster_credentials import make_credentials
from ioa.hosting.credential_store import load_roster
from ioa.protocol.ids import TenantId
from tests.chart.rendering import CI, Rendered, environment_of, plan_of, render

pytestmark = pytest.mark.chart

_TENANTS: Mapping[str, Any] = yaml.safe_load(next(path for path in CI if path.stem == "tenants").read_text())
_OWN_CERTIFICATE = {"tls": {"existingSecret": "t"}}  # helm would make another certificate for each rendering
_CALLOUT: Mapping[str, Any] = {"enabled": True, "issuer": "https://id.example.com", "audience": "ioa"}


def test_tenant_changes_only_store_sizes_of_services_that_are_there() -> None:
    """Whoever adds a tenant restarts NATS and the services, and nothing else."""
    with_tenants = {**_TENANTS, **_OWN_CERTIFICATE}
    before, after = (
        {one["metadata"]["name"]: one for one in render(values).manifests if one["kind"] in ("Deployment", "StatefulSet")}
        for values in ({**with_tenants, "tenants": []}, with_tenants)
    )
    services = [f"ioa-{name}" for name in ("discovery", "groups", "registry", "router")]

    assert [name for name in sorted(before) if before[name] != after[name]] == sorted([*services, "ioa-nats"])
    for old, new in ((environment_of(before[name]), environment_of(after[name])) for name in services):
        assert {key for key in old if old[key] != new[key]} == {"IOA_STORE_BYTES"}
        assert int(new["IOA_STORE_BYTES"]) == int(old["IOA_STORE_BYTES"]) - 3_000_000_000


def test_each_pod_is_let_into_its_own_tenant(tmp_path: Path) -> None:
    """The seed that a pod mounts is of its own tenant and name, and the server is told each tenant's limits."""
    rendered = render({**_TENANTS, "quotas": {"connections": {"agents": 900}}})
    plan = plan_of(rendered)
    make_credentials(plan, FolderSecrets(tmp_path))
    roster = load_roster(FolderSecrets(tmp_path), plan.authorization)
    known = {one.keys[0]: (one.tenant, one.name) for one in roster.holders}
    for name, pod in rendered.pods():
        if name.startswith("Deployment/"):
            [secret] = [volume["secret"]["secretName"] for volume in pod["volumes"] if volume["name"] == "credentials"]
            component = name.removeprefix("Deployment/ioa-")
            tenant = next((one["name"] for one in _TENANTS["tenants"] if component.startswith(f"{one['name']}-")), None)
            seed = read_key(str(tmp_path / secret / "seed")).seed
            assert known[public_key_of(seed)] == (tenant, component.removeprefix(f"{tenant}-"))
    assert roster.tenants == {
        TenantId("acme"): AccountLimits(max_file=3 * 2_000_000_000, agent_connections=300),  # a stream has three copies
        TenantId("umbra"): AccountLimits(max_file=3 * 1_000_000_000),
    }
    assert roster.limits == AccountLimits(agent_connections=900)


@pytest.mark.parametrize(
    ("change", "restarted"),
    [
        ({"credentials": {"rotate": {"id": "a", "of": ["router", "calculator"]}}}, {"ioa-nats", "ioa-calculator"}),
        ({"callout": {**_CALLOUT, "revoked": ["mallory@example.com"]}}, {"ioa-nats", "ioa-authcallout"}),
    ],
    ids=["rotation", "revocation"],
)
def test_change_of_keys_restarts_only_pods_that_need_it(change: Mapping[str, Any], restarted: set[str]) -> None:
    """NATS learns of new keys, and ends connections by tokens, by a restart; so do pods that read them once."""
    before, after = (_annotations(render({**_OWN_CERTIFICATE, "callout": _CALLOUT, **values})) for values in ({}, change))

    assert {name for name in before if before[name] != after[name]} == restarted


def _annotations(rendered: Rendered) -> dict[str, Mapping[str, str]]:
    workloads = [one for one in rendered.manifests if one["kind"] in ("Deployment", "StatefulSet")]
    return {one["metadata"]["name"]: one["spec"]["template"]["metadata"].get("annotations", {}) for one in workloads}
