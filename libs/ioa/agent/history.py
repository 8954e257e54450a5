"""What a member has seen of a group, folded from its log entries in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from ioa.agent.board import Drafts, board_of
from ioa.agent.conversation import name_of_entry
from ioa.group.events import Event, GroupLaunched, MemberJoined, QuestionAnswered, Said, SubgroupClosed, TimerFired
from ioa.group.forms import blanks_of, no_votes
from ioa.group.machine import legal_kinds
from ioa.group.policy.offer import Offer, offer
from ioa.group.policy.part import part_of, silence_of
from ioa.group.policy.review import digest_of
from ioa.group.requests import SequencedEntry
from ioa.group.state import Awaiting, Charter, ClosedTask, Discussing, Gathering, GroupState, OpenTask
from ioa.ports.brain import FileReader, GroupView, NoFiles, Posted, Reply, TaskRecord
from ioa.ports.meter import Meter
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, MessageId, PoolId, TaskId, turn_of_task_id
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Decision,
    Discussion,
    Header,
    InformTaskResult,
    Message,
    Pass,
    PassCause,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
    TaskSpec,
    Thinking,
    rejects_of,
)
from ioa.protocol.outcomes import MAX_RECORDED_NEED_CHARS, Outcome, name_of_task
from ioa.protocol.policy import Policy
from ioa.protocol.usage import NOTHING, Usage

T = TypeVar("T")


class GroupHistory:
    """The conversation, the tasks and the present state of one group. Entries must come in order and without a gap."""

    def __init__(self, comm_id: CommId) -> None:
        self.comm_id = comm_id
        self.cursor = 0
        self.charter: Charter | None = None
        self.state: GroupState | None = None
        self._messages: list[Message] = []
        self._public: list[Message] = []
        self._specs: dict[TaskId, TaskSpec] = {}
        self._reports: dict[TaskId, tuple[str, tuple[Artifact, ...]]] = {}
        self._usages: dict[TaskId, Usage] = {}
        self._given: dict[TaskId, datetime] = {}
        self._closed: dict[TaskId, tuple[ClosedTask, datetime]] = {}
        self._rejected: dict[TaskId, str] = {}
        self._declined: set[TaskId] = set()
        self._lacks: dict[TaskId, frozenset[str]] = {}
        self._log: list[Message | TaskRecord] = []
        self._kept: dict[type, Any] = {}
        """What the brain keeps of it; see `GroupView.kept`."""
        self._granted: datetime | None = None
        self._drafts = Drafts()
        self.struck: Sequence[tuple[int, int]] = ()
        """From which to which turn what was said is struck, since a node was begun anew."""
        self.said_again: set[int] = set()
        """In which turns a draft that was passed was said again."""
        self._replies: dict[int, Reply] = {}
        self._joined: dict[int, AgentId] = {}
        self.questions: dict[TaskId, list[TaskQuestion]] = {}
        """What tasks have asked, in order."""
        self.answers: dict[tuple[TaskId, int], str] = {}
        """What tasks were answered, by the number of the question; of what was not answered in time the default."""
        self._looking: list[asyncio.Future[None]] = []
        self.thoughts: dict[int, str] = {}
        """What this agent thought in its turns, by turn; it stands in no entry."""

    def apply(self, sequenced: SequencedEntry) -> None:
        """Take in the entry that follows the last one."""
        assert sequenced.previous_seq == self.cursor, "an entry was applied out of order"
        event = sequenced.entry.event
        match event:
            case GroupLaunched() | MemberJoined():
                self._take_in(event)
            case Said(message=message):
                if not isinstance(message.payload, Thinking):  # nothing is said by it
                    if self._is_passed():
                        self.said_again.add(message.header.turn)
                    self._forget_draft(message)
                    self._drafts.note(self.charter, self.state, message)
                    self._messages.append(message)
                    if all(member.agent_id in sequenced.entry.audience for member in sequenced.entry.state.members):
                        self._public.append(message)
                    self._note(message)
            case SubgroupClosed(task_id=task_id, content=content, artifacts=artifacts, usage=usage):
                self._reports[task_id] = (content, artifacts)
                self._usages[task_id] = usage
        self._note_replies(event, sequenced.entry.state)
        closed = self._time_tasks(sequenced.entry.state, event.at)
        self._record_in_order(event, closed)
        course = sequenced.entry.state.course
        if course is not None and course.struck:
            self.struck = course.struck
        if self.state is None or sequenced.entry.state.turn != self.state.turn:
            self._granted = event.at
        self.state = sequenced.entry.state
        self.cursor = sequenced.seq
        self._tell_news()

    def _tell_news(self) -> None:
        for looking in self._looking:
            if not looking.done():
                looking.set_result(None)
        self._looking.clear()

    def news(self) -> asyncio.Future[None]:
        """Return what is done when another entry was applied."""
        looking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._looking.append(looking)
        return looking

    def _take_in(self, joined: GroupLaunched | MemberJoined) -> None:
        """Know those who have joined since the launch by their cards and by what they play, as all are."""
        if isinstance(joined, GroupLaunched):
            self.charter = joined.charter
            return
        assert self.charter is not None, "who joins finds a group"
        cast = tuple(
            [
                one.model_copy(update={"members": (*one.members, joined.card.agent_id)}) if one.role == joined.role else one
                for one in self.charter.cast
            ]
        )
        grown = {"team_members": (*self.charter.team_members, joined.card), "cast": cast}
        self.charter = self.charter.model_copy(update=grown)
        self._joined[joined.turn] = joined.card.agent_id

    def draft(self, me: AgentId, digest: str) -> tuple[int, Discussion] | None:
        """Return what a member has said that was passed, to be said again, and in which turn; None if it has not said so."""
        own = ((one.header.turn, one.payload) for one in reversed(self._messages) if one.header.sender == me)
        return next(((turn, said) for turn, said in own if isinstance(said, Discussion) and digest_of(said) == digest), None)

    def _is_passed(self) -> bool:
        course = None if self.state is None else self.state.course
        return course is not None and course.draft is not None and course.draft.passed

    def _is_struck(self, item: Message | TaskRecord) -> bool:
        turn = item.header.turn if isinstance(item, Message) else turn_of_task_id(item.spec.task_id) or 0
        return any(first <= turn <= last for first, last in self.struck)

    def _forget_draft(self, message: Message) -> None:
        """Have a message that was passed take the place of its draft, for those that have heard both."""
        policy = None if self.charter is None else self.charter.policy
        if policy is None or not policy.reviews:
            return
        at = _last(self._messages, lambda one: one.header.sender == message.header.sender)
        if at is None or not isinstance(message.payload, Discussion) or self._messages[at].payload != message.payload:
            return
        draft = self._messages.pop(at)
        if (place := _last(self._log, lambda item: item is draft)) is not None:
            del self._log[place]

    def view(
        self, me: AgentId, at: datetime, meter: Meter, refusals: tuple[str, ...] = (), files: FileReader | None = None
    ) -> GroupView:
        """Return what `me` knows at a time. Only a group that was launched can be viewed."""
        assert self.charter is not None and self.state is not None
        policy = self.charter.policy
        state, messages, log = self.state, self._messages, self._log
        if _sits_apart(state, policy, me):
            messages = [message for message in messages if not _is_of_peers(state, me, message)]
            log = [item for item in log if not _is_of_peers(state, me, item)]
            state = _unanswered(state)
        board: tuple[Posted, ...] = ()
        if policy is not None and any(node.writes for node in policy.nodes):
            told = [message for message in messages if not self._drafts.is_one(message, policy, state, me)]
            board = board_of(told, self._is_struck)
        if self.struck:
            messages = [message for message in messages if not self._is_struck(message)]
            log = [item for item in log if not self._is_struck(item)]
        return GroupView(
            me=me,
            charter=self.charter,
            state=state,
            messages=tuple(messages),
            tasks=tuple([task for task in self.tasks() if not self._is_struck(task)]),
            legal=legal_kinds(self.state, me, at, policy),
            offer=asked_beside(self.state, me) if policy is None else offer(policy, self.state, me),
            part=part_of(policy, self.state, me) if policy is not None else None,
            reachable=self.state.reachable(at),
            refusals=refusals,
            meter=meter,
            log=tuple(log),
            at=self._granted,
            files=files or NoFiles(),
            thoughts=dict(self.thoughts),
            replies=dict(self._replies),
            board=board,
            joined=dict(self._joined),
            kept=self._kept,
        )

    def there(self) -> frozenset[str]:
        """Name all that stands in the record and was not struck."""
        return frozenset([name_of_entry(item) for item in self._log if not self._is_struck(item)])

    def tasks(self) -> tuple[TaskRecord, ...]:
        """Every task given out, in order, with what is known of it."""
        return tuple(self._record(spec) for spec in self._specs.values())

    def used_by(self, spec: TaskSpec) -> tuple[TaskRecord, ...]:
        """Return the earlier tasks whose results feed a task."""
        records = [self._record(self._specs[task_id]) for task_id in spec.uses if task_id in self._specs]
        return tuple([record for record in records if not self._is_struck(record)])

    def messages(self) -> Sequence[Message]:
        """Return what was said that this member was told, in order."""
        return self._messages

    def public_messages(self) -> Sequence[Message]:
        """Return what was said that every member could read, in order."""
        return self._public

    def forget(self, max_messages: int, keep: Callable[[Message], bool]) -> None:
        """Keep the last `max_messages` messages and every message that `keep` selects. No view can be requested afterwards."""
        first = len(self._messages) - max_messages
        self._messages = [message for at, message in enumerate(self._messages) if at >= first or keep(message)]
        self._public.clear()
        self._log.clear()
        self._kept.clear()
        for of_tasks in (self._specs, self._reports, self._lacks, self._usages, self._rejected, self.questions, self.answers):
            of_tasks.clear()
        self._replies.clear()

    def spec(self, task_id: TaskId) -> TaskSpec | None:
        """Return a task as it was given out."""
        return self._specs.get(task_id)

    def outcomes(self) -> tuple[tuple[TaskId, Outcome], ...]:
        """Return the outcomes of tasks that other members than the owner did or failed; a rejected task is not done.

        Left out are tasks that did not fit (declined, or with missing files), and tasks of a stored team.
        """
        if self.charter is None:
            return ()
        cards = {card.agent_id: card for card in self.charter.team_members if card.agent_id != self.charter.owner}
        return tuple(
            (record.spec.task_id, self._outcome(record, cards[record.spec.assignee].pool))
            for record in self.tasks()
            if record.outcome not in (None, TaskOutcome.CANCELLED) and record.spec.assignee in cards and not record.spec.team
            if record.outcome is not TaskOutcome.FAILED or not (record.declined or self._lacks.get(record.spec.task_id))
        )

    def _outcome(self, record: TaskRecord, pool: PoolId) -> Outcome:
        spec = record.spec
        given, (ended, closed) = self._given[spec.task_id], self._closed[spec.task_id]
        return Outcome(
            pool=pool,
            agent_id=spec.assignee,
            need="" if ended.earshot else (spec.task_abstract or spec.task_desc)[:MAX_RECORDED_NEED_CHARS],
            done=record.outcome is TaskOutcome.DONE,
            at=closed,
            seconds=max(0.0, (closed - given).total_seconds()),
            usage=self._usages.get(spec.task_id, NOTHING),
            task=name_of_task(self.comm_id, spec.task_id),
        )

    def _time_tasks(self, state: GroupState, at: datetime) -> list[TaskId]:
        """Note when tasks were begun and closed, and how; the state tells it for a while only. Return those closed just now."""
        closed = []
        for task in state.tasks:
            if isinstance(task, OpenTask):
                self._given.setdefault(task.task_id, at)
            elif isinstance(task, ClosedTask):
                _, ended = self._closed.get(task.task_id, (None, at))
                if task.task_id not in self._closed:
                    closed.append(task.task_id)
                self._closed[task.task_id] = task, ended
        return closed

    def _record_in_order(self, event: Event, closed: Sequence[TaskId]) -> None:
        """Keep what was said, and what ended without a message, in the order of the log and as it was then."""
        reported = None
        shown = _shown_for_silence(None if self.charter is None else self.charter.policy, self.state, event)
        if shown:
            self._log += shown
        elif isinstance(event, Said) and not isinstance(event.message.payload, Thinking):
            self._log.append(event.message)
            if isinstance(event.message.payload, InformTaskResult):
                reported = event.message.payload.task_id
        ended = [spec for task_id in closed if task_id != reported and (spec := self._specs.get(task_id)) is not None]
        self._log += map(self._record, ended)

    def _note_replies(self, event: Event, after: GroupState) -> None:
        """Note what was answered, or was not in time, of what has waited for an answer."""
        before = self.state
        if before is None:
            return
        stage = before.stage
        if isinstance(stage, Awaiting) and after.stage is not stage:
            if isinstance(event, QuestionAnswered) and event.task_id is None:
                self._replies[before.turn] = Reply(event.answer, event.by)
            elif isinstance(event, TimerFired):
                self._replies[before.turn] = Reply(stage.default, None)
        for task in before.open_tasks:
            now = after.task(task.task_id) if task.questions else None
            if not isinstance(now, OpenTask):
                continue
            for question in [one for one in task.questions if one not in now.questions]:
                answer = question.default
                if isinstance(event, QuestionAnswered):
                    answer = event.answer
                elif isinstance(event, Said) and isinstance(event.message.payload, Decision):
                    answer = event.message.payload.choice or event.message.payload.content
                self.answers[task.task_id, question.number] = answer

    def _note(self, message: Message) -> None:
        self._rejected |= {one.task_id: one.why for one in rejects_of(message.payload)}
        match message.payload:
            case SyncTaskAssignment(tasks=specs) | AsyncTaskAssignment(tasks=specs):
                self._specs.update((spec.task_id, spec) for spec in specs)
            case TaskQuestion(task_id=task_id) as question:
                self.questions.setdefault(task_id, []).append(question)
            case InformTaskResult(task_id=task_id, task_conclusion=content, artifacts=artifacts) as told:
                self._reports[task_id] = (content, artifacts)
                self._lacks[task_id] = frozenset(told.lacks)
                self._declined |= {task_id} if told.declined else set()
                self._usages[task_id] = told.usage or NOTHING
            case _:
                pass

    def _record(self, spec: TaskSpec) -> TaskRecord:
        content, artifacts = self._reports.get(spec.task_id, ("", ()))
        started = spec.task_id in self._given
        if spec.task_id not in self._closed:
            return TaskRecord(spec, None, content, artifacts, started=started)
        closed, _ = self._closed[spec.task_id]
        is_told = spec.task_id in self._reports or closed.subgroup is not None
        given_up = closed.outcome is TaskOutcome.FAILED and not is_told
        rejected = self._rejected.get(spec.task_id, "") if closed.outcome is TaskOutcome.REJECTED else ""
        declined = spec.task_id in self._declined
        was_too_dear = closed.outcome is TaskOutcome.FAILED and closed.subgroup is None and bool(closed.why)
        told = closed.why if was_too_dear else content or closed.why
        return TaskRecord(
            spec=spec,
            outcome=closed.outcome,
            conclusion=told,
            artifacts=artifacts,
            given_up=given_up,
            started=started,
            rejected=rejected,
            declined=declined,
            told_to_all=not closed.earshot,
        )


def _sits_apart(state: GroupState, policy: Policy | None, me: AgentId) -> bool:
    """Whether a member that is still to speak beside others reads what they have said only when all of them have spoken."""
    if not isinstance(state.stage, Gathering) or me not in state.floor:
        return False
    return policy is None or state.course is None or policy.nodes[state.course.node].turns.peers != "at_once"


def _is_of_peers(state: GroupState, me: AgentId, item: Message | TaskRecord) -> bool:
    """Whether something was said beside a member, in the turn that is its own as well."""
    if not isinstance(item, Message) or not isinstance(item.payload, Discussion | Pass):
        return False
    return item.header.turn == state.turn and item.header.sender != me


def _unanswered(state: GroupState) -> GroupState:
    """Return a state that tells nothing of what others have filled in."""
    stage, course = state.stage, state.course
    if isinstance(stage, Gathering) and stage.votes is not None:
        stage = stage.model_copy(update={"votes": no_votes(stage.votes.turn, stage.votes.by, stage.form)})
    told = None if course is None else course.model_copy(update={"told": ()})
    return state.model_copy(update={"stage": stage, "course": told})


def _shown_for_silence(policy: Policy | None, before: GroupState | None, event: Event) -> list[Message]:
    """Return what stands for turns that members have passed, or let run out; nothing if they are shown as they were."""
    if policy is None or before is None or not policy.voices_silence:
        return []
    stage = before.stage
    match event:
        case Said(message=message) if isinstance(message.payload, Pass) and isinstance(stage, Discussing | Gathering):
            words = silence_of(policy, before, message.header.sender)
            if not words or message.payload.cause is PassCause.MODEL_UNAVAILABLE:  # it may be asked again in the same turn
                return []
            return [message.model_copy(update={"payload": message.payload.model_copy(update={"content": words})})]
        case TimerFired(at=at) if isinstance(stage, Discussing) and stage.until <= at < before.limits.deadline:
            return _silence(policy, before, stage.holder, at, f"silent-{before.turn}")
        case TimerFired(at=at) if isinstance(stage, Gathering) and at < before.limits.deadline:
            late = [seat.agent_id for seat in stage.seats if seat.until <= at]
            return [one for holder in late for one in _silence(policy, before, holder, at, f"silent-{before.turn}-{holder}")]
        case _:
            return []


def _silence(policy: Policy, before: GroupState, holder: AgentId, at: datetime, name: str) -> list[Message]:
    """Return what is shown in the place of one turn, if its holder's roles have words for it."""
    if not (words := silence_of(policy, before, holder)):
        return []
    header = Header(
        message_id=MessageId(name),
        comm_id=before.comm_id,
        sender=holder,
        state=Phase.DISCUSSING,
        turn=before.turn,
        after=0,
        sent_at=at,
    )
    return [Message(header=header, payload=Pass(cause=PassCause.NOTHING_TO_ADD, content=words))]


def asked_beside(state: GroupState, me: AgentId) -> Offer | None:
    """Say what a member of a free group is to fill in that was asked beside others."""
    stage = state.stage
    return Offer(form=blanks_of(stage.form, state)) if isinstance(stage, Gathering) and me in state.floor else None


def _last(items: Sequence[T], is_it: Callable[[T], bool]) -> int | None:
    """Return the place of the last item of which something is true; None if it is of none."""
    return next((at for at in reversed(range(len(items))) if is_it(items[at])), None)
