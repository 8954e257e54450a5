"""The log of a group as a model reads it: lines that are never rewritten, and how they share a room that is too small for all.

While there is room every line stands whole. A longer log is cut in steps: filled to a part of the room, and left as it is until
the room is full again, so that what a provider has read stays the beginning of the next prompt. A cut is a fold over the lines:
nothing is stored, and a process that starts anew cuts as the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ioa.agent.model.budget import tokens_of
from ioa.agent.model.prompts import cut
from ioa.fences import defused, fenced, in_one_line
from ioa.ports.brain import GroupView, Reply, TaskRecord
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId
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
    SyncTaskAssignment,
    TaskQuestion,
    TaskSpec,
    Thinking,
    rejects_of,
)

FILLED = 0.7
"""How much of the room a cut leaves filled."""
WHOLE_LINES = 8
"""How many of the last lines a cut leaves whole, while they fit."""
_LEAST_LINE_TOKENS = 100
"""A line that would get less is left out, with those before it."""
_MAX_FILES = 20


@dataclass(frozen=True)
class LogLine:
    """One line of the log; `opening` and `closing` are never cut.

    Attributes:
        what: What READ calls its text.
        gives: The tasks it gives out.
        ends: The task whose end it is.
    """

    what: str
    opening: str
    body: str
    closing: str
    gives: tuple[TaskId, ...] = ()
    ends: TaskId | None = None

    def shown(self, most_tokens: int | None = None) -> str:
        """Return the line, its text cut if it would be longer."""
        around = len(f"{self.opening}\n\n{self.closing}".encode("utf-8", "replace"))
        body = self.body if most_tokens is None else cut(self.body, max(0, most_tokens * 3 - around), self.what)
        return "\n".join(filter(None, (self.opening, body, self.closing)))


def lines_of(view: GroupView, thoughts: Mapping[int, str]) -> list[LogLine]:
    """All lines of a group's log; `thoughts` are the reader's own, by turn."""
    lines: list[LogLine] = []
    for item in view.log:
        name = f"m{len(lines) + 1}"
        if isinstance(item, TaskRecord):
            lines.append(_result(name, item.spec, str(item.outcome), item.conclusion, item.artifacts))
        elif isinstance(item.payload, InformTaskResult):
            payload, task = item.payload, view.task(item.payload.task_id)
            if task is not None:
                lines.append(_result(name, task.spec, payload.outcome, payload.task_conclusion, payload.artifacts))
        elif not isinstance(item.payload, InformTaskProgress):
            mine = item.header.sender == view.me
            line = _message(name, item, thoughts.get(item.header.turn, "") if mine else "")
            reply = view.replies.get(item.header.turn) if isinstance(item.payload, AskUser) else None
            lines.append(line if reply is None else _with_reply(line, reply))
    return lines


def _with_reply(line: LogLine, reply: Reply) -> LogLine:
    """Put the answer behind the question."""
    by = f"from {in_one_line(reply.by)}" if reply.by else "that stands, since nobody answered in time"
    return replace(line, closing="\n".join(filter(None, (line.closing, fenced("answer", defused(reply.text), by)))))


def text_of(item: Message) -> str:
    """Return what a message says, as its line shows it and READ counts it."""
    payload = item.payload
    rejected = [fenced("rejected", defused(one.why), one.task_id) for one in rejects_of(payload)]
    match payload:
        case SyncTaskAssignment() | AsyncTaskAssignment():
            return "\n".join(filter(None, [*rejected, defused(payload.content), *map(_task, payload.tasks)]))
        case InformTaskResult():
            return defused(payload.task_conclusion)
        case Thinking():
            return ""
        case AskUser(text=text, options=options) | TaskQuestion(text=text, options=options):
            return "\n".join(filter(None, [defused(text), *_choices("one of", options)]))
        case Decision(choice=choice, content=content):
            return "\n".join(filter(None, [*_choices("choice", [choice]), defused(content)]))
        case Discussion(question=question, fields=fields, writes=writes) if question or fields or writes:
            asks = [f"asks for {', '.join(one.name for one in question)}"] if question else []
            told = [f"{name}: {in_one_line(str(value))}" for name, value in fields.items()]
            on_board = [f"writes {', '.join(map(in_one_line, writes))} on the board"] if writes else []
            return "\n".join(filter(None, [*rejected, defused(payload.content), *asks, *told, *on_board]))
        case _:
            return "\n".join(filter(None, [*rejected, defused(payload.content)]))


def _choices(said: str, options: Sequence[str]) -> list[str]:
    """Tell what may be chosen, or was: others wrote it, so that it stands among the data, and not in a tag beside who says it."""
    return [f"{said}: {', '.join(map(in_one_line, options))}"] if any(options) else []


def file_lines(task_id: TaskId, files: Sequence[Artifact]) -> str:
    """Name the files of a task by what READ calls them."""
    named = [described(f"{task_id}/{in_one_line(file.name)}", file) for file in files[:_MAX_FILES]]
    more = [f"[… {len(files) - _MAX_FILES} more]"] if len(files) > _MAX_FILES else []
    return f"files: {', '.join([*named, *more])}" if named else ""


def described(name: str, file: Artifact) -> str:
    """Return a file with its kind and size."""
    return f"{name} ({in_one_line(file.media_type)}, {file.size_bytes:,} bytes)"


def fitting(lines: Sequence[LogLine], room: int) -> str:
    """Return the lines in at most about `room` tokens: whole while they fit, else cut in steps (see above)."""
    sizes = [tokens_of(line.shown()) + 1 for line in lines]
    shown: list[int] = []  # how many tokens each line so far has in the prompt; with 0 it is left out
    total = 0
    for at, size in enumerate(sizes):
        shown.append(size)
        total += size
        if total > room:
            shown = _levels(lines[: at + 1], sizes[: at + 1], room)
            total = sum(shown)
    return "\n".join(_told(lines, shown, sizes))


def _told(lines: Sequence[LogLine], shown: Sequence[int], sizes: Sequence[int]) -> Iterator[str]:
    """Return the lines as they are shown, with a mark wherever some are left out."""
    first_left_out: int | None = None
    for number, (line, most, size) in enumerate(zip(lines, shown, sizes, strict=True), start=1):
        if not most:
            first_left_out = first_left_out or number
            continue
        if first_left_out is not None:
            yield f"[… m{first_left_out} to m{number - 1} are left out: READ them by these names …]"
            first_left_out = None
        yield line.shown(None if most >= size else most)


def _levels(lines: Sequence[LogLine], sizes: Sequence[int], room: int) -> list[int]:
    """How many tokens each line gets when the room is full: open tasks and the last lines whole, the others up to one level."""
    target = int(room * FILLED)
    still_open = {task_id for line in lines for task_id in line.gives} - {line.ends for line in lines}
    last = len(lines) - WHOLE_LINES
    kept = {at for at, line in enumerate(lines) if at >= last or not still_open.isdisjoint(line.gives)}
    got = _shared({at: min(sizes[at], room // 2) for at in sorted(kept)}, target)
    left = target - sum(got.values())
    got |= _shared({at: sizes[at] for at in range(len(lines)) if at not in kept}, left)
    return [got.get(at, 0) for at in range(len(lines))]


def _shared(sizes: Mapping[int, int], room: int) -> dict[int, int]:
    """Return what lines get of a room: all up to one level. Those that are too old to get enough for a line are left out."""
    told: list[int] = []
    least = 0
    for at in reversed(sizes):
        least += min(sizes[at], _LEAST_LINE_TOKENS)
        if told and least > room:
            break
        told.append(at)
    level = _level([sizes[at] for at in told], max(0, room))
    return {at: min(sizes[at], level) for at in told}


def _level(sizes: Sequence[int], room: int) -> int:
    """Return the level L at which the sizes, each at most L, fill the room."""
    left = room
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _message(name: str, message: Message, thought: str) -> LogLine:
    payload, sender = message.payload, message.header.sender
    gives: tuple[TaskId, ...] = ()
    match payload:
        case Discussion(next_speakers=(_, *_) as several):
            kind = f"DISCUSSION from {sender} to {' '.join(several)}, side by side"
        case Decision():
            kind = f"DECIDE from {sender}"
        case Discussion(next_speaker=other, go=go):
            kind = f"DISCUSSION from {sender}" + (f" to {other}" if other else f" going to {go}" if go else "")
        case SyncTaskAssignment(tasks=tasks) | AsyncTaskAssignment(tasks=tasks):
            kind = f"ASSIGN {'wait' if isinstance(payload, SyncTaskAssignment) else 'go_on'} from {sender}"
            gives = tuple(task.task_id for task in tasks)
        case AskUser():
            kind = f"ASK from {sender}"
        case Pause(triggers=triggers):
            kind = f"PAUSE from {sender} for {' '.join(triggers)}"
        case ConcludeGroupDiscussion():
            kind = f"CONCLUDE from {sender}"
        case Pass(cause=cause):
            kind = f"PASS {cause} from {sender}"
        case _:
            kind = f"{payload.type} from {sender}"
    opening = "\n".join(filter(None, (f"<message {name} {kind}>", fenced("thought", defused(thought)))))
    return LogLine(name, opening, text_of(message), "</message>", gives)


def _result(name: str, spec: TaskSpec, outcome: str, text: str, files: Sequence[Artifact]) -> LogLine:
    closing = "\n".join(filter(None, (file_lines(spec.task_id, files), "</result>")))
    opening = f"<result {name} {spec.task_id} {outcome} by {spec.assignee}>"
    return LogLine(spec.task_id, opening, defused(text), closing, ends=spec.task_id)


def _task(spec: TaskSpec) -> str:
    uses = f" uses {' '.join(spec.uses)}" if spec.uses else ""
    team = f" team {spec.team}" if spec.team else ""
    return fenced("task", defused(spec.task_desc), f"{spec.task_id} to {spec.assignee}{uses}{team}")
