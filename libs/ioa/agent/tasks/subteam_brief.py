"""The brief of a nested group: context from the parent group that all its members could read.

The nested group's goal is the text of the task. The brief contains the assigner, the parent's goal, the last messages, and the
results that the task uses, each with its author.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.brain_port import TaskView
from ioa.agent.conversation import assignment_of, attributed
from ioa.group.charter import MAX_BRIEF_CHARS
from ioa.protocol.goals import Artifact
from ioa.protocol.messages import (
    MAX_ARTIFACTS,
    AsyncTaskAssignment,
    Discussion,
    InformTaskResult,
    Message,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
)

LAST_MESSAGES = 5
"""Number of the last messages of the parent group in the brief."""
_GOAL_CHARS, _WHY_CHARS, _MESSAGE_CHARS, _RESULTS_CHARS = 4_000, 2_000, 1_000, 8_000
_MARK_CHARS = 60


def brief_of(task: TaskView, messages: Sequence[Message]) -> str:
    """Write the brief of the nested group that serves a task.

    Args:
        task: The task, its assignee and its group.
        messages: The messages of the group that all its members could read.

    Returns:
        At most `MAX_BRIEF_CHARS` characters; longer texts are cut with a mark, and results share the rest of the limit.
    """
    charter, spec = task.group.charter, task.spec
    given = assignment_of(messages, spec)
    asker = given.header.sender if given is not None else charter.owner
    parts = [
        f"The goal is task {spec.task_id} of group {charter.comm_id}; {asker} gave it to {task.me.agent_id}.",
        _part("What that group is to reach", charter.goal, _GOAL_CHARS),
    ]
    if given is not None and (why := _words(given)):
        parts.append(_part("Why the task was given", why, _WHY_CHARS))
    said = [message for message in messages if message is not given and _words(message)][-LAST_MESSAGES:]
    if said:
        lines = [_part(message.header.sender, _words(message), _MESSAGE_CHARS) for message in said]
        parts.append("\n".join(["Said last in that group:", *lines]))
    results = [record for record in task.used if record.conclusion]
    for record in results:
        how = "rejected" if record.rejected else str(record.outcome)
        name = f"Result {record.spec.task_id} of {record.spec.assignee}, {how}"
        parts.append(_part(name, record.conclusion, _RESULTS_CHARS // len(results)))
        if record.rejected:
            parts.append(_part("Why it was rejected", record.rejected, _RESULTS_CHARS // len(results)))
    return _cut("\n\n".join(parts), MAX_BRIEF_CHARS)


def files_of(task: TaskView) -> tuple[Artifact, ...]:
    """Return the files of the results that a task uses, without rejected ones."""
    done = [record for record in task.used if record.outcome is TaskOutcome.DONE]
    return tuple({file.object_name: file for record in done for file in record.artifacts}.values())[:MAX_ARTIFACTS]


def _words(message: Message) -> str:
    payload = message.payload
    if isinstance(payload, InformTaskResult):
        return f"{payload.task_id} {payload.outcome}: {payload.task_conclusion}"
    return payload.content if isinstance(payload, Discussion | SyncTaskAssignment | AsyncTaskAssignment | Pause) else ""


def _part(name: str, text: str, most: int) -> str:
    """Return a text after the name of its author."""
    return _cut(attributed(name, text), most)


def _cut(text: str, most: int) -> str:
    """Keep the beginning of a text that is too long, and say how much is missing."""
    if len(text) <= most:
        return text
    kept = max(0, most - _MARK_CHARS)
    return f"{text[:kept]} [… {len(text) - kept:,} of {len(text):,} characters are left out …]"
