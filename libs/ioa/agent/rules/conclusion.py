"""The conclusion: each result under its task's text, and the reason for each missing result."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.groups.answer_files import files_of_answer
from ioa.agent.rules.list_plan import has_items
from ioa.agent.rules.progress import PlanItem, one_line, plan_progress, short_title
from ioa.agent.turn_view import TurnView
from ioa.ports.brain_types import WholeConclusion
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Discussion, Pass, PassCause, TaskSpec
from ioa.protocol.setup.charter import PlannedTask

_MAX_REASON_BYTES, _MAX_BRIEF_REASONS = 300, 2
_MAX_LIST_LINES = 3
"""Maximum lines of an example, because the message for a rejected goal has at most eight lines."""
_FORCED = {
    Reason.MAX_TURNS: "The discussion was cut short: no turn was left.",
    Reason.BUDGET: "The discussion was cut short: its budget was spent.",
}


def concluded_items(view: TurnView) -> Sequence[PlanItem]:
    """Return the planned tasks, or all tasks of a group that does not follow a plan."""
    if (items := plan_progress(view)) is not None:
        return items
    return [PlanItem(_planned(task.spec), (task,)) for task in view.tasks]


def example_lines(cards: Sequence[AgentCard]) -> list[str]:
    """Return the lines of the first example of the nearest agent that can be a goal: a list, or a task that uses no result."""
    examples = (example for card in cards for example in card.examples if has_items(example) or "#" not in example)
    lines = next(examples, "").splitlines()[:_MAX_LIST_LINES]
    return ["This works, with your own words in place of those in capitals:", *lines] if lines else []


def conclude(view: TurnView, items: Sequence[PlanItem], advice: Sequence[str] = ()) -> WholeConclusion:
    """Merge the results; `advice` are lines for a goal with a missing result.

    The reason is FAILED if a result is missing, and NO_AGENT if nothing is done because all agents declined.
    """
    done = [(item, task) for item in items if (task := item.done)]
    missing = [item for item in items if not item.done]
    failure, forced = failure_of_leader(view), view.state.forced
    if not missing and not failure and done:
        reason = Reason.CONCLUDED
    elif done or failure or forced or not all(one.is_skipped or one.is_declined for one in missing):
        reason = Reason.FAILED
    else:
        reason = Reason.NO_AGENT
    paragraphs = [failure] if failure else []
    if forced and not (done and not missing):
        paragraphs.append(_FORCED[forced])
    if missing:
        paragraphs.append("\n".join([*_reasons(view, missing, brief=not done), *advice]))
    titled, artifacts = len(items) > 1, files_of_answer([task for _, task in done])
    for item, task in done:
        text = task.conclusion.strip() or "Done."
        paragraphs.append(f"## {_title(view, item)}\n\n{text}" if titled else text)
    if artifacts and titled:
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


def _planned(spec: TaskSpec) -> PlannedTask:
    return PlannedTask(task_id=spec.task_id, assignee=spec.assignee, task_desc=spec.task_abstract or spec.task_desc)


def _title(view: TurnView, item: PlanItem) -> str:
    return short_title(item.plan.task_desc or view.goal)


def _reasons(view: TurnView, missing: Sequence[PlanItem], *, brief: bool) -> list[str]:
    """Return a line for each missing result; in brief, at most three lines."""
    lines = ["Not done:", *(f"- {_title(view, item)} ({_reason(item)})" for item in missing)]
    return [*lines[:2], f"- and {len(missing) - 1} more"] if brief and len(missing) > _MAX_BRIEF_REASONS else lines


def _reason(item: PlanItem) -> str:
    """Return why a result is missing: from the first agent that tried, because a declined task helps the user less."""
    task = min(item.attempts, key=lambda attempt: attempt.declined, default=None)
    if item.is_skipped or task is None:
        return "it uses a result that is missing" if item.is_skipped else "no agent could start it"
    if task.outcome is None:
        return f"{task.spec.assignee}: not finished"
    why = f"rejected: {task.rejected}" if task.rejected else task.conclusion or "no reason was given"
    return f"{task.spec.assignee}: {one_line(why, _MAX_REASON_BYTES)}"
