"""AG-UI: a run is a goal, and its response is a stream of events.

The agent that has the floor is a step, each message a text message, and each task and nested team an activity. `runId` makes a run
idempotent. The last event of each entry has the entry's sequence as `id`; an interrupted stream continues after it. A question to
the user ends the run with an interrupt; the run that answers it continues the same goal.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from ioa.client.documents import OpenQuestion
from ioa.client.shown_questions import parse_item, question_in_words
from ioa.errors import IoaError
from ioa.protocol.goals import MAX_LABEL_CHARS, GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.model import Model
from ioa_gateway.api.group_routes import FOLLOWED, LastEventId
from ioa_gateway.context import MAX_ITEMS, ApiCall, ReadLaunchCall
from ioa_gateway.goal_conversation import ConversationMessage, build_goal_order
from ioa_gateway.open_questions import CallerStatus, answer_schema, follow_goal
from ioa_gateway.problems import problem_of
from ioa_gateway.sse_encoding import EVENTS, HEARTBEAT, encode_event, text_of

Event = dict[str, Any]

router = APIRouter()


class ResumeEntry(Model):
    """The answer to an interrupt of an earlier run: the payload or its member `answer`. Default: the default of the question."""

    interruptId: str  # noqa: N815 - AG-UI's name
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunInput(Model):
    """A run as AG-UI's clients ask for it (`RunAgentInput`)."""

    threadId: Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARS)]  # noqa: N815
    runId: Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARS)]  # noqa: N815
    messages: Annotated[tuple[ConversationMessage, ...], Field(max_length=1_000)]
    resume: Annotated[tuple[ResumeEntry, ...], Field(max_length=MAX_ITEMS)] | None = None


@router.post("/agui/{pool}", response_class=StreamingResponse, responses={200: FOLLOWED[200]})
async def run(call: ReadLaunchCall, pool: str, asked: RunInput, last_event_id: LastEventId = None) -> Response:
    """Launch the goal of a run, or answer the interrupts of an earlier run, and return the events."""
    named = {"threadId": asked.threadId, "runId": asked.runId}
    if asked.resume:
        name, after = await _resume(call, asked.resume)
    else:
        goal_id = call.caller.goal_id("u", pool, asked.threadId, asked.runId)
        order = build_goal_order(asked.messages, pool, goal_id=goal_id, labels={"agui-thread": asked.threadId})
        name, after = (await call.client.launch(call.with_caller(order))).name, 0
    return StreamingResponse(_events(call, named, name, last_event_id or after), 200, {"X-Accel-Buffering": "no"}, EVENTS)


async def _resume(call: ApiCall, answers: Sequence[ResumeEntry]) -> tuple[GoalName, int]:
    """Answer questions of a goal; return the goal, and the sequence up to which the client has seen it."""
    parts = [(*one.interruptId.rpartition("@")[::2], one) for one in answers]
    name = (await call.group(parse_item(parts[0][0])[0])).state.name
    defaults = {question.item: question.default for question in await call.client.waiting(name)}
    for item, _, one in parts:
        if item in defaults:
            given = one.payload.get("answer") if isinstance(one.payload, dict) else one.payload
            answer = given if one.status == "resolved" and isinstance(given, str) else defaults[item]
            await call.client.answer(item, answer)
    return name, min(int(seq) if seq.isdecimal() else 0 for _, seq, _ in parts)


async def _events(call: ApiCall, named: Mapping[str, str], name: GoalName, after: int) -> AsyncGenerator[bytes, None]:
    """Yield the events of a run: those after a sequence, until its goal ends or asks its user."""
    written = RunEvents()
    yield encode_event({"type": "RUN_STARTED", **named})
    yield encode_event({"type": "STATE_SNAPSHOT", "snapshot": {"goal_id": name.goal_id, "comm_id": name.comm_id}})
    try:
        async with aclosing(follow_goal(call, name, after)) as news:
            async for one in news:
                if one is None:
                    yield HEARTBEAT
                elif isinstance(one, GoalResult) or (isinstance(one, CallerStatus) and one.questions):
                    yield b"".join(map(encode_event, (*written.step(None), _ending(one, named, after))))
                    return
                elif isinstance(one, Mapping) and "seq" in one:  # not a progress report
                    events, after = [*written.of(one)], one["seq"]
                    yield b"".join(encode_event(event, seq=one["seq"] if event is events[-1] else None) for event in events)
    except IoaError as error:
        described = problem_of(error)
        yield encode_event({"type": "RUN_ERROR", "message": described.detail, "code": described.type})


def _ending(last: CallerStatus | GoalResult, named: Mapping[str, str], seq: int) -> Event:
    """Return the last event of a run: the result, the error, or the questions to the user. `seq`: of the last sent entry."""
    if isinstance(last, CallerStatus):
        outcome = {"type": "interrupt", "interrupts": [_interrupt(one, seq) for one in last.questions]}
        return {"type": "RUN_FINISHED", **named, "outcome": outcome}
    if not last.succeeded:
        return {"type": "RUN_ERROR", "message": last.content or str(last.reason), "code": str(last.reason)}
    files = [one.model_dump(include={"name", "media_type", "size_bytes"}) for one in last.artifacts]
    return {"type": "RUN_FINISHED", **named, "result": {"content": last.content, "files": files}}


def _interrupt(question: OpenQuestion, seq: int) -> Event:
    shown = {"reason": "question", "message": question_in_words(question), "responseSchema": answer_schema(question)}
    return {"id": f"{question.item}@{seq}", **shown, "expiresAt": question.until.isoformat()}


class RunEvents:
    """Converts the entries of a goal to events. It remembers the last event of each activity of each open group."""

    def __init__(self) -> None:
        self._step: str | None = None
        self._activities: dict[str, dict[str, Event]] = {}

    def of(self, entry: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events of an entry."""
        comm_id, activities = entry["comm_id"], dict[str, Event]()
        if entry["depth"] == 0:
            yield from self.step(entry["floor_holder"])
        else:
            activities[comm_id] = {name: entry[name] for name in ("comm_id", "depth", "phase", "floor")}
        if text := text_of(entry):
            message_id = f"{comm_id}-{entry['seq']}"
            yield {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant", "name": entry["sender"]}
            yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": text}
            yield {"type": "TEXT_MESSAGE_END", "messageId": message_id}
        activities |= {f"{comm_id}/{task['task_id']}": task for task in entry["tasks"]}
        known = self._activities.pop(comm_id, {})
        for name, now in activities.items():
            if known.get(name) != now:  # the event replaces the previous one of the same name
                kind = "TASK" if "task_id" in now else "TEAM"
                yield {"type": "ACTIVITY_SNAPSHOT", "messageId": name, "activityType": kind, "content": now}
        if entry["ended"] is None:
            self._activities[comm_id] = activities

    def step(self, holder: str | None) -> Iterator[Event]:
        """Yield the end of the last step and the beginning of the next one, if the floor has another holder."""
        if self._step not in (None, holder):
            yield {"type": "STEP_FINISHED", "stepName": self._step}
        if holder not in (None, self._step):
            yield {"type": "STEP_STARTED", "stepName": holder}
        self._step = holder
