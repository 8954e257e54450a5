"""From the model's decision to the message that is sent. Task ids are made here, from the turn, so that a retry makes the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TypeVar

from ioa.agent.answer_files import files_of_answer
from ioa.agent.model.answers import (
    AskOut,
    Assign,
    AssignedTask,
    Conclude,
    Discuss,
    InviteIn,
    InviteInPart,
    PassOn,
    PauseOn,
    Reject,
)
from ioa.agent.model.discussion import discussion_of
from ioa.agent.model.legality import answer_files, question_of
from ioa.group.state import GroupState
from ioa.ports.brain import GroupView, Invite, Utterance, WholeConclusion
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import AgentId, TaskId, is_token, task_id_of_turn
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Pass,
    PassCause,
    Pause,
    RejectedTask,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.model import Model

_ABSTRACT_CHARS = 120

Said = TypeVar("Said", bound=Model)


def utterance_of(said: Discuss | Assign | PauseOn | PassOn | AskOut, view: GroupView) -> Utterance:
    """Build the message that a legal decision of a floor holder means, unless it ends the group."""
    match said:
        case Discuss():
            return discussion_of(said, view)
        case Assign(mode="wait"):
            return SyncTaskAssignment(content=said.content, tasks=_specs(said.tasks, view.state))
        case Assign():
            return AsyncTaskAssignment(content=said.content, tasks=_specs(said.tasks, view.state))
        case PauseOn():
            return Pause(content=said.content, triggers=tuple(TaskId(task_id) for task_id in dict.fromkeys(said.triggers)))
        case AskOut():
            return question_of(said, view)
        case PassOn():
            return Pass(cause=PassCause.NOTHING_TO_ADD, content=said.content.strip())


def invite_of(said: InviteIn) -> Invite:
    """Build the invitation that a legal decision means; all read for what."""
    role = said.role if isinstance(said, InviteInPart) else None
    return Invite(need=said.need.strip(), role=role, why=said.need.strip())


def conclusion_of(said: Conclude, texts: Sequence[str], view: GroupView) -> WholeConclusion:
    """Build the conclusion, with `texts` word for word behind what the model says, and the files that it names."""
    return WholeConclusion(
        content="\n\n".join(filter(None, [said.content.strip(), *texts])),
        reason=Reason.CONCLUDED if said.goal_reached else Reason.FAILED,
        artifacts=files_of_answer(view.tasks) if said.files is None else _named(said.files, view),
    )


def _named(names: Sequence[str], view: GroupView) -> tuple[Artifact, ...]:
    known = answer_files(view)
    return tuple(known[name] for name in dict.fromkeys(names))


def rejecting(said: Said, rejects: Sequence[Reject]) -> Said:
    """Return a message that rejects results besides."""
    named = {one.task: RejectedTask(task_id=TaskId(one.task), why=one.why.strip()) for one in rejects}
    return said.model_copy(update={"rejects": tuple(named.values())}) if named else said


def _specs(tasks: Sequence[AssignedTask], state: GroupState) -> tuple[TaskSpec, ...]:
    """Build the tasks; what one of them uses by its name in this same message gets its id."""
    ids = _ids(tasks, state)
    known = {task.name: task_id for task, task_id in zip(tasks, ids, strict=True)}
    return tuple(
        TaskSpec(
            task_id=task_id,
            assignee=AgentId(task.assignee),
            task_desc=task.task_desc,
            task_abstract=task.task_desc[:_ABSTRACT_CHARS],
            uses=tuple(dict.fromkeys(known.get(used, TaskId(used)) for used in task.uses)),
            team=task.team or None,
        )
        for task_id, task in zip(ids, tasks, strict=True)
    )


def _ids(tasks: Sequence[AssignedTask], state: GroupState) -> list[TaskId]:
    """Ids by the names that the model gave, where they can be one and are free; else by the number of the task in its group."""
    named = {task_id_of_turn(state.turn, task.name) for task in tasks if is_token(task.name)}
    numbers = (task_id_of_turn(state.turn, str(number)) for number in count(state.tasks_given + 1))
    ids: list[TaskId] = []
    for task in tasks:
        wished = task_id_of_turn(state.turn, task.name) if is_token(task.name) else None
        free = wished is not None and wished not in ids and state.task(wished) is None
        ids.append(wished if free and wished is not None else next(number for number in numbers if number not in named))
    return ids
