"""A member's view of its group in a turn, and the messages that it can build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

from ioa.agent.conversation import Heard, Teammate, read_conversation
from ioa.agent.groups.answer_files import files_of_answer, named_files
from ioa.agent.tasks.inquiry import INQUIRY_TIMEOUT, end_of_question
from ioa.errors import InvalidInputError
from ioa.group.legality import Offer
from ioa.group.policy.casting import Part
from ioa.group.state import GroupState, Votes
from ioa.ports.brain_types import FileReader, Invite, NoFiles, Posted, Reply, TaskRecord, Utterance, WholeConclusion
from ioa.ports.meter import Meter
from ioa.protocol.codec import validate
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId, task_id_of_turn
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    Decision,
    Discussion,
    Message,
    Pass,
    PassCause,
    Pause,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.policy_parts import FieldValue
from ioa.protocol.setup.charter import Charter
from ioa.protocol.teams.team_file import field_of

if TYPE_CHECKING:
    from ioa.agent.task_context import InputFile

Said = Utterance | Decision | WholeConclusion | Invite
"""A message that a builder of `TurnView` makes."""


@dataclass(frozen=True)
class TurnView:
    """The group as this agent knows it, and the messages that it can send.

    Attributes:
        me: This agent.
        log: The messages that this agent may read, with each task that was closed without a message at its place. Entries are only
            appended, except that a passed draft and deleted messages are removed.
        at: When the floor was granted, by the log; None if unknown.
        files: Reads the files of the group and of its goal.
        inputs: The files of the goal, as local copies.
        tasks: All tasks, in the order of their assignment.
        legal: The kinds of message that are legal now, such as `DISCUSSION`.
        reachable: Members that may be the next speaker or an assignee: online, or lost only recently.
        refusals: The reasons why earlier messages of this turn were rejected, oldest first. The third one passes the floor.
        meter: Counts the cost of the decision.
        instructions: Instructions of the author. Private.
        thoughts: Answers of the agent's model with its private notes, by turn. Private.
        offer: The messages that the policy allows, or in a free group the form that a question asks to fill in; otherwise None. In
            parallel turns, `log` contains no answers of others.
        part: The agent's role under the policy, with its prompts; None in a free group.
        replies: Answers to questions to the user, by the turn of the question.
        memory: Summary and recalled passages of messages that `conversation` does not contain.
        board: Items of the board by name, each with `text`, `version`, `by` and `turn`.
        joined: The agent that joined last, by the turn of its invitation.
        kept: A brain's own data of this group, by type. A brain can serve groups of several tenants with equal ids, so such data
            must be stored here.
    """

    me: AgentId
    charter: Charter
    state: GroupState
    log: tuple[Message | TaskRecord, ...]
    tasks: tuple[TaskRecord, ...]
    legal: tuple[str, ...]
    reachable: tuple[AgentId, ...]
    refusals: tuple[str, ...] = ()
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    at: datetime | None = None
    files: FileReader = field(default_factory=NoFiles, compare=False, repr=False)
    inputs: tuple[InputFile, ...] = ()
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

    @property
    def goal(self) -> str:
        """The goal of the group."""
        return self.charter.goal

    @property
    def goal_id(self) -> GoalId:
        """The id of the goal."""
        return self.charter.goal_id

    @property
    def comm_id(self) -> CommId:
        """The id of the group."""
        return self.charter.comm_id

    @property
    def turn(self) -> int:
        """The number of the turn."""
        return self.state.turn

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the log."""
        return tuple([item for item in self.log if isinstance(item, Message)])

    @cached_property
    def conversation(self) -> tuple[Heard, ...]:
        """The messages, tasks and results so far, in order."""
        return tuple([one for one in read_conversation(self.log, self.replies) if one.kind != "decision"])

    @cached_property
    def decisions(self) -> tuple[Heard, ...]:
        """The choices of members that a policy asked, as far as this agent has read them, in order."""
        return tuple([one for one in read_conversation(self.log, self.replies) if one.kind == "decision"])

    @cached_property
    def team(self) -> tuple[Teammate, ...]:
        """The other members."""
        living, hearing = self.state.living(), self.state.hearing
        return tuple(
            Teammate(card.agent_id, card.description, tuple(card.examples), card.agent_id in living)
            for card in self.charter.team_members
            if card.agent_id != self.me and card.agent_id in hearing
        )

    @property
    def votes(self) -> Votes | None:
        """The answers to the last question to several members; None if there was none."""
        return self.state.tally

    def say(
        self,
        text: str,
        *,
        to: str | Sequence[str] | None = None,
        go: str | None = None,
        fields: Mapping[str, FieldValue] | None = None,
        question: Mapping[str, str] | None = None,
        only_to: Sequence[str] = (),
        writes: str | Sequence[str] | Mapping[str, str] = (),
    ) -> Discussion:
        """Send a message, and give the floor to one member, or to several in parallel; then the floor returns.

        Args:
            text: The message.
            to: The next speaker, or several. Under a policy one of `offer.next_speakers`; None: the policy selects one.
            go: Under a policy, the next node, one of `offer.go`.
            fields: Values of `offer.form`, by name.
            question: At most four fields that each of several speakers fills in: `{"choice": "red|blue", "sure": "1..10"}`. A field
                is `text`, `number`, `1..10`, `yes/no`, `this|that` or `member`; a final `?` makes it optional. `votes` counts the
                answers.
            only_to: The readers, of `offer.addressees`; default: all of them.
            writes: Items of the board, of `offer.writes`: texts by name, or names that get the text of the message.
        """
        names = (writes,) if isinstance(writes, str) else writes
        written = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
        several = () if to is None or isinstance(to, str) else tuple(to)
        asked = tuple([field_of(name, written) for name, written in (question or {}).items()])
        said = {"content": text, "next_speaker": None if several else to, "next_speakers": several, "go": go}
        return validate(Discussion, {**said, "question": asked, "fields": fields or {}, "to": tuple(only_to), "writes": written})

    def invite(self, agent: str | None = None, *, need: str = "", role: str | None = None, why: str = "") -> Invite:
        """Invite an agent; then the function is called again in the same turn, with the new member in `team`.

        Under a policy only nodes with `invites` allow it. If no agent can join, `refusals` contains the reason.

        Args:
            agent: The agent.
            need: A need for discovery, instead of `agent`.
            role: The role under a policy, of `offer.invites`.
            why: The job of the agent; all members read it.
        """
        if bool(agent) == bool(need):
            raise InvalidInputError("An invitation needs either `agent` or `need`.")
        return Invite(None if agent is None else AgentId(agent), need, role, why)

    def decide(self, choice: str, why: str = "", *, members: Sequence[str] = ()) -> Decision:
        """Choose one of `offer.options`.

        Args:
            choice: The option.
            why: The reason; of a hint, its text.
            members: As a watcher: the members that are removed or get the hint, of `offer.members`.
        """
        return validate(Decision, {"choice": choice, "content": why, "members": tuple(members)})

    def assign(
        self,
        tasks: Mapping[str, str] | Sequence[TaskSpec],
        *,
        wait: bool = True,
        say: str = "",
        uses: Sequence[TaskId] = (),
        team: str | None = None,
    ) -> SyncTaskAssignment | AsyncTaskAssignment:
        """Assign tasks to members.

        Args:
            tasks: Tasks by member; or specifications, for several tasks of one member.
            wait: The floor returns with all results. False: the discussion continues.
            say: The reason, in a sentence.
            uses: Finished tasks whose results these tasks use.
            team: A stored team that serves each task, as `NAME` or `NAME@VERSION`.
        """
        numbers = (task_id_of_turn(self.turn, str(number)) for number in count(self.state.tasks_given + 1))
        given: Sequence[Any] = (
            [
                {"task_id": next(numbers), "assignee": member, "task_desc": task, "uses": tuple(uses), "team": team}
                for member, task in tasks.items()
            ]
            if isinstance(tasks, Mapping)
            else tasks
        )
        said = {"content": say, "tasks": tuple(given)}
        return validate(SyncTaskAssignment, said) if wait else validate(AsyncTaskAssignment, said)

    def ask(self, text: str, *, options: Sequence[str] = (), default: str, within: timedelta = INQUIRY_TIMEOUT) -> AskUser:
        """Ask the user of the goal. The answer returns the floor to this agent.

        The answer is then the last entry of `conversation`. Tasks go on meanwhile, and no member speaks.

        Args:
            text: The question, at most 2,000 characters.
            options: At most 16 possible answers; none: any text.
            default: The answer if none arrives in time.
            within: Timeout since the start of this turn, at most nine tenths of the remaining time.

        Raises:
            InvalidInputError: The question is not valid.
        """
        deadline = self.state.limits.deadline
        until = end_of_question(within, self.at or deadline, deadline)
        return validate(AskUser, {"text": text, "default": default, "options": tuple(options), "until": until})

    def pause(self, *task_ids: str) -> Pause:
        """Wait until these open tasks have ended."""
        return validate(Pause, {"triggers": task_ids})

    def pass_turn(self, why: str = "") -> Pass:
        """Send no message in this turn; of a decision, the default is used.

        When all members of a free group have passed, the group concludes. A conclusion cannot be passed.

        Args:
            why: The reason, at most 2,000 characters.
        """
        return validate(Pass, {"cause": PassCause.NOTHING_TO_ADD, "content": why})

    def conclude(self, text: str, *, reached: bool = True, files: Sequence[str] | None = None) -> WholeConclusion:
        """End the group with its answer and the files of the finished tasks.

        Args:
            text: The answer; all members read it.
            reached: False if the goal was not reached.
            files: Names of the files. Default: all files of finished tasks that all members know, without those of a name that a
                task replaced which used them.

        Raises:
            InvalidInputError: No finished task has made a file of such a name.
        """
        artifacts = files_of_answer(self.tasks) if files is None else named_files(self.tasks, files)
        return WholeConclusion(content=text, reason=Reason.CONCLUDED if reached else Reason.FAILED, artifacts=artifacts)
