"""The table of routes."""

from __future__ import annotations

from typing import get_type_hints

from ioa_gateway.api_table import TABLE


def test_each_route_reads_what_its_handler_takes() -> None:
    """A row that forgets its query or body would hand its handler nothing."""
    for row in TABLE:
        _call, query, body, _answer = get_type_hints(row.handle).values()
        assert (query, body) == (row.query, row.body), f"{row.method} {row.path}"
