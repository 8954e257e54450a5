"""From the model's decision to the message that is sent. Task ids are made here, from the turn, so that a retry makes the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ioa.agent.model.answers import Assign, AssignedTask, Conclude, Discuss, PassOn, PauseOn
from ioa.agent.model.legality import files_by_id
from ioa.group.state import GroupState
from ioa.ports.brain import GroupView, Utterance, WholeConclusion
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import AgentId, TaskId, is_token, task_id_of_turn
from ioa.protocol.messages import (
    MAX_ARTIFACTS,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Discussion,
    Pass,
    PassCause,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)

_ABSTRACT_CHARS = 120


def utterance_of(said: Discuss | Assign | PauseOn | PassOn | Conclude, view: GroupView) -> Utterance:
    """Build the message that a legal decision of a floor holder means; a conclusion is announced first."""
    match said:
        case Discuss():
            return Discussion(content=said.content.strip(), next_speaker=AgentId(said.next_speaker))
        case Assign(mode="wait"):
            return SyncTaskAssignment(content=said.content, tasks=_specs(said.tasks, view.state))
        case Assign():
            return AsyncTaskAssignment(content=said.content, tasks=_specs(said.tasks, view.state))
        case PauseOn():
            return Pause(content=said.content, triggers=tuple(TaskId(task_id) for task_id in dict.fromkeys(said.triggers)))
        case PassOn():
            return Pass(cause=PassCause.NOTHING_TO_ADD, content=said.content.strip())
        case Conclude():
            return ConcludeGroupDiscussion()


def conclusion_of(said: Conclude, texts: Sequence[str], view: GroupView) -> WholeConclusion:
    """Build the conclusion, with `texts` word for word behind what the model says."""
    return WholeConclusion(
        content="\n\n".join(filter(None, [said.content.strip(), *texts])),
        reason=Reason.CONCLUDED if said.goal_reached else Reason.FAILED,
        artifacts=_artifacts(said.files, view),
    )


def _artifacts(named: Sequence[str], view: GroupView) -> tuple[Artifact, ...]:
    """Return the files that were named, else the newest of each name of the finished tasks; the latest, if they are too many."""
    known = files_by_id(view)
    done = [task for task in view.tasks if task.outcome is TaskOutcome.DONE]
    files = [known[name] for name in dict.fromkeys(named)] or list(
        {file.name: file for task in done for file in task.artifacts}.values()
    )
    return tuple(files)[-MAX_ARTIFACTS:]


def _specs(tasks: Sequence[AssignedTask], state: GroupState) -> tuple[TaskSpec, ...]:
    return tuple(
        TaskSpec(
            task_id=task_id,
            assignee=AgentId(task.assignee),
            task_desc=task.task_desc,
            task_abstract=task.task_desc[:_ABSTRACT_CHARS],
            uses=tuple(TaskId(used) for used in dict.fromkeys(task.uses)),
        )
        for task_id, task in zip(_ids(tasks, state), tasks, strict=True)
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
