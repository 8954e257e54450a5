"""The documents of the gateway: their shapes are as recorded."""

from __future__ import annotations

import httpx

from tests.contract.system_client.members import Members
from tests.integration.gateway.http_documents import GOLDEN_OPENAPI, GOLDEN_SHAPES, openapi, shapes


def test_openapi_matches_the_golden_description() -> None:
    """A changed route or schema is visible: `python -m tests.integration.gateway.http_documents` writes the golden files."""
    assert openapi().splitlines() == GOLDEN_OPENAPI.read_text(encoding="utf-8").splitlines()


async def test_answer_of_each_route_has_its_golden_shape(http: httpx.AsyncClient, members: Members) -> None:
    """Programs rely on the names and types of an answer."""
    assert (await shapes(http, members)).splitlines() == GOLDEN_SHAPES.read_text(encoding="utf-8").splitlines()
