"""A member's knowledge of a group, folded from its log entries in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ioa.agent.conversation import name_of_entry
from ioa.agent.groups.board import Drafts, board_of
from ioa.agent.turn_view import TurnView
from ioa.group.events import Event, GroupLaunched, MemberJoined, QuestionAnswered, Said, SubgroupClosed, TimerFired, name_of
from ioa.group.legality import Offer, legal_kinds, offer
from ioa.group.policy.casting import part_of
from ioa.group.policy.deciding import digest_of
from ioa.group.policy.forms import no_votes, resolve_form
from ioa.group.requests import SequencedEntry
from ioa.group.state import ClosedTask, Gathering, GroupState, OpenTask
from ioa.ports.brain_types import Contact, FileReader, NoFiles, Posted, Reply, TaskRecord
from ioa.ports.meter import Meter
from ioa.protocol.ids import AgentId, CommId, MessageId, TaskId, turn_of_task_id
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Decision,
    Discussion,
    Header,
    InformTaskResult,
    Message,
    Pass,
    Payload,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
    TaskSpec,
    Thinking,
    rejects_of,
)
from ioa.protocol.operation.trace import span_of_message
from ioa.protocol.setup.charter import Charter

_FAILURES = (TaskOutcome.FAILED, TaskOutcome.REJECTED)


class GroupHistory:
    """The messages, tasks and state of one group. Entries must be applied in order and without a gap.

    Attributes:
        cursor: Sequence of the last entry; 0 before the first one, which sets `charter`, `state` and `launched`.
        launched: The launch time of the group, which distinguishes it from a group of the same goal before a loss of the logs.
        struck: First and last turn of each range whose messages were deleted, because a node began again.
        questions: Questions of tasks, in order.
        answers: Answers to questions of tasks, by number.
        thoughts: Thoughts of this agent, by turn; they are in no entry.
        public: The messages that every member could read, in order.
        news: Set when the next entry was applied.
    """

    def __init__(self, comm_id: CommId) -> None:
        self.comm_id = comm_id
        self.cursor = 0
        self.charter: Charter
        self.state: GroupState
        self.launched: datetime
        self.struck: Sequence[tuple[int, int]] = ()
        self.questions: dict[TaskId, list[TaskQuestion]] = {}
        self.answers: dict[tuple[TaskId, int], str] = {}
        self.thoughts: dict[int, str] = {}
        self._log: list[Message | TaskRecord] = []
        self.public: list[Message] = []
        self._tasks: dict[TaskId, TaskRecord] = {}
        self._kept: dict[type, Any] = {}
        self._granted: datetime | None = None
        self._drafts = Drafts()
        self._replies: dict[int, Reply] = {}
        self._joined: dict[int, AgentId] = {}
        self.news = asyncio.Event()

    @property
    def is_launched(self) -> bool:
        """True after the first entry."""
        return self.cursor > 0

    def apply(self, sequenced: SequencedEntry) -> None:
        """Apply the entry that follows the last one."""
        assert sequenced.previous_seq == self.cursor, "an entry was applied out of order"
        event, state = sequenced.entry.event, sequenced.entry.state
        match event:
            case GroupLaunched():
                self.charter, self.launched = event.charter, event.at
            case MemberJoined():
                self._add_member(event)
            case Said(message=message) if not isinstance(message.payload, Thinking):
                self._add_message(message)
                if all(member.agent_id in sequenced.entry.audience for member in state.members):
                    self.public.append(message)
            case QuestionAnswered(task_id=str(task_id)):
                self.answers[task_id, event.number] = event.answer
        self._note_reply(event, state)
        self._update_tasks(event, state)
        if state.course is not None and state.course.struck:
            self.struck = state.course.struck
        if not self.is_launched or state.turn != self.state.turn:
            self._granted = event.at
        self.state, self.cursor = state, sequenced.seq
        self.news.set()
        self.news = asyncio.Event()

    def message(self, sender: AgentId, payload: Payload, turn: int, message_id: MessageId, at: datetime, **about: Any) -> Message:
        """Make a message for a turn or a task; `about` has further fields of its header."""
        header = Header(
            message_id=message_id,
            comm_id=self.comm_id,
            sender=sender,
            state=self.state.phase,
            turn=turn,
            after=self.cursor,
            traceparent=span_of_message(self.charter.traceparent, sender, message_id),
            sent_at=at,
            **about,
        )
        return Message(header=header, payload=payload)

    def draft(self, me: AgentId, digest: str) -> tuple[int, Discussion] | None:
        """Return this member's message with a digest, and its turn."""
        for message in reversed(self.messages()):
            said = message.payload
            if message.header.sender == me and isinstance(said, Discussion) and digest_of(said) == digest:
                return message.header.turn, said
        return None

    def view(
        self, me: AgentId, at: datetime, meter: Meter, refusals: tuple[str, ...] = (), files: FileReader | None = None
    ) -> TurnView:
        """Return the view of `me` at a time. Only a group that was launched can be viewed."""
        policy, state, log = self.charter.policy, self.state, self._log
        offered = None if policy is None else offer(policy, state, me)
        if policy is None and isinstance(stage := state.stage, Gathering) and me in state.floor:  # routers withhold them by policy
            offered = Offer(form=resolve_form(stage.form, state.members))
            log = [item for item in log if not _is_of_peers(state, me, item)]
            votes = None if stage.votes is None else no_votes(stage.votes.turn, stage.votes.by, stage.form)
            state = state.model_copy(update={"stage": stage.model_copy(update={"votes": votes})})
        board: tuple[Posted, ...] = ()
        if policy is not None and any(node.writes for node in policy.nodes):
            final = [message for message in _messages(log) if not self._drafts.is_draft(message, policy, state, me)]
            board = board_of(final, self._is_struck)
        if self.struck:
            log = [item for item in log if not self._is_struck(item)]
        return TurnView(
            me=me,
            charter=self.charter,
            state=state,
            log=tuple(log),
            tasks=tuple([task for task in self.tasks() if not self._is_struck(task)]),
            legal=tuple(map(name_of, legal_kinds(self.state, me, at, policy))),
            offer=offered,
            part=part_of(policy, self.state, me) if policy is not None else None,
            reachable=self.state.reachable(at),
            refusals=refusals,
            meter=meter,
            at=self._granted,
            files=files or NoFiles(),
            thoughts=dict(self.thoughts),
            replies=dict(self._replies),
            board={one.name: one for one in board},
            joined=dict(self._joined),
            kept=self._kept,
        )

    def there(self) -> frozenset[str]:
        """Return the names of all entries of the log that are not struck."""
        return frozenset([name_of_entry(item) for item in self._log if not self._is_struck(item)])

    def tasks(self) -> tuple[TaskRecord, ...]:
        """Return all tasks whose assignment this member read, in order."""
        return tuple(self._tasks.values())

    def messages(self) -> list[Message]:
        """Return the messages that this member read, in order."""
        return _messages(self._log)

    def spec(self, task_id: TaskId) -> TaskSpec | None:
        """Return the assignment of a task."""
        return None if (task := self._tasks.get(task_id)) is None else task.spec

    def contacts(self) -> list[Contact]:
        """Count the tasks that each other member than the owner did and failed; a rejected task is not done.

        Tasks that were cancelled or declined, and tasks of a stored team are left out.
        """
        done, failed = Counter[AgentId](), Counter[AgentId]()
        for task in self._tasks.values():
            if task.spec.team is None and task.outcome is TaskOutcome.DONE:
                done[task.spec.assignee] += 1
            elif task.spec.team is None and task.outcome in _FAILURES and not task.declined:
                failed[task.spec.assignee] += 1
        worked = (done.keys() | failed.keys()) - {self.charter.owner}
        cards = [card for card in self.charter.team_members if card.agent_id in worked]
        return [Contact(card, done[card.agent_id], failed[card.agent_id]) for card in cards]

    def _is_struck(self, item: Message | TaskRecord) -> bool:
        turn = item.header.turn if isinstance(item, Message) else turn_of_task_id(item.spec.task_id) or 0
        return any(first <= turn <= last for first, last in self.struck)

    def _add_member(self, joined: MemberJoined) -> None:
        me = joined.card.agent_id
        cast = tuple(
            [
                one.model_copy(update={"members": (*one.members, me)}) if one.role == joined.role else one
                for one in self.charter.cast
            ]
        )
        self.charter = self.charter.model_copy(update={"team_members": (*self.charter.team_members, joined.card), "cast": cast})
        self._joined[joined.turn] = me

    def _add_message(self, message: Message) -> None:
        """Append a message to the log. A message that passed its review replaces its draft, for members that read both."""
        policy = self.charter.policy
        if policy is not None and policy.reviews and isinstance(message.payload, Discussion):
            own = [one for one in self.messages() if one.header.sender == message.header.sender]
            if own and own[-1].payload == message.payload:
                self._log = [item for item in self._log if item is not own[-1]]
        self._drafts.note(policy, self.state, message)
        self._log.append(message)
        match message.payload:
            case SyncTaskAssignment(tasks=specs) | AsyncTaskAssignment(tasks=specs):
                for spec in specs:
                    self._tasks[spec.task_id] = TaskRecord(spec, None, "", (), started=False)
            case TaskQuestion(task_id=task_id) as question:
                self.questions.setdefault(task_id, []).append(question)
            case Decision(task_id=str(task_id)) as answer if asked := self.questions.get(task_id):
                self.answers[task_id, answer.number or asked[-1].number] = answer.choice or answer.content

    def _update_tasks(self, event: Event, state: GroupState) -> None:
        """Update the tasks by the state after an event; a task that was closed without a message is added to the log.

        The state contains closed tasks for a while only.
        """
        payload = event.message.payload if isinstance(event, Said) else None
        for one in state.tasks:
            if (known := self._tasks.get(one.task_id)) is None:
                continue
            if isinstance(one, OpenTask) and not known.started:
                self._tasks[one.task_id] = replace(known, started=True)
            elif isinstance(one, ClosedTask) and known.outcome is None:
                is_reported = isinstance(payload, InformTaskResult) and payload.task_id == one.task_id
                closed = self._tasks[one.task_id] = _closed(known, one, event if payload is None else payload)
                self._log += [] if is_reported else [closed]
            elif isinstance(one, ClosedTask) and known.outcome is not one.outcome and payload is not None:
                why = {rejected.task_id: rejected.why for rejected in rejects_of(payload)}.get(one.task_id, "")
                self._tasks[one.task_id] = replace(known, outcome=one.outcome, rejected=why)

    def _note_reply(self, event: Event, after: GroupState) -> None:
        """Note the answer to the group's question, or its default if the question expired."""
        question = self.state.question if self.is_launched else None
        if question is None or after.question is not None:
            return
        if isinstance(event, QuestionAnswered):
            self._replies[self.state.turn] = Reply(event.answer, event.by)
        elif isinstance(event, TimerFired):
            self._replies[self.state.turn] = Reply(question.default, None)


def _closed(record: TaskRecord, task: ClosedTask, by: Event | Payload) -> TaskRecord:
    """Return the record of a task that an event or a message has closed."""
    report, result = "", record
    match by:
        case InformTaskResult(task_id=task.task_id):
            report, result = by.task_conclusion, replace(record, artifacts=by.artifacts, declined=by.declined)
        case SubgroupClosed(task_id=task.task_id):
            report, result = by.content, replace(record, artifacts=by.artifacts)
    failed = task.outcome is TaskOutcome.FAILED and task.subgroup is None
    return replace(
        result,
        outcome=task.outcome,
        conclusion=task.why if failed and task.why else report or task.why,
        given_up=failed and result is record,
        told_to_all=not task.earshot,
    )


def _messages(log: Sequence[Message | TaskRecord]) -> list[Message]:
    return [item for item in log if isinstance(item, Message)]


def _is_of_peers(state: GroupState, me: AgentId, item: Message | TaskRecord) -> bool:
    """Return True for a message of another member in the same parallel turn."""
    if not isinstance(item, Message) or not isinstance(item.payload, Discussion | Pass):
        return False
    return item.header.turn == state.turn and item.header.sender != me
