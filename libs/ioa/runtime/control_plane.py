"""Settings, streams and buckets of the services of the control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Self

from pydantic import Field, model_validator

from ioa.adapters.nats.requests.rate_limit import RateLimit
from ioa.adapters.nats.requests.service import DEFAULT_RATE, ServiceLimits
from ioa.adapters.nats.streams.topology import GOALS_OPEN, Shares, Topology
from ioa.adapters.nats.streams.topology_keeper import TopologyKeeper
from ioa.adapters.nats.wire.connection import Connection
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.concurrency import beside
from ioa.group.limits import DEFAULT_GROUP_LIMITS, GroupLimits
from ioa.protocol.ids import PoolId, check_token
from ioa.runtime.settings import ProcessSettings
from ioa.telemetry import readiness


def _duration(description: str, **default: float) -> Any:
    """Declare a setting that is a positive duration; `default` are the arguments of `timedelta`."""
    return Field(default=timedelta(**default), gt=timedelta(0), description=description)


class ControlPlaneSettings(ProcessSettings):
    """Settings of registry, discovery, group setup and router."""

    replicas: int = Field(default=1, ge=1, le=5, description="copies of every stream and bucket")
    lease: timedelta = _duration("how long an agent's lease lasts", seconds=10)
    renew_every: timedelta = _duration("how often an agent renews its lease", seconds=3)
    floor_timeout: timedelta = _duration("how long a member may have the floor, or has to conclude, without speaking", seconds=60)
    task_lease: timedelta = _duration("how long a task may go without a report before it is suspect", seconds=30)
    model_patience: timedelta = _duration(
        "how long the language models of all members may be away before their group ends", minutes=5
    )
    patience: timedelta = _duration("maximum patience of an agent, whatever its card requests", hours=1)
    max_depth: int = Field(default=3, ge=0, le=20, description="how deep teams may nest")
    leaders: str = Field(
        default="",
        description="comma-separated pools that may lead goals without an addressee; empty: any pool that fits",
    )
    keep: timedelta = _duration("how long a goal is kept after its end", days=30)
    agent_files_bytes: int = Field(default=256_000_000, ge=0, description="maximum bytes of files that one agent stores")
    user_files_bytes: int = Field(default=1_000_000_000, ge=0, description="maximum bytes of files that one user stores")
    store_bytes: int = Field(
        default=0,
        ge=0,
        description="maximum bytes of all streams; 0: the limit of the JetStream account, or no limit",
    )
    keep_agents: timedelta = _duration("time after which an agent that does not return is removed", days=90)
    audit_keep: timedelta = _duration("time after which a line of the audit log is removed", days=90)
    rate: float = Field(
        default=DEFAULT_RATE.per_second,
        gt=0,
        description="requests a second of one caller to one service; expensive requests count as several",
    )
    burst: int = Field(default=DEFAULT_RATE.burst, ge=1, description="requests of one caller to one service at once, after a pause")
    quota_goals: int = Field(
        default=GOALS_OPEN, ge=1, description="maximum open goals per user; further goals wait until an open goal ends"
    )
    quota_group_tasks: int = Field(
        default=DEFAULT_GROUP_LIMITS.tasks, ge=1, description="maximum tasks that one group assigns in total"
    )
    quota_group_log_bytes: int = Field(
        default=DEFAULT_GROUP_LIMITS.log_bytes,
        ge=1_000_000,
        description="maximum bytes of one group's log; then the group can only conclude",
    )

    @property
    def leading_pools(self) -> tuple[PoolId, ...]:
        """Pools that may lead goals without an addressee; empty: any pool."""
        return tuple(dict.fromkeys(PoolId(name.strip()) for name in self.leaders.split(",") if name.strip()))

    @property
    def group_limits(self) -> GroupLimits:
        """Limits of each group."""
        return GroupLimits(self.quota_group_tasks, self.quota_group_log_bytes)

    @property
    def limits(self) -> ServiceLimits:
        """Request limits of each replica of a service."""
        return ServiceLimits(RateLimit(self.rate, self.burst))

    @model_validator(mode="after")
    def _leaders_are_pools(self) -> Self:
        for pool in self.leading_pools:
            check_token(pool)
        return self


@asynccontextmanager
async def open_topology(client: Connection, settings: ControlPlaneSettings) -> AsyncIterator[Shares | None]:
    """Create the streams and buckets, waiting for JetStream, and create missing ones again while the block runs.

    The process is ready while JetStream answers and has all of them. Yields the maximum bytes of the store and its streams, if they
    are known.
    """
    topology = Topology(
        replicas=settings.replicas,
        keep=settings.keep,
        store_bytes=settings.store_bytes,
        audit_keep=settings.audit_keep,
        goals_open=settings.quota_goals,
    )
    keeper = TopologyKeeper(client, topology)
    with readiness.needs("JetStream", keeper.is_complete), at_renewal(client, keeper.check_soon):
        await keeper.create()
        async with beside(keeper.follow()):
            yield keeper.shares
