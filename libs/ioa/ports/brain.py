"""The communication layer's one port: what an agent says, as opposed to what it can do (paper, section 2.3 and appendix A).

A brain decides; it performs nothing. Its answers are payloads and plans that the router checks again, so a brain can be poor
but never harmful. Every method may be called again for the same situation after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from ioa.errors import NotFoundError, UnavailableError
from ioa.group.policy.offer import Offer
from ioa.group.policy.part import Part
from ioa.group.state import Charter, GroupState, PlannedTask
from ioa.ports.meter import Meter
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, MessageId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Message,
    Pass,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.outcomes import Outcome
from ioa.protocol.policy import Casting
from ioa.protocol.search import Need, SearchResult
from ioa.protocol.team import TeamSpec


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
        searched: The searched needs, if the answer depends on their hits only.
        found: The agents that they found.
    """

    needs: tuple[str, ...]
    nearest: str = ""
    searched: tuple[str, ...] = field(default=(), compare=False)
    found: frozenset[AgentId] = field(default=frozenset(), compare=False)


@dataclass(frozen=True)
class Mission:
    """A goal, or a task for a nested team.

    Attributes:
        depth: Nesting depth; 0 for a goal.
        meter: Counts the cost of the decision.
        before: The brain's last answer for the same mission; None at the first call.
    """

    text: str
    inputs: tuple[Artifact, ...]
    me: AgentCard
    depth: int
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    before: NobodyFits | None = None


@dataclass(frozen=True)
class Contact:
    """An agent that this agent has worked with. `outcomes` belong to its last tasks, oldest first."""

    card: AgentCard
    tasks_done: int
    tasks_failed: int
    outcomes: tuple[Outcome, ...] = ()


class TeamTools(Protocol):
    """The tools of team formation (paper, appendix A.2.3). The second one, `launch_group_chat`, is the answer itself.

    At most ten searches are answered for one mission; then the brain must launch with what it has.
    """

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Search for agents; the searching agent can be among the hits.

        Raises:
            UnavailableError: Discovery does not answer.
            ForbiddenError: Ten searches were made.
        """

    async def contacts(self) -> Sequence[Contact]:
        """Return the agents that this agent has worked with, best first."""


@dataclass(frozen=True)
class TeamLaunch:
    """Launch a group with these members and its owner.

    Attributes:
        members: The invited agents, without the owner.
        in_doubt: No member surely fits. An agent that has just started searches again first, because others may register soon.
        cast: Agents found for roles of the goal's team that name a need.
    """

    members: tuple[AgentId, ...]
    plan: tuple[PlannedTask, ...] = ()
    in_doubt: bool = False
    cast: tuple[Casting, ...] = ()


@dataclass(frozen=True)
class Alone:
    """Do the task without a team; `task_desc` is the input of the agent's function."""

    task_desc: str


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


@dataclass(frozen=True)
class GroupView:
    """A group as one member sees it when it holds the floor.

    Attributes:
        messages: All messages that `me` may read, in the log's order.
        log: The same, with each task that was closed without a message at its place. Entries are only appended, except that a
            passed draft and deleted messages are removed.
        at: When the floor was granted, by the log; None if unknown.
        files: Reads the files of the group and of its goal.
        tasks: All tasks, in the order of their assignment.
        legal: The kinds of message that are legal for `me` now, such as `DISCUSSION`.
        reachable: Members that may be the next speaker or an assignee: online, or lost only recently.
        refusals: The router's reasons for rejecting earlier messages of this turn, oldest first.
        meter: Counts the cost of the decision.
        instructions: Instructions of the author of `me`. Private.
        thoughts: Thoughts of `me`, by turn. Private.
        offer: The messages that the policy, or a gathering, allows `me`; None without either. In a gathering, `messages` and `log`
            contain no answers of others.
        part: The role of `me` under the policy; None without a policy.
        replies: Answers to questions to the user, by the turn of the question.
        memory: Remembered passages that `messages` and `log` leave out, and passages of other groups.
        board: The items of the board that `me` may read, by name.
        joined: The agent that joined last, by the turn of its invitation.
        kept: A brain's own data of this group, by type. A brain can serve groups of several tenants with equal ids, so such data
            must be stored here.
    """

    me: AgentId
    charter: Charter
    state: GroupState
    messages: tuple[Message, ...]
    tasks: tuple[TaskRecord, ...]
    legal: tuple[str, ...]
    reachable: tuple[AgentId, ...]
    refusals: tuple[str, ...] = ()
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    log: tuple[Message | TaskRecord, ...] = ()
    at: datetime | None = None
    files: FileReader = field(default_factory=NoFiles, compare=False, repr=False)
    instructions: str = field(default="", repr=False)
    thoughts: Mapping[int, str] = field(default_factory=dict, repr=False)
    offer: Offer | None = None
    part: Part | None = None
    memory: str = field(default="", repr=False)
    replies: Mapping[int, Reply] = field(default_factory=dict)
    board: Mapping[str, Posted] = field(default_factory=dict)
    joined: Mapping[int, AgentId] = field(default_factory=dict)
    kept: dict[type, Any] = field(default_factory=dict, compare=False, repr=False)

    def task(self, task_id: TaskId) -> TaskRecord | None:
        """Return a task by its id."""
        return next((task for task in self.tasks if task.spec.task_id == task_id), None)


@dataclass(frozen=True)
class TaskView:
    """A task as its assignee sees it when it starts."""

    spec: TaskSpec
    me: AgentCard
    group: GroupView

    @property
    def used(self) -> tuple[TaskRecord, ...]:
        """The tasks whose results this task uses."""
        return tuple(task for task_id in self.spec.uses if (task := self.group.task(task_id)) is not None)


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
    def answers(self) -> int:
        """Number of the model's answers."""

    @property
    def failures(self) -> int:
        """Number of failures since its last answer."""

    @property
    def patience(self) -> timedelta:
        """Timeout of a decision."""


class Brain(Protocol):
    """Decides an agent's messages and teams: rules, a language model, or a script of a test."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Find the agents for a goal and plan the work.

        Raises:
            UndecidedError: No decision was made.
        """

    async def speak(self, view: GroupView) -> Utterance | Invite:
        """Return the next message of the floor holder, or an invitation before it."""

    async def conclude(self, view: GroupView) -> Conclusion | Pass:
        """Return the group's answer, or pass; a `WholeConclusion` can be longer than a message."""

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | TeamLaunch:
        """Decide whether to do an assigned task alone or with a nested team."""


@runtime_checkable
class Decides(Protocol):
    """A brain that answers the decisions of a policy. Without it, the default of each decision is used."""

    async def decide(self, view: GroupView) -> Decision | Pass | Invite:
        """Choose one of `view.offer.options`, or pass to use the default; an invitation chooses an option that adds a member."""


@runtime_checkable
class Plans(Protocol):
    """A brain that plans teams with a policy."""

    async def plan(self, mission: Mission, tools: TeamTools) -> TeamSpec | None:
        """Plan a team for a goal without one; None if it needs no policy.

        Raises:
            UnavailableError: Discovery does not answer.
        """
