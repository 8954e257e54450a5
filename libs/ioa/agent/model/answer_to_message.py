"""From a model's answer to the message of its agent, and the machine's judgement of it before it is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, TypeVar, cast

from ioa.agent.answer_files import files_of_answer
from ioa.agent.inquiry import Inquiry
from ioa.agent.model.answers import (
    AnswerFile,
    AskOut,
    Assign,
    AssignedTask,
    Conclude,
    Continue,
    Discuss,
    DiscussInPart,
    InviteIn,
    InviteInPart,
    PassOn,
    PauseOn,
    Read,
    Reject,
    ShapedAnswer,
    Speech,
    StepOrAdd,
)
from ioa.agent.turn_view import TurnView
from ioa.errors import InvalidInputError, IoaError
from ioa.group import gathering, tasks
from ioa.group.events import MAX_WHY_CHARS, Said
from ioa.group.forms import check_fields
from ioa.group.joining import ADD
from ioa.group.machine import step
from ioa.group.policy.offer import check_discussion, check_writes
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import MAX_MEMBERS, Concluding, Discussing, Gathering
from ioa.json_text import find_object
from ioa.ports.brain import Invite, Utterance, WholeConclusion
from ioa.protocol.codec import encode, validate
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import AgentId, MessageId, TaskId, is_token, task_id_of_turn
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Header,
    Message,
    Pass,
    PassCause,
    Pause,
    Payload,
    RejectedTask,
    SyncTaskAssignment,
    TaskOutcome,
)
from ioa.protocol.model import Model
from ioa.protocol.policy import FieldKind, FieldValue
from ioa.protocol.team import field_of

_ABSTRACT_CHARS = 120
_MAX_FILE_NAME_CHARS = 200
_MAX_LISTED_TASKS = 40
"""Maximum tasks that a rejection lists: the latest."""
_WHOLE = re.compile(r"-?[0-9]{1,16}")
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "DISCUSSION": ("DISCUSSION",),
    "ASSIGN": ("SYNC_TASK_ASSIGNMENT", "ASYNC_TASK_ASSIGNMENT"),
    "PAUSE": ("PAUSE",),
    "CONCLUDE": ("CONCLUDE_GROUP_DISCUSSION", "CONCLUSION"),
    "ASK": ("ASK_USER",),
    "PASS": ("PASS",),
}
"""The decisions of a model, with the messages that each can become."""

_TALK = ("DISCUSSION", "PASS")
_SEVERAL = 2
Answer = Utterance | WholeConclusion | Invite
M = TypeVar("M", bound=Model)


def talks(view: TurnView) -> bool:
    """Whether members discuss: if a policy requires it, or if several models or a person can know or want different things.

    Otherwise the leader only assigns tasks. A member that is not the leader speaks only if it is asked.
    """
    if view.charter.policy is not None or view.me != view.charter.owner or any(member.human for member in view.state.members):
        return True
    return sum(card.uses_model for card in view.charter.team_members if card.agent_id != view.charter.owner) >= _SEVERAL


def open_words(view: TurnView) -> list[str]:
    """Return the decisions that are possible now, except READ."""
    words = [word for word, kinds in _WORDS.items() if set(kinds) & set(view.legal)]
    if not talks(view):
        words = [word for word in words if word not in _TALK]
    if view.offer is None or not view.offer.asks:
        words = [word for word in words if word != "ASK"]
    if "ASSIGN" in words and held_tasks(view):
        words.append("CONTINUE")
    return [*words, "INVITE"] if words and not _why_not_invited(view) else words


def objection(said: Speech, view: TurnView) -> str | None:
    """Return the reason why a decision is not legal now, with the alternatives; None if it is legal, or reads."""
    if isinstance(said.decision, Read):
        return None
    try:
        message = build_message(said, view)
        if not isinstance(message, Invite):
            _check_legal(message, view)
    except IllegalEventError as error:
        return f"{error.message}{_alternatives(error.code, view)}"
    except IoaError as error:
        return error.message
    return None


def _alternatives(code: RejectionCode, view: TurnView) -> str:
    """Return the members or tasks that a rejected message could name."""
    if code in (RejectionCode.BAD_NEXT_SPEAKER, RejectionCode.BAD_ASSIGNEE) and view.charter.policy is None:
        return f" Members in reach: {', '.join(view.reachable)}."
    if code in (RejectionCode.UNKNOWN_TASK, RejectionCode.BAD_TRIGGER, RejectionCode.BAD_REJECT):
        return f" Tasks: {', '.join([task.spec.task_id for task in view.tasks][-_MAX_LISTED_TASKS:]) or 'none yet'}."
    return ""


def build_message(said: Speech, view: TurnView, texts: Mapping[str, str] | None = None) -> Answer:
    """Build the message that a decision means.

    Args:
        said: The decision.
        view: The group.
        texts: The whole texts of the results that a conclusion contains, by task.

    Raises:
        InvalidInputError: A field is invalid, or it cannot be combined with `rejects`.
    """
    decision: Discuss | Assign | Continue | InviteIn | PauseOn | Conclude | PassOn | AskOut = cast("Any", said.decision)
    if said.rejects and isinstance(decision, InviteIn | PassOn | AskOut):
        raise InvalidInputError(f"{decision.type} rejects nothing: leave `rejects` empty, or decide something else.")
    match decision:
        case InviteIn():
            return _invite(decision, view)
        case Conclude():
            concluded = _conclusion(decision, rejected_view(view, said.rejects), texts or {})
            if isinstance(view.state.stage, Concluding):
                return _rejecting(concluded, said.rejects)
            return _rejecting(ConcludeGroupDiscussion(conclusion=concluded if decision.is_written else None), said.rejects)
        case PassOn():
            return validate(Pass, {"cause": PassCause.NOTHING_TO_ADD, "content": decision.content.strip()})
        case AskOut():
            return _question(decision, view)
        case Discuss():
            return _rejecting(_discussion(decision, view), said.rejects)
        case Assign() | Continue():
            return _rejecting(_assign(_assignment(decision, view), view), said.rejects)
        case PauseOn():
            triggers = tuple(dict.fromkeys(decision.triggers))
            return _rejecting(validate(Pause, {"content": decision.content, "triggers": triggers}), said.rejects)


def private_notes(said: ShapedAnswer, view: TurnView) -> str:
    """Return the notes of an answer as JSON, with the tasks that wait for a check; empty if there are none."""
    notes = said.notes
    if isinstance(said.decision, Assign | Continue):
        given, held = _split_at_checks(_assignment(said.decision, view).tasks)
        ids = dict(zip([task.name for task in given], _ids(given, view), strict=True))
        renamed = [task.model_copy(update={"uses": [ids.get(used, used) for used in task.uses]}) for task in held]
        notes |= {"held": [task.model_dump(exclude_defaults=True) for task in renamed]} if held else {}
    return json.dumps(notes, ensure_ascii=False) if notes else ""


def held_tasks(view: TurnView) -> list[AssignedTask]:
    """Return the tasks of the agent's last assignment that wait for its check of a result."""
    for message in reversed(view.messages):
        if message.header.sender == view.me and isinstance(message.payload, SyncTaskAssignment | AsyncTaskAssignment):
            notes = find_object(view.thoughts.get(message.header.turn, "")) or {}
            return [AssignedTask.model_validate(task) for task in notes.get("held", [])]
    return []


def _assignment(decision: Assign | Continue, view: TurnView) -> Assign:
    if isinstance(decision, Assign):
        return decision
    if not (held := held_tasks(view)):
        raise InvalidInputError("CONTINUE is not possible now: no tasks wait for a check.")
    return Assign(type="ASSIGN", mode="wait", tasks=held)


def _assign(assignment: Assign, view: TurnView) -> SyncTaskAssignment | AsyncTaskAssignment:
    """Build the message of an assignment, without the tasks that wait for a check."""
    given, held = _split_at_checks(assignment.tasks)
    fields = {"content": assignment.content, "tasks": _specs(given, view)}
    if held or assignment.mode == "wait":
        return validate(SyncTaskAssignment, fields)
    return validate(AsyncTaskAssignment, fields)


def _split_at_checks(tasks: Sequence[AssignedTask]) -> tuple[list[AssignedTask], list[AssignedTask]]:
    """Return the tasks to assign now, and the tasks that use a result with `check`, also through other tasks."""
    held: list[AssignedTask] = []
    waited = {task.name for task in tasks if task.check and task.name}
    while more := [task for task in tasks if task not in held and not waited.isdisjoint(task.uses)]:
        held += more
        waited |= {task.name for task in more if task.name}
    return [task for task in tasks if task not in held], held


def fault_of_adding(said: object, view: TurnView) -> str | None:
    """Return the fault of the member that a policy's decision adds; None if there is none."""
    if not isinstance(said, StepOrAdd) or said.choice != ADD or view.offer is None:
        return None
    return _fault_of_newcomer(said.need, said.role, view.offer.invites)


def rejected_view(view: TurnView, rejects: Sequence[Reject]) -> TurnView:
    """Return the view after the rejections of a message."""
    why = {one.task: one.why for one in rejects}
    records = [
        replace(task, outcome=TaskOutcome.REJECTED, rejected=why[task.spec.task_id]) if task.spec.task_id in why else task
        for task in view.tasks
    ]
    return replace(view, tasks=tuple(records))


def files_by_id(view: TurnView) -> dict[str, Artifact]:
    """Return the files of all tasks by the ids that READ uses."""
    return {f"{task.spec.task_id}/{' '.join(file.name.split())}": file for task in view.tasks for file in task.artifacts}


def _check_legal(message: Utterance | WholeConclusion, view: TurnView) -> None:
    """Judge a message as a router does: by the machine, or under a policy, where the state is partial, by what it offers.

    A repetition is left to the router, which counts it.

    Raises:
        IoaError: It is illegal; the message contains the alternatives.
    """
    payload = _judged(message)
    if payload.type not in view.legal:
        word = next((word for word, kinds in _WORDS.items() if payload.type in kinds), payload.type)
        raise InvalidInputError(f"{word} is not possible now. Possible: {', '.join([*open_words(view), 'READ'])}.")
    state = view.state
    at = view.at or state.limits.deadline - timedelta(seconds=1)
    header = Header(
        message_id=MessageId("draft"),
        comm_id=state.comm_id,
        sender=view.me,
        state=state.phase,
        turn=state.turn,
        after=0,
        sent_at=at,
    )
    said = Said(at=at, message=validate(Message, {"header": header, "payload": payload}))
    encode(said.message)
    if view.charter.policy is None:
        step(state, said)
    else:
        _check_offered(said, payload, view)


def _check_offered(said: Said, payload: Payload, view: TurnView) -> None:
    offer, rejects = view.offer, tuple(getattr(payload, "rejects", ()) or ())
    if rejects and offer is not None:
        concludes = isinstance(payload, ConcludeGroupDiscussion | Conclusion) and (offer.concluding or offer.may_conclude)
        if not offer.lets_reject(concludes=concludes):
            raise InvalidInputError("`rejects` must be empty here: no tasks are assigned. State in `content` what is wrong.")
    state = tasks.reject(view.state, rejects, view.me)
    match payload:
        case Discussion() if isinstance(state.stage, Gathering):
            gathering.check_answer(payload)
            check_fields(offer.form if offer is not None else (), payload.fields)
            if offer is not None:
                check_writes(offer, payload)
        case Discussion() if offer is not None:
            check_discussion(offer, payload)
        case SyncTaskAssignment() | AsyncTaskAssignment():
            tasks.assign(state, said, payload)
        case Pause():
            tasks.pause(state, said, payload)
        case _:
            pass


def _judged(message: Utterance | WholeConclusion) -> Payload:
    """Return a message with a short conclusion: a longer one becomes a file when it is sent."""
    if isinstance(message, WholeConclusion):
        about = {"reason": message.reason, "artifacts": message.artifacts, "rejects": message.rejects}
        return validate(Conclusion, {"content": message.content[:100] or ".", **about})
    if isinstance(message, ConcludeGroupDiscussion) and isinstance(message.conclusion, WholeConclusion):
        return message.model_copy(update={"conclusion": _judged(message.conclusion)})
    return message


def _discussion(said: Discuss, view: TurnView) -> Discussion:
    kinds = {} if view.offer is None else {blank.name: blank.kind for blank in view.offer.form}
    in_part = said if isinstance(said, DiscussInPart) else None
    return validate(
        Discussion,
        {
            "content": said.content,
            "next_speaker": said.next_speaker or None,
            "next_speakers": tuple(said.next_speakers),
            "question": tuple([field_of(one.name, one.answer) for one in said.question]),
            "fields": {
                one.name: _value(one.value.strip(), kinds.get(one.name, "text")) for one in said.fields if one.value.strip()
            },
            "go": (in_part.go or None) if in_part else None,
            "writes": {one.name: one.text.strip() for one in in_part.writes} if in_part else {},
        },
    )


def _value(written: str, kind: FieldKind) -> FieldValue:
    """Convert a text to the kind of its field; an invalid text stays, and is rejected."""
    if kind == "yes_no":
        return _YES_NO.get(written.casefold(), written)
    return int(written) if kind == "number" and _WHOLE.fullmatch(written) else written


def _question(said: AskOut, view: TurnView) -> AskUser:
    inquiry = Inquiry(said.content.strip(), said.default.strip(), tuple(said.options), within=timedelta(minutes=said.minutes))
    return inquiry.to_user(view.at, view.state.limits.deadline)


def _invite(said: InviteIn, view: TurnView) -> Invite:
    role = said.role if isinstance(said, InviteInPart) else None
    why = _why_not_invited(view) or _fault_of_newcomer(said.need, role, () if view.offer is None else view.offer.invites)
    if why:
        raise InvalidInputError(why)
    return Invite(need=said.need, role=role, why=said.need)


def _why_not_invited(view: TurnView) -> str:
    """Return the reason why no member can be invited now; empty if one can. One invitation per turn is enough."""
    if not isinstance(view.state.stage, Discussing) or (view.offer is not None and not view.offer.invites):
        return "INVITE is not possible here."
    if len(view.state.members) >= MAX_MEMBERS:
        return f"INVITE is not possible: the group has {MAX_MEMBERS} members, which is the maximum."
    newest = view.joined.get(view.state.turn)
    return f"INVITE is not possible again in this turn: {newest} has joined." if newest else ""


def _fault_of_newcomer(need: str, role: str | None, roles: Sequence[str]) -> str | None:
    if role is not None and role not in roles:
        return f"No member can join as {role!r}; `role` is one of {', '.join(roles) or 'none'}."
    if not need.strip() or len(need) > MAX_WHY_CHARS:
        return f"`need` is one sentence of at most {MAX_WHY_CHARS:,} characters."
    return None


def _rejecting(message: M, rejects: Sequence[Reject]) -> M:
    """Add the rejections of results to a message."""
    named = {one.task: validate(RejectedTask, {"task_id": one.task, "why": one.why}) for one in rejects}
    return message.model_copy(update={"rejects": tuple(named.values())}) if named else message


def _conclusion(said: Conclude, view: TurnView, texts: Mapping[str, str]) -> WholeConclusion:
    """Build a conclusion: the text, the chosen results under their headings, and the chosen files."""
    results = {task.spec.task_id: task for task in view.tasks if task.outcome not in (None, TaskOutcome.REJECTED)}
    chosen = {part.result: part for part in said.answer_from}
    unknown = [name for name in (*chosen, *(file.of for file in said.files or ())) if name not in results]
    if unknown:
        there = f"there are {', '.join(results)}" if results else "there are no results"
        raise InvalidInputError(f"{', '.join(unknown)} is no result; {there}.")
    if isinstance(view.state.stage, Concluding) and not said.is_written:
        raise InvalidInputError("`content` is empty: write the answer to the goal.")
    parts = [said.content.strip()]
    for name, part in chosen.items():
        record = results[TaskId(name)]
        heading = part.heading.strip() or record.spec.task_desc.strip().splitlines()[0][:_ABSTRACT_CHARS]
        parts.append(f"## {heading}\n\n{texts.get(name, record.conclusion)}")
    artifacts, made = (files_of_answer(view.tasks), {}) if said.files is None else _files(said.files, view, texts)
    reason = Reason.CONCLUDED if said.goal_reached else Reason.FAILED
    return WholeConclusion(content="\n\n".join(filter(None, parts)), reason=reason, artifacts=artifacts, texts=made)


def _files(chosen: Sequence[AnswerFile], view: TurnView, texts: Mapping[str, str]) -> tuple[tuple[Artifact, ...], dict[str, str]]:
    """Return the chosen files of results, and the texts of results to save as files, by name."""
    known, artifacts, made = files_by_id(view), dict[str, Artifact](), dict[str, str]()
    for one in chosen:
        record = view.task(TaskId(one.of))
        assert record is not None
        name = " ".join(one.name.split())
        if file := known.get(f"{one.of}/{name}"):
            artifacts[file.object_name] = file
        elif not name or len(name) > _MAX_FILE_NAME_CHARS or "/" in name or not record.conclusion.strip():
            made_by = ", ".join(file.name for file in record.artifacts) or "none"
            raise InvalidInputError(f"{one.of} has no file {name!r}, and no text to save under this name; its files: {made_by}.")
        else:
            made[name] = texts.get(one.of, record.conclusion)
    return tuple(artifacts.values()), made


def _specs(given: Sequence[AssignedTask], view: TurnView) -> tuple[dict[str, Any], ...]:
    """Build the tasks; a name in `uses` becomes the id of the task of this message."""
    names = [task.name for task in given if task.name]
    for used in {used for task in given for used in task.uses}:
        if names.count(used) > 1:
            raise InvalidInputError(f"{used!r} is the name of several tasks of this message; give each its own name.")
    ids = _ids(given, view)
    known = {task.name: task_id for task, task_id in zip(given, ids, strict=True)}
    return tuple(
        {
            "task_id": task_id,
            "assignee": AgentId(task.assignee),
            "task_desc": task.task_desc,
            "task_abstract": task.task_desc[:_ABSTRACT_CHARS],
            "uses": tuple(dict.fromkeys(known.get(used, TaskId(used)) for used in task.uses)),
            "team": task.team or None,
        }
        for task_id, task in zip(ids, given, strict=True)
    )


def _ids(given: Sequence[AssignedTask], view: TurnView) -> list[TaskId]:
    """Make ids from the turn, so that a retry makes the same: of the names if they are free, otherwise of the group's count."""
    state, ids = view.state, list[TaskId]()
    named = {task_id_of_turn(state.turn, task.name) for task in given if is_token(task.name)}
    numbers = (task_id_of_turn(state.turn, str(number)) for number in count(state.tasks_given + 1))
    for task in given:
        wished = task_id_of_turn(state.turn, task.name) if is_token(task.name) else None
        if wished is not None and wished not in ids and state.task(wished) is None:
            ids.append(wished)
        else:
            ids.append(next(number for number in numbers if number not in named))
    return ids
