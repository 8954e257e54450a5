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
from ioa.group.events import Kind
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
    """Have somebody join the group before anything is said. It takes no turn: whoever invites is asked again when it is done.

    Of who is asked whether to step in, and may add somebody, that is the answer.

    Attributes:
        agent: Who is to join.
        need: What somebody is needed for, in words, for discovery; instead of `agent`.
        role: What it is to play under a policy.
        why: What it is to do.
    """

    agent: AgentId | None = None
    need: str = ""
    role: str | None = None
    why: str = ""


Utterance = Discussion | SyncTaskAssignment | AsyncTaskAssignment | Pause | ConcludeGroupDiscussion | Pass | AskUser
"""What a floor holder may say in a discussion."""


@dataclass(frozen=True)
class NobodyFits:
    """No agent serves these needs; the goal fails and says which, and who came nearest if the brain knows, in whole sentences.

    Attributes:
        searched: What was searched, if the brain would answer the same as long as that finds the same.
        found: Whom all of it has found.
    """

    needs: tuple[str, ...]
    nearest: str = ""
    searched: tuple[str, ...] = field(default=(), compare=False)
    found: frozenset[AgentId] = field(default=frozenset(), compare=False)


@dataclass(frozen=True)
class Mission:
    """Something to be reached by a team: a goal, or a task treated as one.

    Attributes:
        depth: 0 for a goal.
        meter: Where the brain counts what its decision costs.
        before: What the brain said of the same mission a moment ago; None: it is asked for the first time.
    """

    text: str
    inputs: tuple[Artifact, ...]
    me: AgentCard
    depth: int
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    before: NobodyFits | None = None


@dataclass(frozen=True)
class Contact:
    """An agent this one has worked with. `outcomes` are its last tasks, the oldest first."""

    card: AgentCard
    tasks_done: int
    tasks_failed: int
    outcomes: tuple[Outcome, ...] = ()


class TeamTools(Protocol):
    """The tools of team formation (paper, appendix A.2.3). The second one, `launch_group_chat`, is the answer itself.

    At most ten searches are answered for one mission; then the brain must launch with what it has.
    """

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Ask discovery who fits; the asking agent itself is among the candidates.

        Raises:
            UnavailableError: Discovery does not answer.
            ForbiddenError: The ten calls are spent.
        """

    async def contacts(self) -> Sequence[Contact]:
        """List who this agent has worked with, best first."""


@dataclass(frozen=True)
class TeamLaunch:
    """Launch a group chat with these members; the owner is one of them without being named.

    Attributes:
        members: Who is invited.
        plan: Who does what.
        in_doubt: Nobody is sure to fit, so that whoever has just started looks again first: others may be found soon.
        cast: Who was found for roles of the goal's own team that name a need.
    """

    members: tuple[AgentId, ...]
    plan: tuple[PlannedTask, ...] = ()
    in_doubt: bool = False
    cast: tuple[Casting, ...] = ()


@dataclass(frozen=True)
class Alone:
    """Do the task without a team; `task_desc` is how the agent's own function is told."""

    task_desc: str


@dataclass(frozen=True)
class TaskRecord:
    """A task of the group with all that is known of it.

    Attributes:
        outcome: None while it is open.
        conclusion: What its assignee reported, or why it was closed without a report.
        given_up: It failed since its assignee fell silent, so that another one may do better.
        started: False while it waits for the tasks that it uses, and for good if it was cancelled before it could start.
        rejected: Why the group did not take its result; empty if it did.
        declined: Its assignee does no such tasks.
        told_to_all: Whether all members are told of it; under a policy some may not be.
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
    """What came of a question out of the group; `by` is None where nobody answered in time, and its default stands."""

    text: str
    by: str | None


@dataclass(frozen=True)
class Posted:
    """A thing on the board of a group under a policy: its last version of those that this member has heard.

    Attributes:
        name: What it is called.
        version: How often it was written, as far as this member has heard.
        by: Who has written it.
        turn: In which turn.
        text: What it says.
        message_id: The message that has written it.
    """

    name: str
    version: int
    by: AgentId
    turn: int
    text: str
    message_id: MessageId


class FileReader(Protocol):
    """Where a brain reads the files of its group."""

    async def get_file(self, artifact: Artifact) -> bytes:
        """Fetch a file.

        Raises:
            NotFoundError: It is gone.
            UnavailableError: The store does not answer.
        """


class NoFiles:
    """A `FileReader` of a group whose files cannot be read here."""

    async def get_file(self, artifact: Artifact) -> bytes:
        """Find nothing."""
        raise NotFoundError(f"The file {artifact.name} cannot be read here.")


class WholeConclusion(Conclusion):
    """A conclusion as its brain states it: of any length. What exceeds a message goes with it as a file (`GroupSession`)."""

    content: str


@dataclass(frozen=True)
class GroupView:
    """What a member knows when it has the floor.

    Attributes:
        messages: Everything said so far, in the group's order.
        log: The same, and in its place each task that was closed without a message, by a nested team, a deadline or a cancellation.
            It only ever grows at its end; but a draft goes from it when it is said to all, and what is struck.
        at: When the floor was granted, by the log; None if nobody said.
        files: Where the files of the group and of its goal are read.
        tasks: Every task given out so far, in order.
        legal: The kinds of message that are legal for `me` now.
        reachable: The members that may be named next speaker or be given a task: the living, and those lost only just now.
        refusals: What the router said of this turn's earlier attempts, oldest first.
        meter: Where the brain counts what its decision costs.
        instructions: How the author of `me` wants it to go about things. Nobody else is shown them.
        observation: What `me` sees now, by its author's function. Nobody else is shown it.
        thoughts: What `me` thought in its turns so far, by turn. Nobody else is shown it.
        offer: What `me` may say in the discussion by the policy of the group, or in answer to who has asked several at once; None
            if no policy leads and nobody has asked. In a seat beside others `messages` and `log` hold no answer of theirs.
        part: What `me` plays by the policy of the group; None if no policy leads.
        replies: What came of the questions out of the group, by the turn in which they were asked.
        memory: What `me` remembers of that which its part has left out of `messages` and `log`, and of other groups.
        board: What members have written on the board, as far as `me` has heard it.
        joined: Who has joined the group since it was launched, by the turn in which it was invited; of several the last one.
        kept: What a brain keeps of the group from one decision to the next, by its kind. It goes with the group; and one brain may
            speak in groups of other tenants, who may call theirs by the same ids.
    """

    me: AgentId
    charter: Charter
    state: GroupState
    messages: tuple[Message, ...]
    tasks: tuple[TaskRecord, ...]
    legal: tuple[Kind, ...]
    reachable: tuple[AgentId, ...]
    refusals: tuple[str, ...] = ()
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    log: tuple[Message | TaskRecord, ...] = ()
    at: datetime | None = None
    files: FileReader = field(default_factory=NoFiles, compare=False, repr=False)
    instructions: str = field(default="", repr=False)
    observation: str = field(default="", repr=False)
    thoughts: Mapping[int, str] = field(default_factory=dict, repr=False)
    offer: Offer | None = None
    part: Part | None = None
    memory: str = field(default="", repr=False)
    replies: Mapping[int, Reply] = field(default_factory=dict)
    board: tuple[Posted, ...] = ()
    joined: Mapping[int, AgentId] = field(default_factory=dict)
    kept: dict[type, Any] = field(default_factory=dict, compare=False, repr=False)

    def task(self, task_id: TaskId) -> TaskRecord | None:
        """Find a task by its id."""
        return next((task for task in self.tasks if task.spec.task_id == task_id), None)


@dataclass(frozen=True)
class TaskView:
    """What an assignee knows of a task when it takes it."""

    spec: TaskSpec
    me: AgentCard
    group: GroupView

    @property
    def used(self) -> tuple[TaskRecord, ...]:
        """The earlier tasks whose results feed this one."""
        return tuple(task for task_id in self.spec.uses if (task := self.group.task(task_id)) is not None)


class UndecidedError(UnavailableError):
    """A brain has taken no decision, since its model is away (`is_away`) or gave no usable answer; nobody decides in its place."""

    def __init__(self, message: str, *, is_away: bool) -> None:
        super().__init__(message)
        self.is_away = is_away


@runtime_checkable
class AsksModel(Protocol):
    """A brain that asks a language model."""

    @property
    def model(self) -> str:
        """The model's name, as it is configured."""

    @property
    def answers(self) -> int:
        """How often the model has answered."""

    @property
    def failures(self) -> int:
        """How often it has failed since it last answered."""

    @property
    def patience(self) -> timedelta:
        """How long a decision may take."""


class Brain(Protocol):
    """Decide what an agent says and with whom it works. Implementations: rules, a language model, a script for tests."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Find who is needed for a goal and plan the work.

        Raises:
            UndecidedError: What decides is away, or gives no usable answer.
        """

    async def speak(self, view: GroupView) -> Utterance | Invite:
        """Say something while holding the floor in a discussion, or have somebody join first."""

    async def conclude(self, view: GroupView) -> Conclusion | Pass:
        """State the group's answer, or pass; a `WholeConclusion` may be longer than a message."""

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | TeamLaunch:
        """Decide whether to do an assigned task alone, and in which words, or with a nested team."""


@runtime_checkable
class Decides(Protocol):
    """A brain that also decides where a policy asks its agent to; in the place of any other the default stands."""

    async def decide(self, view: GroupView) -> Decision | Pass | Invite:
        """Choose one of `view.offer.options`, or pass, so that the default stands. Who chooses to add somebody invites it."""


@runtime_checkable
class Plans(Protocol):
    """A brain that plans teams: who is needed for a goal, and by which policy they work."""

    async def plan(self, mission: Mission, tools: TeamTools) -> TeamSpec | None:
        """Plan a team for a goal that was given none; None if it needs no policy.

        Raises:
            UnavailableError: Discovery does not answer.
        """
