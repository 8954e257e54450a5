"""Converts goals to tasks and events of A2A, from the documents that the command line and HTTP return. No I/O but `last_page`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from a2a.helpers import new_data_part
from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import ParseError

from ioa.client.client import END, Client
from ioa.client.documents import told
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.goals import Goal, GoalResult, Reason
from ioa.protocol.ids import GoalName
from ioa_gateway.a2a.messages import CONTEXT, MESSAGE, own_id
from ioa_gateway.caller import Caller
from ioa_gateway.open_questions import Document, awaited_turns, questions_in_words, questions_to
from ioa_gateway.pagination import EntryPage, page_of
from ioa_gateway.sse import text_of

_HISTORY = 500
"""Maximum entries of a task, the last ones."""

_CONCLUSION = "conclusion"
"""The id and the name of the artifact that contains the answer."""

_ENDED = {
    Reason.CONCLUDED: TaskState.TASK_STATE_COMPLETED,
    Reason.CANCELLED: TaskState.TASK_STATE_CANCELED,
    Reason.NO_AGENT: TaskState.TASK_STATE_REJECTED,
}
_FAILED, ASKING = TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_INPUT_REQUIRED
TERMINAL = frozenset({*_ENDED.values(), _FAILED})

Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent


def a2a_context(goal: Goal) -> str:
    """Return the A2A context of a goal; the goal's id if it was not launched by A2A."""
    return goal.labels.get(CONTEXT, goal.goal_id)


async def last_page(client: Client, name: GoalName) -> EntryPage:
    """Read the last entries of a goal."""
    return await page_of(client, name, before=END, limit=_HISTORY)


def task_state(status: GoalStatus, caller: Caller) -> TaskState:
    """Return the state of a goal's task. It depends on the caller whether the task needs input."""
    if status.result is not None:
        return _ENDED.get(status.result.reason, _FAILED)
    if awaited_turns(caller, status) or questions_to(caller, status):
        return ASKING
    return TaskState.TASK_STATE_SUBMITTED if status.standing is None else TaskState.TASK_STATE_WORKING


@dataclass
class TaskWriter:
    """Converts one goal to a task and its events, with each file once.

    Attributes:
        goal: The goal.
        base_url: The gateway's URL, for the URLs of files.
        caller: The caller, whose questions are part of the task.
    """

    goal: Goal
    base_url: str
    caller: Caller
    _files: set[str] = field(default_factory=set)
    _at: str = ""

    def submitted(self, result: GoalResult | None = None) -> Task:
        """Return the task of a goal without a record: not yet accepted, or rejected with a result."""
        return Task(
            id=self.goal.goal_id,
            context_id=a2a_context(self.goal),
            status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED) if result is None else self._ended(result),
            history=[self._goal_message()],
        )

    def task(self, status: GoalStatus, page: EntryPage) -> Task:
        """Return the task with the messages and files of these entries."""
        result, entries = status.result, page.documents
        last: Document = entries[-1] if entries else {"at": status.record.accepted_at.isoformat(), "seq": 0}
        self._at, metadata = last["at"], {"ioa.seq": str(last["seq"])}
        if result is not None:
            metadata["ioa.reason"] = result.reason
        ids = [own_id(one.entry.event) for one in page.entries]
        files = [file for entry in entries for file in self._new_files(entry)]
        return Task(
            id=self.goal.goal_id,
            context_id=a2a_context(self.goal),
            status=self._open(status, self._at) if result is None else self._ended(result),
            history=[self._goal_message(), *filter(None, map(self._message, entries, ids))],
            artifacts=[*files, *self._conclusion(result)],
            metadata=metadata,
        )

    def updates(self, entry: Document) -> Iterator[Update]:
        """Yield the events of an entry, or of a progress report, which has no sequence."""
        if "seq" not in entry:
            yield self._progress(entry)
            return
        self._at = entry["at"]
        working = _status(TaskState.TASK_STATE_WORKING, entry["at"], self._message(entry))
        yield TaskStatusUpdateEvent(**self._ids(), status=working, metadata=_metadata(entry))
        for file in self._new_files(entry):
            yield TaskArtifactUpdateEvent(**self._ids(), artifact=file, last_chunk=True, metadata=_metadata(entry))

    def asking(self, status: GoalStatus) -> Update:
        """Return the event of a goal that asks the caller something."""
        return TaskStatusUpdateEvent(**self._ids(), status=self._open(status, self._at))

    def _progress(self, report: Document) -> Update:
        body = report["body"]
        share = "" if body["fraction"] is None else f"{body['fraction']:.0%}"
        text = " ".join(filter(None, (share, body["content"])))
        message = self._new_message(f"{body['task_id']}-{body['number']}", Role.ROLE_AGENT, [Part(text=text)]) if text else None
        metadata = {"ioa.sender": report["sender"], "ioa.fraction": body["fraction"]}
        return TaskStatusUpdateEvent(
            **self._ids(), status=_status(TaskState.TASK_STATE_WORKING, report["at"], message), metadata=metadata
        )

    def end(self, result: GoalResult) -> Iterator[Update]:
        """Yield the last events: the answer and the final status."""
        for artifact in self._conclusion(result):
            yield TaskArtifactUpdateEvent(**self._ids(), artifact=artifact, last_chunk=True)
        yield TaskStatusUpdateEvent(**self._ids(), status=self._ended(result), metadata={"ioa.reason": result.reason})

    def _new_files(self, entry: Document) -> Iterator[Artifact]:
        body = entry["body"]
        given = body.get("artifacts") or (body.get("conclusion") or {}).get("artifacts") or ()
        for number, file in enumerate(given):
            digest, name = file["sha256"], file["name"]
            if digest not in self._files:
                self._files.add(digest)
                url = f"{self.base_url}/v1/artifacts/{self.goal.goal_id}/{entry['seq']}/{number}/{quote(name, safe='')}"
                part = Part(url=url, filename=name, media_type=file["media_type"])
                metadata = {"ioa.sha256": digest, "ioa.size_bytes": file["size_bytes"], **_metadata(entry)}
                yield Artifact(artifact_id=digest, name=name, parts=[part], metadata=metadata)

    def _ids(self) -> dict[str, Any]:
        return {"task_id": self.goal.goal_id, "context_id": a2a_context(self.goal)}

    def _new_message(
        self, message_id: str, role: Role, parts: Sequence[Part], metadata: Mapping[str, Any] | None = None
    ) -> Message:
        return Message(**self._ids(), message_id=message_id, role=role, parts=parts, metadata=metadata)

    def _goal_message(self) -> Message:
        message_id = self.goal.labels.get(MESSAGE, f"{self.goal.goal_id}-goal")
        return self._new_message(message_id, Role.ROLE_USER, [Part(text=self.goal.goal)])

    def _message(self, entry: Document, answer_id: str | None = None) -> Message | None:
        """Return the message of an entry; None if it has no text, or is an answer without an id."""
        answered = entry["type"] == "question_answered" and not entry["depth"]
        is_user = answered or (entry["person"] is not None and self.caller.answers_for(entry["person"]))
        text = entry["body"]["answer"] if answered else text_of(entry)
        if not text or (is_user and answer_id is None):
            return None
        message_id = (is_user and answer_id) or f"{entry['comm_id']}-{entry['seq']}"
        return self._new_message(message_id, Role.ROLE_USER if is_user else Role.ROLE_AGENT, [Part(text=text)], _metadata(entry))

    def _conclusion(self, result: GoalResult | None) -> Iterator[Artifact]:
        """Yield the answer, if there is one: its text, after an object if the text is an object of JSON."""
        if result is None or not result.succeeded:
            return
        parts = [Part(text=result.content, media_type="text/plain")]
        with suppress(ValueError, RecursionError, ParseError):
            if isinstance(data := json.loads(result.content), dict):
                parts.insert(0, new_data_part(data, "application/json"))
        yield Artifact(artifact_id=_CONCLUSION, name=_CONCLUSION, parts=parts)

    def _open(self, status: GoalStatus, at: str) -> TaskStatus:
        """Return the status of an open task, with its questions to the caller in words and as `GET /v1/seats` returns them."""
        items = questions_in_words(self.caller, status)
        parts = [part for words, item in items for part in (Part(text=words), new_data_part(told(item)))]
        message = self._new_message(f"{self.goal.goal_id}-asks", Role.ROLE_AGENT, parts) if parts else None
        return _status(task_state(status, self.caller), at, message)

    def _ended(self, result: GoalResult) -> TaskStatus:
        message = self._new_message(f"{self.goal.goal_id}-end", Role.ROLE_AGENT, [Part(text=result.content or result.reason)])
        return _status(_ENDED.get(result.reason, _FAILED), result.finished_at.isoformat(), message)


def _status(state: TaskState, at: str, message: Message | None) -> TaskStatus:
    return TaskStatus(state=state, timestamp=datetime.fromisoformat(at), message=message)


def _metadata(entry: Document) -> dict[str, Any]:
    shown = {f"ioa.{name}": entry[name] for name in ("sender", "type", "comm_id", "depth")}
    return {"ioa.seq": str(entry["seq"]), **shown}
