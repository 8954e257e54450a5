"""What programs are told of goals, groups, entries, agents and searches: one model for each, whoever tells it.

The command line writes them as JSON, and so do services in front of the system. Members are added, never renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, PlainSerializer, WithJsonSchema, computed_field

from ioa.client.calls import DecisionCall
from ioa.client.costs import Purpose
from ioa.group.events import Said, input_of, name_of
from ioa.group.goal_lists import GoalStatus
from ioa.group.machine import legal_kinds
from ioa.group.requests import GroupSnapshot
from ioa.group.state import (
    Asking,
    Assigned,
    Awaiting,
    AwaitingAcks,
    ClosedTask,
    Ended,
    GroupState,
    OpenTask,
    ParentTask,
    Paused,
    Stage,
    Task,
    WaitingTask,
)
from ioa.ports.group_log import StoredEntry
from ioa.protocol.cards import AgentCard, AgentStatus, advice
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.goals import Artifact, Degraded, ForcedReason, GoalResult, GoalTerms, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, PoolId, TaskId
from ioa.protocol.load import Load
from ioa.protocol.model import Model
from ioa.protocol.outcomes import Record
from ioa.protocol.questions import Question
from ioa.protocol.search import Hit, NeedHits, SearchResult, Why
from ioa.protocol.team import is_seat, person_of
from ioa.protocol.usage import NOTHING, Usage

Instant = Annotated[
    datetime, PlainSerializer(datetime.isoformat, return_type=str), WithJsonSchema({"type": "string", "format": "date-time"})
]
"""A time in UTC, written with its offset."""


def told(document: BaseModel) -> dict[str, Any]:
    """Write a document as plain data, ready for JSON."""
    return document.model_dump(mode="json")


class TaskDocument(Model):
    """A task.

    Attributes:
        lease_until: When its next sign of life is due, while it is open.
        suspect: Whether one is overdue.
    """

    task_id: TaskId
    assignee: AgentId
    status: str
    why: str
    subgroup: CommId | None
    lease_until: Instant | None
    suspect: bool

    @classmethod
    def of(cls, task: Task) -> Self:
        """Describe a task."""
        return cls(
            task_id=task.task_id,
            assignee=task.assignee,
            status=str(task.outcome) if isinstance(task, ClosedTask) else task.status,
            why=task.why if isinstance(task, ClosedTask) else "",
            subgroup=None if isinstance(task, WaitingTask) else task.subgroup,
            lease_until=task.lease_until if isinstance(task, OpenTask) else None,
            suspect=isinstance(task, OpenTask) and task.suspect,
        )


class BudgetDocument(Model):
    """What a group may use up, and has: turns of its own and of nested teams, and those lent to nested teams that go on."""

    max_turns: int
    max_tokens: int | None
    max_cost_micros: int | None
    deadline: Instant
    turns_taken: int
    nested_turns: int
    turns_lent: int
    spent: Usage

    @classmethod
    def of(cls, state: GroupState) -> Self:
        """Describe the budget of a group."""
        lent = sum(loan.turns for loan in state.loans)
        return cls.model_validate({**dict(state), **dict(state.limits), "turns_lent": lent})


class EndDocument(Model):
    """How a group ended; see `ioa.group.state.Ended`."""

    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...]
    degraded: Degraded | None
    limit: ForcedReason | None


class AskedDocument(Model):
    """A question that waits for an answer: of who has the floor, or of a task; `default` stands at `until`.

    Attributes:
        to: Who answers what the floor holder asks: the user of the goal, or who gave out the task that a nested team serves. None
            of a question of a task, which either of them may answer.
    """

    task_id: TaskId | None
    asker: AgentId
    to: Literal["user", "assigner"] | None
    text: str
    options: tuple[str, ...]
    default: str
    until: Instant

    @classmethod
    def of(cls, question: Question, asker: AgentId, task_id: TaskId | None) -> Self:
        """Describe a question."""
        to = question.of if isinstance(question, Awaiting) else None
        return cls.model_validate({**dict(question), "task_id": task_id, "asker": asker, "to": to})


class EntryDocument(Model):
    """An entry: what happened, and where its group stands since.

    Attributes:
        type: The kind of message or event.
        sender: Who said it; None if nobody did.
        decided_by: Who decided it by the word of its sender, which nobody proves.
        person: Whose seat said it: where keys are asked for, the system knows that nobody else speaks under that name.
        body: Its own fields.
        until: When whoever has the floor, or is waited for, has to have spoken; None where nothing but tasks is waited for.
        legal: What each of those who may speak may say; None in a group that a policy leads, which decides it.
        budget: What the group may use up, and has.
        floor: Who may speak now, and under the current turn.
        waits_for: The tasks that have to be closed, or begun, before the discussion goes on.
        asked: What somebody is asked to decide on: the exit of a node, the next speaker, a message under review.
        forced: The limit that cut the discussion short, while its conclusion is to be stated.
        node: The number of the node of its policy in which the group stands; None in a free group.
        ended: How the group ended, if it has.
        questions: What it asks out of the group, and what its tasks ask.
        removed: Who was taken out of the group, up to here.
    """

    seq: int
    comm_id: CommId
    depth: int
    at: Instant
    type: str
    sender: AgentId | None
    decided_by: DecidedBy | None
    person: str | None
    body: dict[str, Any]
    phase: str
    turn: int
    floor_holder: AgentId | None
    tasks: tuple[TaskDocument, ...]
    until: Instant | None
    legal: dict[AgentId, tuple[str, ...]] | None
    budget: BudgetDocument
    floor: tuple[AgentId, ...]
    waits_for: tuple[TaskId, ...]
    asked: str | None
    forced: ForcedReason | None
    node: int | None
    ended: EndDocument | None
    questions: tuple[AskedDocument, ...]
    removed: tuple[AgentId, ...]

    @classmethod
    def of(cls, stored: StoredEntry) -> Self:
        """Describe an entry."""
        event, state = stored.entry.event, stored.entry.state
        said = event.message if isinstance(event, Said) else None
        return cls(
            seq=stored.seq,
            comm_id=state.comm_id,
            depth=state.depth,
            at=event.at,
            type=input_of(event).type,
            sender=said.header.sender if said else None,
            decided_by=said.header.decided_by if said else None,
            person=_person_of(said.header.sender, state) if said else None,
            body=said.payload.model_dump(mode="json", exclude={"type"})
            if said
            else event.model_dump(mode="json", exclude={"type", "at"}),
            phase=str(state.phase),
            turn=state.turn,
            floor_holder=state.floor_holder,
            tasks=tuple(map(TaskDocument.of, state.tasks)),
            until=None if isinstance(state.stage, Ended) else getattr(state.stage, "until", None),
            legal=None if state.course is not None else _legal(state, event.at),
            budget=BudgetDocument.of(state),
            floor=state.floor,
            waits_for=_waits_for(state.stage),
            asked=state.stage.about if isinstance(state.stage, Asking) else None,
            forced=state.forced,
            node=None if state.course is None else state.course.node,
            ended=EndDocument.model_validate(dict(state.stage)) if isinstance(state.stage, Ended) else None,
            questions=tuple(_asked(state)),
            removed=tuple([member.agent_id for member in state.members if member.removed]),
        )


def _person_of(sender: AgentId, state: GroupState) -> str | None:
    """Return whose seat the sender's is; None of an agent, whatever it says of itself."""
    is_person = is_seat(sender) and any(one.human for one in state.members if one.agent_id == sender)
    return person_of(sender) if is_person else None


def _asked(state: GroupState) -> Iterator[AskedDocument]:
    if isinstance(state.stage, Awaiting):
        yield AskedDocument.of(state.stage, state.stage.asker, None)
    for task in state.open_tasks:
        for question in task.questions:
            yield AskedDocument.of(question, task.assignee, task.task_id)


def _waits_for(stage: Stage) -> tuple[TaskId, ...]:
    match stage:
        case AwaitingAcks(waiting=tasks) | Assigned(waiting=tasks) | Paused(triggers=tasks):
            return tasks
        case _:
            return ()


def _legal(state: GroupState, at: datetime) -> dict[AgentId, tuple[str, ...]]:
    return {agent_id: tuple(map(name_of, legal_kinds(state, agent_id, at))) for agent_id in state.floor}


class ProgressDocument(Model):
    """A report of progress that is no entry."""

    comm_id: CommId
    at: Instant
    type: str
    sender: AgentId
    body: dict[str, Any]

    @classmethod
    def of(cls, said: Said) -> Self:
        """Describe a report."""
        header, payload = said.message.header, said.message.payload
        body = payload.model_dump(mode="json", exclude={"type"})
        return cls(comm_id=header.comm_id, at=said.at, type=payload.type, sender=header.sender, body=body)


class ResultDocument(GoalResult):
    """How a goal ended."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def succeeded(self) -> bool:
        """Whether the goal was reached."""
        return super().succeeded

    @classmethod
    def of(cls, result: GoalResult) -> Self:
        """Describe a result."""
        return cls.model_validate(dict(result))


class GoalRow(GoalTerms):
    """A goal in a list.

    Attributes:
        status: Why it ended, or the phase of its group, or `waiting`.
        turns_taken: In its group and the nested teams that have ended.
        members: Who works at it, until it has ended.
        floor: Who of them may speak now.
    """

    accepted_at: Instant
    comm_id: CommId
    status: str
    turns_taken: int
    usage: Usage
    result: ResultDocument | None
    members: tuple[AgentId, ...]
    floor: tuple[AgentId, ...]

    @classmethod
    def of(cls, status: GoalStatus) -> Self:
        """Describe a goal."""
        return cls.model_validate(_row(status))


class GoalDocument(GoalRow):
    """A goal with its team, after its end too, and its tasks."""

    tasks_given: int
    tasks: tuple[TaskDocument, ...]

    @classmethod
    def of(cls, status: GoalStatus, tasks: Sequence[Task] | None = None) -> Self:
        """Describe a goal; `tasks` are those that are known beyond what the state of its group still holds."""
        state = status.standing.state if status.standing else None
        known = tasks if tasks is not None else state.tasks if state else ()
        return cls.model_validate(
            {
                **_row(status),
                "members": [member.agent_id for member in state.members] if state else [],
                "tasks_given": state.tasks_given if state else 0,
                "tasks": [TaskDocument.of(task) for task in known],
            }
        )


def _row(status: GoalStatus) -> Mapping[str, object]:
    goal = status.record.goal
    state = status.standing.state if status.standing and status.result is None else None
    return {
        **dict(goal),
        "accepted_at": status.record.accepted_at,
        "comm_id": goal.comm_id,
        "status": standing_of(status),
        "turns_taken": turns_of(status) or 0,
        "usage": usage_of(status),
        "result": ResultDocument.of(status.result) if status.result else None,
        "members": [member.agent_id for member in state.members] if state else [],
        "floor": state.floor if state else (),
    }


def standing_of(status: GoalStatus) -> str:
    """Say in a word how a goal stands: why it ended, or where its group is."""
    if status.result is not None:
        return str(status.result.reason)
    return str(status.phase)


def turns_of(status: GoalStatus) -> int | None:
    """Return the turns taken in a goal's group and in the teams nested in it that have ended; None before there is a group."""
    if status.result is not None:
        return status.result.turns
    state = status.standing.state if status.standing else None
    return state.turns_taken + state.nested_turns if state else None


def usage_of(status: GoalStatus) -> Usage:
    """Return what a goal has cost so far."""
    if status.result is not None:
        return status.result.usage
    return status.standing.state.spent if status.standing else NOTHING


class MemberDocument(Model):
    """A member of a group.

    Attributes:
        removed: Whether it was taken out of the group, and hears nothing of it any more.
    """

    agent_id: AgentId
    lost: bool
    removed: bool


class StateDocument(Model):
    """How a group stands, or stood."""

    comm_id: CommId
    goal_id: GoalId
    owner: AgentId
    members: tuple[MemberDocument, ...]
    phase: str
    turn: int
    turns_taken: int
    max_turns: int
    floor_holder: AgentId | None
    depth: int
    parent: ParentTask | None
    decisions: tuple[Decisions, ...]
    tasks_given: int
    tasks: tuple[TaskDocument, ...]

    @classmethod
    def of(cls, state: GroupState) -> Self:
        """Describe a state."""
        return cls.model_validate(_state(state, state.tasks))


class GroupDocument(Model):
    """Where a group stands. `goal` is None if it was never launched, `seq` that of the entry that says so."""

    comm_id: CommId
    goal_id: GoalId
    goal: str | None
    owner: AgentId
    members: tuple[MemberDocument, ...]
    phase: str
    turn: int
    turns_taken: int
    max_turns: int
    floor_holder: AgentId | None
    depth: int
    parent: ParentTask | None
    seq: int
    decisions: tuple[Decisions, ...]
    tasks_given: int
    tasks: tuple[TaskDocument, ...]

    @classmethod
    def of(cls, standing: GroupSnapshot, tasks: Sequence[Task] | None = None) -> Self:
        """Describe a group; `tasks` are those that are known beyond what its state still holds."""
        goal = standing.charter.goal if standing.charter else None
        state = _state(standing.state, standing.state.tasks if tasks is None else tasks)
        return cls.model_validate({**state, "goal": goal, "seq": standing.seq})


def _state(state: GroupState, tasks: Sequence[Task]) -> Mapping[str, object]:
    return {
        **dict(state),
        "members": [dict(member) for member in state.members],
        "phase": str(state.phase),
        "max_turns": state.limits.max_turns,
        "floor_holder": state.floor_holder,
        "tasks_given": state.tasks_given,
        "tasks": [TaskDocument.of(task) for task in tasks],
    }


class AgentDocument(AgentCard):
    """An agent: its card, whether it is there, how busy it is, and what its card lacks."""

    online: bool
    registered_at: Instant
    load: Load
    advice: tuple[str, ...]

    @classmethod
    def of(cls, status: AgentStatus) -> Self:
        """Describe an agent."""
        return cls.model_validate({**dict(status.card), **dict(status), "advice": advice(status.card)})


class HitDocument(Model):
    """An agent that may fit, and why; see `ioa.protocol.search.Hit`."""

    agent_id: AgentId
    pool: PoolId
    description: str
    score: float
    similarity: float
    matched_example: str
    online: bool
    load: Load
    replicas: int
    record: Record
    why: Why

    @classmethod
    def of(cls, hit: Hit) -> Self:
        """Describe a hit."""
        return cls.model_validate({**dict(hit.card), **dict(hit)})


class NeedDocument(Model):
    """Who fits a need, best first."""

    need: str
    hits: tuple[HitDocument, ...]

    @classmethod
    def of(cls, found: NeedHits) -> Self:
        """Describe the hits of a need."""
        return cls(need=found.need.text, hits=tuple(map(HitDocument.of, found.hits)))


class SearchDocument(Model):
    """An answer of discovery: the hits of each need in full, and the merged list by ids."""

    by_need: tuple[NeedDocument, ...]
    merged: tuple[AgentId, ...]

    @classmethod
    def of(cls, result: SearchResult) -> Self:
        """Describe an answer."""
        return cls(by_need=tuple(map(NeedDocument.of, result.by_need)), merged=tuple(hit.card.agent_id for hit in result.merged))


class SpendingDocument(Model):
    """What a group has spent, by what for, and what models were asked in it and its nested teams."""

    costs: dict[Purpose, Usage]
    calls: tuple[DecisionCall, ...]

    @classmethod
    def of(cls, spent: Mapping[Purpose, Usage], asked: Iterable[DecisionCall]) -> Self:
        """Describe both; a purpose that cost nothing is left out."""
        costs = {purpose: spent[purpose] for purpose in Purpose if purpose in spent}
        return cls(costs=costs, calls=tuple(asked))
