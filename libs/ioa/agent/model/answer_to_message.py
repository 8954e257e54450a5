"""From a model's answer to the message of its agent, judged by the group's state machine before it is sent."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

from ioa.agent.groups.answer_files import files_of_answer
from ioa.agent.model.answers import (
    AnswerFile,
    AskOut,
    Assign,
    AssignedTask,
    Conclude,
    Decide,
    Discuss,
    DiscussInPart,
    InviteIn,
    InviteInPart,
    PassOn,
    PauseOn,
    Read,
    ShapedAnswer,
    Speech,
    Step,
    decision_kinds,
    ruling_on,
    speech_schema,
)
from ioa.agent.model.reading import files_by_id, whole_texts
from ioa.agent.turn_view import TurnView
from ioa.errors import InvalidInputError
from ioa.group.events import Said
from ioa.group.legality import Offer, check_discussion
from ioa.group.machine import step
from ioa.group.policy.deciding import ADD
from ioa.group.policy.forms import read_value
from ioa.group.policy.hearing import hides
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Concluding, Discussing
from ioa.ports.brain_types import Invite, TaskRecord, Utterance, WholeConclusion
from ioa.protocol.codec import encode, validate
from ioa.protocol.goals import Artifact, Reason, plain_file_name
from ioa.protocol.ids import MessageId, TaskId, is_token, task_id_of_turn
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Header,
    Message,
    Pause,
    Payload,
    RejectedTask,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.setup.charter import MAX_MEMBERS

_ABSTRACT_CHARS = 120
_MAX_LISTED_TASKS = 40
"""Maximum tasks that a rejection lists: the latest."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "DISCUSSION": ("DISCUSSION",),
    "ASSIGN": ("SYNC_TASK_ASSIGNMENT", "ASYNC_TASK_ASSIGNMENT"),
    "PAUSE": ("PAUSE",),
    "CONCLUDE": ("CONCLUDE_GROUP_DISCUSSION", "CONCLUSION"),
    "ASK": ("ASK_USER",),
    "PASS": ("PASS",),
    "DECIDE": ("DECISION",),
}
"""The decisions of a model, with the messages that each can become."""
_SEVERAL = 2
_MAX_WHY_CHARS = 1_000
Answer = Utterance | Decision | WholeConclusion | Invite


def talks(view: TurnView) -> bool:
    """Whether members discuss: if a policy requires it, or if several models or a person can know or want different things.

    Otherwise the leader only assigns tasks. A member that is not the leader speaks only if it is asked.
    """
    if view.charter.policy is not None or view.me != view.charter.owner or any(member.human for member in view.state.members):
        return True
    return sum(card.uses_model for card in view.charter.team_members if card.agent_id != view.charter.owner) >= _SEVERAL


def turn_shape(view: TurnView) -> type[ShapedAnswer]:
    """Return the schema of a turn."""
    let = view.offer or Offer()
    if let.options:
        return ruling_on(let.options, Step if let.about == "watch" else Decide)
    if view.part is None:
        return Speech if talks(view) else speech_schema(Assign, InviteIn, PauseOn, Read, Conclude)
    offered = {Assign: let.tasks, PauseOn: let.tasks, AskOut: let.asks, InviteInPart: let.invites}
    return speech_schema(DiscussInPart, *(kind for kind, is_offered in offered.items() if is_offered), Read, Conclude, PassOn)


def open_words(view: TurnView) -> list[str]:
    """Return the decisions that are possible now. One invitation per turn is enough."""
    state, shaped = view.state, decision_kinds(turn_shape(view))
    words = [word for word, kinds in _WORDS.items() if word in shaped and not set(kinds).isdisjoint(view.legal)]
    can_join = state.turn not in view.joined and len(state.members) < MAX_MEMBERS and isinstance(state.stage, Discussing)
    return [*words, *(["INVITE"] if can_join and "INVITE" in shaped and words else []), *(["READ"] if words else [])]


async def build_message(said: ShapedAnswer, view: TurnView) -> Answer:
    """Build the message of a decision, let the machine judge it, and keep the answer as the agent's thought of the turn.

    Raises:
        IoaError: The decision is not legal now; the error contains the alternatives.
    """
    decision, words = said.decision, open_words(view)
    if decision.type not in words:
        raise InvalidInputError(f"{decision.type} is not possible now. Possible: {', '.join(words)}.")
    rejected = {one.task: one.why for one in said.rejects} if isinstance(said, Speech) else {}
    message = await _build(decision, view, rejected)
    if rejected:
        if isinstance(message, Invite) or "rejects" not in type(message).model_fields:
            raise InvalidInputError(f"{decision.type} rejects nothing: leave `rejects` empty, or decide something else.")
        rejects = tuple(validate(RejectedTask, {"task_id": task_id, "why": why}) for task_id, why in rejected.items())
        message = message.model_copy(update={"rejects": rejects})
    if not isinstance(message, Invite):
        _check_legal(message, view)
    thought = said.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    view.meter.thought = json.dumps(thought, ensure_ascii=False)
    return message


async def _build(decision: object, view: TurnView, rejected: Collection[str]) -> Answer:
    match decision:
        case InviteIn(need=need):
            return Invite(need=need, role=getattr(decision, "role", None), why=need)
        case Decide():
            return _ruling(decision, view)
        case PassOn(content=content):
            return view.pass_turn(content.strip())
        case AskOut(content=content, default=default, options=options, minutes=minutes):
            return view.ask(content.strip(), options=options, default=default.strip(), within=timedelta(minutes=minutes))
        case Discuss():
            return _discussion(decision, view)
        case Assign(content=content, tasks=tasks, mode=mode):
            return view.assign(task_specs(tasks, view), wait=mode == "wait", say=content)
        case PauseOn(content=content, triggers=triggers):
            return validate(Pause, {"content": content, "triggers": tuple(dict.fromkeys(triggers))})
        case Conclude():
            conclusion = await _conclusion(decision, view, rejected)
            if isinstance(view.state.stage, Concluding):
                return conclusion
            return ConcludeGroupDiscussion(conclusion=conclusion if decision.is_written else None)
        case _:
            raise AssertionError(decision)


def _ruling(said: Decide, view: TurnView) -> Decision | Invite:
    why = said.content.strip()
    if isinstance(said, Step) and said.choice == ADD:
        return Invite(need=said.need.strip(), role=said.role, why=why or said.need.strip())
    return view.decide(said.choice, why[:_MAX_WHY_CHARS], members=getattr(said, "members", ()))


def task_specs(tasks: Sequence[AssignedTask], view: TurnView) -> list[TaskSpec]:
    """Return the specifications of tasks; a name in `uses` becomes the id of the task of this message."""
    names = [task.name for task in tasks if task.name]
    for used in {used for task in tasks for used in task.uses}:
        if names.count(used) > 1:
            raise InvalidInputError(f"{used!r} is the name of several tasks of this message; give each its own name.")
    ids = _ids(tasks, view)
    known = {task.name: task_id for task, task_id in zip(tasks, ids, strict=True)}
    return [_spec(task_id, task, [known.get(used, used) for used in task.uses]) for task, task_id in zip(tasks, ids, strict=True)]


def _check_legal(message: Utterance | Decision | WholeConclusion, view: TurnView) -> None:
    """Judge a message as a router does. Where a policy hides facts from this member, its offer decides, and the router the rest.

    Raises:
        IoaError: It is illegal.
    """
    state, policy = view.state, view.charter.policy
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
    said = Said(at=at, message=validate(Message, {"header": header, "payload": _shortened(message)}))
    encode(said.message)
    try:
        if not hides(policy):
            step(state, said, policy)
        elif isinstance(message, Discussion) and view.offer is not None:
            check_discussion(view.offer, message)
    except IllegalEventError as error:
        raise InvalidInputError(f"{error.message}{_alternatives(error.code, view)}") from None


def _alternatives(code: RejectionCode, view: TurnView) -> str:
    """Return the members or tasks that a rejected message could name."""
    if code is RejectionCode.BAD_ASSIGNEE and view.charter.policy is None:
        return f" Members in reach: {', '.join(view.reachable)}."
    if code in (RejectionCode.UNKNOWN_TASK, RejectionCode.BAD_TRIGGER, RejectionCode.BAD_REJECT):
        return f" Tasks: {', '.join([task.spec.task_id for task in view.tasks][-_MAX_LISTED_TASKS:]) or 'none yet'}."
    return ""


def _shortened(message: Utterance | Decision | WholeConclusion) -> Payload:
    """Return a message with a short conclusion: a longer one becomes a file when it is sent."""
    if isinstance(message, WholeConclusion):
        about = {"reason": message.reason, "artifacts": message.artifacts, "rejects": message.rejects}
        return validate(Conclusion, {"content": message.content[:100], **about})
    if isinstance(message, ConcludeGroupDiscussion) and isinstance(message.conclusion, WholeConclusion):
        return message.model_copy(update={"conclusion": _shortened(message.conclusion)})
    return message


def _discussion(said: Discuss, view: TurnView) -> Discussion:
    kinds = {} if view.offer is None else {blank.name: blank.kind for blank in view.offer.form}
    filled = {one.name: one.value.strip() for one in said.fields if one.value.strip()}
    return view.say(
        said.content,
        to=said.next_speakers or said.next_speaker or None,
        go=getattr(said, "go", "") or None,
        fields={name: read_value(kinds.get(name, "text"), text) for name, text in filled.items()},
        question={one.name: one.answer for one in said.question},
        writes={one.name: one.text.strip() for one in getattr(said, "writes", ())},
    )


async def _conclusion(said: Conclude, view: TurnView, rejected: Collection[str]) -> WholeConclusion:
    """Build a conclusion: the text, the chosen results under their headings, and the chosen files."""
    tasks = [replace(one, outcome=TaskOutcome.REJECTED) if one.spec.task_id in rejected else one for one in view.tasks]
    results: dict[str, TaskRecord] = {one.spec.task_id: one for one in tasks if one.outcome not in (None, TaskOutcome.REJECTED)}
    named = dict.fromkeys([*(part.result for part in said.answer_from), *(file.of for file in said.files or ())])
    if unknown := [name for name in named if name not in results]:
        there = f"there are {', '.join(results)}" if results else "there are no results"
        raise InvalidInputError(f"{', '.join(unknown)} is no result; {there}.")
    if isinstance(view.state.stage, Concluding) and not said.is_written:
        raise InvalidInputError("`content` is empty: write the answer to the goal.")
    texts = await whole_texts(view, *named)
    parts = [said.content.strip()]
    for name, heading in {part.result: part.heading.strip() for part in said.answer_from}.items():
        title = heading or results[name].spec.task_desc.strip().splitlines()[0][:_ABSTRACT_CHARS]
        parts.append(f"## {title}\n\n{texts[name]}")
    artifacts, made = files_of_answer(tasks), dict[str, str]()
    if said.files is not None:
        artifacts, made = _files(said.files, view, texts)
    reason = Reason.CONCLUDED if said.goal_reached else Reason.FAILED
    return WholeConclusion(content="\n\n".join(filter(None, parts)), reason=reason, artifacts=artifacts, texts=made)


def _files(chosen: Sequence[AnswerFile], view: TurnView, texts: Mapping[str, str]) -> tuple[tuple[Artifact, ...], dict[str, str]]:
    """Return the chosen files of results, and the texts of results to save as files, by name."""
    known, artifacts, made = files_by_id(view), dict[str, Artifact](), dict[str, str]()
    for one in chosen:
        name = " ".join(one.name.split())
        if file := known.get(f"{one.of}/{name}"):
            artifacts[file.object_name] = file
        elif name and texts[one.of].strip():
            made[plain_file_name(name)] = texts[one.of]
        else:
            files = ", ".join(key for key in known if key.startswith(f"{one.of}/")) or "none"
            raise InvalidInputError(f"{one.of} has no file {name!r}, and no text to save under this name; its files: {files}.")
    return tuple(artifacts.values()), made


def _spec(task_id: TaskId, task: AssignedTask, uses: Sequence[str]) -> TaskSpec:
    about = {"assignee": task.assignee, "task_desc": task.task_desc, "task_abstract": task.task_desc[:_ABSTRACT_CHARS]}
    return validate(TaskSpec, {"task_id": task_id, **about, "uses": tuple(dict.fromkeys(uses)), "team": task.team or None})


def _ids(tasks: Sequence[AssignedTask], view: TurnView) -> list[TaskId]:
    """Make ids from the turn, so that a retry makes the same: of the names if they are free, otherwise of the group's count."""
    state, ids = view.state, list[TaskId]()
    numbers = (task_id_of_turn(state.turn, str(number)) for number in count(state.tasks_given + 1))
    for task in tasks:
        wished = task_id_of_turn(state.turn, task.name) if is_token(task.name) else None
        if wished is None or wished in ids or state.task(wished) is not None:
            wished = next(number for number in numbers if number not in ids)
        ids.append(wished)
    return ids
