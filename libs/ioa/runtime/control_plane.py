"""What the control plane's services share: their settings, and the streams and buckets they make sure of."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from importlib.metadata import version as installed_version

import structlog
from nats.aio.client import Client
from pydantic import Field

from ioa.adapters.nats_failures import unavailable_unless_answered
from ioa.adapters.nats_topology import Topology
from ioa.errors import UnavailableError
from ioa.runtime.process import ProcessSettings

_RETRY_SECONDS = 0.5

_log = structlog.get_logger(__name__)


class ControlPlaneSettings(ProcessSettings):
    """What registry, discovery, group setup and router are told. Durations are seconds or ISO 8601."""

    replicas: int = Field(default=1, ge=1, le=5, description="copies of every stream and bucket")
    lease: timedelta = Field(default=timedelta(seconds=10), gt=timedelta(0), description="how long an agent's lease lasts")
    renew_every: timedelta = Field(default=timedelta(seconds=3), gt=timedelta(0))
    floor_timeout: timedelta = Field(default=timedelta(seconds=60), gt=timedelta(0))
    task_lease: timedelta = Field(default=timedelta(seconds=30), gt=timedelta(0))
    pause_timeout: timedelta = Field(default=timedelta(minutes=10), gt=timedelta(0))
    conclusion_timeout: timedelta = Field(default=timedelta(seconds=60), gt=timedelta(0))
    max_depth: int = Field(default=3, ge=0, le=20, description="how deep teams may nest")
    version: str = installed_version("ioa")


async def ensure_topology(client: Client, settings: ControlPlaneSettings) -> None:
    """Make what is missing, waiting for JetStream as long as it takes: it may still be electing its leader."""
    topology = Topology(replicas=settings.replicas, lease=settings.lease)
    while True:
        try:
            with unavailable_unless_answered("JetStream"):
                await topology.ensure(client.jetstream())
            return
        except UnavailableError as error:
            _log.warning("waiting_for_jetstream", error=error.message)
            await asyncio.sleep(_RETRY_SECONDS)
