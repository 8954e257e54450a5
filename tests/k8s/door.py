"""The release's gateway, called by HTTP from outside of the cluster."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from nats.aio.client import Client

from ioa.adapters.nats.stores.api_keys import NatsApiKeys
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.history import conversation
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import GoalId, GoalName, UserId
from ioa.protocol.operation.api_keys import ApiKey, KeyId, Scope, digest_of_secret, written_key
from tests.k8s.release import FULL_NAME, open_tunnel
from tests.rig.deadline import eventually

HOST = f"{FULL_NAME}-gateway"
"""The Service of the gateway, by which pods of the same namespace know it."""

_SECRET = secrets.token_urlsafe(32)
KEY = written_key(KeyId("e2e"), _SECRET)
"""One key for all tests: gateways without any are not ready."""

_USER = UserId("user")
_ANSWERED_WITHIN = timedelta(minutes=2)
_TOO_OFTEN, _NOT_LET_IN = 429, 401


async def make_key(admin: Client) -> None:
    """Make `KEY`, as the release's admin."""
    fields = {
        "key_id": KeyId("e2e"),
        "name": "e2e",
        "user": _USER,
        "scopes": [*Scope],
        "digest": digest_of_secret(_SECRET),
        "created_at": datetime.now(UTC),
    }
    await NatsApiKeys(admin).put(ApiKey.model_validate(fields))


class Door:
    """Ask the gateway, whichever replica is there."""

    def __init__(self, port: int, admin: Client) -> None:
        self._url = f"http://127.0.0.1:{port}/v1"
        self._admin = admin

    async def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Ask until a gateway answers that knows the key.

        Raises:
            AssertionError: None does.
        """
        headers = {"Authorization": f"Bearer {KEY}", "Host": HOST}

        async def look() -> list[httpx.Response]:
            try:
                async with httpx.AsyncClient(base_url=self._url, headers=headers, timeout=30, trust_env=False) as http:
                    told = await http.request(method, path, json=body)
            except httpx.TransportError:
                return []
            return [] if told.status_code >= 500 or told.status_code in (_TOO_OFTEN, _NOT_LET_IN) else [told]

        return (await eventually(look, within=_ANSWERED_WITHIN))[0]

    async def launch(self, order: Mapping[str, object]) -> GoalId:
        """Launch a goal."""
        told = await self.ask("POST", "/goals", order)
        assert told.is_success, told.text
        return GoalId(told.json()["goal_id"])

    async def turn(self, goal_id: GoalId) -> dict[str, Any]:
        """What waits for anna in a goal's group, once something does."""

        async def look() -> list[dict[str, Any]]:
            waiting = (await self.ask("GET", "/seats/anna")).json()["waiting"]
            return [one for one in waiting if one["goal_id"] == goal_id]

        found: list[dict[str, Any]] = await eventually(look, within=_ANSWERED_WITHIN)
        return found[0]

    async def answer(self, waits: Mapping[str, Any], words: str) -> int:
        """Answer as anna; returns the sequence of what she has said."""
        order = {"seat": "anna", "turn": waits["turn"], "payload": {"text": words}}
        told = await self.ask("POST", f"/groups/{waits['comm_id']}/messages", order)
        assert told.status_code == 201, told.text
        return int(told.json()["seq"])

    async def result(self, goal_id: GoalId) -> dict[str, Any]:
        """A goal's result, once there is one."""
        told = await eventually(
            lambda: self.ask("GET", f"/goals/{goal_id}/result?wait=20"),
            lambda told: told.status_code == 200,
            within=_ANSWERED_WITHIN,
        )
        result: dict[str, Any] = told.json()
        return result

    async def log(self, goal_id: GoalId) -> list[StoredEntry]:
        """The log of a goal's group, read without the gateway."""
        return [*await conversation(NatsSystemClient(self._admin), GoalName(_USER, goal_id).comm_id)]


@asynccontextmanager
async def open_door(admin: Client) -> AsyncIterator[Door]:
    """Make the key, and a way to the gateway's Service."""
    await make_key(admin)
    async with open_tunnel("gateway", 80) as port:
        yield Door(port, admin)
