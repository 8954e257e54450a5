"""AG-UI: a run is a goal, and its response is a stream of events.

The agent that has the floor is a step, each message a text message, and each task and nested team an activity. `runId` makes a run
idempotent. The last event of each entry has the entry's sequence as `id`; an interrupted stream continues after it. A question to
the user ends the run with an interrupt; the run that answers it continues the same goal.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from ioa.client.documents import OpenQuestion, open_questions
from ioa.client.questions import parse_item, question_in_words
from ioa.errors import IoaError
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.goals import MAX_LABEL_CHARS, GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.model import Model
from ioa_gateway.api.groups import FOLLOWED, LastEventId
from ioa_gateway.context import MAX_ITEMS, ApiCall, ReadLaunchCall
from ioa_gateway.conversation import ConversationMessage, build_goal_order
from ioa_gateway.open_questions import answer_schema, follow_goal, questions_to
from ioa_gateway.problems import problem_of
from ioa_gateway.request_body import JsonRoute
from ioa_gateway.sse import EVENTS, HEARTBEAT, encode_event, text_of

THREAD = "agui-thread"
"""The label that holds the thread of a run."""

Event = dict[str, Any]

router = APIRouter(route_class=JsonRoute)


class ResumeEntry(Model):
    """The answer to an interrupt of an earlier run."""

    interruptId: str  # noqa: N815 - AG-UI's name
    status: Literal["resolved", "cancelled"]
    payload: Any = None

    def answer(self, question: OpenQuestion) -> str:
        """Return the answer: the payload, or the member `answer` of it; the default of the question if the user gives none."""
        found = self.payload.get("answer") if isinstance(self.payload, dict) else self.payload
        return found if self.status == "resolved" and isinstance(found, str) else question.default


class RunInput(Model):
    """A run as AG-UI's clients ask for it (`RunAgentInput`)."""

    threadId: Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARS)]  # noqa: N815
    runId: Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARS)]  # noqa: N815
    messages: Annotated[tuple[ConversationMessage, ...], Field(max_length=1_000)]
    resume: Annotated[tuple[ResumeEntry, ...], Field(max_length=MAX_ITEMS)] | None = None


@router.post("/agui/{pool}", response_class=StreamingResponse, responses={200: FOLLOWED[200]})
async def run(call: ReadLaunchCall, pool: str, asked: RunInput, last_event_id: LastEventId = None) -> Response:
    """Launch the goal of a run, or answer the interrupts of an earlier run, and return the events."""
    if asked.resume:
        name, after = await _resume(call, asked.resume)
    else:
        goal_id = call.caller.goal_id("u", pool, asked.threadId, asked.runId)
        order = build_goal_order(asked.messages, pool).model_copy(update={"goal_id": goal_id, "labels": {THREAD: asked.threadId}})
        name, after = (await call.client.launch(call.with_caller(order))).name, 0
    events = _events(call, {"threadId": asked.threadId, "runId": asked.runId}, name, last_event_id or after)
    return StreamingResponse(events, 200, {"X-Accel-Buffering": "no"}, EVENTS)


async def _resume(call: ApiCall, answers: Sequence[ResumeEntry]) -> tuple[GoalName, int]:
    """Answer questions of a goal; return the goal, and the sequence up to which the client has seen it."""
    comm_id, _, _ = parse_item(answers[0].interruptId)
    group = await call.group(comm_id)
    asked = {question.item: question for question in open_questions(group.state)}
    for one in answers:
        if one.interruptId in asked:
            await call.client.answer(one.interruptId, one.answer(asked[one.interruptId]))
    return group.state.name, group.seq


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
                elif isinstance(one, GoalResult):
                    yield b"".join(map(encode_event, (*written.end(), _ending(one, named))))
                elif not isinstance(one, GoalStatus):
                    events = [*written.of(one)] if "seq" in one else []  # not of a progress report
                    yield b"".join(encode_event(event, seq=one["seq"] if event is events[-1] else None) for event in events)
                elif interrupts := [_interrupt(question) for question in questions_to(call.caller, one)]:
                    outcome = {"type": "interrupt", "interrupts": interrupts}
                    yield b"".join(map(encode_event, (*written.end(), {"type": "RUN_FINISHED", **named, "outcome": outcome})))
                    return
    except IoaError as error:
        described = problem_of(error)
        yield encode_event({"type": "RUN_ERROR", "message": described.detail, "code": described.type})


def _interrupt(question: OpenQuestion) -> Event:
    shown = {"reason": "question", "message": question_in_words(question), "responseSchema": answer_schema(question)}
    return {"id": question.item, **shown, "expiresAt": question.until.isoformat()}


def _ending(result: GoalResult, named: Mapping[str, str]) -> Event:
    if not result.succeeded:
        return {"type": "RUN_ERROR", "message": result.content or str(result.reason), "code": str(result.reason)}
    files = [one.model_dump(include={"name", "media_type", "size_bytes"}) for one in result.artifacts]
    return {"type": "RUN_FINISHED", **named, "result": {"content": result.content, "files": files}}


@dataclass
class RunEvents:
    """Converts the entries of a goal to events. It remembers the last event of each activity of each open group."""

    _step: str | None = None
    _activities: dict[str, dict[str, Event]] = field(default_factory=dict)

    def of(self, entry: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events of an entry."""
        comm_id, activities = entry["comm_id"], dict[str, Event]()
        if entry["depth"] == 0:
            yield from self._floor(entry["floor_holder"])
        else:
            activities[comm_id] = {name: entry[name] for name in ("comm_id", "depth", "phase", "floor")}
        if text := text_of(entry):
            message_id = f"{comm_id}-{entry['seq']}"
            yield {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant", "name": entry["sender"]}
            yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": text}
            yield {"type": "TEXT_MESSAGE_END", "messageId": message_id}
        activities |= {f"{comm_id}/{task['task_id']}": task for task in entry["tasks"]}
        known = self._activities.pop(comm_id, {})
        yield from (_activity(name, now) for name, now in activities.items() if known.get(name) != now)
        if entry["ended"] is None:
            self._activities[comm_id] = activities

    def end(self) -> Iterator[Event]:
        """Yield the end of the last step."""
        yield from self._floor(None)

    def _floor(self, holder: str | None) -> Iterator[Event]:
        if holder == self._step:
            return
        if self._step is not None:
            yield {"type": "STEP_FINISHED", "stepName": self._step}
        self._step = holder
        if holder is not None:
            yield {"type": "STEP_STARTED", "stepName": holder}


def _activity(name: str, now: Event) -> Event:
    """Describe a task or a nested group; the event replaces the previous one of the same name."""
    kind = "TASK" if "task_id" in now else "TEAM"
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": name, "activityType": kind, "content": now}
