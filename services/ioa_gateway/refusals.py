"""Who is refused again and again is counted, for `ioa doctor` to name: else nobody but the one who asks hears of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ioa.networks import network_of
from ioa.ports.inspection import REFUSED, SlowedCaller
from ioa.quotas import Rate
from ioa.runtime.caller_pace import CallerPace

_COUNTED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.TOO_MANY_REQUESTS}
"""Asking without a key that lets in, for too much, or too often. Whoever means no harm does so a few times."""
_REFUSALS = Rate(1, 60)
"""How often somebody may be refused without being named."""


class RefusalCounter:
    """Counts what the application refuses: by user, or, where no key lets in, by the network that a request comes from.

    Args:
        app: What is behind it.
        user_of: Tells whose key a request shows, if it is one that lets in.
        now: Tells the time in seconds; it never goes back.
    """

    def __init__(self, app: ASGIApp, user_of: Callable[[Scope], str | None], now: Callable[[], float]) -> None:
        self._app = app
        self._user_of = user_of
        self._pace = CallerPace(now, REFUSED, _REFUSALS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, and see how it is answered."""

        async def seen(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _COUNTED:
                self._note(scope)
            await send(message)

        await self._app(scope, receive, seen)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Tell who is refused again and again, and how often."""
        return self._pace.slowed()

    def _note(self, scope: Scope) -> None:
        client = scope.get("client")
        who = self._user_of(scope) or (network_of(client[0]) if client else "")
        if who:
            self._pace.count(who)
