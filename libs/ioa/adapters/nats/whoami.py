"""Identity of a connection, as nats-server reports it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.permissions import WHO_AM_I, tenant_of
from ioa.errors import ForbiddenError, UnavailableError
from ioa.protocol.ids import ADMIN, LOCAL, TenantId, UserId

_TIMEOUT = 5.0
_USER = re.compile(r"ioa\.v1\.groups\.cancel\.([A-Za-z0-9_-]+)")


async def ask_user(client: Client) -> UserId:
    """Return the user whose goals this connection may publish; `LOCAL` on a server without credentials.

    Raises:
        ForbiddenError: The credential is not that of one user.
        UnavailableError: The server does not answer.
    """
    try:
        answer = await client.request(WHO_AM_I, b"", timeout=_TIMEOUT)
    except nats.errors.NoRespondersError:
        return LOCAL
    except (nats.errors.Error, TimeoutError, OSError) as error:
        if not may_not_publish(client, WHO_AM_I):
            raise UnavailableError(f"NATS does not answer ({str(error) or type(error).__name__}).") from None
        raise ForbiddenError(
            "This credential is no user's, and cannot launch or cancel goals.",
            hint="Create one with `ioa credentials create --user NAME`.",
        ) from None
    may = (json.loads(answer.data).get("data") or {}).get("permissions")
    if may is None:
        return LOCAL
    publish = (may.get("publish") or {}).get("allow") or ()
    if ">" in publish:
        return ADMIN
    user = _user_of(publish)
    if user is None:
        raise ForbiddenError(
            "This credential is not that of exactly one user.",
            hint="IOA_NATS_SEED names the credential; create a user's with `ioa credentials create --user NAME`.",
        )
    return user


async def ask_tenant(client: Client) -> TenantId | None:
    """Return the tenant of a connection; None for the tenant without a name, or if the credential may not know it."""
    try:
        answer = await client.request(WHO_AM_I, b"", timeout=_TIMEOUT)
    except (nats.errors.Error, TimeoutError, OSError):
        return None
    return tenant_of(str((json.loads(answer.data).get("data") or {}).get("account", "")))


def _user_of(publish: Iterable[str]) -> UserId | None:
    match [match[1] for one in publish if (match := _USER.fullmatch(one))]:
        case [user]:
            return UserId(user)
        case _:
            return None
