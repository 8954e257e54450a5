"""Identity of a connection, as nats-server reports it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.auth.roles import WHO_AM_I, read_tenant
from ioa.adapters.nats.wire.connection import RequestNotPermittedError
from ioa.errors import ForbiddenError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.ids import ADMIN, LOCAL, TenantId, UserId

_TIMEOUT = 5.0


class RequestCaller(NamedTuple):
    """The role and name with which the subjects of a connection's requests begin."""

    role: str
    name: str

    def subject(self, request: str) -> str:
        """Return the subject of a request."""
        return f"{subjects.ROOT}.{self.role}.{self.name}.{request}"


async def ask_caller(client: Client) -> RequestCaller:
    """Return the role and name of a connection that is no agent's; the user `LOCAL` on a server without credentials."""
    try:
        found = await _ask_server(client)
    except nats.errors.NoRespondersError:
        found = {}
    except RequestNotPermittedError:
        hint = "Create one with `ioa credentials create --user NAME`."
        raise ForbiddenError("This credential is no user's, and cannot launch or cancel goals.", hint=hint) from None
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise UnavailableError(f"NATS does not answer ({str(error) or type(error).__name__}).") from None
    if (may := found.get("permissions")) is None:
        return RequestCaller("user", LOCAL)
    for allowed in (may.get("publish") or {}).get("allow") or ():
        match allowed.split("."):
            case [">"]:
                return RequestCaller("admin", ADMIN)
            case ["ioa", "v1", "user" | "observer" | "auditor" as role, name, ">"]:
                return RequestCaller(role, subjects.GATEWAY if name == "*" else name)
    raise ForbiddenError("This credential does not belong to a user.", hint="IOA_NATS_SEED names the credential.")


def user_of(caller: RequestCaller) -> UserId:
    """Return the user of a caller, or `ADMIN`; `ForbiddenError` if the caller is not exactly one user."""
    if caller.role in ("user", "admin") and caller.name != subjects.GATEWAY:
        return UserId(caller.name)
    raise ForbiddenError(
        "This credential is not that of exactly one user.",
        hint="IOA_NATS_SEED names the credential; create a user's with `ioa credentials create --user NAME`.",
    )


async def ask_tenant(client: Client) -> TenantId | None:
    """Return the tenant of a connection; None for the tenant without a name, or if the credential may not know it."""
    try:
        return read_tenant(str((await _ask_server(client)).get("account", "")))
    except (nats.errors.Error, TimeoutError, OSError):
        return None


async def _ask_server(client: Client) -> dict[str, Any]:
    answer = await client.request(WHO_AM_I, b"", timeout=_TIMEOUT)
    return json.loads(answer.data).get("data") or {}
