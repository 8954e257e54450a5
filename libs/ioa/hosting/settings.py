"""The settings of a process that runs agents. The settings of models are in `ioa.adapters.openai.settings`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field

from ioa.runtime.settings import ProcessSettings

_LEAVING = timedelta(seconds=6)


class WorkerSettings(ProcessSettings):
    """Settings of a process that runs agents."""

    agent_data: Path = Field(default=Path(".ioa/agents"), description="where each agent keeps its memory")
    drain: timedelta = Field(default=timedelta(seconds=5), description="how long running tasks may go on after SIGTERM")
    tasks_at_once: int = Field(default=4, ge=1, description="how many tasks an agent runs at the same time")
    goals_at_once: int = Field(default=8, ge=1, description="how many goals an agent forms teams for at the same time")

    sandbox: Literal["bwrap", "none"] = Field(
        default="bwrap", description="how agents confine untrusted code; `none` if the machine or the pod confines them"
    )

    @property
    def stops_within(self) -> timedelta:
        """The drain, and a moment to leave in."""
        return self.drain + _LEAVING
