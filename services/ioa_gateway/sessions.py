"""The cookie of a browser session."""

from __future__ import annotations

from starlette.requests import HTTPConnection

COOKIE = "ioa_session"


def session_cookie(request: HTTPConnection) -> str | None:
    """Return the session cookie of a request; None without one.

    The parser of the standard library takes quadratic time for quoted values (CVE-2024-7592), and requests without a key reach it.
    """
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            if name == COOKIE:
                return value
    return None
