"""The shapes of the model's answers, built for each situation so that they can only name what is legal in it.

An id in an answer is one of a list; a kind that is not legal now is no part of the class. Task ids do not occur in what the
model gives out: they are made here. Texts that are too long are cut, not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, create_model

from ioa.agent.model.budget import Budget
from ioa.group.events import Kind
from ioa.ports.brain import GroupView
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    MAX_TASKS_PER_ASSIGNMENT,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
)

MAX_NAMED = 64
"""How many members, agents or tasks an answer may choose from; the latest, where there are more."""


_MAX_LISTED = 256


class SearchClient(BaseModel):
    """Ask discovery who fits."""

    type: Literal["search_client"]
    needs: list[str]


class LaunchGroupChat(BaseModel):
    """Launch the group with these agents."""

    type: Literal["launch_group_chat"]
    members: list[str]


class ReportNobodyFits(BaseModel):
    """Give the goal up, since nobody who was found can serve it."""

    type: Literal["report_nobody_fits"]


class Discuss(BaseModel):
    """Say something to one other member."""

    type: Literal["DISCUSSION"]
    next_speaker: str
    content: str


class AssignedTask(BaseModel):
    """One task for one member."""

    assignee: str
    task_desc: str


class UsingTask(AssignedTask):
    """A task that is fed with the results of finished ones."""

    uses: list[str]


class AssignSync(BaseModel):
    """Give out tasks and wait for them."""

    type: Literal["SYNC_TASK_ASSIGNMENT"]
    tasks: Sequence[AssignedTask]


class AssignAsync(BaseModel):
    """Give out tasks and go on."""

    type: Literal["ASYNC_TASK_ASSIGNMENT"]
    tasks: Sequence[AssignedTask]


class PauseOn(BaseModel):
    """Wait for open tasks."""

    type: Literal["PAUSE"]
    triggers: list[str]


class AnnounceConclusion(BaseModel):
    """End the discussion."""

    type: Literal["CONCLUDE_GROUP_DISCUSSION"]


class Conclude(BaseModel):
    """State the group's answer."""

    type: Literal["CONCLUSION"]
    goal_reached: bool
    content: str


class DoAlone(BaseModel):
    """Do the task without a team."""

    type: Literal["alone"]
    task_desc: str


class TeamUp(BaseModel):
    """Serve the task with a nested team."""

    type: Literal["team"]


def reply_of(decisions: Sequence[type[BaseModel]], budget: Budget) -> type[BaseModel]:
    """Wrap the decisions that are open now into one answer; its `decision` is the one taken."""
    decision: Any = decisions[0] if len(decisions) == 1 else Annotated[reduce(or_, decisions), Field(discriminator="type")]
    thought: dict[str, Any] = {"thought": (_text(budget.thought_chars, least=0), "")} if budget.thought_chars else {}
    return create_model("Answer", **thought, decision=(decision, ...))


def formation(found: Sequence[AgentId], budget: Budget, *, may_search: bool, may_give_up: bool) -> type[BaseModel]:
    """Return the shape of a step of team formation: search, launch with agents that were found, or report needs nobody serves."""
    decisions: list[type[BaseModel]] = []
    if may_search:
        needs = _list_of(_text(min(budget.content_chars, 500)), budget.max_tasks)
        decisions.append(create_model("SearchClient", __base__=SearchClient, needs=(needs, ...)))
    if found:
        members = _some_of(found, MAX_NAMED)
        decisions.append(create_model("LaunchGroupChat", __base__=LaunchGroupChat, members=(members, ...)))
    if may_give_up:
        decisions.append(ReportNobodyFits)
    return reply_of(decisions, budget)


def speech(view: GroupView, kinds: Iterable[Kind], budget: Budget) -> type[BaseModel] | None:
    """Return the shape of a floor holder's answer: the kinds that are legal now, with members in reach and known tasks only.

    None if nothing can be said.
    """
    decisions = [built for kind in kinds if (build := _BY_KIND.get(kind)) and (built := build(view, budget))]
    return reply_of(decisions, budget) if decisions else None


def conclusion(budget: Budget) -> type[BaseModel]:
    """Return the shape of a conclusion."""
    return reply_of([create_model("Conclude", __base__=Conclude, content=(_text(budget.content_chars), ...))], budget)


def approach(budget: Budget, *, may_team_up: bool) -> type[BaseModel]:
    """Return the shape of an assignee's answer to its task."""
    alone = create_model("DoAlone", __base__=DoAlone, task_desc=(_text(budget.content_chars, least=0), ...))
    return reply_of([alone, TeamUp] if may_team_up else [alone], budget)


def _discuss(view: GroupView, budget: Budget) -> type[BaseModel] | None:
    others = [agent for agent in view.reachable if agent != view.me]
    if not others:
        return None
    return create_model(
        "Discuss", __base__=Discuss, next_speaker=(_one_of(others), ...), content=(_text(budget.content_chars), ...)
    )


def _assign(base: type[AssignSync | AssignAsync]) -> Callable[[GroupView, Budget], type[BaseModel] | None]:
    def build(view: GroupView, budget: Budget) -> type[BaseModel] | None:
        done = [task.spec.task_id for task in view.tasks if task.outcome is TaskOutcome.DONE]
        assignees = tuple(dict.fromkeys((*view.reachable, view.me)))
        fields: dict[str, Any] = {"assignee": (_one_of(assignees), ...), "task_desc": (_text(budget.content_chars), ...)}
        base_task: type[AssignedTask] = UsingTask if done else AssignedTask
        if done:
            fields["uses"] = (_some_of(done, MAX_TASKS_PER_ASSIGNMENT, least=0), [])
        task: Any = create_model(base_task.__name__, __base__=base_task, **fields)
        most = min(budget.max_tasks, MAX_TASKS_PER_ASSIGNMENT)
        return create_model(base.__name__, __base__=base, tasks=(_list_of(task, most), ...))

    return build


def _pause(view: GroupView, budget: Budget) -> type[BaseModel] | None:
    still_open = [task.task_id for task in view.state.open_tasks]
    if not still_open:
        return None
    return create_model("PauseOn", __base__=PauseOn, triggers=(_some_of(still_open, MAX_NAMED), ...))


def _announce(view: GroupView, budget: Budget) -> type[BaseModel] | None:
    return None if view.state.open_tasks else AnnounceConclusion


_BY_KIND: dict[Kind, Callable[[GroupView, Budget], type[BaseModel] | None]] = {
    Discussion: _discuss,
    SyncTaskAssignment: _assign(AssignSync),
    AsyncTaskAssignment: _assign(AssignAsync),
    Pause: _pause,
    ConcludeGroupDiscussion: _announce,
}


SPEECH_KINDS = frozenset(_BY_KIND)
"""The kinds of message a floor holder can say in a discussion."""


def _one_of(names: Sequence[str]) -> Any:
    return Literal[tuple(names[-MAX_NAMED:])]


def _some_of(names: Sequence[str], most: int, *, least: int = 1) -> Any:
    return _list_of(_one_of(names), min(most, len(names)), least=least)


def _text(most: int, *, least: int = 1) -> Any:
    def cut(value: object) -> object:
        return value.encode(errors="replace").decode()[:most].strip() if isinstance(value, str) else value

    return Annotated[str, BeforeValidator(cut), Field(min_length=least, max_length=most)]


def _list_of(item: Any, most: int, *, least: int = 1) -> Any:
    def cut(value: object) -> object:
        """Drop repeats first, so that a model that loops keeps the distinct things it named."""
        if not isinstance(value, list):
            return value
        distinct: list[object] = []
        for element in value[:_MAX_LISTED]:
            if element not in distinct:
                distinct.append(element)
        return distinct[:most]

    return Annotated[list[item], BeforeValidator(cut), Field(min_length=least, max_length=most)]
