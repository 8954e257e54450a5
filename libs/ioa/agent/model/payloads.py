"""From the model's decision to the message that is sent. Task ids are made here, from the turn, so that a retry makes the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from ioa.agent.model.answers import AssignAsync, AssignedTask, AssignSync, Discuss, PauseOn, UsingTask
from ioa.group.state import GroupState
from ioa.ports.brain import GroupView, Utterance
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, TaskId, task_id_of_turn
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)

_ABSTRACT_CHARS = 120
_MAX_ARTIFACTS = 100


def utterance_of(said: object, view: GroupView) -> Utterance:
    """Build the message that a decision of a floor holder means."""
    match said:
        case Discuss():
            return Discussion(content=said.content, next_speaker=AgentId(said.next_speaker))
        case AssignSync():
            return SyncTaskAssignment(tasks=_specs(said.tasks, view.state))
        case AssignAsync():
            return AsyncTaskAssignment(tasks=_specs(said.tasks, view.state))
        case PauseOn():
            return Pause(triggers=tuple(TaskId(task_id) for task_id in said.triggers))
        case _:
            return ConcludeGroupDiscussion()


def artifacts_of(view: GroupView) -> tuple[Artifact, ...]:
    """Collect the files of the finished tasks, each once; the latest are kept where there are too many."""
    files = {file.object_name: file for task in view.tasks if task.outcome is TaskOutcome.DONE for file in task.artifacts}
    return tuple(files.values())[-_MAX_ARTIFACTS:]


def _specs(tasks: Sequence[AssignedTask], state: GroupState) -> tuple[TaskSpec, ...]:
    return tuple(
        TaskSpec(
            task_id=task_id,
            assignee=AgentId(task.assignee),
            task_desc=task.task_desc,
            task_abstract=task.task_desc[:_ABSTRACT_CHARS],
            uses=tuple(TaskId(used) for used in task.uses) if isinstance(task, UsingTask) else (),
        )
        for task_id, task in zip(_ids(state), tasks, strict=False)
    )


def _ids(state: GroupState) -> Iterator[TaskId]:
    """Ids that number a group's tasks through all its turns, so that no two of them bear one name."""
    return (task_id_of_turn(state.turn, str(number)) for number in count(state.tasks_given + 1))
