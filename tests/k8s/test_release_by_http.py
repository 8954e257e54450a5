"""The gateway of a release."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

import pytest

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.protocol.ids import UserId
from ioa.protocol.operation.api_keys import ApiKey, KeyId, Scope, digest_of_secret
from tests.k8s.release import GATEWAY, RELEASE, apply_chart, helm, open_nats, pods

pytestmark = [
    pytest.mark.k8s,
    pytest.mark.timeout(900),
    # nats-py drops the writer of a connection that was cut, as the tunnel is whenever the pod of NATS at its other end goes.
    pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"),
]


async def test_gateways_come_with_an_upgrade() -> None:
    """With an API key, without which no gateway is ready, `helm upgrade --wait` returns when two gateways are ready."""
    fields = {
        "key_id": KeyId("e2e"),
        "name": "e2e",
        "user": UserId("user"),
        "scopes": [*Scope],
        "digest": digest_of_secret(secrets.token_urlsafe(32)),
        "created_at": datetime.now(UTC),
    }
    async with open_nats("admin") as admin:
        await NatsApiKeys(admin).put(ApiKey.model_validate(fields))
    await apply_chart(beside=[GATEWAY])
    assert len(await pods("gateway")) == 2


async def test_its_own_test_passes_by_http() -> None:
    """`helm test` launches a goal by HTTP too, with a key that it makes and revokes."""
    told = await helm("test", RELEASE, "--timeout", "3m")
    suites = [line.split()[-1] for line in told.splitlines() if line.startswith(("TEST SUITE:", "Phase:"))]
    assert sorted(suites) == sorted([f"{RELEASE}-ioa-test", "Succeeded", f"{RELEASE}-ioa-test-http", "Succeeded"])
