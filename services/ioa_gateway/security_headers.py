"""Checks of `Host` and `Origin`, and security headers of every response.

They protect against pages of other sites that make a browser send requests here, also by DNS rebinding.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; frame-src 'self';"
        " frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_CLOSE = {"Connection": "close"}


def check_host(headers: Headers, hosts: Mapping[str, str]) -> tuple[str, str]:
    """Return the host of a request in lower case, and its scheme.

    Args:
        headers: The headers of the request.
        hosts: The scheme of each permitted host.

    Raises:
        HTTPException: 421 for another host, 403 for a page of another site, 400 for an ambiguous length of the body.
    """
    names = [host.lower() for host in headers.getlist("host")]
    scheme = hosts.get(names[0]) if len(names) == 1 else None
    if "content-length" in headers and "transfer-encoding" in headers:  # a proxy in front may read another length
        raise HTTPException(400, "The request has both Content-Length and Transfer-Encoding; send one.", _CLOSE)
    if scheme is None:
        raise HTTPException(421, "This server has another name. IOA_HTTP_URLS sets its names.", _CLOSE)
    if any(origin.lower() != f"{scheme}://{names[0]}" for origin in headers.getlist("origin")):
        raise HTTPException(403, "Pages of other sites have no access.", _CLOSE)
    return names[0], scheme
