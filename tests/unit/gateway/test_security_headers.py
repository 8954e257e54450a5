"""The check of `Host`."""

from __future__ import annotations

from contextlib import suppress

import pytest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from ioa_gateway.security_headers import check_host


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("localhost:4280", ["localhost:4280"]),
        ("LocalHost:4280", ["localhost:4280"]),
        ("agents.example.com.", []),
        ("agents.example.com:443", []),
        ("agents.example.com:", []),
        ("localhost.:4280", []),
        ("localhost", []),
    ],
)
def test_host_is_admitted_in_lower_case_if_it_equals_a_name(host: str, admitted: list[str]) -> None:
    """A dot at the end, or the default port of the scheme, makes another name."""
    found = list[str]()
    with suppress(HTTPException):
        found += [check_host(Headers({"Host": host}), {"localhost:4280": "http", "agents.example.com": "https"})[0]]
    assert found == admitted
