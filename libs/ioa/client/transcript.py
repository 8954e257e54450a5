"""Transcript of a group: a line for each message and event of its log. `ioa.cli.output.conversation_output` lays the lines out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from ioa.group.events import (
    CancelRequested,
    Entry,
    Event,
    GroupLaunched,
    LaunchAbandoned,
    MemberJoined,
    MemberLost,
    MemberReturned,
    MessageRefused,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    SubgroupClosed,
    SubgroupOpened,
    TimerFired,
)
from ioa.group.state import Asking, ClosedTask, Concluding, Ended, GroupState, OpenTask, Task, Waiting, WaitingTask
from ioa.ports.group_log import StoredEntry
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.goals import Artifact, Degraded, Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pass,
    PassCause,
    Pause,
    Payload,
    Question,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
    Thinking,
    rejects_of,
)
from ioa.protocol.setup.charter import Charter

CONTROL_PLANE = "·"
"""Speaker of a line that is not a message of a member."""
_NEVER = datetime.min.replace(tzinfo=UTC)
CONCLUSION = "conclusion"
"""Act of the line with a group's conclusion."""


class Tone(StrEnum):
    """How a line is shown."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Line:
    """One line of a transcript.

    Attributes:
        speaker: Agent that spoke, or `CONTROL_PLANE`.
        act: Kind of the message or event.
        seq: Sequence of the entry; 0 for a progress report outside of the log.
        depth: 0 for the group that is read, 1 for its nested groups, and so on.
    """

    speaker: str
    act: str
    text: str
    tone: Tone = Tone.PLAIN
    files: tuple[Artifact, ...] = ()
    seq: int = 0
    comm_id: CommId = CommId("")
    depth: int = 0
    at: datetime = _NEVER


@dataclass(frozen=True)
class TaskStatus:
    """A task and its progress, for a table or a footer.

    Attributes:
        draft: End of the text that the task's model has written so far.
        started_at: None while the task waits for others.
    """

    task: Task
    task_desc: str
    depth: int
    detail: str = ""
    fraction: float | None = None
    draft: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def task_id(self) -> TaskId:
        """Id of the task."""
        return self.task.task_id

    @property
    def assignee(self) -> AgentId:
        """Member that does the task."""
        return self.task.assignee

    @property
    def status(self) -> str:
        """Outcome of a closed task, otherwise whether it is open or waits."""
        return str(self.task.outcome) if isinstance(self.task, ClosedTask) else self.task.status

    def after(self, task: Task, report: InformTaskProgress | None, at: datetime) -> TaskStatus:
        """Return the status after an entry: the task's new state, and the report if the entry is one."""
        started = self.started_at or at
        match task:
            case WaitingTask(after=others):
                return replace(self, task=task, detail=f"for {', '.join(others)}")
            case ClosedTask(why=why):
                return replace(self, task=task, detail=why, draft="", started_at=started, ended_at=self.ended_at or at)
            case OpenTask():
                known = replace(self, task=task, detail=self.detail if self.started_at else "", started_at=started)
                return known if report is None else replace(known, detail=report.content or known.detail, fraction=report.fraction)


@dataclass
class Transcript:
    """Converts log entries to lines, and tracks tasks. Entries must be read in the order of their sequences."""

    base_depth: int | None = None
    states: dict[CommId, GroupState] = field(default_factory=dict)
    _tasks: dict[tuple[CommId, TaskId], TaskStatus] = field(default_factory=dict)

    def read(self, stored: StoredEntry) -> list[Line]:
        """Return the lines of the next entry."""
        entry, state = stored.entry, stored.entry.state
        if self.base_depth is None:
            self.base_depth = state.depth
        depth = max(0, state.depth - self.base_depth)
        before = self.states.get(state.comm_id)
        lines = [*_of_event(entry), *(_consequences(before, entry) if before else ()), *_end(before, entry)]
        self.states[state.comm_id] = state
        self._update_tasks(entry, depth)
        at = entry.event.at
        return [replace(one, text=one.text.strip(), seq=stored.seq, comm_id=state.comm_id, depth=depth, at=at) for one in lines]

    def hear(self, said: Said) -> list[Line]:
        """Return the lines of a progress report outside of the log; none for a closed task, or if only the draft is new."""
        payload, comm_id = said.message.payload, said.message.header.comm_id
        if not isinstance(payload, InformTaskProgress):
            return []
        known = self._tasks.get((comm_id, payload.task_id))
        if known is None or known.ended_at is not None:
            return []
        heard = replace(known, detail=payload.content or known.detail, fraction=payload.fraction, draft=payload.draft)
        self._tasks[comm_id, payload.task_id] = heard
        if (known.draft or payload.draft) and replace(heard, draft=known.draft) == known:
            return []
        lines = _of_message(said.message)
        return [replace(one, text=one.text.strip(), comm_id=comm_id, depth=known.depth, at=said.at) for one in lines]

    def tasks(self, comm_id: CommId | None = None) -> list[TaskStatus]:
        """Return the tasks of all groups or of a group, in the order of assignment, including tasks that have left its state."""
        return [task for (group, _), task in self._tasks.items() if comm_id in (None, group)]

    def known_tasks(self, comm_id: CommId) -> list[Task]:
        """Return the last state of every task of a group."""
        return [known.task for known in self.tasks(comm_id)]

    def open_tasks(self) -> list[TaskStatus]:
        """Return the tasks that run or wait."""
        return [task for task in self._tasks.values() if task.ended_at is None]

    def _update_tasks(self, entry: Entry, depth: int) -> None:
        payload = _content(entry.event)
        specs = payload.tasks if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment) else ()
        described = {spec.task_id: spec.task_desc for spec in specs}
        for task in entry.state.tasks:
            key = (entry.state.comm_id, task.task_id)
            known = self._tasks.get(key) or TaskStatus(task, described.get(task.task_id, ""), depth)
            if known.ended_at is None or known.task != task:
                report = payload if isinstance(payload, InformTaskProgress) and payload.task_id == task.task_id else None
                self._tasks[key] = known.after(task, report, entry.event.at)


def _rule(act: str, text: str, tone: Tone = Tone.BAD, files: tuple[Artifact, ...] = ()) -> Line:
    """Return a line that is not a message of a member."""
    return Line(CONTROL_PLANE, act, text, tone, files)


def _of_event(entry: Entry) -> Iterator[Line]:  # noqa: C901 - one flat case for each kind
    match entry.event:
        case Said(message=message):
            stage, payload = entry.state.stage, message.payload
            is_draft = isinstance(payload, Discussion) and isinstance(stage, Asking) and stage.about == "review"
            for line in _of_message(message):
                yield replace(line, act="draft", tone=Tone.QUIET) if is_draft and line.act == "discussion" else line
        case GroupLaunched(charter=charter):
            yield Line(charter.owner, "team", _team(charter))
        case LaunchAbandoned(by=by, reason=reason):
            yield Line(by, "no team", f"the goal ends: {reason}", Tone.BAD)
        case SubgroupOpened(task_id=task_id, by=by, subgroup=subgroup):
            yield Line(by, "nested team", f"{task_id} is worked on by a team of its own, {subgroup}")
        case SubgroupClosed(task_id=task_id, reason=reason):
            yield _rule("result", f"{task_id} is closed by its nested team: {reason}", Tone.QUIET)
        case MemberLost(agent_id=agent_id):
            yield _rule("lost", f"{agent_id} is gone: its lease ran out")
        case MemberReturned(agent_id=agent_id):
            yield _rule("returned", f"{agent_id} is back", Tone.GOOD)
        case MemberJoined(card=card, by=by, role=role, why=why):
            invited = f"{by} invites {card.agent_id}{f' as {role}' if role else ''}"
            yield _rule("joined", f"{invited}: {why}" if why else invited, Tone.GOOD)
        case CancelRequested(why=why):
            yield _rule("cancel", why)
        case RepetitionRefused(by=by, repeats_turn=repeats_turn):
            yield _rule("repetition", f"{by} said again what turn {repeats_turn} said: refused", Tone.QUIET)
        case QuestionAnswered(task_id=task_id, answer=answer, by=by):
            yield Line(by, "answer", f"{task_id}: {answer}" if task_id else answer)
        case MessageRefused(by=by):
            yield _rule("refused", f"{by} chose what was no option", Tone.QUIET)


def _of_message(message: Message) -> Iterator[Line]:  # noqa: C901 - one flat case for each kind
    speaker, payload = message.header.sender, message.payload
    for one in rejects_of(payload):
        yield Line(speaker, "reject", f"{one.task_id}: {one.why}", Tone.BAD)
    match payload:
        case Discussion(content=content, next_speaker=next_speaker, next_speakers=several, go=go, fields=fields, writes=writes):
            named = ", ".join(several) or next_speaker
            to = f"to {named}: " if named else f"on to {go}: " if go else ""
            filled = f" [{', '.join(f'{name} = {value}' for name, value in fields.items())}]" if fields else ""
            yield Line(speaker, "discussion", f"{to}{content}{filled}")
            for name, text in writes.items():
                yield Line(speaker, "writes", f"{name}: {text}" if text else name)
        case AskUser() as asked:
            yield Line(speaker, "question", _question(asked))
        case TaskQuestion(task_id=task_id) as asked:
            yield Line(speaker, "question", f"{task_id}: {_question(asked)}")
        case Decision(task_id=str(task_id), choice=choice, content=content):
            yield Line(speaker, "answer", f"{task_id}: {choice}{f': {content}' if content else ''}")
        case Decision(choice=choice, content=content, members=members):
            chosen = " ".join((choice, *members))
            yield Line(speaker, "decision", f"{chosen}: {content}" if content else chosen)
        case SyncTaskAssignment() | AsyncTaskAssignment():
            yield from _of_assignment(speaker, payload)
        case InformTaskProgress(task_id=task_id, number=number, content=content, fraction=fraction):
            part = f" {fraction:.0%}" if fraction is not None else ""
            text = content or ("started" if number == 1 else "still at work")
            yield Line(speaker, "progress", f"{task_id}{part} {text}", Tone.QUIET)
        case InformTaskResult(task_id=task_id, outcome=outcome, task_conclusion=conclusion, artifacts=artifacts):
            tone = Tone.GOOD if outcome is TaskOutcome.DONE else Tone.BAD
            yield Line(speaker, "result", f"{task_id} {outcome}: {conclusion}", tone, artifacts)
        case Pause(triggers=triggers):
            text = f"until {', '.join(triggers)} {'is' if len(triggers) == 1 else 'are'} closed"
            yield Line(speaker, "pause", text, Tone.QUIET)
        case ConcludeGroupDiscussion(content=content, conclusion=None):
            yield Line(speaker, "conclude", content, Tone.QUIET)
        case (Conclusion() as conclusion) | ConcludeGroupDiscussion(conclusion=Conclusion() as conclusion):
            is_good, content = conclusion.reason is Reason.CONCLUDED, conclusion.content
            text, tone = (content, Tone.GOOD) if is_good else (f"{conclusion.reason}: {content}", Tone.BAD)
            yield Line(speaker, CONCLUSION, text, tone, conclusion.artifacts)
        case Pass(cause=cause, content=content):
            tone = Tone.QUIET if cause is PassCause.NOTHING_TO_ADD else Tone.BAD
            yield Line(speaker, "pass", f"{cause}: {content}" if content else str(cause), tone)
        case Thinking(note=note):
            yield Line(speaker, "thinking", note or "still deciding what to say", Tone.QUIET)


def _question(asked: Question) -> str:
    options = f" ({' | '.join(asked.options)})" if asked.options else ""
    return f"{asked.text}{options}; {asked.default} stands from {asked.until:%Y-%m-%d %H:%M} UTC on"


def _of_assignment(speaker: AgentId, payload: SyncTaskAssignment | AsyncTaskAssignment) -> Iterator[Line]:
    act = "sync task" if isinstance(payload, SyncTaskAssignment) else "async task"
    if payload.content and not all(task.task_abstract and task.task_abstract in payload.content for task in payload.tasks):
        yield Line(speaker, act, payload.content)
    for task in payload.tasks:
        uses = f" (uses {', '.join(task.uses)})" if task.uses else ""
        team = f" (by the team {task.team})" if task.team else ""
        yield Line(speaker, act, f"{task.task_id} → {task.assignee}: {task.task_desc}{uses}{team}")


def _team(charter: Charter) -> str:
    others = ", ".join(card.agent_id for card in charter.team_members if card.agent_id != charter.owner)
    return f"leads a team with {others}" if others else "works alone"


def _consequences(before: GroupState, entry: Entry) -> Iterator[Line]:
    """Report what the state machine did after an event: tasks it closed, members it removed, a new floor."""
    event, after = entry.event, entry.state
    unfinished = {task.task_id for task in before.unfinished_tasks}
    for task in after.tasks:
        if isinstance(task, ClosedTask) and task.task_id in unfinished and not _reports_end(_content(event), task):
            yield _rule(f"task {task.outcome}", f"{task.task_id} of {task.assignee}{f': {task.why}' if task.why else ''}")
    yield from (_rule("removed", f"{one} was removed") for one in before.hearing if one not in after.hearing)
    if isinstance(event, TimerFired):
        yield from _after_timer(before, after)
    if isinstance(event, RepetitionRefused):
        yield from _after_repetition(event, after)


def _end(before: GroupState | None, entry: Entry) -> Iterator[Line]:
    """Report a limit that ends the discussion, the end of a group unless the event has it, and missing parts of the result."""
    end, content, forced = entry.state.stage, _content(entry.event), entry.state.forced
    if forced is not None and (before is None or before.forced is None):
        yield _rule(str(forced), f"used up: {entry.state.floor_holder} has to conclude")
    if not isinstance(end, Ended):
        return
    concluded = content.conclusion if isinstance(content, ConcludeGroupDiscussion) else content
    if not isinstance(concluded, Conclusion | LaunchAbandoned):
        yield _rule(str(entry.state.phase), f"{end.reason}: {end.content}", files=end.artifacts)
    if end.degraded is not None:
        yield _rule("degraded", what_lacks(end.degraded))


def _content(event: Event) -> Event | Payload:
    return event.message.payload if isinstance(event, Said) else event


def _reports_end(event: Event | Payload, task: ClosedTask) -> bool:
    """Whether the line of an event already contain the end of a task."""
    if isinstance(event, InformTaskResult):
        return (event.task_id, event.outcome) == (task.task_id, task.outcome)
    return isinstance(event, SubgroupClosed) and event.task_id == task.task_id


def _after_timer(before: GroupState, after: GroupState) -> Iterator[Line]:
    if before.question is not None and after.question is None:
        yield _rule("timer", f"nobody answered in time: {before.question.default} stands")
    elif after.floor and (silent := [one for one in before.floor if before.turn != after.turn or one not in after.floor]):
        yield _rule("timer", f"{_subject(silent, 'was', 'were')} silent; {_subject(after.floor, 'has', 'have')} the floor")
    elif before.phase != after.phase and not after.phase.is_terminal:
        yield _rule("timer", f"{before.phase} took too long; the group is {after.phase}")
    for task in after.open_tasks:
        earlier = before.task(task.task_id)
        if not isinstance(earlier, OpenTask):
            continue
        if (question := earlier.question) is not None and question != task.question:
            yield _rule("timer", f"{task.task_id}: nobody answered in time: {question.default} stands")
        if task.suspect and not earlier.suspect:
            yield _rule("timer", f"{task.task_id} of {task.assignee}: no sign of life", Tone.QUIET)


def _after_repetition(refused: RepetitionRefused, after: GroupState) -> Iterator[Line]:
    match after.stage:
        case Waiting(waiter=pauser, tasks=triggers):
            yield _rule("repetition", f"{pauser} repeats itself: the discussion waits for {', '.join(triggers)}")
        case Concluding(speaker=speaker):
            yield _rule("repetition", f"nothing new is said: {speaker} has to conclude")
        case _ if after.turn != refused.turn:
            yield _rule("repetition", f"{refused.by} repeats itself: its turn is silent")


def _subject(agents: Sequence[AgentId], one: str, several: str) -> str:
    return f"{', '.join(agents)} {one if len(agents) == 1 else several}"


def what_lacks(degraded: Degraded) -> str:
    """Describe what a conclusion may lack because members were lost."""
    lost = f"{_subject(degraded.lost, 'was', 'were')} lost when this was concluded"
    return f"{lost}; not done: {', '.join(degraded.tasks)}" if degraded.tasks else lost


def who_decided(decisions: Sequence[Decisions]) -> list[str]:
    """Return which models, people and programs decided, as their members report it.

    Empty if no decision was asked of anything but rules.
    """
    if all(one.by == DecidedBy(kind="rules") for one in decisions):
        return []
    total = sum(one.count for one in decisions)
    return [f"decided by {_decider(one.by)}, as members say: {one.count} of {total}" for one in decisions]


def _decider(by: DecidedBy) -> str:
    name = f"a person ({by.name})" if by.kind == "human" else by.name or by.kind
    return f"{name} instead of {by.instead_of} ({by.cause})" if by.instead_of else name
