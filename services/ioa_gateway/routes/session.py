"""Sessions of browsers: who shows a key or a token gets a cookie that stands for it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from ioa.errors import InvalidInputError, UnauthenticatedError
from ioa.protocol.model import Instruction
from ioa_gateway.calls import ApiCall, Nothing, document
from ioa_gateway.keyring import COOKIE, SESSION, cookie_in

_Shown = Annotated[str, Field(min_length=1, max_length=500)]


class SessionOrder(Instruction):
    """What is shown: a key, or a token that lets in once."""

    key: Annotated[_Shown | None, Field(repr=False)] = None
    token: Annotated[_Shown | None, Field(repr=False)] = None


async def begin(call: ApiCall, _query: Nothing, order: SessionOrder) -> Response:
    """Begin a session."""
    if (order.key is None) == (order.token is None):
        raise InvalidInputError("Either `key` or `token` is shown.")
    caller = await (call.keyring.holder_of(order.key) if order.key is not None else call.keyring.redeem(order.token or ""))
    response = Response(status_code=204)
    cookie = call.keyring.session_of(caller)
    response.set_cookie(
        COOKIE, cookie, max_age=int(SESSION.total_seconds()), secure=call.is_secure, httponly=True, samesite="strict"
    )
    return response


async def show(call: ApiCall, _query: Nothing, _body: Nothing) -> Response:
    """Say whose session this is, so that a page knows whether to ask for a key."""
    cookie = cookie_in(call.headers)
    try:
        caller = None if cookie is None else await call.keyring.in_session(cookie)
    except UnauthenticatedError:
        caller = None
    if caller is None:
        return Response(status_code=204)
    scopes = {*map(str, caller.scopes), *(f"seats:{person}" for person in caller.people)}
    return document({"user": caller.user, "scopes": sorted(scopes)})


async def end(call: ApiCall, _query: Nothing, _body: Nothing) -> Response:
    """End the session of this browser for good, also where its cookie was copied.

    The browser forgets what it has kept of files (where it came by HTTPS, or from this machine).
    """
    cookie = cookie_in(call.headers)
    key_id = None if cookie is None else call.keyring.key_of_session(cookie)
    if cookie is not None and key_id is not None:
        call.limits.check_sign_out(key_id)
        await call.keyring.sign_out(cookie)
    response = Response(status_code=204, headers={"Clear-Site-Data": '"cache"'})
    response.delete_cookie(COOKIE, secure=call.is_secure, httponly=True, samesite="strict")
    return response
