"""The group's log as a chat with the model: the agent's own decisions are assistant messages, all else is text of the user.

Entries are never rewritten. If the log is too long, its beginning is left out in steps of 16 entries, so that prompts keep a
beginning that the provider has in its cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ioa.agent.model.metered_calls import estimate_tokens
from ioa.agent.model.prompt_templates import below, excerpt
from ioa.agent.turn_view import TurnView
from ioa.foreign_text import defused, fenced, in_one_line
from ioa.ports.brain_types import Reply, TaskRecord
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.goals import Artifact
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pass,
    PassCause,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskQuestion,
    Thinking,
    rejects_of,
)

_KINDS = {
    "SYNC_TASK_ASSIGNMENT": "ASSIGN wait",
    "ASYNC_TASK_ASSIGNMENT": "ASSIGN go_on",
    "ASK_USER": "ASK",
    "CONCLUDE_GROUP_DISCUSSION": "CONCLUDE",
    "DECISION": "DECIDE",
}
"""Names of messages, as the answers of models call them."""
_FILLED = 0.7
"""Maximum share of the room for the log; the rest is for texts of READ, and for repairs."""
_STEP = 16
_LONGEST_SHARE = 4
"""An entry has at most this part of the room; READ returns all of it."""
_MAX_FILES = 20


class LogEntry(NamedTuple):
    """A message, or a task that ended.

    Attributes:
        name: Its number in the log, or the id of the task, as READ names it.
        number: Its number in the log.
        answer: The answer of the agent's model that became this message; empty for messages of others.
        reply: The answer to a question to the user.
    """

    name: str
    number: str
    item: Message | TaskRecord
    answer: str = ""
    reply: Reply | None = None

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
        number = f"m{len(entries) + 1}"
        match item:
            case Message(payload=InformTaskResult() as result):
                if (spec := specs.get(result.task_id)) is not None:
                    record = TaskRecord(spec, result.outcome, result.task_conclusion, result.artifacts)
                    entries.append(LogEntry(spec.task_id, number, record))
            case Message(payload=InformTaskProgress() | Thinking()):
                pass
            case Message(header=header, payload=payload):
                answer = view.thoughts.get(header.turn, "") if header.sender == view.me and _is_decided(payload) else ""
                reply = view.replies.get(header.turn) if isinstance(payload, AskUser) else None
                entries.append(LogEntry(number, number, item, answer, reply))
            case TaskRecord(spec=spec):
                entries.append(LogEntry(spec.task_id, number, item))
    return entries


def _is_decided(payload: Payload) -> bool:
    """Whether a message was decided in a turn: it is about no task, and no pass after a failure."""
    return getattr(payload, "task_id", None) is None and getattr(payload, "cause", None) in (None, PassCause.NOTHING_TO_ADD)


def transcript(view: TurnView, room: int) -> list[ChatMessage]:
    """Return the log in at most about `room` tokens: whole entries from the end, with a mark for entries that are left out."""
    entries = read_log(view)
    most_bytes = 3 * room // _LONGEST_SHARE
    shown: list[list[ChatMessage]] = []
    total = 0
    for entry in reversed(entries):
        messages = _shown(entry, most_bytes)
        total += sum(estimate_tokens(message.content) + 1 for message in messages)
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
        return [ChatMessage("user", _result(item, entry.number, most_bytes))]
    text = fenced("message", _text(item.payload, most_bytes) or "(nothing)", f"{entry.number} {_heading(item)}")
    shown = [ChatMessage("user", text)]
    if entry.answer and len(entry.answer) <= most_bytes:
        accepted = ", ".join([entry.number, *(task.task_id for task in getattr(item.payload, "tasks", ()))])
        shown = [ChatMessage("assistant", defused(entry.answer)), ChatMessage("user", f"Accepted as {accepted}.")]
    if entry.reply is not None:
        by = f"from {in_one_line(entry.reply.by)}" if entry.reply.by else "the default, since no answer came in time"
        shown.append(ChatMessage("user", fenced("answer", excerpt(entry.reply.text, most_bytes), by)))
    return shown


def _result(task: TaskRecord, number: str, most_bytes: int) -> str:
    task_id, files = task.spec.task_id, task.artifacts
    named = [file_line(f"{task_id}/{in_one_line(file.name)}", file) for file in files[:_MAX_FILES]]
    named += [f"[… {len(files) - _MAX_FILES} more]"] if len(files) > _MAX_FILES else []
    listed = f"files: {', '.join(named)}" if named else ""
    body = below(excerpt(task.conclusion, most_bytes, task_id), listed)
    return fenced("result", body or "(nothing)", f"{number} {task_id} {task.outcome} by {task.spec.assignee}")


def _heading(message: Message) -> str:
    payload, about = message.payload, ""
    match payload:
        case Discussion(next_speakers=(_, *_) as several):
            about = f" to {' '.join(several)}, in parallel"
        case Discussion(next_speaker=str() as other):
            about = f" to {other}"
        case Discussion(go=str() as node):
            about = f" going to {node}"
        case Pause(triggers=triggers):
            about = f" for {' '.join(triggers)}"
    kind = f"PASS {payload.cause}" if isinstance(payload, Pass) else _KINDS.get(payload.type, payload.type)
    return f"{kind} from {message.header.sender}{about}"


def _text(payload: Payload, most_bytes: int) -> str:
    """Return the text of a message, its content cut to `most_bytes`."""
    return below(*_parts(payload, most_bytes))


def _parts(payload: Payload, most_bytes: int) -> Iterator[str]:
    for one in rejects_of(payload):
        yield fenced("rejected", defused(one.why), one.task_id)
    if isinstance(payload, Decision):
        yield _options("choice", [payload.choice])
    yield excerpt(next((str(text) for name in ("text", "content") if (text := getattr(payload, name, ""))), ""), most_bytes)
    match payload:
        case AskUser(options=options) | TaskQuestion(options=options):
            yield _options("one of", options)
        case SyncTaskAssignment(tasks=tasks) | AsyncTaskAssignment(tasks=tasks):
            for task in tasks:
                uses = f" uses {' '.join(task.uses)}" if task.uses else ""
                team = f" team {task.team}" if task.team else ""
                yield fenced("task", excerpt(task.task_desc, most_bytes), f"{task.task_id} to {task.assignee}{uses}{team}")
        case Discussion(question=question, fields=fields, writes=writes):
            yield _options("asks for", [one.name for one in question])
            yield from (f"{name}: {in_one_line(str(value))}" for name, value in fields.items())
            yield f"writes {', '.join(map(in_one_line, writes))} on the board" if writes else ""


def _options(heading: str, options: Sequence[str]) -> str:
    return f"{heading}: {', '.join(map(in_one_line, options))}" if any(options) else ""
