"""Registry and discovery as processes on a real nats-server, and a townsman who talks to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from tests.integration.discovery.town import Townsman
from tests.rig.processes import ServiceProcesses, open_services

LEASE_SECONDS = 600.0
"""Longer than a test, since nobody renews them: whoever is offline is not found."""


@pytest.fixture
def vectors_folder(tmp_path: Path) -> Path:
    """The folder for the vectors of cards."""
    return tmp_path / "vectors"


@pytest.fixture
async def services(nats_url: str, tmp_path: Path) -> AsyncIterator[ServiceProcesses]:
    """One registry, ready; tests start discovery themselves."""
    env = {"IOA_LEASE": str(LEASE_SECONDS), "IOA_RENEW_EVERY": str(LEASE_SECONDS / 4)}
    async with open_services(nats_url, tmp_path / "logs", env) as processes:
        await processes.start("ioa_registry", replicas=1)
        yield processes


@pytest.fixture
async def kept(nats_url: str, services: ServiceProcesses, tmp_path: Path, vectors_folder: Path) -> AsyncIterator[ServiceProcesses]:
    """Discovery's processes, which store vectors in `vectors_folder`; none runs yet."""
    assert services.running("ioa_registry")
    env = {"IOA_LEASE": str(LEASE_SECONDS), "IOA_VECTORS_FOLDER": str(vectors_folder)}
    async with open_services(nats_url, tmp_path / "logs", env) as processes:
        yield processes


@pytest.fixture
async def town(services: ServiceProcesses, nats_url: str) -> AsyncIterator[Townsman]:
    """Somebody who registers agents and asks for them."""
    assert services.running("ioa_registry")
    async with open_connection(NatsSettings(nats_url, "townsman")) as client:
        yield Townsman(client)
