"""A conversation as lines to read: who did what, in order, from log entries alone.

Deciding what to say is here, how it looks is in `conversation`. Nothing here knows a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

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
    SubgroupAsked,
    SubgroupClosed,
    SubgroupOpened,
    TimerFired,
    Unheard,
)
from ioa.group.policy.review import is_draft
from ioa.group.state import (
    Asking,
    Awaiting,
    Charter,
    ClosedTask,
    Concluding,
    Ended,
    GroupState,
    OpenTask,
    Paused,
    Task,
    WaitingTask,
)
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
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
    Thinking,
    rejects_of,
)
from ioa.protocol.policy import Policy
from ioa.protocol.questions import Question
from ioa.protocol.usage import Usage

CONTROL_PLANE = "·"
"""Stands where a speaker's name would, for what no member said."""


CONCLUSION = "conclusion"
"""The act of stating a group's answer."""


class Tone(StrEnum):
    """What kind of news a line is."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"


class _Words(NamedTuple):
    speaker: str
    act: str
    text: str
    tone: Tone = Tone.PLAIN
    files: tuple[Artifact, ...] = ()


@dataclass(frozen=True)
class Line:
    """One thing that happened.

    Attributes:
        seq: Its entry's; 0 for a report of progress that is no entry.
        depth: 0 for the group that is looked at, 1 for a nested team of it, and so on.
        speaker: The agent that spoke, or `CONTROL_PLANE`.
        act: The kind of message or event, in the words of the protocol.
    """

    seq: int
    comm_id: CommId
    depth: int
    at: datetime
    speaker: str
    act: str
    text: str
    tone: Tone = Tone.PLAIN
    files: tuple[Artifact, ...] = ()


@dataclass(frozen=True)
class TaskStatus:
    """A task and its progress, for a table or a footer.

    Attributes:
        draft: End of the text that the task's model has written so far.
        started_at: None while the task waits for others.
    """

    task: Task
    comm_id: CommId
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
                detail = self.detail if self.started_at is not None else ""
                if report is None:
                    return replace(self, task=task, detail=detail, started_at=started)
                return replace(self, task=task, detail=report.content or detail, fraction=report.fraction, started_at=started)


@dataclass
class Transcript:
    """Turn log entries into lines; remembers what was said before, since an entry alone does not repeat it."""

    base_depth: int | None = None
    states: dict[CommId, GroupState] = field(default_factory=dict)
    _tasks: dict[tuple[CommId, TaskId], TaskStatus] = field(default_factory=dict)
    _policies: dict[CommId, Policy] = field(default_factory=dict)

    def read(self, stored: StoredEntry) -> list[Line]:
        """Take the next entry and say what happened."""
        entry = stored.entry
        state = entry.state
        if self.base_depth is None:
            self.base_depth = state.depth
        before = self.states.get(state.comm_id)
        depth = max(0, state.depth - self.base_depth)
        words = chain(self._event_lines(entry), self._followed(before, entry))
        lines = [_line(stored.seq, state.comm_id, depth, entry.event.at, one) for one in words]
        self.states[state.comm_id] = state
        self._update(entry)
        return lines

    def hear(self, said: Said) -> list[Line]:
        """Take a report of progress that is no entry. One that overtook what is known of its task says nothing.

        Neither does one whose only news is more of a draft: that is for a footer, and for programs.
        """
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
        return [_line(0, comm_id, known.depth, said.at, one) for one in _of_message(said.message)]

    def tasks(self, comm_id: CommId | None = None) -> list[TaskStatus]:
        """List the tasks given out so far, of all groups or of one, in order."""
        return [task for (group, _), task in self._tasks.items() if comm_id in (None, group)]

    def known_tasks(self, comm_id: CommId) -> list[Task]:
        """Every task of a group as it was seen last, those that have left its state since included."""
        return [known.task for known in self.tasks(comm_id)]

    def open_tasks(self) -> list[TaskStatus]:
        """List the tasks that run now, or wait."""
        return [task for task in self._tasks.values() if task.ended_at is None]

    def _event_lines(self, entry: Entry) -> Iterator[_Words]:  # noqa: C901 - one flat case for each kind
        match entry.event:
            case Said(message=message):
                header = message.header
                is_draft = self._is_draft(entry.state, message)
                for words in _of_message(message):
                    yield words._replace(act="draft", tone=Tone.QUIET) if is_draft else words
                yield from _by_rules(header.sender, header.decided_by, _usage_of(message))
            case GroupLaunched(charter=charter, decided_by=by, usage=usage):
                if charter.policy is not None:
                    self._policies[charter.comm_id] = charter.policy
                yield _Words(charter.owner, "team", _team(charter))
                yield from _by_rules(charter.owner, by, usage)
            case LaunchAbandoned(by=by, reason=reason):
                yield _Words(by, "no team", f"the goal ends: {reason}", Tone.BAD)
            case SubgroupOpened(task_id=task_id, by=by, subgroup=subgroup):
                yield _Words(by, "nested team", f"{task_id} is worked on by a team of its own, {subgroup}")
            case SubgroupClosed(task_id=task_id, reason=reason):
                yield _Words(CONTROL_PLANE, "result", f"{task_id} is closed by its nested team: {reason}", Tone.QUIET)
            case MemberLost(agent_id=agent_id):
                yield _Words(CONTROL_PLANE, "lost", f"{agent_id} is gone: its lease ran out", Tone.BAD)
            case MemberReturned(agent_id=agent_id):
                yield _Words(CONTROL_PLANE, "returned", f"{agent_id} is back", Tone.GOOD)
            case MemberJoined(card=card, by=by, role=role, why=why):
                told = " ".join(filter(None, (f"{by} invites {card.agent_id}", f"as {role}" if role else "", why and f": {why}")))
                yield _Words(CONTROL_PLANE, "joined", told.replace(" : ", ": "), Tone.GOOD)
            case CancelRequested(why=why):
                yield _Words(CONTROL_PLANE, "cancel", why, Tone.BAD)
            case RepetitionRefused(by=by, repeats_turn=repeats_turn):
                yield _Words(CONTROL_PLANE, "repetition", f"{by} said again what turn {repeats_turn} said: refused", Tone.QUIET)
            case QuestionAnswered(task_id=task_id, answer=answer, by=by):
                yield _Words(by, "answer", f"{task_id}: {answer}" if task_id else answer)
            case SubgroupAsked(task_id=task_id, subgroup=subgroup, question=asked):
                yield _Words(CONTROL_PLANE, "question", f"{task_id}: {subgroup} asks: {asked.text}")
            case MessageRefused(by=by):
                yield _Words(CONTROL_PLANE, "refused", f"{by} chose what was no option", Tone.QUIET)
            case TimerFired() | Unheard():
                pass

    def _is_draft(self, after: GroupState, message: Message) -> bool:
        """Whether a message was told only to those that review it, even if there is nobody left who does."""
        before, policy = self.states.get(after.comm_id), self._policies.get(after.comm_id)
        if not isinstance(message.payload, Discussion):
            return False
        if before is None or policy is None:  # what was said before is not known here
            return isinstance(after.stage, Asking) and after.stage.about == "review"
        return is_draft(policy, before, before.members[before.number_of(message.header.sender)])

    def _followed(self, before: GroupState | None, entry: Entry) -> Iterator[_Words]:
        """Say what an event led to that its own words do not: tasks that a rule closed, a floor that passed on, an end."""
        after = entry.state
        if before is not None:
            own = entry.event.message.payload if isinstance(entry.event, Said) else entry.event
            for task in _newly_closed(before, after):
                is_told = isinstance(own, InformTaskResult | SubgroupClosed) and own.task_id == task.task_id
                if not is_told or (isinstance(own, InformTaskResult) and own.outcome is not task.outcome):
                    why = f": {task.why}" if task.why else ""
                    yield _Words(CONTROL_PLANE, f"task {task.outcome}", f"{task.task_id} of {task.assignee}{why}", Tone.BAD)
        if isinstance(entry.event, TimerFired) and before is not None:
            yield from _after_timer(before, after)
        if isinstance(entry.event, RepetitionRefused):
            yield from _after_repetition(entry.event, after)
        if before is not None and (default := _default_that_stands(before, entry)):
            yield _Words(CONTROL_PLANE, "default", f"nothing was chosen that could be: {default} stands", Tone.BAD)
        gone = [] if before is None else [one for one in before.hearing if one not in after.hearing]
        yield from (_Words(CONTROL_PLANE, "removed", f"{one} was removed", Tone.BAD) for one in gone)
        forced = after.forced
        if forced is not None and (before is None or before.forced is None):
            yield _Words(CONTROL_PLANE, str(forced), f"used up: {after.floor_holder} has to conclude", Tone.BAD)
        ended = after.stage if isinstance(after.stage, Ended) else None
        if ended is not None and not _tells_end(entry.event):
            yield _Words(CONTROL_PLANE, str(after.phase), f"{ended.reason}: {ended.content}", Tone.BAD, ended.artifacts)
        if ended is not None and ended.degraded is not None:
            yield _Words(CONTROL_PLANE, "degraded", what_lacks(ended.degraded), Tone.BAD)

    def _update(self, entry: Entry) -> None:
        state = entry.state
        payload = entry.event.message.payload if isinstance(entry.event, Said) else None
        described = {}
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            described = {task.task_id: task.task_desc for task in payload.tasks}
        for task in state.tasks:
            key, depth = (state.comm_id, task.task_id), max(0, state.depth - (self.base_depth or 0))
            known = self._tasks.get(key) or TaskStatus(task, state.comm_id, described.get(task.task_id, ""), depth)
            if known.ended_at is None or known.task != task:
                report = payload if isinstance(payload, InformTaskProgress) and payload.task_id == task.task_id else None
                self._tasks[key] = known.after(task, report, entry.event.at)


def _line(seq: int, comm_id: CommId, depth: int, at: datetime, words: _Words) -> Line:
    return Line(seq, comm_id, depth, at, **words._replace(text=words.text.strip())._asdict())


def _of_message(message: Message) -> Iterator[_Words]:
    """Say what a message says, and what it rejects."""
    speaker = message.header.sender
    for one in rejects_of(message.payload):
        yield _Words(speaker, "reject", f"{one.task_id}: {one.why}", Tone.BAD)
    yield from _of_payload(speaker, message)


def _of_payload(speaker: AgentId, message: Message) -> Iterator[_Words]:  # noqa: C901 - one flat case for each kind
    match message.payload:
        case Discussion(content=content, next_speaker=next_speaker, next_speakers=several, go=go, fields=fields, writes=writes):
            named = ", ".join(several) or next_speaker
            to = f"to {named}: " if named else f"on to {go}: " if go else ""
            filled = f" [{', '.join(f'{name} = {value}' for name, value in fields.items())}]" if fields else ""
            yield _Words(speaker, "discussion", f"{to}{content}{filled}")
            for name, text in writes.items():
                yield _Words(speaker, "writes", f"{name}: {text}" if text else name)
        case AskUser() as asked:
            yield _Words(speaker, "question", _in_words(asked))
        case TaskQuestion(task_id=task_id) as asked:
            yield _Words(speaker, "question", f"{task_id}: {_in_words(asked)}")
        case Decision(task_id=str(task_id), choice=choice, content=content):
            yield _Words(speaker, "answer", f"{task_id}: {choice}{f': {content}' if content else ''}")
        case Decision(choice=choice, content=content, members=members):
            chosen = " ".join((choice, *members))
            yield _Words(speaker, "decision", f"{chosen}: {content}" if content else chosen)
        case SyncTaskAssignment() | AsyncTaskAssignment() as payload:
            yield from _of_assignment(speaker, payload)
        case InformTaskProgress(task_id=task_id, number=number, content=content, fraction=fraction):
            part = f" {fraction:.0%}" if fraction is not None else ""
            text = content or ("started" if number == 1 else "still at work")
            yield _Words(speaker, "progress", f"{task_id}{part} {text}", Tone.QUIET)
        case InformTaskResult(task_id=task_id, outcome=outcome, task_conclusion=conclusion, artifacts=artifacts):
            good = outcome is TaskOutcome.DONE
            yield _Words(speaker, "result", f"{task_id} {outcome}: {conclusion}", Tone.GOOD if good else Tone.BAD, artifacts)
        case Pause(triggers=triggers):
            yield _Words(
                speaker, "pause", f"until {', '.join(triggers)} {'is' if len(triggers) == 1 else 'are'} closed", Tone.QUIET
            )
        case ConcludeGroupDiscussion(content=content, conclusion=at_once):
            if at_once is None:
                yield _Words(speaker, "conclude", content, Tone.QUIET)
            else:
                yield from _of_conclusion(speaker, at_once)
        case Pass(cause=cause, content=content):
            tone = Tone.QUIET if cause is PassCause.NOTHING_TO_ADD else Tone.BAD
            yield _Words(speaker, "pass", f"{cause}: {content}" if content else str(cause), tone)
        case Thinking(note=note):
            yield _Words(speaker, "thinking", note or "still deciding what to say", Tone.QUIET)
        case Conclusion() as conclusion:
            yield from _of_conclusion(speaker, conclusion)


def _in_words(asked: Question) -> str:
    chosen = f" ({' | '.join(asked.options)})" if asked.options else ""
    return f"{asked.text}{chosen}; {asked.default} stands from {asked.until:%Y-%m-%d %H:%M} UTC on"


def _of_conclusion(speaker: AgentId, said: Conclusion) -> Iterator[_Words]:
    good = said.reason is Reason.CONCLUDED
    text = said.content if good else f"{said.reason}: {said.content}"
    yield _Words(speaker, CONCLUSION, text, Tone.GOOD if good else Tone.BAD, said.artifacts)


def _usage_of(message: Message) -> Usage | None:
    """Return what a message, or the task whose end it tells, has used up."""
    return message.payload.usage if isinstance(message.payload, InformTaskResult) else message.header.usage


def _by_rules(speaker: AgentId, by: DecidedBy | None, usage: Usage | None) -> Iterator[_Words]:
    """Say that rules decided what a model was asked for."""
    if by is not None and by.instead_of:
        why = f", {by.cause}" if by.cause else ""
        yield _Words(speaker, f"by {by.kind}", f"instead of {by.instead_of}{why}", Tone.BAD)
    elif by is None and usage is not None and usage.fallbacks:
        yield _Words(speaker, "by rules", f"{what_rules_decided(usage)}: the model gave no usable answer", Tone.QUIET)


def who_decided(decisions: Sequence[Decisions]) -> list[tuple[str, bool]]:
    """Say who took how many of the decisions, and whether in the place of a model; nothing where rules alone were asked for.

    It is the word of members: none of them is asked to prove who has decided.
    """
    if all(one.by == DecidedBy(kind="rules") for one in decisions):
        return []
    total = sum(one.count for one in decisions)
    return [(_share(one, total), bool(one.by.instead_of)) for one in decisions]


def _share(one: Decisions, total: int) -> str:
    by = one.by
    who = f"a person{f' ({by.name})' if by.name else ''}" if by.kind == "human" else by.name or by.kind
    told = f", as members say: {one.count} of {total}"
    if by.instead_of:
        return f"by {who} instead of {by.instead_of}{told}{f', {by.cause}' if by.cause else ''}"
    return f"decided by {who}{told}"


def what_rules_decided(usage: Usage) -> str:
    """Say how many decisions rules took in a model's place."""
    return f"{usage.fallbacks} decision{'' if usage.fallbacks == 1 else 's'} in the model's place"


def _of_assignment(speaker: AgentId, payload: SyncTaskAssignment | AsyncTaskAssignment) -> Iterator[_Words]:
    act = "sync task" if isinstance(payload, SyncTaskAssignment) else "async task"
    if not all(task.task_abstract and task.task_abstract in payload.content for task in payload.tasks) and payload.content:
        yield _Words(speaker, act, payload.content)
    for task in payload.tasks:
        uses = f" (uses {', '.join(task.uses)})" if task.uses else ""
        team = f" (by the team {task.team})" if task.team else ""
        yield _Words(speaker, act, f"{task.task_id} → {task.assignee}: {task.task_desc}{uses}{team}")


def _newly_closed(before: GroupState, after: GroupState) -> list[ClosedTask]:
    unfinished = {task.task_id for task in before.unfinished_tasks}
    return [task for task in after.tasks if isinstance(task, ClosedTask) and task.task_id in unfinished]


def _was(agents: Sequence[AgentId]) -> str:
    return "was" if len(agents) == 1 else "were"


def what_lacks(degraded: Degraded) -> str:
    """Say in words what a conclusion may lack."""
    lost = f"{', '.join(degraded.lost)} {_was(degraded.lost)} lost when this was concluded"
    return f"{lost}; not done: {', '.join(degraded.tasks)}" if degraded.tasks else lost


def _after_timer(before: GroupState, after: GroupState) -> Iterator[_Words]:
    if isinstance(before.stage, Awaiting) and not isinstance(after.stage, Awaiting):
        yield _Words(CONTROL_PLANE, "timer", f"nobody answered in time: {before.stage.default} stands", Tone.BAD)
    elif after.floor and (silent := [one for one in before.floor if before.turn != after.turn or one not in after.floor]):
        have = "has" if len(after.floor) == 1 else "have"
        text = f"{', '.join(silent)} {_was(silent)} silent; {', '.join(after.floor)} {have} the floor"
        yield _Words(CONTROL_PLANE, "timer", text, Tone.BAD)
    elif before.phase != after.phase and not after.phase.is_terminal:
        yield _Words(CONTROL_PLANE, "timer", f"{before.phase} took too long; the group is {after.phase}", Tone.BAD)
    for task in after.open_tasks:
        earlier = before.task(task.task_id)
        late = [one for one in earlier.questions if one not in task.questions] if isinstance(earlier, OpenTask) else ()
        for question in late:
            text = f"{task.task_id}: nobody answered in time: {question.default} stands"
            yield _Words(CONTROL_PLANE, "timer", text, Tone.BAD)
        if isinstance(earlier, OpenTask) and task.suspect and not earlier.suspect:
            yield _Words(CONTROL_PLANE, "timer", f"{task.task_id} of {task.assignee}: no sign of life", Tone.QUIET)


def _team(charter: Charter) -> str:
    """Who works with the owner, and who only stands by in case that somebody fails."""
    others = [card.agent_id for card in charter.team_members if card.agent_id != charter.owner]
    standing = {other for task in charter.plan for other in task.others} - {task.assignee for task in charter.plan}
    working = [agent_id for agent_id in others if agent_id not in standing]
    team = f"leads a team with {', '.join(working)}" if working else "works alone"
    by = [agent_id for agent_id in others if agent_id in standing]
    return f"{team}; {', '.join(by)} {'stands' if len(by) == 1 else 'stand'} by" if by else team


def _after_repetition(refused: RepetitionRefused, after: GroupState) -> Iterator[_Words]:
    match after.stage:
        case Paused(pauser=pauser, triggers=triggers):
            text = f"{pauser} repeats itself: the discussion waits for {', '.join(triggers)}"
        case Concluding(speaker=speaker):
            text = f"nothing new is said: {speaker} has to conclude"
        case _ if after.turn != refused.turn:
            text = f"{refused.by} repeats itself: its turn is silent"
        case _:
            return
    yield _Words(CONTROL_PLANE, "repetition", text, Tone.BAD)


def _tells_end(event: Event) -> bool:
    """Whether an event says by itself why a group ends."""
    if not isinstance(event, Said):
        return isinstance(event, LaunchAbandoned)
    said = event.message.payload
    return isinstance(said, Conclusion) or (isinstance(said, ConcludeGroupDiscussion) and said.conclusion is not None)


def _default_that_stands(before: GroupState, entry: Entry) -> str:
    """Return what a policy does since who was asked has not chosen; empty if it was not asked, or is asked still, or has."""
    asked, event, after = before.stage, entry.event, entry.state.stage
    if not isinstance(asked, Asking) or event.at >= before.limits.deadline:
        return ""
    is_asked_still = isinstance(after, Asking) and (after.about, after.options) == (asked.about, asked.options)
    match event:
        case MessageRefused():
            stands = asked.tries <= 1 and after != asked
        case TimerFired():
            stands = asked.until <= event.at
        case MemberLost(agent_id=lost):
            stands = lost == asked.asked and not is_asked_still
        case Said(message=message) if isinstance(message.payload, Pass):
            stands = message.payload.cause is not PassCause.MODEL_UNAVAILABLE or not is_asked_still
        case _:
            stands = False
    return asked.default if stands else ""
