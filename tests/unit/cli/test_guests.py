"""As whom a subject came, of which `ioa credentials revoke --subject` ends what it did here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ioa.adapters.nats.connection import NatsSettings
from ioa.cli import key_rotation
from ioa.protocol.audit import CAME_AS_USER, AuditLine, Deed, in_a_line
from ioa.testing.manual_clock import NEW_YEAR

_ALIKE = "https://id.example.com/" + "x" * 150


async def test_a_subject_that_begins_like_another_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob's goals do not end with mallory's, however long the issuer's names are."""
    came = {"mallory": f"{_ALIKE}/mallory", "bob": f"{_ALIKE}/bob"}

    class Trail:
        def __init__(self, _client: object) -> None:
            pass

        async def lines_of(self, deed: Deed) -> AsyncIterator[AuditLine]:
            for name, subject in came.items():
                line = AuditLine(
                    at=NEW_YEAR, deed=deed, who=name, target=in_a_line(subject), why=CAME_AS_USER, service="authcallout"
                )
                yield line

    @asynccontextmanager
    async def connected(*_: object, **__: object) -> AsyncIterator[None]:
        yield

    async def reached(_url: str | None) -> tuple[NatsSettings, None]:
        return NatsSettings("nats://127.0.0.1:1", "ioa"), None

    monkeypatch.setattr(key_rotation, "NatsAuditTrail", Trail)
    monkeypatch.setattr(key_rotation, "open_connection", connected)
    monkeypatch.setattr(key_rotation, "reach", reached)
    guests, _ = await key_rotation._guests_of(f"{_ALIKE}/mallory", (), None)
    assert guests[CAME_AS_USER] == ["mallory"]
