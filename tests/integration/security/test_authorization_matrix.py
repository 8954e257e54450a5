"""The authorisation contract: every role × every subject, and the acts that no ordinary key may perform."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.security.authorization_matrix import (
    GOLDEN,
    OUTSIDE,
    ROLES,
    Matrix,
    delivered_subjects,
    measure,
    names_another,
    open_server_of_roles,
)
from tests.integration.security.secured import Secured

_HEARD_OF_ALL = {"auditor": {"ioa.v1.audit.*"}}
"""Subjects that name other callers, or leave the name open, to which a role may subscribe."""


@pytest.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Secured]:
    """A server with a key of each role."""
    async with open_server_of_roles(tmp_path) as opened:
        yield opened


async def test_permissions_of_each_role_match_the_golden_table(secured: Secured) -> None:
    """A change of any permission is visible in the table: `python -m tests.integration.security.authorization_matrix` writes it."""
    matrix = await measure(secured)
    assert matrix.render().splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()
    _check_ordinary_keys(matrix)
    await _check_deliveries(secured, matrix)


def _check_ordinary_keys(matrix: Matrix) -> None:
    """Check that ordinary keys act only as themselves, and that JetStream, the server and services' subjects are closed to them."""
    for role in OUTSIDE:
        published = {subject for subject, roles in matrix.publish.items() if role in roles}
        heard = {subject for subject, roles in matrix.subscribe.items() if role in roles}
        assert {subject for subject in published if names_another(role, subject)} == set(), role
        assert {subject for subject in heard if names_another(role, subject)} == _HEARD_OF_ALL.get(role, set()), role
        pulls = {f"$JS.API.CONSUMER.MSG.NEXT.IOA_WORK.{queue}" for queue in ("any", "pool-desk")}
        assert {one for one in published if one.startswith(("$JS.", "$KV.", "$O."))} == (pulls if role == "agent" else set()), role
        assert {one for one in heard if one.startswith("$")} == set(), role
    agents = {subject for subject, roles in matrix.subscribe.items() if "agent" in roles}
    assert agents == {"ioa.v1.inbox.desk-0.n1", "_INBOX.KEY_OF_CALLER.r1"}
    assert not any(ROLES.keys() & roles for subject, roles in matrix.publish.items() if "STREAM.DELETE" in subject)


async def _check_deliveries(secured: Secured, matrix: Matrix) -> None:
    """Check that a permitted message reaches the control plane, and any other does not; and the same from there to each role."""
    messages = [subject for subject in matrix.publish if subject.startswith("ioa.")]
    for role in OUTSIDE:
        permitted = {subject for subject in messages if role in matrix.publish[subject]}
        assert await delivered_subjects(secured, role, "admin", ["ioa.>"], messages) == permitted, role
        patterns = [subject for subject in messages if role in matrix.subscribe[subject]]
        assert await delivered_subjects(secured, "admin", role, patterns, messages) == set(patterns), role
