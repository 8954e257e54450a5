"""Converts goals to tasks and events of A2A, from the documents that the command line and HTTP return. No I/O but `last_page`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from a2a import types
from a2a.helpers import new_data_part
from google.protobuf.json_format import ParseError

from ioa.client.client import END, Client
from ioa.client.documents import told
from ioa.protocol.goals import Goal, GoalResult, Reason
from ioa.protocol.ids import GoalName
from ioa_gateway.a2a.a2a_messages import CONTEXT, MESSAGE, own_id
from ioa_gateway.caller import Caller
from ioa_gateway.open_questions import CallerStatus, Document
from ioa_gateway.pagination import EntryPage, page_of
from ioa_gateway.sse_encoding import text_of

_HISTORY = 500
"""Maximum entries of a task, the last ones."""

_CONCLUSION = "conclusion"
"""The id and the name of the artifact that contains the answer."""

_ENDED = {
    Reason.CONCLUDED: types.TaskState.TASK_STATE_COMPLETED,
    Reason.CANCELLED: types.TaskState.TASK_STATE_CANCELED,
    Reason.NO_AGENT: types.TaskState.TASK_STATE_REJECTED,
}
_WORKING, _FAILED = types.TaskState.TASK_STATE_WORKING, types.TaskState.TASK_STATE_FAILED
ASKING = types.TaskState.TASK_STATE_INPUT_REQUIRED
TERMINAL = frozenset({*_ENDED.values(), _FAILED})

Update = types.TaskStatusUpdateEvent | types.TaskArtifactUpdateEvent


def a2a_context(goal: Goal) -> str:
    """Return the A2A context of a goal; the goal's id if it was not launched by A2A."""
    return goal.labels.get(CONTEXT, goal.goal_id)


async def last_page(client: Client, name: GoalName) -> EntryPage:
    """Read the last entries of a goal."""
    return await page_of(client, name, before=END, limit=_HISTORY)


def task_state(found: CallerStatus) -> types.TaskState:
    """Return the state of a goal's task. It depends on the caller whether the task needs input."""
    if found.status.result is not None:
        return _ENDED.get(found.status.result.reason, _FAILED)
    if found.items:
        return ASKING
    return types.TaskState.TASK_STATE_SUBMITTED if found.status.standing is None else _WORKING


@dataclass
class TaskWriter:
    """Converts one goal to a task and its events, with each file once.

    Attributes:
        goal: The goal.
        base_url: The gateway's URL, for the URLs of files.
        caller: The caller, whose answers are messages of the user.
    """

    goal: Goal
    base_url: str
    caller: Caller
    _files: set[str] = field(default_factory=set)
    _at: str = ""

    def submitted(self, result: GoalResult | None = None) -> types.Task:
        """Return the task of a goal without a record: not yet accepted, or rejected with a result."""
        submitted = types.TaskStatus(state=types.TaskState.TASK_STATE_SUBMITTED)
        return self._task(submitted if result is None else self._ended(result))

    def task(self, found: CallerStatus, page: EntryPage) -> types.Task:
        """Return the task with the messages and files of these entries."""
        status, entries = found.status, page.documents
        last: Document = entries[-1] if entries else {"at": status.record.accepted_at.isoformat(), "seq": 0}
        self._at = last["at"]
        task = self._task(self._open(found) if status.result is None else self._ended(status.result))
        task.metadata["ioa.seq"] = str(last["seq"])
        for stored, entry in zip(page.entries, entries, strict=True):
            task.artifacts.extend(self._new_files(entry))
            if (message := self._message(entry, own_id(stored.entry.event))) is not None:
                task.history.append(message)
        if status.result is not None:
            task.metadata["ioa.reason"] = status.result.reason
            task.artifacts.extend(_conclusion(status.result))
        return task

    def updates(self, entry: Document) -> Iterator[Update]:
        """Yield the events of an entry, or of a progress report, which has no sequence."""
        if "seq" not in entry:
            yield self._progress(entry)
            return
        self._at, metadata = entry["at"], _metadata(entry)
        yield self._update(_status(_WORKING, entry["at"], self._message(entry)), metadata)
        for file in self._new_files(entry):
            yield self._file_update(file, metadata)

    def asking(self, found: CallerStatus) -> Update:
        """Return the event of a goal that asks the caller something."""
        return self._update(self._open(found))

    def end(self, result: GoalResult) -> Iterator[Update]:
        """Yield the last events: the answer and the final status."""
        for artifact in _conclusion(result):
            yield self._file_update(artifact)
        yield self._update(self._ended(result), {"ioa.reason": result.reason})

    def _progress(self, report: Document) -> Update:
        body = report["body"]
        share = "" if body["fraction"] is None else f"{body['fraction']:.0%}"
        text = " ".join(filter(None, (share, body["content"])))
        message = self._agent_message(f"{body['task_id']}-{body['number']}", types.Part(text=text)) if text else None
        metadata = {"ioa.sender": report["sender"], "ioa.fraction": body["fraction"]}
        return self._update(_status(_WORKING, report["at"], message), metadata)

    def _ids(self) -> dict[str, Any]:
        return {"task_id": self.goal.goal_id, "context_id": a2a_context(self.goal)}

    def _task(self, status: types.TaskStatus) -> types.Task:
        message_id = self.goal.labels.get(MESSAGE, f"{self.goal.goal_id}-goal")
        said = types.Message(
            **self._ids(), message_id=message_id, role=types.Role.ROLE_USER, parts=[types.Part(text=self.goal.goal)]
        )
        return types.Task(id=self.goal.goal_id, context_id=a2a_context(self.goal), status=status, history=[said])

    def _update(self, status: types.TaskStatus, metadata: Mapping[str, Any] | None = None) -> Update:
        return types.TaskStatusUpdateEvent(**self._ids(), status=status, metadata=metadata)

    def _file_update(self, artifact: types.Artifact, metadata: Mapping[str, Any] | None = None) -> Update:
        return types.TaskArtifactUpdateEvent(**self._ids(), artifact=artifact, last_chunk=True, metadata=metadata)

    def _agent_message(self, message_id: str, *parts: types.Part) -> types.Message:
        return types.Message(**self._ids(), message_id=message_id, role=types.Role.ROLE_AGENT, parts=parts)

    def _message(self, entry: Document, answer_id: str | None = None) -> types.Message | None:
        """Return the message of an entry; None if it has no text, or is an answer without an id."""
        answered = entry["type"] == "question_answered" and not entry["depth"]
        is_user = answered or (entry["person"] is not None and self.caller.answers_for(entry["person"]))
        text = entry["body"]["answer"] if answered else text_of(entry)
        if not text or (is_user and answer_id is None):
            return None
        message = self._agent_message(f"{entry['comm_id']}-{entry['seq']}", types.Part(text=text))
        message.metadata.update(_metadata(entry))
        if is_user and answer_id:
            message.role, message.message_id = types.Role.ROLE_USER, answer_id
        return message

    def _new_files(self, entry: Document) -> Iterator[types.Artifact]:
        body = entry["body"]
        given = body.get("artifacts") or (body.get("conclusion") or {}).get("artifacts") or ()
        for number, file in enumerate(given):
            digest, name = file["sha256"], file["name"]
            if digest not in self._files:
                self._files.add(digest)
                url = f"{self.base_url}/v1/artifacts/{self.goal.goal_id}/{entry['seq']}/{number}/{quote(name, safe='')}"
                part = types.Part(url=url, filename=name, media_type=file["media_type"])
                metadata = {"ioa.sha256": digest, "ioa.size_bytes": file["size_bytes"], **_metadata(entry)}
                yield types.Artifact(artifact_id=digest, name=name, parts=[part], metadata=metadata)

    def _open(self, found: CallerStatus) -> types.TaskStatus:
        """Return the status of an open task, with its questions to the caller in words and as `GET /v1/seats` returns them."""
        parts = [part for words, item in found.in_words() for part in (types.Part(text=words), new_data_part(told(item)))]
        message = self._agent_message(f"{self.goal.goal_id}-asks", *parts) if parts else None
        return _status(task_state(found), self._at, message)

    def _ended(self, result: GoalResult) -> types.TaskStatus:
        message = self._agent_message(f"{self.goal.goal_id}-end", types.Part(text=result.content or result.reason))
        return _status(_ENDED.get(result.reason, _FAILED), result.finished_at.isoformat(), message)


def _conclusion(result: GoalResult) -> Iterator[types.Artifact]:
    """Yield the answer, if there is one: its text, after an object if the text is an object of JSON."""
    if not result.succeeded:
        return
    parts = [types.Part(text=result.content, media_type="text/plain")]
    with suppress(ValueError, RecursionError, ParseError):
        if isinstance(data := json.loads(result.content), dict):
            parts.insert(0, new_data_part(data, "application/json"))
    yield types.Artifact(artifact_id=_CONCLUSION, name=_CONCLUSION, parts=parts)


def _status(state: types.TaskState, at: str, message: types.Message | None) -> types.TaskStatus:
    return types.TaskStatus(state=state, timestamp=datetime.fromisoformat(at), message=message)


def _metadata(entry: Document) -> dict[str, Any]:
    shown = {f"ioa.{name}": entry[name] for name in ("sender", "type", "comm_id", "depth")}
    return {"ioa.seq": str(entry["seq"]), **shown}
