"""The group's log as a chat with the model: the agent's own decisions are assistant messages, all else is text of the user.

Entries are never rewritten. If the log is too long, its beginning is left out in steps of 16 entries, so that prompts keep a
beginning that the provider has in its cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ioa.agent.model.budget import tokens_of
from ioa.agent.model.prompts import cut, excerpt
from ioa.agent.turn_view import TurnView
from ioa.fences import defused, fenced, in_one_line
from ioa.json_text import find_object
from ioa.ports.brain import Reply, TaskRecord
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.goals import Artifact
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pass,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskQuestion,
    TaskSpec,
    Thinking,
    rejects_of,
)

_FILLED = 0.7
"""Maximum share of the room for the log; the rest is for texts of READ, and for repairs."""
_STEP = 16
_LONGEST_SHARE = 4
"""An entry has at most this part of the room; READ returns all of it."""
_MAX_FILES = 20


class LogEntry(NamedTuple):
    """An entry of the log.

    Attributes:
        name: Its number, as READ names it.
        spec: The task that ended with it; None for other entries.
        notes: The agent's private notes, if the entry is its own decision.
        reply: The answer to a question to the user.
    """

    name: str
    item: Message | TaskRecord
    spec: TaskSpec | None = None
    is_own: bool = False
    notes: str = ""
    reply: Reply | None = None

    @property
    def read_name(self) -> str:
        """The name by which READ returns its text."""
        return self.name if self.spec is None else self.spec.task_id

    @property
    def text(self) -> str:
        """Its whole text."""
        item = self.item
        return item.conclusion if isinstance(item, TaskRecord) else _text(item.payload, len(item.payload.model_dump_json()))


def read_log(view: TurnView) -> list[LogEntry]:
    """Return the entries of a group's log, without progress reports."""
    entries: list[LogEntry] = []
    specs = {task.spec.task_id: task.spec for task in view.tasks}
    for item in view.log:
        name = f"m{len(entries) + 1}"
        if isinstance(item, TaskRecord):
            entries.append(LogEntry(name, item, item.spec))
        elif isinstance(item.payload, InformTaskResult):
            if (spec := specs.get(item.payload.task_id)) is not None:
                entries.append(LogEntry(name, item, spec))
        elif not isinstance(item.payload, InformTaskProgress | Thinking):
            turn, is_own = item.header.turn, item.header.sender == view.me and not isinstance(item.payload, TaskQuestion)
            reply = view.replies.get(turn) if isinstance(item.payload, AskUser) else None
            entries.append(LogEntry(name, item, None, is_own, view.thoughts.get(turn, "") if is_own else "", reply))
    return entries


def transcript(view: TurnView, room: int) -> list[ChatMessage]:
    """Return the log in at most about `room` tokens: whole entries from the end, with a mark for entries that are left out."""
    entries = read_log(view)
    most_bytes = 3 * room // _LONGEST_SHARE
    shown: list[list[ChatMessage]] = []
    total = 0
    for entry in reversed(entries):
        messages = _shown(entry, most_bytes)
        total += sum(tokens_of(message.content) + 1 for message in messages)
        if total > room * _FILLED:
            break
        shown.append(messages)
    left_out = len(entries) - len(shown)
    start = min(-(-left_out // _STEP) * _STEP, len(entries))
    if len(entries) - start < len(shown) // 2:  # a few long entries: a step would leave out too much
        start = left_out
    mark = [ChatMessage("user", f"[… m1 to m{start} are left out: READ them by these names …]")] if start else []
    return joined([*mark, *(message for messages in reversed(shown[: len(entries) - start]) for message in messages)])


def joined(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Join messages of the user that follow each other: roles alternate."""
    chat: list[ChatMessage] = []
    for message in messages:
        if chat and chat[-1].role == message.role == "user":
            message = ChatMessage("user", f"{chat.pop().content}\n{message.content}")
        chat.append(message)
    return chat


def file_line(name: str, file: Artifact) -> str:
    """Return a file with its media type and size."""
    return f"{name} ({in_one_line(file.media_type)}, {file.size_bytes:,} bytes)"


def _shown(entry: LogEntry, most_bytes: int) -> list[ChatMessage]:
    item = entry.item
    if isinstance(item, TaskRecord):
        return [_result(item.spec, entry.name, str(item.outcome), item.conclusion, item.artifacts, most_bytes)]
    payload = item.payload
    if isinstance(payload, InformTaskResult) and entry.spec is not None:
        return [_result(entry.spec, entry.name, payload.outcome, payload.task_conclusion, payload.artifacts, most_bytes)]
    reply = []
    if entry.reply is not None:
        by = f"from {in_one_line(entry.reply.by)}" if entry.reply.by else "the default, since no answer came in time"
        reply = [ChatMessage("user", fenced("answer", excerpt(entry.reply.text, most_bytes), by))]
    if entry.is_own:
        notes = find_object(entry.notes) or {}
        rejects = [{"task": one.task_id, "why": one.why} for one in rejects_of(payload)]
        said = {**notes, **_present_fields(rejects=rejects), "decision": _decision(payload, most_bytes)}
        ids = [task.task_id for task in payload.tasks] if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment) else []
        own = ChatMessage("assistant", defused(json.dumps(said, ensure_ascii=False)))
        return [own, ChatMessage("user", f"Accepted as {', '.join([entry.name, *ids])}."), *reply]
    text = fenced("message", _text(payload, most_bytes) or "(nothing)", f"{entry.name} {_heading(item)}")
    return [ChatMessage("user", text), *reply]


def _result(spec: TaskSpec, name: str, outcome: str, text: str, files: Sequence[Artifact], most_bytes: int) -> ChatMessage:
    named = [file_line(f"{spec.task_id}/{in_one_line(file.name)}", file) for file in files[:_MAX_FILES]]
    more = [f"[… {len(files) - _MAX_FILES} more]"] if len(files) > _MAX_FILES else []
    listed = f"files: {', '.join([*named, *more])}" if named else ""
    body = "\n".join(filter(None, (excerpt(text, most_bytes, spec.task_id), listed)))
    return ChatMessage("user", fenced("result", body or "(nothing)", f"{name} {spec.task_id} {outcome} by {spec.assignee}"))


def _heading(message: Message) -> str:
    payload, sender = message.payload, message.header.sender
    match payload:
        case Discussion(next_speakers=(_, *_) as several):
            return f"DISCUSSION from {sender} to {' '.join(several)}, in parallel"
        case Decision():
            return f"DECIDE from {sender}"
        case Discussion(next_speaker=other, go=go):
            return f"DISCUSSION from {sender}" + (f" to {other}" if other else f" going to {go}" if go else "")
        case SyncTaskAssignment() | AsyncTaskAssignment():
            return f"ASSIGN {'wait' if isinstance(payload, SyncTaskAssignment) else 'go_on'} from {sender}"
        case AskUser():
            return f"ASK from {sender}"
        case Pause(triggers=triggers):
            return f"PAUSE from {sender} for {' '.join(triggers)}"
        case ConcludeGroupDiscussion():
            return f"CONCLUDE from {sender}"
        case Pass(cause=cause):
            return f"PASS {cause} from {sender}"
        case _:
            return f"{payload.type} from {sender}"


def _text(payload: Payload, most_bytes: int) -> str:
    """Return the text of a message, its content cut to `most_bytes`."""
    return "\n".join(filter(None, _parts(payload, most_bytes)))


def _parts(payload: Payload, most_bytes: int) -> Iterator[str]:
    for one in rejects_of(payload):
        yield fenced("rejected", defused(one.why), one.task_id)
    match payload:
        case AskUser(text=text, options=options) | TaskQuestion(text=text, options=options):
            yield excerpt(text, most_bytes)
            yield _options("one of", options)
        case Decision(choice=choice):
            yield _options("choice", [choice])
            yield excerpt(payload.content, most_bytes)
        case InformTaskResult(task_conclusion=text):
            yield excerpt(text, most_bytes)
        case SyncTaskAssignment(tasks=tasks) | AsyncTaskAssignment(tasks=tasks):
            yield excerpt(payload.content, most_bytes)
            for task in tasks:
                uses = f" uses {' '.join(task.uses)}" if task.uses else ""
                team = f" team {task.team}" if task.team else ""
                yield fenced("task", excerpt(task.task_desc, most_bytes), f"{task.task_id} to {task.assignee}{uses}{team}")
        case Discussion(question=question, fields=fields, writes=writes):
            yield excerpt(payload.content, most_bytes)
            yield _options("asks for", [one.name for one in question])
            yield from (f"{name}: {in_one_line(str(value))}" for name, value in fields.items())
            yield f"writes {', '.join(map(in_one_line, writes))} on the board" if writes else ""
        case _:
            yield excerpt(getattr(payload, "content", ""), most_bytes)


def _options(heading: str, options: Sequence[str]) -> str:
    return f"{heading}: {', '.join(map(in_one_line, options))}" if any(options) else ""


def _decision(payload: Payload, most_bytes: int) -> Mapping[str, Any]:
    """Return the decision that the agent's model took, as its answer contained it."""
    content = cut(getattr(payload, "content", ""), most_bytes)
    match payload:
        case SyncTaskAssignment(tasks=tasks) | AsyncTaskAssignment(tasks=tasks):
            given = [
                {
                    "name": task.task_id.partition("-")[2],
                    "assignee": task.assignee,
                    "task_desc": cut(task.task_desc, most_bytes),
                    **_present_fields(uses=list(task.uses), team=task.team),
                }
                for task in tasks
            ]
            mode = "wait" if isinstance(payload, SyncTaskAssignment) else "go_on"
            return {"type": "ASSIGN", "mode": mode, **_present_fields(content=content), "tasks": given}
        case Discussion():
            asked = [{"name": one.name, "answer": "|".join(one.options) or one.kind.replace("_", "/")} for one in payload.question]
            fields = [{"name": name, "value": str(value)} for name, value in payload.fields.items()]
            writes = [{"name": name, "text": cut(text, most_bytes)} for name, text in payload.writes.items()]
            named = _present_fields(next_speaker=payload.next_speaker, next_speakers=list(payload.next_speakers), go=payload.go)
            return {
                "type": "DISCUSSION",
                "content": content,
                **named,
                **_present_fields(question=asked, fields=fields, writes=writes),
            }
        case Pause(triggers=triggers):
            return {"type": "PAUSE", **_present_fields(content=content), "triggers": list(triggers)}
        case AskUser(text=text, options=options):
            return {"type": "ASK", "content": cut(text, most_bytes), **_present_fields(options=list(options))}
        case Decision(choice=choice):
            return {"type": "DECIDE", "choice": choice, **_present_fields(content=content)}
        case Pass():
            return {"type": "PASS", **_present_fields(content=content)}
        case ConcludeGroupDiscussion():
            return {"type": "CONCLUDE"}
        case _:
            return {"type": payload.type, **_present_fields(content=content)}


def _present_fields(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value}
