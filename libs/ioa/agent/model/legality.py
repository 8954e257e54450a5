"""What is legal in a situation, said in sentences that a model can act on. The router judges again; this saves it the trouble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ioa.agent.model.answers import (
    Assign,
    Conclude,
    Discuss,
    Formation,
    LaunchGroupChat,
    PassOn,
    PauseOn,
    Read,
    SearchClient,
    Speech,
)
from ioa.agent.outbox import MAX_TEXT_BYTES
from ioa.group.events import Kind
from ioa.group.state import MAX_MEMBERS, Concluding
from ioa.ports.brain import GroupView
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    MAX_ARTIFACTS,
    MAX_TASKS_PER_ASSIGNMENT,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pass,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
)
from ioa.protocol.search import MAX_NEED_CHARS, MAX_NEEDS
from ioa.repetition import normalised

_MAX_TRIGGERS = 256
_MAX_PASS_CHARS = 1_000
_MAX_NAMED = 40

_KINDS: Mapping[str, tuple[Kind, ...]] = {
    "DISCUSSION": (Discussion,),
    "ASSIGN": (SyncTaskAssignment, AsyncTaskAssignment),
    "PAUSE": (Pause,),
    "CONCLUDE": (ConcludeGroupDiscussion, Conclusion),
    "PASS": (Pass,),
}
"""What a model may say, with the kinds of message that it can become."""


def closed_kinds(view: GroupView) -> dict[str, str]:
    """Return the words that the speaker cannot use now, each with why not."""
    return {word: _why_closed(word, view) for word, kinds in _KINDS.items() if not set(kinds) & set(view.legal)}


def is_mute(view: GroupView) -> bool:
    """Whether nothing at all can be said."""
    return len(closed_kinds(view)) == len(_KINDS)


def objection(said: Speech, view: GroupView) -> str | None:
    """Say why a decision is not legal now, naming what is; None if it is, or if it only reads."""
    decision = said.decision
    if isinstance(decision, Read):
        return None
    closed = closed_kinds(view).get(decision.type)
    if closed is not None:
        return f"{decision.type} is closed now: {closed}. Open: {', '.join(_open_words(view))}."
    match decision:
        case Discuss():
            return _of_discussion(decision, view)
        case Assign():
            return _of_assignment(decision, view)
        case PauseOn():
            return _of_pause(decision, view)
        case Conclude():
            return _of_conclusion(decision, view)
        case PassOn():
            return _of_pass(decision)


def objection_to_step(
    said: Formation, found: Iterable[str], searched: Sequence[str], *, may_search: bool, has_searched: bool
) -> str | None:
    """Say why a step of team formation is not legal now; None if it is."""
    decision, known = said.decision, tuple(found)
    if isinstance(decision, SearchClient):
        return _of_search(decision, searched, may_search=may_search)
    if isinstance(decision, LaunchGroupChat):
        unknown = [member for member in decision.members if member not in known]
        if unknown:
            return f"{_listed(unknown)} was not found; found were {_listed(known) or 'no agents yet'}."
        if len(set(decision.members)) >= MAX_MEMBERS:
            return f"a team has at most {MAX_MEMBERS - 1} members besides you; choose those that matter most."
        return None
    return None if has_searched else "nothing was searched yet; search first."


def files_by_id(view: GroupView) -> dict[str, Artifact]:
    """Return the files of all tasks by the ids they are told by."""
    return {f"{task.spec.task_id}/{' '.join(file.name.split())}": file for task in view.tasks for file in task.artifacts}


def finished(view: GroupView) -> tuple[TaskId, ...]:
    """Return the tasks whose results others can use."""
    return tuple(task.spec.task_id for task in view.tasks if task.outcome is TaskOutcome.DONE)


def _why_closed(word: str, view: GroupView) -> str:
    if isinstance(view.state.stage, Concluding):
        return "the discussion has ended"
    match word:
        case "PAUSE":
            return "no task is open"
        case "CONCLUDE":
            still_open = [task.task_id for task in view.state.open_tasks]
            return f"{_listed(still_open)} still open" if still_open else "not your turn"
        case "PASS":
            return "a member's software is too old for it"
        case "DISCUSSION":
            return "no other member is in reach"
        case _:
            return "too many tasks are open"


def _open_words(view: GroupView) -> list[str]:
    closed = closed_kinds(view)
    return [word for word in (*_KINDS, "READ") if word not in closed]


def _of_discussion(said: Discuss, view: GroupView) -> str | None:
    others = [agent for agent in view.reachable if agent != view.me]
    if said.next_speaker == view.me:
        return f"`{view.me}` is you, and `next_speaker` another member: {_listed(others)}."
    return _of_member(said.next_speaker, others, view) or _of_text("content", said.content, may_be_empty=False)


def _of_assignment(said: Assign, view: GroupView) -> str | None:
    if not said.tasks:
        return "`tasks` is empty; give out a task, or decide something else."
    if len(said.tasks) > MAX_TASKS_PER_ASSIGNMENT:
        return f"{len(said.tasks)} tasks are too many for one message; {MAX_TASKS_PER_ASSIGNMENT} may be given out at once."
    assignees = list(dict.fromkeys((*view.reachable, view.me)))
    names = {task.name for task in said.tasks if task.name}
    for task in said.tasks:
        problem = _of_member(task.assignee, assignees, view) or _of_text("task_desc", task.task_desc, may_be_empty=False)
        problem = problem or _of_uses(task.uses, names, view)
        if problem:
            return problem
    return _of_text("all tasks together", "".join([said.content, *(task.task_desc for task in said.tasks)]))


def _of_uses(uses: Sequence[str], names: set[str], view: GroupView) -> str | None:
    done = finished(view)
    for used in uses:
        if used in done:
            continue
        task = view.task(TaskId(used))
        if task is not None:
            how = "open" if task.outcome is None else str(task.outcome)
            return f"`{used}` is {how}, and `uses` names tasks that are done: {_listed(done) or 'none are yet'}."
        if used in names:
            return f"`{used}` is given out by this same message; give out what uses it when it is done."
        return f"`{used}` is no task, and `uses` names tasks that are done: {_listed(done) or 'none are yet'}."
    if len(set(uses)) > MAX_TASKS_PER_ASSIGNMENT:
        return f"{len(uses)} tasks are too many to use; {MAX_TASKS_PER_ASSIGNMENT} may be."
    return None


def _of_pause(said: PauseOn, view: GroupView) -> str | None:
    still_open = [task.task_id for task in view.state.open_tasks]
    unknown = [trigger for trigger in said.triggers if trigger not in still_open]
    if unknown or not said.triggers:
        return f"{_listed(unknown) or 'nothing'} is no open task; `triggers` names some of {_listed(still_open)}."
    if len(set(said.triggers)) > _MAX_TRIGGERS:
        return f"{len(said.triggers)} triggers are too many; name at most {_MAX_TRIGGERS}."
    return _of_text("content", said.content)


def _of_conclusion(said: Conclude, view: GroupView) -> str | None:
    if not said.content.strip() and not said.answer_from:
        return "`content` is empty; state the answer to the goal."
    told = [task.spec.task_id for task in view.tasks if task.outcome is not None]
    unknown = [task_id for task_id in said.answer_from if task_id not in told]
    if unknown:
        return f"{_listed(unknown)} is no result; `answer_from` names some of {_listed(told) or 'none: there are no results'}."
    files = files_by_id(view)
    missing = [file for file in said.files if file not in files]
    if missing:
        known = _listed(list(files)) or "none: there are no files"
        return f"{_listed(missing)} is no file of a task; `files` names some of {known}."
    if len(set(said.files)) > MAX_ARTIFACTS:
        return f"{len(said.files)} files are too many; {MAX_ARTIFACTS} may go with an answer."
    return None


def _of_pass(said: PassOn) -> str | None:
    if len(said.content) > _MAX_PASS_CHARS:
        return f"`content` has {len(said.content):,} characters, and {_MAX_PASS_CHARS:,} may say why you pass."
    return None


def _of_search(said: SearchClient, searched: Sequence[str], *, may_search: bool) -> str | None:
    if not may_search:
        return "the searches are used up; launch with agents that were found, or report that nobody fits."
    needs = [need.strip() for need in said.needs]
    if not all(needs) or not needs:
        return "a need is empty; say in a sentence what somebody is needed for."
    if len(needs) > MAX_NEEDS:
        return f"{len(needs)} needs are too many for one search; {MAX_NEEDS} may be."
    if any(len(need) > MAX_NEED_CHARS for need in needs):
        return f"a need has more than {MAX_NEED_CHARS:,} characters; say it in a sentence."
    known = set(map(normalised, searched))
    if all(normalised(need) in known for need in needs):
        return "all of this was searched already; search in other words, launch, or report that nobody fits."
    return None


def _of_member(name: str, allowed: Sequence[str], view: GroupView) -> str | None:
    if name in allowed:
        return None
    if any(card.agent_id == name for card in view.charter.team_members):
        return f"`{name}` is out of reach; in reach are {_listed(allowed)}."
    return f"`{name}` is no member; members are {_listed(allowed)}."


def _of_text(field: str, text: str, *, may_be_empty: bool = True) -> str | None:
    if not may_be_empty and not text.strip():
        return f"`{field}` is empty."
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_TEXT_BYTES:
        return f"`{field}` has {size:,} bytes, and {MAX_TEXT_BYTES:,} fit into a message; say it shorter."
    return None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(f"`{name[:100]}`" for name in names[:_MAX_NAMED]) + more
