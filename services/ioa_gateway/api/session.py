"""Browser sessions: a key or a login token is exchanged for a cookie."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ioa.errors import InvalidInputError, UnauthenticatedError
from ioa.protocol.ids import UserId
from ioa.protocol.model import Instruction, Model
from ioa_gateway.auth import COOKIE, SESSION, Keyring
from ioa_gateway.caller import Caller

router = APIRouter()


class SessionOrder(Instruction):
    """A key, or a token that is valid once."""

    key: Annotated[str | None, Field(min_length=1, max_length=500, repr=False)] = None
    token: Annotated[str | None, Field(min_length=1, max_length=500, repr=False)] = None


class SessionDocument(Model):
    """The user and the scopes of a session."""

    user: UserId
    scopes: tuple[str, ...]


@router.post("/session", response_model=SessionDocument)
async def begin(request: Request, order: SessionOrder, response: Response) -> Caller:
    """Begin a session of a browser: set a cookie, and return its user and scopes."""
    keyring = _keyring(request)
    if (order.key is None) == (order.token is None):
        raise InvalidInputError("Either `key` or `token` is required.")
    caller = await (keyring.holder_of(order.key) if order.key is not None else keyring.redeem(order.token or ""))
    response.set_cookie(
        COOKIE,
        keyring.begin_session(caller),
        max_age=int(SESSION.total_seconds()),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return caller


@router.get("/session", response_model=SessionDocument, responses={204: {"description": "There is no session."}})
async def show(request: Request) -> Caller | Response:
    """Return the user and the scopes of the session of this browser."""
    with suppress(UnauthenticatedError):
        return await _keyring(request).in_session(request.cookies.get(COOKIE, ""))
    return Response(status_code=204)


@router.delete("/session", status_code=204)
async def end(request: Request) -> Response:
    """Delete the cookie of this browser, and its stored copies of files (over HTTPS or from this machine)."""
    response = Response(status_code=204, headers={"Clear-Site-Data": '"cache"'})
    response.delete_cookie(COOKIE, secure=request.url.scheme == "https", httponly=True, samesite="strict")
    return response


def _keyring(request: Request) -> Keyring:
    keyring: Keyring = request.app.state.keyring
    return keyring
