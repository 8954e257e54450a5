"""The settings of a process that runs agents; those of its models stand in `ioa.adapters.openai.settings`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from ioa.protocol.ids import TenantId, TenantIdField
from ioa.runtime.settings import ProcessSettings

_LEAVING = timedelta(seconds=6)


def _by_tenant(written: object) -> object:
    if not isinstance(written, str):
        return written
    pairs = [one.strip().partition("=") for one in written.split(",") if one.strip()]
    if any(not seed for _, _, seed in pairs):
        raise ValueError("write TENANT=SEED, and commas between several")
    if len({tenant for tenant, _, _ in pairs}) < len(pairs):
        raise ValueError("a tenant has two seeds")
    return {tenant: seed for tenant, _, seed in pairs}


class WorkerSettings(ProcessSettings):
    """What a process that runs agents is told."""

    agent_data: Path = Field(default=Path(".ioa/agents"), description="where each agent keeps its memory")
    drain: timedelta = Field(default=timedelta(seconds=5), description="how long running tasks may go on after SIGTERM")
    tasks_at_once: int = Field(default=4, ge=1, description="how many tasks an agent runs at the same time")
    goals_at_once: int = Field(default=8, ge=1, description="how many goals an agent forms teams for at the same time")
    task_timeout: timedelta | None = Field(
        default=None,
        gt=timedelta(0),
        description="how long a task's function may run whose author did not say; for ever by default",
    )
    plan_teams: bool = Field(
        default=False,
        description="plan a team with a policy for goals that an agent leads and that were given none, instead of a free group",
    )
    agent_keep: timedelta = Field(
        default=timedelta(days=1), ge=timedelta(0), description="how long an agent's memory keeps groups that have ended"
    )

    sandbox: Literal["auto", "bwrap", "landlock", "none"] = Field(
        default="auto", description="how agents confine code that they run for others; `auto` takes the strictest that holds here"
    )

    tenant_seeds: Annotated[Mapping[TenantIdField, str], BeforeValidator(_by_tenant)] = Field(
        default={}, description="other tenants that the agents work for too, each with its seed: `acme=FILE,umbra=FILE`"
    )

    def for_others(self) -> Mapping[TenantId, Self]:
        """Return how the agents work for each other tenant: by its key, with a memory of its own. No agent is called `of.acme`."""
        others: dict[str, object] = {"nats_credentials": None, "nats_token": None, "nats_token_file": None, "tenant_seeds": {}}
        return {
            tenant: self.model_copy(update={**others, "nats_seed": seed, "agent_data": self.agent_data / f"of.{tenant}"})
            for tenant, seed in self.tenant_seeds.items()
        }

    @property
    def stops_within(self) -> timedelta:
        """The drain, and a moment to leave in."""
        return self.drain + _LEAVING
