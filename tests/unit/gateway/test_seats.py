"""Seats of a gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.client.seat import named
from ioa.errors import ForbiddenError, InvalidInputError
from ioa_gateway.seats import open_seat


async def test_seat_with_an_unreadable_seed_is_rejected(tmp_path: Path) -> None:
    """A seed whose path is too long, or whose file contains garbage, rejects the seat only."""
    connection: Any = None
    nats = NatsSettings("nats://127.0.0.1:9", "x")
    (tmp_path / "human-eve").mkdir()
    (tmp_path / "human-eve" / "human-eve").write_bytes(b"\xff\x00")
    for folder, person, why in ((tmp_path / ("x" * 300), "anna", ForbiddenError), (tmp_path, "eve", InvalidInputError)):
        with pytest.raises(why):
            await open_seat(named(person), connection=connection, nats=nats, folder=folder, is_asked=True).__aenter__()
