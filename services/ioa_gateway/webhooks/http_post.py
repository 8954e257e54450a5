"""Posts to URLs of strangers: to public addresses only, unless addresses of private networks are allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

import httpx

from ioa.adapters.ssrf import PORTS, OutsideTransport, resolve_public
from ioa.concurrency import fail_after
from ioa.errors import InvalidInputError, UnavailableError

WITHIN = timedelta(seconds=10)
_INSIDE_HINT = "IOA_WEBHOOKS_INSIDE=true allows it."


@dataclass(frozen=True)
class HttpPost:
    """Sends posts, each over its own connection. Made by `open_http_post`.

    Attributes:
        transport: Sends requests; without redirects, cookies and proxies.
        inside: Whether addresses of private networks and of this machine are allowed.
    """

    transport: httpx.AsyncBaseTransport
    inside: bool

    async def check(self, url: str) -> None:
        """Check that a valid URL may be posted to.

        Raises:
            InvalidInputError: Its name cannot be resolved, or it leads to an address that is not allowed.
        """
        if self.inside:
            return
        parts = urlsplit(url)
        try:
            async with fail_after(WITHIN.total_seconds()):
                await resolve_public(parts.hostname or "", parts.port or PORTS[parts.scheme], _INSIDE_HINT)
        except (TimeoutError, UnavailableError):
            raise InvalidInputError(f"The name {parts.hostname} cannot be resolved.", hint="Check its spelling.") from None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post JSON, and return the status; the body of the response is not read.

        Raises:
            InvalidInputError: The URL leads to an address that is not allowed.
            UnavailableError: No response arrived in time.
        """
        sent = {**headers, "Content-Type": "application/json", "User-Agent": "ioa"}
        try:
            async with fail_after(WITHIN.total_seconds()):
                response = await self.transport.handle_async_request(httpx.Request("POST", url, content=body, headers=sent))
                await response.aclose()
                return response.status_code
        except (httpx.HTTPError, OSError) as error:
            raise UnavailableError(f"No response arrived ({type(error).__name__}).") from None


@asynccontextmanager
async def open_http_post(*, inside: bool) -> AsyncIterator[HttpPost]:
    """Yield an `HttpPost`; `inside`: whether addresses of private networks and of this machine are allowed."""
    # Without kept connections: two names at one address would share a connection, with the certificate of the first name.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncHTTPTransport(limits=limits, trust_env=False) as transport:
        yield HttpPost(transport if inside else OutsideTransport(_INSIDE_HINT, transport), inside=inside)
