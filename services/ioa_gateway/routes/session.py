"""Browser sessions: a key or a login token is exchanged for a cookie."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from ioa.errors import InvalidInputError, UnauthenticatedError
from ioa.protocol.model import Instruction
from ioa_gateway.callers import Caller
from ioa_gateway.calls import ApiCall, document
from ioa_gateway.keyring import SESSION
from ioa_gateway.sessions import COOKIE

_Shown = Annotated[str, Field(min_length=1, max_length=500)]


class SessionOrder(Instruction):
    """A key, or a token that is valid once."""

    key: Annotated[_Shown | None, Field(repr=False)] = None
    token: Annotated[_Shown | None, Field(repr=False)] = None


async def begin(call: ApiCall, order: SessionOrder) -> Response:
    """Begin a session; return its user and scopes."""
    if (order.key is None) == (order.token is None):
        raise InvalidInputError("Either `key` or `token` is required.")
    caller = await (call.keyring.holder_of(order.key) if order.key is not None else call.keyring.redeem(order.token or ""))
    response = _document(caller)
    response.set_cookie(
        COOKIE,
        call.keyring.begin_session(caller),
        max_age=int(SESSION.total_seconds()),
        secure=call.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


async def show(call: ApiCall) -> Response:
    """Return the user and the scopes of this session; 204 if there is none."""
    try:
        return Response(status_code=204) if call.session is None else _document(await call.keyring.in_session(call.session))
    except UnauthenticatedError:
        return Response(status_code=204)


async def end(call: ApiCall) -> Response:
    """Delete the cookie of this browser, and its stored copies of files (over HTTPS or from this machine)."""
    response = Response(status_code=204, headers={"Clear-Site-Data": '"cache"'})
    response.delete_cookie(COOKIE, secure=call.is_secure, httponly=True, samesite="strict")
    return response


def _document(caller: Caller) -> Response:
    scopes = {*map(str, caller.scopes), *(f"seats:{person}" for person in caller.people)}
    return document({"user": caller.user, "scopes": sorted(scopes)})
