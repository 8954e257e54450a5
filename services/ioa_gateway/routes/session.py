"""Sessions of browsers: who shows a key or a token gets a cookie that stands for it, below a path of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from ioa.client.documents import told
from ioa.errors import InvalidInputError, UnauthenticatedError
from ioa.protocol.model import Instruction, Model
from ioa_gateway.calls import ApiCall, Nothing, document
from ioa_gateway.keyring import SESSION
from ioa_gateway.sessions import COOKIE

_Shown = Annotated[str, Field(min_length=1, max_length=500)]


class SessionOrder(Instruction):
    """What is shown: a key, or a token that lets in once."""

    key: Annotated[_Shown | None, Field(repr=False)] = None
    token: Annotated[_Shown | None, Field(repr=False)] = None


class SessionDocument(Model):
    """What paths of requests in a session begin with, before `/v1`: the browser sends its cookie nowhere else."""

    prefix: str


async def begin(call: ApiCall, _query: Nothing, order: SessionOrder) -> Response:
    """Begin a session."""
    if (order.key is None) == (order.token is None):
        raise InvalidInputError("Either `key` or `token` is shown.")
    caller = await (call.keyring.holder_of(order.key) if order.key is not None else call.keyring.redeem(order.token or ""))
    session = call.keyring.session_of(caller)
    response = document(told(SessionDocument(prefix=session.path)))
    response.set_cookie(
        COOKIE,
        session.cookie,
        max_age=int(SESSION.total_seconds()),
        path=session.path,
        secure=call.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


async def show(call: ApiCall, _query: Nothing, _body: Nothing) -> Response:
    """Say whose session this is, so that a page knows whether to ask for a key."""
    try:
        caller = None if call.session is None else await call.keyring.in_session(call.session)
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
    response = Response(status_code=204, headers={"Clear-Site-Data": '"cache"'})
    if call.session is not None:
        await call.keyring.sign_out(call.session)
        response.delete_cookie(COOKIE, path=call.session.path, secure=call.is_secure, httponly=True, samesite="strict")
    return response
