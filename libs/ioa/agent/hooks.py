"""What an author's own functions decide in an agent's turns: what it sees, and what it says.

A hook is shown what its agent may know and answers; it is called again for the same situation after a refusal or a restart, so that
it should read and do nothing else. What it saw stays with the agent: in its memory and in what its own speaker is told, in no
message, and with nobody else.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from ioa.adapters.agent_memory import StoredObservation
from ioa.adapters.sqlite_store import SqliteStore
from ioa.agent.answer_files import files_of_answer, named_files
from ioa.agent.asking import until_answered
from ioa.agent.conversation import Heard, Teammate, conversation_of, decisions_of, kept, name_of_entry, teammates, without
from ioa.agent.inquiring import AskedOfMe, Inquiry
from ioa.agent.listening import Listeners
from ioa.agent.remembering import Memories, in_sight
from ioa.agent.worker_pool import Slot, WorkerPool
from ioa.errors import InvalidInputError, IoaError, reason_of
from ioa.group.events import name_of
from ioa.group.policy.offer import TO_CONCLUDE, Offer
from ioa.group.policy.part import Part
from ioa.group.state import Charter, Concluding, GroupState, Votes
from ioa.ports.brain import GroupView, Invite, Posted, TaskRecord, Utterance, WholeConclusion
from ioa.protocol.codec import validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId, task_id_of_turn
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    Message,
    Pass,
    PassCause,
    Pause,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.policy import FieldValue
from ioa.protocol.team import field_of
from ioa.protocol.texts import CUT

if TYPE_CHECKING:
    from ioa.agent.definition import AgentDefinition, InputFile
    from ioa.agent.model.chat import ModelChat
    from ioa.agent.workspace import GroupFiles

MAX_OBSERVATION_CHARS = 8_000
LOOK_WITHIN = timedelta(seconds=5)
HOOKS_AT_ONCE = 8

Said = Utterance | Decision | WholeConclusion | Invite
"""What a speaker may say: what the builders of `TurnView` make."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class TurnView:
    """What an author's hook is shown when its agent has the floor, or is to take a task.

    Attributes:
        me: This agent.
        turn: The number of the turn.
        conversation: What was said so far, in order, with the tasks and their results.
        decisions: What was decided under a policy as far as this agent was told of it, in order; a hint to it and the reason why a
            draft of its was rejected are `why`.
        tasks: Every task given out so far, in order.
        team: The other members.
        inputs: The files that came with the goal, as local copies.
        legal: What may be said now, by its kind, such as `DISCUSSION`.
        refusals: Why earlier attempts in this turn were refused, or what they raised, oldest first. After the third the floor
            passes on.
        observation: What `@agent.observe` saw last.
        offer: What this agent may do now. Under a policy it is there whenever this agent is to say something; in a free group only
            where somebody asks several at once, with what is to be filled in as its `form`. Else None.
        part: What it plays under a policy, and what it is told. None in a free group.
        memory: What it remembers of that which its part leaves out of `conversation`, and of other groups.
        board: What was written on the board under a policy, by name: `text`, `version`, `by` and `turn` of the last version that
            this agent has heard.
    """

    me: AgentId
    goal: str
    goal_id: GoalId
    comm_id: CommId
    turn: int
    conversation: tuple[Heard, ...]
    decisions: tuple[Heard, ...]
    tasks: tuple[TaskRecord, ...]
    team: tuple[Teammate, ...]
    inputs: tuple[InputFile, ...]
    legal: tuple[str, ...]
    refusals: tuple[str, ...]
    observation: str
    _state: GroupState
    offer: Offer | None = None
    part: Part | None = None
    memory: str = ""
    board: Mapping[str, Posted] = field(default_factory=dict)
    _began: datetime | None = None

    @property
    def votes(self) -> Votes | None:
        """What came of the last question that several members were asked at once; None if there was none."""
        return self._state.tally

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
        """Say something, and give the floor to another member, or to several at once; then it comes back.

        Args:
            text: The words.
            to: Who speaks next. Under a policy one of `offer.next_speakers`, or nobody: then the policy chooses. Several speak side
                by side, once each, and read what the others say when all have spoken.
            go: Under a policy, the node of `offer.go` that the group goes on to.
            fields: What `offer.form` asks for, by name.
            question: What each of several is to fill in, at most four fields: `{"choice": "red|blue", "sure": "1..10"}`. A field is
                `text`, `number`, `1..10`, `yes/no`, `this|that` or `member`, and may lack if a `?` follows. Answers are counted in
                `votes`.
            only_to: Who of `offer.addressees` is to hear it, besides who hears all; by default all of them are.
            writes: What is written on the board, of `offer.writes`: texts by name, or names that the words themselves are to stand
                under.
        """
        names = (writes,) if isinstance(writes, str) else writes
        written = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
        several = () if to is None or isinstance(to, str) else tuple(to)
        asked = tuple([field_of(name, written) for name, written in (question or {}).items()])
        said = {"content": text, "next_speaker": None if several else to, "next_speakers": several, "go": go}
        return validate(Discussion, {**said, "question": asked, "fields": fields or {}, "to": tuple(only_to), "writes": written})

    def invite(self, agent: str | None = None, *, need: str = "", role: str | None = None, why: str = "") -> Invite:
        """Have somebody join the group; then this function is called again, with `team` as it is then.

        It takes no turn. In groups without a policy any floor holder may do it, under one those of nodes with `invites`. If nobody
        can join, `refusals` says why.

        Args:
            agent: Who is to join.
            need: What somebody is needed for, in words, for discovery; instead of `agent`.
            role: What it plays under a policy, of `offer.invites`.
            why: What it is to do; all read it.
        """
        if bool(agent) == bool(need):
            raise InvalidInputError("Say whom to invite by `agent`, or what for by `need`, and not both.")
        return Invite(None if agent is None else AgentId(agent), need, role, why)

    def decide(self, choice: str, why: str = "", *, members: Sequence[str] = ()) -> Decision:
        """Choose one of `offer.options`, where a policy asks this agent to.

        Args:
            choice: What is chosen.
            why: A reason; of a hint, what is told.
            members: Where it watches: whom it removes or tells something, of `offer.members`.
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
        """Give out tasks, one to each of these members.

        Args:
            tasks: What each is to do, by its id; or specifications, for several tasks of one member.
            wait: The floor comes back with all results. False: the discussion goes on beside them.
            say: Why, in a sentence.
            uses: Finished tasks whose results these build on.
            team: The stored team that serves each of them, as `NAME` or `NAME@VERSION`; its assignee opens that team's group.
        """
        numbers = (task_id_of_turn(self.turn, str(number)) for number in count(self._state.tasks_given + 1))
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

    def ask(self, text: str, *, options: Sequence[str] = (), default: str, within: timedelta = timedelta(hours=1)) -> AskUser:
        """Ask the user of the goal, or in a nested team who gave out its task. This agent has the floor again with the answer.

        The answer is the last thing of the `conversation` then. Tasks go on meanwhile, and nobody speaks.

        Args:
            text: The question, up to 2,000 characters.
            options: What may be answered, up to 16; none: any text.
            default: What stands if nobody has answered in time.
            within: How long to wait, from when this turn began; it is never more than nine tenths of the time that is left.

        Raises:
            InvalidInputError: It cannot be asked; the message says why.
        """
        return Inquiry(text, default, tuple(options), within=within).to_user(self._began, self._state.limits.deadline)

    def pause(self, *task_ids: str) -> Pause:
        """Wait until these open tasks have ended."""
        return validate(Pause, {"triggers": task_ids})

    def pass_turn(self, why: str = "") -> Pass:
        """Say nothing in this turn: the next member speaks. If this agent is asked to decide, the default stands.

        Under a policy that is a silent turn. In a free group it takes none, and when all have passed the group concludes. A
        conclusion is not passed over.

        Args:
            why: The reason, which the transcript shows; up to 2,000 characters.
        """
        return validate(Pass, {"cause": PassCause.NOTHING_TO_ADD, "content": why})

    def conclude(self, text: str, *, reached: bool = True, files: Sequence[str] | None = None) -> WholeConclusion:
        """End the group with its answer and the files of the tasks that are done; `reached` is false if the goal was not.

        All hear it. By default a file is left out if a task that builds on it made one of its name, or if not all were told of its
        task; `files` names those that go with it instead.

        Raises:
            InvalidInputError: No task that is done has made a file of such a name.
        """
        artifacts = files_of_answer(self.tasks) if files is None else named_files(self.tasks, files)
        return WholeConclusion(content=text, reason=Reason.CONCLUDED if reached else Reason.FAILED, artifacts=artifacts)


ObserveFunction = Callable[[TurnView], str | Awaitable[str]]
SpeakFunction = Callable[[TurnView], Said | Awaitable[Said]]
KeepFunction = Callable[[Heard], bool]


class _LetThrough(tuple[Message | TaskRecord, ...]):
    """What the author of an agent had it be shown of a group when it last looked there."""


class Hooks:
    """The hooks of one agent. Plain functions run in threads of their own; what never returns is left behind.

    Args:
        agent: Whose hooks.
        store: Keeps what was seen.
        workers: Run the hooks, apart from tasks, so that tasks do not delay the agent's turns.
        chat: The agent's language model, which sums up what it is to remember.
    """

    def __init__(self, agent: AgentDefinition, store: SqliteStore, workers: WorkerPool, chat: ModelChat | None = None) -> None:
        self._memories = Memories(store, chat)
        self.listeners = Listeners(agent.listeners, workers)
        self._agent = agent
        self._store = store
        self._workers = workers

    @property
    def speaks(self) -> bool:
        """Whether the author's function decides what is said, and nobody else."""
        return self._agent.speaker is not None

    def forget(self, comm_id: CommId) -> None:
        """Forget what is known of the memory of a group that is not followed any more."""
        self._memories.forget(comm_id)

    def known(self, view: GroupView) -> GroupView:
        """Leave out what the agent is not to be shown without asking anybody, and add nothing that it remembers.

        What its author's function was not asked about yet is left out as well.
        """
        if self._agent.keeper is not None:
            looked_at = set(map(id, view.kept.get(_LetThrough, ())))
            view = without(view, {name_of_entry(item) for item in view.log if id(item) not in looked_at})
        return in_sight(view)

    async def observed(self, view: GroupView, files: GroupFiles) -> GroupView:
        """Add what the agent alone knows: its instructions, and what it sees now. Leave out what it is not to be shown.

        If looking fails or takes too long, that is what was seen last, marked with its turn.

        Raises:
            TaskError: It is not known in time what it is to be shown.
        """
        remembered = await self._memories.remembered(await self._filtered(view))
        view = replace(remembered, instructions=self._agent.instructions)
        look, comm_id, turn = self._agent.observer, view.charter.comm_id, view.state.turn
        if look is None:
            return view
        last = await until_answered(lambda: self._store.observation(comm_id), comm_id=comm_id)
        try:
            inputs = await files.fetch(view.charter.inputs)
            seen = await self._call(look, replace(view, observation=last.text if last else ""), inputs, LOOK_WITHIN)
            if not isinstance(seen, str):
                raise InvalidInputError(f"What the agent saw is {type(seen).__name__}, not text.")
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything
            _log.warning("not_observed", comm_id=comm_id, turn=turn, error=reason_of(error))
            return replace(view, observation=f"(seen at turn {last.turn}, and not since)\n{last.text}" if last else "")
        if len(seen) > MAX_OBSERVATION_CHARS:
            seen = seen[: MAX_OBSERVATION_CHARS - len(CUT)] + CUT
        now = StoredObservation(turn, seen)
        await until_answered(lambda: self._store.put_observation(comm_id, now), comm_id=comm_id)
        return replace(view, observation=seen)

    async def _filtered(self, view: GroupView) -> GroupView:
        keep, me = self._agent.keeper, view.me
        if keep is None:
            return view

        def is_kept(heard: Heard) -> bool:
            try:
                return bool(keep(heard))
            except Exception as error:  # noqa: BLE001 - an author's function may raise anything
                _log.warning("not_shown", agent_id=me, comm_id=view.charter.comm_id, turn=heard.turn, error=reason_of(error))
                return False

        async with self._slot(view.charter, view.state.limits.floor_timeout) as slot:
            filtered: GroupView = await slot.call(kept, (view, is_kept), LOOK_WITHIN)
        view.kept[_LetThrough] = _LetThrough(filtered.log)
        return filtered

    async def speak(self, view: GroupView, files: GroupFiles) -> Utterance | Decision | Invite:
        """Say what the author's function says. A conclusion is sent with its announcement.

        Raises:
            InvalidInputError: The function gives nothing that can be said; it is told so, and asked again.
        """
        said = await self._said(view, files)
        return ConcludeGroupDiscussion(conclusion=said) if isinstance(said, WholeConclusion) else said

    async def conclude(self, view: GroupView, files: GroupFiles) -> WholeConclusion:
        """Ask the author's function for the conclusion. Under a policy its words are one.

        Raises:
            InvalidInputError: The function gives none; it is told so, and asked again.
        """
        said = await self._said(view, files)
        if isinstance(said, Discussion) and view.part is not None:
            return WholeConclusion(
                content=said.content,
                reason=Reason.CONCLUDED if view.state.forced is None else Reason.FAILED,
                artifacts=files_of_answer(view.tasks),
            )
        if not isinstance(said, WholeConclusion):
            raise InvalidInputError("The discussion has ended.", hint="Return view.conclude(…).")
        return said

    @property
    def answers(self) -> bool:
        """Whether the author's function answers what tasks ask that this agent has given out."""
        return self._agent.answerer is not None

    def _slot(self, charter: Charter, patience: timedelta) -> AbstractAsyncContextManager[Slot]:
        """Wait for a slot, at most half of the time that the hook may take."""
        return self._workers.slot(patience / 2, charter.user)

    async def answer(self, asked: AskedOfMe, charter: Charter, within: timedelta) -> str | None:
        """Say what the author's function answers to what is asked in a group; None leaves it to others.

        Raises:
            InvalidInputError: The function gives something else.
        """
        assert self._agent.answerer is not None
        async with self._slot(charter, within) as slot:
            answer = await slot.call(self._agent.answerer, (asked,), within)
        if answer is not None and not isinstance(answer, str):
            raise InvalidInputError(f"The answer is {type(answer).__name__}.", hint="Return a text, or None.")
        return answer

    async def _said(self, view: GroupView, files: GroupFiles) -> Said:
        assert self._agent.speaker is not None
        inputs = await until_answered(lambda: files.fetch(view.charter.inputs), comm_id=view.charter.comm_id)
        said = await self._call(self._agent.speaker, view, inputs, None)
        view.meter.decided_by = DecidedBy(kind="function")
        if not isinstance(said, Said):
            raise InvalidInputError(
                f"The speaker returned {type(said).__name__}.",
                hint="Return view.say(…), decide(…), ask(…), assign(…), pause(…), pass_turn(…) or conclude(…).",
            )
        return said

    async def _call(
        self, hook: Callable[[TurnView], Any], view: GroupView, inputs: tuple[InputFile, ...], within: timedelta | None
    ) -> Any:
        async with self._slot(view.charter, within or view.state.limits.floor_timeout) as slot:
            try:
                return await slot.call(hook, (_turn_view(view, inputs),), within)
            except IoaError:
                raise
            except BaseException as error:
                this = asyncio.current_task()
                if not isinstance(error, Exception) and this is not None and this.cancelling():
                    raise
                what = traceback.format_exception_only(error)[-1].strip()
                raise IoaError(f"{_name(hook)} raised {what} ({_place(hook, error)})") from None


def _name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", repr(hook))


def _place(hook: Callable[..., Any], error: BaseException) -> str:
    """Say where in its author's file a hook failed; if the file is not to be told, where the error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(inspect.unwrap(hook), "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "nobody knows where"


def _turn_view(view: GroupView, inputs: tuple[InputFile, ...]) -> TurnView:
    return TurnView(
        me=view.me,
        goal=view.charter.goal,
        goal_id=view.charter.goal_id,
        comm_id=view.charter.comm_id,
        turn=view.state.turn,
        conversation=conversation_of(view),
        decisions=decisions_of(view),
        tasks=view.tasks,
        team=teammates(view),
        inputs=inputs,
        legal=tuple(map(name_of, view.legal)),
        refusals=view.refusals,
        observation=view.observation,
        _state=view.state,
        offer=TO_CONCLUDE if view.part is not None and isinstance(view.state.stage, Concluding) else view.offer,
        part=view.part,
        memory=view.memory,
        board={one.name: one for one in view.board},
        _began=view.at,
    )
