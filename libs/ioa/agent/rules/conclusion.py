"""The conclusion: each result under its task's text, and the reason for each missing result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ioa.agent.groups.answer_files import files_of_answer
from ioa.agent.rules.list_plan import has_items
from ioa.agent.rules.progress import ItemStatus, plan_progress
from ioa.agent.turn_view import TurnView
from ioa.ports.brain import TaskRecord, WholeConclusion
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Discussion, Pass, PassCause, TaskOutcome

_MAX_TITLE_CHARS, _MAX_REASON_CHARS, _MAX_BRIEF_REASONS = 90, 300, 2
_NOT_STARTED = "no agent could start it"
_FORCED = {
    Reason.MAX_TURNS: "The discussion was cut short: no turn was left.",
    Reason.BUDGET: "The discussion was cut short: its budget was spent.",
}


@dataclass(frozen=True)
class Section:
    """A task with the attempt that is done, if any.

    Attributes:
        skipped: It was not started, because a result that it uses is missing.
        is_mixed: Its text has items of a list and other lines.
    """

    title: str
    done: TaskRecord | None
    attempts: tuple[TaskRecord, ...]
    skipped: bool = False
    is_mixed: bool = False

    @property
    def is_declined(self) -> bool:
        """Whether all agents that were asked declined the task."""
        return bool(self.attempts) and all(task.declined for task in self.attempts)


def conclude(view: TurnView, sections: Sequence[Section], advice: Sequence[str] = ()) -> WholeConclusion:
    """Merge the results; `advice` are lines for a goal with a missing result.

    The reason is FAILED if a result is missing, and NO_AGENT if nothing is done because all agents declined.
    """
    done = [section for section in sections if section.done]
    missing = [section for section in sections if not section.done]
    failure = failure_of_leader(view)
    if not missing and not failure and done:
        reason = Reason.CONCLUDED
    elif done or failure or view.state.forced or not all(one.skipped or one.is_declined for one in missing):
        reason = Reason.FAILED
    else:
        reason = Reason.NO_AGENT
    paragraphs = [failure] if failure else []
    if view.state.forced and not (done and not missing):
        paragraphs.append(_FORCED[view.state.forced])
    if missing:
        paragraphs.append("\n".join([*_reasons(missing, brief=not done), *advice]))
    artifacts = files_of_answer([section.done for section in done if section.done])
    paragraphs += [_result(section, titled=len(sections) > 1) for section in done]
    if artifacts and len(sections) > 1:
        paragraphs.append("Files: " + ", ".join(f"`{artifact.name}`" for artifact in artifacts))
    return WholeConclusion(content="\n\n".join(paragraphs), reason=reason, artifacts=artifacts)


def conclude_policy(view: TurnView) -> WholeConclusion:
    """Return the last message of a discussion under a policy, which is its result, unless the leader failed after it."""
    said = next((one.payload.content for one in reversed(view.messages) if isinstance(one.payload, Discussion)), "")
    failure = failure_of_leader(view)
    reason = Reason.CONCLUDED if said and not failure and view.state.forced is None else Reason.FAILED
    return WholeConclusion(content=failure or said or "Nothing was said.", reason=reason, artifacts=files_of_answer(view.tasks))


def failure_of_leader(view: TurnView) -> str:
    """Return why the owner's last turn gave no message; empty if it gave one."""
    owner = view.charter.owner
    last = next((one.payload for one in reversed(view.messages) if one.header.sender == owner), None)
    if not isinstance(last, Pass) or last.cause is not PassCause.NO_USABLE_ANSWER:
        return ""
    return f"{owner}, which leads the group, failed: {last.content or 'it gave no usable message.'}"


def short_title(task_desc: str) -> str:
    """Return the first line of a task, shortened after a word."""
    line = " ".join(task_desc[:1_000].strip().partition("\n")[0].split())
    return _shortened(line, _MAX_TITLE_CHARS)


def list_sections(view: TurnView) -> list[Section]:
    """Return a section for each planned task, or for each task of a group that does not follow a plan."""
    items = plan_progress(view)
    if items is None:
        return [_section(task.spec.task_abstract or task.spec.task_desc, (task,)) for task in view.tasks]
    return [
        _section(item.plan.task_desc or view.charter.goal, item.attempts, skipped=item.status is ItemStatus.SKIPPED)
        for item in items
    ]


def _section(text: str, attempts: Sequence[TaskRecord], *, skipped: bool = False) -> Section:
    done = next((task for task in attempts if task.outcome is TaskOutcome.DONE), None)
    # The reason of an agent that tried the task helps the user more than that it was declined.
    return Section(short_title(text), done, tuple(sorted(attempts, key=lambda task: task.declined)), skipped, has_items(text))


def _reasons(missing: Sequence[Section], *, brief: bool) -> list[str]:
    """Return a line for each missing result; in brief, three lines in total, with two reasons for a single task."""
    if brief and len(missing) == 1:
        [section] = missing
        reasons = [_reason(task) for task in section.attempts] or [_NOT_STARTED]
        if section.is_mixed:
            reasons.insert(0, "it has lines outside of its list, so it is one task")
        return [f"Not done: {section.title}", *(f"- {why}" for why in reasons[:_MAX_BRIEF_REASONS])]
    lines = [f"- {section.title} ({_why(section)})" for section in missing]
    if brief and len(lines) > _MAX_BRIEF_REASONS:
        lines = [lines[0], f"- and {len(lines) - 1} more"]
    return ["Not done:", *lines]


def _why(section: Section) -> str:
    if section.skipped:
        return "it uses a result that is missing"
    return next(map(_reason, section.attempts), _NOT_STARTED)


def _reason(task: TaskRecord) -> str:
    if task.outcome is None:
        return f"{task.spec.assignee}: not finished"
    why = f"rejected: {task.rejected}" if task.rejected else task.conclusion or "no reason was given"
    return f"{task.spec.assignee}: {_shortened(' '.join(why.split()), _MAX_REASON_CHARS)}"


def _result(section: Section, *, titled: bool) -> str:
    assert section.done is not None
    text = section.done.conclusion.strip() or "Done."
    return f"## {section.title}\n\n{text}" if titled else text


def _shortened(line: str, chars: int) -> str:
    return line if len(line) <= chars else f"{line[:chars].rsplit(' ', 1)[0]} …"
