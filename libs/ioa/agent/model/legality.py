"""What is legal in a situation, said in sentences that a model can act on. The router judges again; this saves it the trouble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from ioa.agent.inquiry import Inquiry
from ioa.agent.model.answers import (
    AskOut,
    Assign,
    Conclude,
    Discuss,
    DiscussInPart,
    Formation,
    InviteIn,
    InviteInPart,
    LaunchGroupChat,
    PassOn,
    PauseOn,
    Read,
    Reject,
    SearchClient,
    Speech,
    StepOrAdd,
)
from ioa.agent.model.discussion import objection_to_discussion
from ioa.agent.send import MAX_TEXT_BYTES
from ioa.errors import InvalidInputError
from ioa.group.events import MAX_WHY_CHARS, Kind, name_of
from ioa.group.joining import ADD
from ioa.group.policy.offer import Offer
from ioa.group.state import MAX_MEMBERS, Concluding, Discussing, Gathering
from ioa.group.tasks import find_cycle
from ioa.ports.brain import GroupView
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    MAX_ARTIFACTS,
    MAX_REJECTS,
    MAX_TASKS_PER_ASSIGNMENT,
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pass,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
)
from ioa.protocol.named_teams import TeamReference
from ioa.protocol.search import MAX_NEED_CHARS, MAX_NEEDS
from ioa.repetition import normalised

_MAX_TRIGGERS = 256
_MAX_WHY_CHARS = 2_000
_USABLE = (None, TaskOutcome.DONE, TaskOutcome.REJECTED)
_MAX_PASS_CHARS = 1_000
_MAX_NAMED = 40
_MAX_TOLD_TASKS = 4
"""Of so many tasks an answer is told what is wrong: few repairs are left, and one for each mistake would use them up."""

_KINDS: Mapping[str, tuple[Kind, ...]] = {
    "DISCUSSION": (Discussion,),
    "ASSIGN": (SyncTaskAssignment, AsyncTaskAssignment),
    "PAUSE": (Pause,),
    "CONCLUDE": (ConcludeGroupDiscussion, Conclusion),
    "PASS": (Pass,),
}
"""What a model may say, with the kinds of message that it can become."""

_INVITE = "INVITE"
"""It becomes no message: who invites is asked again, in the same turn."""


def closed_kinds(view: GroupView) -> dict[str, str]:
    """Return the words that the speaker cannot use now, each with why not."""
    closed = {word: _why_closed(word, view) for word, kinds in _KINDS.items() if not {*map(name_of, kinds)} & {*view.legal}}
    uninvited = _why_nobody_is_invited(view) if _may_invite(view) else ""
    return {**closed, _INVITE: uninvited} if uninvited else closed


def is_mute(view: GroupView) -> bool:
    """Whether nothing at all can be said."""
    return _KINDS.keys() <= closed_kinds(view).keys()


def _may_invite(view: GroupView) -> bool:
    """Whether members may be invited where the group is; where they may not, a prompt says nothing of it, since each word costs."""
    return isinstance(view.state.stage, Discussing) and (view.offer is None or bool(view.offer.invites))


def _why_nobody_is_invited(view: GroupView) -> str:
    """Say why nobody can be invited now; empty if somebody can. A model invites once in a turn, and goes on with who has joined."""
    if len(view.state.members) >= MAX_MEMBERS:
        return "the group has as many members as it may have"
    if newest := view.joined.get(view.state.turn):
        return f"{newest} has joined in this turn"
    return ""


def objection(said: Speech, view: GroupView) -> str | None:
    """Say why a decision is not legal now, naming what is; None if it is, or if it only reads."""
    decision: Discuss | Assign | InviteIn | PauseOn | Read | Conclude | PassOn | AskOut = cast("Any", said.decision)
    if isinstance(decision, Read):
        return None
    rejected = _of_rejects(said, view)
    if rejected is not None:
        return rejected
    view = usable(view, said.rejects)
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
            return _of_pass(decision, said.rejects)
        case AskOut() | InviteIn():
            return _of_request(decision, said.rejects, view)


def question_of(said: AskOut, view: GroupView) -> AskUser:
    """Build the question to the user of the goal.

    Raises:
        InvalidInputError: It cannot be asked; the message says why.
    """
    inquiry = Inquiry(said.content.strip(), said.default.strip(), tuple(said.options), within=timedelta(minutes=said.minutes))
    return inquiry.to_user(view.at, view.state.limits.deadline)


def fault_of_adding(said: object, view: GroupView) -> str | None:
    """Say what is wrong with how somebody is added; None if nothing is."""
    if not isinstance(said, StepOrAdd) or said.choice != ADD or view.offer is None:
        return None
    return _of_newcomer(said.need, said.role, view.offer.invites)


def _of_request(said: AskOut | InviteIn, rejects: Sequence[Reject], view: GroupView) -> str | None:
    if isinstance(said, InviteIn):
        return _of_invite(said, rejects, view)
    try:
        question_of(said, view)
    except InvalidInputError as error:
        return error.message
    return None


def _of_invite(said: InviteIn, rejects: Sequence[Reject], view: GroupView) -> str | None:
    roles = () if view.offer is None else view.offer.invites
    if not _may_invite(view):
        return f"INVITE is closed now: {_why_closed(_INVITE, view)}. Open: {', '.join(_open_words(view))}."
    if rejects:
        return "an INVITE rejects nothing: reject with what you say when somebody has joined."
    return _of_newcomer(said.need, said.role if isinstance(said, InviteInPart) else None, roles)


def _of_newcomer(need: str, role: str | None, roles: Sequence[str]) -> str | None:
    if role is not None and role not in roles:
        return f"`{role}` is no role that somebody can join in; `role` is one of {_listed(roles)}."
    if not need.strip() or len(need) > MAX_WHY_CHARS:
        return f"`need` says in a sentence whom you want to join, in {MAX_WHY_CHARS:,} characters at most."
    return None


def is_written(said: Conclude) -> bool:
    """Whether a conclusion says anything, or only that there is to be one."""
    return bool(said.content.strip() or said.answer_from)


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


def answer_files(view: GroupView) -> dict[str, Artifact]:
    """Return the files that may go with the answer: those of results that were not rejected."""
    kept = tuple(task for task in view.tasks if task.outcome is not TaskOutcome.REJECTED)
    return files_by_id(replace(view, tasks=kept))


def finished(view: GroupView) -> tuple[TaskId, ...]:
    """Return the tasks that are done."""
    return tuple(task.spec.task_id for task in view.tasks if task.outcome is TaskOutcome.DONE)


def usable(view: GroupView, rejects: Sequence[Reject]) -> GroupView:
    """Return a view in which results are rejected already that the same message rejects."""
    why = {one.task: one.why for one in rejects}
    if not why:
        return view
    tasks = tuple(
        replace(task, outcome=TaskOutcome.REJECTED, rejected=why[task.spec.task_id]) if task.spec.task_id in why else task
        for task in view.tasks
    )
    return replace(view, tasks=tasks)


def _why_closed(word: str, view: GroupView) -> str:
    if isinstance(view.state.stage, Concluding):
        return "the discussion has ended"
    if isinstance(view.state.stage, Gathering):
        return "you are one of several who speak side by side"
    still_open = [task.task_id for task in view.state.unfinished_tasks]
    if view.offer is not None and not (view.offer.tasks and (word == "PAUSE" or (word == "CONCLUDE" and still_open))):
        return "the policy of this group does not offer it now"
    match word:
        case "PAUSE":
            return "no task is open"
        case "CONCLUDE":
            return f"{_listed(still_open)} still open" if still_open else "not your turn"
        case "PASS":
            return "a member's software is too old for it"
        case "DISCUSSION":
            return "no other member is in reach"
        case _:
            return "too many tasks are open"


def _open_words(view: GroupView) -> list[str]:
    closed = closed_kinds(view)
    words = (*_KINDS, *((_INVITE,) if _may_invite(view) else ()), "READ")
    return [word for word in words if word not in closed]


def _only_talks(said: Speech, offered: Offer) -> bool:
    """Whether routers let it reject no result: who neither gives out tasks here nor concludes takes back no work of others."""
    concludes = isinstance(said.decision, Conclude) and (offered.concluding or offered.may_conclude)
    return not offered.lets_reject(concludes=concludes)


def _of_rejects(said: Speech, view: GroupView) -> str | None:
    rejects = said.rejects
    if rejects and view.charter.policy is not None and view.offer is not None and _only_talks(said, view.offer):
        return "`rejects` is closed here, where no tasks are given out; say in `content` what is wrong."
    done = [task_id for task_id in finished(view) if view.state.task(task_id) is not None]
    for one in rejects:
        if one.task not in done:
            return f"`{one.task}` cannot be rejected; `rejects` names tasks that are done: {_listed(done) or 'none are yet'}."
        if not one.why.strip():
            return f"`why` is empty; say what is wrong with the result of `{one.task}`."
        if len(one.why) > _MAX_WHY_CHARS:
            return f"`why` has {len(one.why):,} characters, and {_MAX_WHY_CHARS:,} may be; say it shorter."
    if len(rejects) > MAX_REJECTS:
        return f"{len(rejects)} results are too many to reject at once; {MAX_REJECTS} may be."
    return None


def _of_part(said: DiscussInPart, offered: Offer) -> str | None:
    if said.next_speaker and said.next_speaker not in offered.next_speakers:
        return _not_offered("next_speaker", offered.next_speakers, "the policy chooses who speaks next")
    if said.go and said.go not in offered.go:
        return _not_offered("go", offered.go, "the policy leads on by itself")
    if said.go and said.next_speaker:
        return "name a `next_speaker` or where to `go`, and not both."
    return _of_text("content", said.content, may_be_empty=False)


def _not_offered(field: str, offered: Sequence[str], who_chooses: str) -> str:
    """Say what a choice may be; a model reads that something "is empty" as that it has to be filled in."""
    if not offered:
        return f"leave `{field}` empty: {who_chooses}."
    return f"`{field}` is one of {_listed(offered)}; or leave it empty, and {who_chooses}."


def _of_discussion(said: Discuss, view: GroupView) -> str | None:
    if isinstance(said, DiscussInPart) and view.offer is not None:
        return _of_part(said, view.offer) or objection_to_discussion(said, view)
    if said.next_speakers or isinstance(view.state.stage, Gathering):
        return _of_text("content", said.content, may_be_empty=False) or objection_to_discussion(said, view)
    others = [agent for agent in view.reachable if agent != view.me]
    if said.next_speaker == view.me:
        return f"`{view.me}` is you, and `next_speaker` another member: {_listed(others)}."
    return (
        _of_member(said.next_speaker, others, view)
        or _of_text("content", said.content, may_be_empty=False)
        or objection_to_discussion(said, view)
    )


def _of_assignment(said: Assign, view: GroupView) -> str | None:
    if not said.tasks:
        return "`tasks` is empty; give out a task, or decide something else."
    if len(said.tasks) > MAX_TASKS_PER_ASSIGNMENT:
        return f"{len(said.tasks)} tasks are too many for one message; {MAX_TASKS_PER_ASSIGNMENT} may be given out at once."
    people = {member.agent_id for member in view.state.members if member.human}
    assignees = [one for one in dict.fromkeys((*view.reachable, view.me)) if one not in people]
    names = [task.name for task in said.tasks if task.name]
    problems = (
        _of_member(task.assignee, assignees, view)
        or _of_text("task_desc", task.task_desc, may_be_empty=False)
        or _of_uses(task.uses, names, view)
        or _of_team(task.team, view)
        for task in said.tasks
    )
    if wrong := list(dict.fromkeys(filter(None, problems))):
        return " ".join(wrong[:_MAX_TOLD_TASKS])
    if cycle := find_cycle({task.name: task.uses for task in said.tasks if task.name}):
        return f"{_listed(cycle)} wait for each other; let one of them begin."
    return _of_text("all tasks together", "".join([said.content, *(task.task_desc for task in said.tasks)]))


def _of_uses(uses: Sequence[str], names: Sequence[str], view: GroupView) -> str | None:
    legal = [task.spec.task_id for task in view.tasks if task.outcome in _USABLE]
    kinds, listed = "tasks that are done, rejected or open, or are given out by this same message", _listed([*legal, *names])
    for used in uses:
        if names.count(used) > 1:
            return f"`{used}` is the name of several tasks of this message; give each a name of its own."
        if used in legal or used in names:
            continue
        task = view.task(TaskId(used))
        if task is not None:
            how = "open" if task.outcome is None else str(task.outcome)
            return f"`{used}` is {how}, and `uses` names {kinds}: {listed or 'none are yet'}."
        return f"`{used}` is no task, and `uses` names {kinds}: {listed or 'none are yet'}."
    if len(set(uses)) > MAX_TASKS_PER_ASSIGNMENT:
        return f"{len(uses)} tasks are too many to use; {MAX_TASKS_PER_ASSIGNMENT} may be."
    return None


def _of_team(team: str, view: GroupView) -> str | None:
    if not team:
        return None
    if view.state.depth >= view.state.limits.max_depth:
        return "No team can serve a task of this group; leave `team` empty."
    try:
        TeamReference.parse(team)
    except InvalidInputError:
        return f"{_listed([team])} names no stored team; leave `team` empty, unless you were told of one that is to do the task."
    return None


def _of_pause(said: PauseOn, view: GroupView) -> str | None:
    still_open = [task.task_id for task in view.state.unfinished_tasks]
    unknown = [trigger for trigger in said.triggers if trigger not in still_open]
    if unknown or not said.triggers:
        return f"{_listed(unknown) or 'nothing'} is no open task; `triggers` names some of {_listed(still_open)}."
    if len(set(said.triggers)) > _MAX_TRIGGERS:
        return f"{len(said.triggers)} triggers are too many; name at most {_MAX_TRIGGERS}."
    return _of_text("content", said.content)


def _of_conclusion(said: Conclude, view: GroupView) -> str | None:
    if isinstance(view.state.stage, Concluding) and not is_written(said):
        return "`content` is empty; state the answer to the goal."
    told = [task.spec.task_id for task in view.tasks if task.outcome not in (None, TaskOutcome.REJECTED)]
    unknown = [task_id for task_id in said.answer_from if task_id not in told]
    if unknown:
        open_ones = f"names some of {_listed(told)}" if told else "stays empty, as there are no results"
        return f"{_listed(unknown)} is no result; `answer_from` {open_ones}."
    files = answer_files(view)
    named = said.files or []
    missing = [file for file in named if file not in files]
    if missing:
        open_ones = f"names some of {_listed(list(files))}" if files else "stays empty, as there are no files"
        return f"{_listed(missing)} is no file of a task; `files` {open_ones}."
    if len(set(named)) > MAX_ARTIFACTS:
        return f"{len(named)} files are too many; {MAX_ARTIFACTS} may go with an answer."
    return None


def _of_pass(said: PassOn, rejects: Sequence[Reject]) -> str | None:
    if rejects:
        return "a PASS rejects nothing: say something with it, or give the task out again."
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
        return f"`{field}` is empty; fill it in."
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_TEXT_BYTES:
        return f"`{field}` has {size:,} bytes, and {MAX_TEXT_BYTES:,} fit into a message; say it shorter."
    return None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(f"`{name[:100]}`" for name in names[:_MAX_NAMED]) + more
