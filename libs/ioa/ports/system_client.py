"""The system as its users see it; each part of it is a port of its own, for callers that need no more."""

from __future__ import annotations

from typing import Protocol

from ioa.ports.agent_directory import AgentDirectory
from ioa.ports.goal_client import GoalClient
from ioa.ports.group_client import GroupClient
from ioa.ports.operator_client import OperatorClient
from ioa.ports.team_client import TeamClient


class SystemClient(GoalClient, GroupClient, AgentDirectory, TeamClient, OperatorClient, Protocol):
    """Everything that people and programs outside the system may ask of it.

    Every method raises `UnavailableError` when nobody answers.
    """
