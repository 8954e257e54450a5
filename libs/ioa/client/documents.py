"""JSON documents of goals, groups, entries, agents and searches, as the command line and the gateway write them.

Later versions can add members, but do not rename or remove them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, PlainSerializer, WithJsonSchema, computed_field

from ioa.group.events import Said, input_of
from ioa.group.requests import GoalStatus, GroupSnapshot
from ioa.group.state import ClosedTask, Ended, GroupState, Task, Waiting
from ioa.ports.group_log import StoredEntry
from ioa.protocol.agents.outcomes import Record
from ioa.protocol.agents.search import Hit, NeedHits, SearchResult, Why
from ioa.protocol.cards import AgentCard, AgentStatus, Load, advice
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.goals import ForcedReason, GoalResult, GoalTerms
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, PoolId, TaskId, UserId
from ioa.protocol.messages import Question
from ioa.protocol.model import OMITTED_IF_EMPTY, Model
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.teams.team_file import document_of, is_seat, person_of
from ioa.protocol.usage import NOTHING, Usage

Instant = Annotated[
    datetime, PlainSerializer(datetime.isoformat, return_type=str), WithJsonSchema({"type": "string", "format": "date-time"})
]
"""A time in UTC with its offset, in ISO format."""


def told(document: BaseModel) -> dict[str, Any]:
    """Return a document as plain data for JSON."""
    return document.model_dump(mode="json")


class TaskDocument(Model):
    """A task.

    Attributes:
        status: Outcome of a closed task, otherwise whether it is open or waits.
        why: Reason if the task is closed and not done.
        lease_until: Time by which the assignee must report, while the task is open.
        suspect: Whether a report is overdue.
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
        absent = {"why": "", "subgroup": None, "lease_until": None, "suspect": False}
        status = str(task.outcome) if isinstance(task, ClosedTask) else task.status
        return cls.model_validate({**absent, **dict(task), "status": status})


class BudgetDocument(Model):
    """Limits of a group and its usage.

    Attributes:
        nested_turns: Turns of nested groups that have ended.
        turns_lent: Turns reserved for nested groups that run.
    """

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


class OpenQuestion(Model):
    """A question to the user of a goal, as Python, `--json` and HTTP return it.

    Attributes:
        item: Reference for the answer: `GROUP.TURN`, or `GROUP.TASK.NUMBER` for a question of a task.
        options: Possible answers; empty: any text of up to 2,000 characters.
        default: Answer that applies at `until`.
        task_id: Task that asks; None if the floor holder asks and the discussion waits.
        role: Role in which the user is asked, such as an operator; None if the task names none.
    """

    item: str
    kind: Literal["question"] = "question"
    goal_id: GoalId
    user: UserId | None
    comm_id: CommId
    asker: AgentId
    text: str
    options: tuple[str, ...]
    default: str
    until: Instant
    task_id: TaskId | None
    role: str | None

    @property
    def goal(self) -> GoalName:
        """Goal whose user is asked."""
        return GoalName(self.user or LOCAL, self.goal_id)


def open_questions(state: GroupState) -> tuple[OpenQuestion, ...]:
    """Return the questions of a group to the user of its goal."""
    found: list[OpenQuestion] = []

    def add(number: str, question: Question, **asked: object) -> None:
        item = f"{state.comm_id}.{number}"
        found.append(OpenQuestion.model_validate({**dict(state), **dict(question), **asked, "item": item}))

    if isinstance(state.stage, Waiting) and state.question is not None:
        add(f"{state.turn}", state.question, asker=state.stage.waiter, task_id=None, role=None)
    for task in state.open_tasks:
        if (question := task.question) is not None:
            add(f"{task.task_id}.{question.number}", question, asker=task.assignee, task_id=task.task_id)
    return tuple(found)


class EntryDocument(Model):
    """An entry of a log: the event, and the state of its group after it.

    Attributes:
        type: Kind of the message or event.
        sender: Sender of a message; None for other events.
        decided_by: What made the decision, as the sender reports it.
        person: Person whose seat sent the message. With keys, only this person can send under this name.
        body: Fields of the message or event.
        until: Time limit of the current phase; None if the group waits only for tasks, or has ended.
        floor: Members that may speak under the current turn.
        waits_for: Tasks that must close, or start, before the discussion continues.
        forced: Limit that ended the discussion, until the conclusion is stated.
        node: Number of the current node of the policy; None in a free group.
        ended: The end of the group; None before.
        questions: Open questions of the group and its tasks to the user of the goal.
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
    budget: BudgetDocument
    floor: tuple[AgentId, ...]
    waits_for: tuple[TaskId, ...]
    forced: ForcedReason | None
    node: int | None
    ended: Ended | None
    questions: tuple[OpenQuestion, ...]

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
            body=(said.payload if said else event).model_dump(mode="json", exclude={"type"} if said else {"type", "at"}),
            phase=str(state.phase),
            turn=state.turn,
            floor_holder=state.floor_holder,
            tasks=tuple(map(TaskDocument.of, state.tasks)),
            until=None if isinstance(state.stage, Ended) else getattr(state.stage, "until", None),
            budget=BudgetDocument.of(state),
            floor=state.floor,
            waits_for=state.stage.tasks if isinstance(state.stage, Waiting) else (),
            forced=state.forced,
            node=state.course.node if state.course else None,
            ended=state.stage if isinstance(state.stage, Ended) else None,
            questions=open_questions(state),
        )


def _person_of(sender: AgentId, state: GroupState) -> str | None:
    """Return the person of a seat; None for an agent, even if it claims to be a person."""
    is_person = is_seat(sender) and any(one.human for one in state.members if one.agent_id == sender)
    return person_of(sender) if is_person else None


class ProgressDocument(Model):
    """A progress report outside of the log."""

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
    """Result of a goal."""

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
        status: Reason of the end, or the phase of its group, or `waiting`.
        turns_taken: Turns of its group and of nested groups that have ended.
        members: Members of its group; empty after the end.
        floor: Members that may speak now.
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
    """A goal with its tasks, and its members also after the end.

    Attributes:
        team_file: Team in the form of a team file, as a new order can contain it.
    """

    tasks_given: int
    tasks: tuple[TaskDocument, ...]
    team_file: Annotated[dict[str, Any], OMITTED_IF_EMPTY] = Field(default_factory=dict)

    @classmethod
    def of(cls, status: GoalStatus, tasks: Sequence[Task] | None = None) -> Self:
        """Describe a goal; `tasks` replaces the tasks in the state of its group, which omits old ones."""
        state = status.standing.state if status.standing else None
        known = tasks if tasks is not None else state.tasks if state else ()
        return cls.model_validate(
            {
                **_row(status),
                "members": [member.agent_id for member in state.members] if state else [],
                "tasks_given": state.tasks_given if state else 0,
                "tasks": [TaskDocument.of(task) for task in known],
                "team_file": {} if (team := status.record.goal.team) is None else document_of(team),
            }
        )


def _row(status: GoalStatus) -> Mapping[str, object]:
    goal = status.record.goal
    state = status.standing.state if status.standing and status.result is None else None
    return {
        **dict(goal),
        "accepted_at": status.record.accepted_at,
        "comm_id": goal.comm_id,
        "status": goal_status(status),
        "turns_taken": turns_of(status) or 0,
        "usage": usage_of(status),
        "result": ResultDocument.of(status.result) if status.result else None,
        "members": [member.agent_id for member in state.members] if state else [],
        "floor": state.floor if state else (),
    }


def goal_status(status: GoalStatus) -> str:
    """Return the reason of a goal's end, or the phase of its group."""
    return str(status.phase if status.result is None else status.result.reason)


def turns_of(status: GoalStatus) -> int | None:
    """Return the turns of a goal's group and of nested groups that have ended; None without a group."""
    if status.result is not None:
        return status.result.turns
    state = status.standing.state if status.standing else None
    return state.turns_taken + state.nested_turns if state else None


def usage_of(status: GoalStatus) -> Usage:
    """Return the usage of a goal so far."""
    if status.result is not None:
        return status.result.usage
    return status.standing.state.spent if status.standing else NOTHING


class MemberDocument(Model):
    """A member of a group. A removed member receives no further entries."""

    agent_id: AgentId
    lost: bool
    removed: bool


class StateDocument(Model):
    """State of a group."""

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
    def of(cls, state: GroupState, tasks: Sequence[Task] | None = None, **more: object) -> Self:
        """Describe a state; `tasks` replaces its tasks, which omit old ones, and `more` are further members."""
        return cls.model_validate(
            {
                **dict(state),
                "members": [dict(member) for member in state.members],
                "phase": str(state.phase),
                "max_turns": state.limits.max_turns,
                "floor_holder": state.floor_holder,
                "tasks_given": state.tasks_given,
                "tasks": [TaskDocument.of(task) for task in (state.tasks if tasks is None else tasks)],
                **more,
            }
        )


class GroupDocument(StateDocument):
    """Current state of a group; `goal` is None if the group was never launched, `seq` is the sequence of its last entry."""

    goal: str | None
    seq: int

    @classmethod
    def of_group(cls, group: GroupSnapshot, tasks: Sequence[Task] | None = None) -> Self:
        """Describe a group; `tasks` replaces the tasks in its state, which omits old ones."""
        return cls.of(group.state, tasks, goal=group.charter and group.charter.goal, seq=group.seq)


class AgentDocument(AgentCard):
    """An agent: its card, its status, its load, and advice to improve the card."""

    online: bool
    registered_at: Instant
    load: Load
    advice: tuple[str, ...]

    @classmethod
    def of(cls, status: AgentStatus) -> Self:
        """Describe an agent."""
        return cls.model_validate({**dict(status.card), **dict(status), "advice": advice(status.card)})


class HitDocument(Model):
    """A hit of a search; see `ioa.protocol.agents.search.Hit`."""

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
    """Hits of a need, best first."""

    need: str
    hits: tuple[HitDocument, ...]

    @classmethod
    def of(cls, found: NeedHits) -> Self:
        """Describe the hits of a need."""
        return cls(need=found.need.text, hits=tuple(map(HitDocument.of, found.hits)))


class SearchDocument(Model):
    """Result of a search: the hits of each need, and the merged list of agent ids."""

    by_need: tuple[NeedDocument, ...]
    merged: tuple[AgentId, ...]

    @classmethod
    def of(cls, result: SearchResult) -> Self:
        """Describe an answer."""
        return cls(by_need=tuple(map(NeedDocument.of, result.by_need)), merged=tuple(hit.card.agent_id for hit in result.merged))
