"""Whose a connection is, as its server says, so that a command asks for no name that its credential does not bear."""

from __future__ import annotations

import json
import re

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.authorization import is_of_this_version, user_of
from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.permissions import WHO_AM_I, tenant_of
from ioa.errors import ForbiddenError, UnavailableError
from ioa.protocol.ids import ADMIN, LOCAL, TenantId, UserId

_TIMEOUT = 5.0
_KEY = re.compile(r"U[A-Z2-7]{55}")


async def ask_user(client: Client) -> UserId:
    """Ask the server whose goals may be published here: `LOCAL` where it asks nobody who he is.

    Raises:
        ForbiddenError: The credential belongs to no user.
        UnavailableError: It is out of reach.
    """
    try:
        answer = await client.request(WHO_AM_I, b"", timeout=_TIMEOUT)
    except nats.errors.NoRespondersError:
        return LOCAL
    except (nats.errors.Error, TimeoutError, OSError) as error:
        if not may_not_publish(client, WHO_AM_I):
            raise UnavailableError(f"NATS does not answer ({str(error) or type(error).__name__}).") from None
        raise ForbiddenError(
            "This credential is no user's: it launches and cancels no goals.",
            hint="`ioa credentials create --user NAME` makes a user's.",
        ) from None
    may = (json.loads(answer.data).get("data") or {}).get("permissions")
    if may is None:
        return LOCAL
    publish = (may.get("publish") or {}).get("allow") or ()
    if ">" in publish:
        return ADMIN
    user = user_of(publish)
    if user is None:
        raise ForbiddenError(
            "This credential is that of no user, or of several: whose goals it launches cannot be told.",
            hint="IOA_NATS_SEED names it; a user's is made by `ioa credentials create --user NAME`.",
        )
    return user


async def ask_tenant(client: Client) -> TenantId | None:
    """Ask the server of which tenant a connection is; None if that has no name, or who asks may not know."""
    try:
        answer = await client.request(WHO_AM_I, b"", timeout=_TIMEOUT)
    except (nats.errors.Error, TimeoutError, OSError):
        return None
    return tenant_of(str((json.loads(answer.data).get("data") or {}).get("account", "")))


async def ask_version(client: Client) -> bool | None:
    """Ask the server whether its authorization is that of this version.

    None if it has none, who asks may not know, or he comes by a token: what such may do the auth callout says.
    """
    try:
        answer = await client.request(WHO_AM_I, b"", timeout=_TIMEOUT)
    except (nats.errors.Error, TimeoutError, OSError):
        return None
    told = json.loads(answer.data).get("data") or {}
    if not _KEY.fullmatch(str(told.get("user", ""))):
        return None
    subscribe = ((told.get("permissions") or {}).get("subscribe") or {}).get("allow") or ()
    return is_of_this_version(subscribe)
