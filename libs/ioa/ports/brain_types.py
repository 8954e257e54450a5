"""Data that a brain reads and decides: teams, invitations, task records, conclusions; `ioa.agent.brain_port` has the port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, runtime_checkable

from ioa.errors import NotFoundError, UnavailableError
from ioa.ports.meter import Meter
from ioa.protocol.agents.search import Need, SearchResult
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, MessageId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pass,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.policy import Casting
from ioa.protocol.setup.charter import PlannedTask


@dataclass(frozen=True)
class Invite:
    """Invite an agent before speaking. It takes no turn: the brain is asked again afterwards.

    It is also the answer to a decision whose chosen option adds a member.

    Attributes:
        agent: The agent to invite.
        need: A need for discovery, instead of `agent`.
        role: The agent's role under a policy.
        why: The agent's job.
    """

    agent: AgentId | None = None
    need: str = ""
    role: str | None = None
    why: str = ""


Utterance = Discussion | SyncTaskAssignment | AsyncTaskAssignment | Pause | ConcludeGroupDiscussion | Pass | AskUser
"""Messages that a floor holder may send in a discussion."""


@dataclass(frozen=True)
class NobodyFits:
    """No agent serves these needs, so the goal fails.

    Attributes:
        nearest: Lines for the user about the nearest agents; empty if unknown.
    """

    needs: tuple[str, ...]
    nearest: str = ""


@dataclass(frozen=True)
class Mission:
    """A goal, or a task for a nested team.

    Attributes:
        meter: Counts the cost of the decision.
    """

    text: str
    inputs: tuple[Artifact, ...]
    me: AgentCard
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)


@dataclass(frozen=True)
class Contact:
    """An agent that this agent gave tasks to."""

    card: AgentCard
    tasks_done: int
    tasks_failed: int


class TeamTools(Protocol):
    """The tools of team formation (paper, appendix A.2.3). The second one, `launch_group_chat`, is the answer itself."""

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Search for agents; the searching agent can be among the hits.

        Raises:
            UnavailableError: Discovery does not answer.
        """

    async def contacts(self) -> Sequence[Contact]:
        """Return the agents that this agent has worked with, best first."""


@dataclass(frozen=True)
class TeamLaunch:
    """Launch a group with these members and its owner.

    Attributes:
        members: The invited agents, without the owner.
        cast: Agents found for roles of the goal's team that name a need.
    """

    members: tuple[AgentId, ...]
    plan: tuple[PlannedTask, ...] = ()
    cast: tuple[Casting, ...] = ()


@dataclass(frozen=True)
class TaskRecord:
    """A task of the group.

    Attributes:
        outcome: None while it is open.
        conclusion: The assignee's report, or the reason why it was closed without a report.
        given_up: It failed because its assignee was lost.
        started: False while it waits for tasks that it uses, or if it was cancelled before it could start.
        rejected: The reason why the group rejected its result; empty otherwise.
        declined: Its assignee does not do such tasks.
        told_to_all: Whether the policy shows it to all members.
    """

    spec: TaskSpec
    outcome: TaskOutcome | None
    conclusion: str
    artifacts: tuple[Artifact, ...]
    given_up: bool = False
    started: bool = True
    rejected: str = ""
    declined: bool = False
    told_to_all: bool = True


@dataclass(frozen=True)
class Reply:
    """Answer to a question to the user; `by` is None if it expired and its default is used."""

    text: str
    by: str | None


@dataclass(frozen=True)
class Posted:
    """The last version of an item of the group's board that this member may read."""

    name: str
    version: int
    by: AgentId
    turn: int
    text: str
    message_id: MessageId


class FileReader(Protocol):
    """Reads the files of a group."""

    async def get_file(self, artifact: Artifact) -> bytes:
        """Return a file's content.

        Raises:
            NotFoundError: There is no such file.
            UnavailableError: The store does not answer.
        """


class NoFiles:
    """A `FileReader` without files."""

    async def get_file(self, artifact: Artifact) -> bytes:
        """Raise NotFoundError."""
        raise NotFoundError(f"The file {artifact.name} cannot be read here.")


class WholeConclusion(Conclusion):
    """A conclusion of any length. `GroupFiles` attaches a content that exceeds a message, and `texts`, as files.

    Attributes:
        texts: Texts to attach as files, by file name.
    """

    content: str
    texts: Mapping[str, str] = {}


class UndecidedError(UnavailableError):
    """A brain made no decision: its model is unavailable (`is_away`) or gave no usable answer."""

    def __init__(self, message: str, *, is_away: bool) -> None:
        super().__init__(message)
        self.is_away = is_away


@runtime_checkable
class AsksModel(Protocol):
    """A brain that asks a language model."""

    @property
    def model(self) -> str:
        """The model's configured name."""

    @property
    def failures(self) -> int:
        """Number of failures since its last answer."""

    @property
    def patience(self) -> timedelta:
        """Timeout of a decision."""
