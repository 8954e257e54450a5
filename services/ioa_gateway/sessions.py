"""Sessions of browsers as requests show them: a cookie, below a path.

Browsers send a cookie to every port of a host, and so to whoever listens there (RFC 6265, 8.5), but to no path below which it was
not set. So each session has a path of its own, which nobody guesses; a script of the page stores it, in storage that no
other port can read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

COOKIE = "ioa_session"
BELOW = "/s/{session}"
"""Where the routes are once more, for sessions."""

_NAMED = f"{COOKIE}="
_PLACE = re.compile(r"/s/([0-9a-f]{32})/")


class BrowserSession(NamedTuple):
    """A session as its browser knows it.

    Attributes:
        cookie: What the browser sends.
        place: Below which path, `/s/<place>`: a script of the page keeps it, which tells it to no other port.
    """

    cookie: str
    place: str

    @property
    def path(self) -> str:
        """What paths of requests in this session begin with."""
        return BELOW.format(session=self.place)


def session_in(request: HTTPConnection) -> BrowserSession | None:
    """Return the session that a request is in; None where it shows no cookie, or is below no session's path."""
    place = _PLACE.match(request.scope["path"])
    cookie = None if place is None else _cookie_in(request.headers)
    return None if place is None or cookie is None else BrowserSession(cookie, place[1])


def _cookie_in(headers: Headers) -> str | None:
    """Return the cookie of a session, the first one where several are sent: that with the longest path (RFC 6265, 5.4).

    No other is read: whoever shows no key may send tens of thousands in one head, or one of which Python takes seconds to read that
    it is written in quotes (CVE-2024-7592).
    """
    return next((one for header in headers.getlist("cookie") if (one := _first_in(header)) is not None), None)


def _first_in(cookies: str) -> str | None:
    at = cookies.find(_NAMED)
    while at >= 0:
        before = at - 1
        while before >= 0 and cookies[before] in " \t":
            before -= 1
        if before < 0 or cookies[before] == ";":
            return cookies[at + len(_NAMED) :].partition(";")[0].strip()
        at = cookies.find(_NAMED, at + 1)
    return None
