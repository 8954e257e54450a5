"""The brief of a nested group: context from the parent group that all its members could read.

The nested group's goal is the text of the task. The brief contains the assigner, the parent's goal, the last messages, and the
results that the task uses, each with its author.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ioa.agent.brain_port import TaskView
from ioa.agent.view_text import attributed, given_out, said_last, spoken
from ioa.protocol.goals import Artifact
from ioa.protocol.messages import MAX_ARTIFACTS, Message, TaskOutcome
from ioa.protocol.setup.charter import MAX_BRIEF_CHARS
from ioa.protocol.texts import shortened

LAST_MESSAGES = 5
"""Number of the last messages of the parent group in the brief."""
_GOAL_BYTES, _WHY_BYTES, _SAID_BYTES, _RESULTS_BYTES = 4_000, 2_000, 5_000, 8_000


def brief_of(task: TaskView, messages: Sequence[Message]) -> str:
    """Write the brief of the nested group that serves a task.

    Args:
        task: The task, its assignee and its group.
        messages: The messages of the group that all its members could read.

    Returns:
        At most `MAX_BRIEF_CHARS` characters; longer texts are cut with a mark, and results share the rest of the limit.
    """
    read_by_all = replace(task.group, log=tuple(messages))
    charter, given = task.group.charter, given_out(read_by_all, task.spec)
    parts = [
        f"The goal is task {task.spec.task_id} of group {charter.comm_id}; {given.asked_by} gave it to {task.me.agent_id}.",
        attributed("What that group is to reach", shortened(charter.goal, _GOAL_BYTES)),
    ]
    if given.reason:
        parts.append(attributed("Why the task was given", shortened(given.reason, _WHY_BYTES)))
    if said := spoken(read_by_all)[-LAST_MESSAGES:]:
        parts.append(f"Said last in that group:\n{said_last(said, _SAID_BYTES)}")
    results = [record for record in task.used if record.conclusion]
    for record in results:
        name, limit = f"Result {record.spec.task_id} of {record.spec.assignee}", _RESULTS_BYTES // len(results)
        parts.append(
            attributed(f"{name}, {'rejected' if record.rejected else record.outcome}", shortened(record.conclusion, limit))
        )
        if record.rejected:
            parts.append(attributed("Why it was rejected", shortened(record.rejected, limit)))
    return shortened("\n\n".join(parts), MAX_BRIEF_CHARS)


def files_of(task: TaskView) -> tuple[Artifact, ...]:
    """Return the files of the results that a task uses, without rejected ones."""
    done = [record for record in task.used if record.outcome is TaskOutcome.DONE]
    return tuple({file.object_name: file for record in done for file in record.artifacts}.values())[:MAX_ARTIFACTS]
