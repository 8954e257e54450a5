"""Goals as tasks of A2A, from the documents that the command line and HTTP tell too. Nothing here asks anybody."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

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
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from pydantic import BaseModel

from ioa.client.client import END, Client
from ioa.client.documents import told
from ioa.client.questions import question_in_words
from ioa.client.waiting import asked_in_words
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.goals import Goal, GoalResult, Reason
from ioa.protocol.ids import CommId, GoalName
from ioa_gateway.a2a.orders import CONTEXT
from ioa_gateway.asked import asked_documents, asked_of, may_ask, questions_to
from ioa_gateway.callers import Caller
from ioa_gateway.entry_pages import EntryPage, page_of
from ioa_gateway.words import text_of

_HISTORY = 500
"""How many entries a task tells of at the most, the last ones; who wants all follows it from 0."""
MOST_FILES = 500
"""How many files a task tells of, the last ones, and the tasks of a list together: 2 MB of entries may name 13,000, and while these
are told, for a second, nobody else is answered. A stream remembers of as many that it has told of them: a log may name 400,000, and
a user has a thousand streams. One that is named again later is told again, which replaces it for who has it: `append` is not set,
and its id is the same."""
CONCLUSION = "conclusion"
"""The id of the artifact that is the answer."""

_ENDED = {
    Reason.CONCLUDED: TaskState.TASK_STATE_COMPLETED,
    Reason.CANCELLED: TaskState.TASK_STATE_CANCELED,
    Reason.NO_AGENT: TaskState.TASK_STATE_REJECTED,
}
_FAILED = TaskState.TASK_STATE_FAILED
TERMINAL = frozenset({*_ENDED.values(), _FAILED})

Document = Mapping[str, Any]
"""An entry as `EntryDocument` tells it."""


def context_of(goal: Goal) -> str:
    """Return the conversation of a goal; one that came by another way is alone in its own."""
    return goal.labels.get(CONTEXT, goal.goal_id)


async def last_page(client: Client, name: GoalName) -> EntryPage:
    """Read the last entries of a goal, as many as a task tells of."""
    return await page_of(client, name, before=END, limit=_HISTORY)


def state_of(status: GoalStatus, caller: Caller | None = None) -> TaskState:
    """Return where a goal stands, for a caller who may be asked something in it."""
    if status.result is not None:
        return _ENDED.get(status.result.reason, _FAILED)
    if caller is not None and (asked_of(caller, status) or questions_to(caller, status)):
        return TaskState.TASK_STATE_INPUT_REQUIRED
    return TaskState.TASK_STATE_SUBMITTED if status.standing is None else TaskState.TASK_STATE_WORKING


@dataclass
class Telling:
    """Tells of one goal, and of each file once, or again after many others.

    Attributes:
        goal: Which.
        base_url: Of the gateway, where files are fetched.
        caller: Who is told, and may be asked something.
    """

    goal: Goal
    base_url: str
    caller: Caller | None = None
    _asking: set[CommId] = field(default_factory=set)
    _files: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def submitted(self, refused: GoalResult | None = None) -> Task:
        """Tell of a goal that nobody has accepted yet, or never will."""
        return Task(
            id=self.goal.goal_id,
            context_id=context_of(self.goal),
            status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED) if refused is None else self._ending(refused),
            history=[self._asked()],
        )

    def task(
        self, status: GoalStatus, entries: Sequence[Document], *, with_history: bool = True, with_artifacts: bool = True
    ) -> Task:
        """Tell where the goal stands, with what was said in these entries, and the last files of which they tell."""
        said = [self._asked(), *filter(None, map(self.message, entries))] if with_history else []
        new = [(entry, number, file) for entry in entries for number, file in self._new(entry)] if with_artifacts else []
        files = [self._file(*one) for one in new[-MOST_FILES:]]  # of which none is twice: so many are remembered
        result = status.result
        last = entries[-1]["at"] if entries else status.record.accepted_at.isoformat()
        reason = {} if result is None else {"ioa.reason": str(result.reason)}
        more = {"ioa.more_files": True} if len(new) > len(files) else {}
        return Task(
            id=self.goal.goal_id,
            context_id=context_of(self.goal),
            status=self._standing(status, last) if result is None else self._ending(result),
            history=said,
            artifacts=[*files, *self._answer(result)] if with_artifacts else [],
            metadata={"ioa.seq": str(entries[-1]["seq"] if entries else 0), **reason, **more},
        )

    def is_asked(self, entry: Document) -> bool:
        """Whether the caller is asked something since an entry."""
        return self.caller is not None and may_ask(self.caller, self.goal.name, entry)

    def updates(self, entry: Document, now: GoalStatus | None = None) -> Iterator[TaskStatusUpdateEvent | TaskArtifactUpdateEvent]:
        """Tell of an entry, and of the files that it tells of.

        Args:
            entry: What happened.
            now: How the goal stands; of who is asked, what he is asked.
        """
        (self._asking.add if self.is_asked(entry) else self._asking.discard)(entry["comm_id"])
        state = TaskState.TASK_STATE_INPUT_REQUIRED if self._asking else TaskState.TASK_STATE_WORKING
        told = self._status(state, entry["at"], self.message(entry))
        asks = None if now is None else self._standing(now, entry["at"])
        if asks is not None and asks.state == TaskState.TASK_STATE_INPUT_REQUIRED:
            if told.HasField("message"):  # first what was said, so that who stops at the question has heard it
                told.state = TaskState.TASK_STATE_WORKING
                yield TaskStatusUpdateEvent(**self._ids(), status=told, metadata=_metadata(entry))
            told = asks
        yield TaskStatusUpdateEvent(**self._ids(), status=told, metadata=_metadata(entry))
        for file in self.files(entry):
            yield TaskArtifactUpdateEvent(**self._ids(), artifact=file, last_chunk=True, metadata=_metadata(entry))

    def end(self, result: GoalResult) -> Iterator[TaskStatusUpdateEvent | TaskArtifactUpdateEvent]:
        """Tell the answer, and that it is the end."""
        for artifact in self._answer(result):
            yield TaskArtifactUpdateEvent(**self._ids(), artifact=artifact, last_chunk=True)
        yield TaskStatusUpdateEvent(**self._ids(), status=self._ending(result), metadata={"ioa.reason": result.reason})

    def message(self, entry: Document) -> Message | None:
        """Tell what was said; None if nothing was."""
        text = text_of(entry)
        if not text:
            return None
        message_id = f"{entry['comm_id']}-{entry['seq']}"
        return Message(
            **self._ids(), message_id=message_id, role=Role.ROLE_AGENT, parts=[Part(text=text)], metadata=_metadata(entry)
        )

    def files(self, entry: Document) -> Iterator[Artifact]:
        """Tell of the files that were not told of before, as far as that is remembered."""
        return (self._file(entry, number, file) for number, file in self._new(entry))

    def _new(self, entry: Document) -> Iterator[tuple[int, Document]]:
        """Yield the files that were not told of before, with their places in the entry, and remember them."""
        body = entry["body"]
        given = body.get("artifacts") or (body.get("conclusion") or {}).get("artifacts") or ()
        for number, file in enumerate(given):
            if file["sha256"] in self._files:
                continue
            self._files[file["sha256"]] = None
            if len(self._files) > MOST_FILES:
                self._files.popitem(last=False)
            yield number, file

    def _file(self, entry: Document, number: int, file: Document) -> Artifact:
        path = f"{self.goal.goal_id}/{entry['seq']}/{number}/{quote(file['name'], safe='')}"
        part = Part(url=f"{self.base_url}/v1/artifacts/{path}", filename=file["name"], media_type=file["media_type"])
        known = {"ioa.sha256": file["sha256"], "ioa.size_bytes": file["size_bytes"], **_metadata(entry)}
        return Artifact(artifact_id=file["sha256"], name=file["name"], parts=[part], metadata=known)

    def _ids(self) -> dict[str, Any]:
        return {"task_id": self.goal.goal_id, "context_id": context_of(self.goal)}

    def _asked(self) -> Message:
        message_id = f"{self.goal.goal_id}-goal"
        return Message(**self._ids(), message_id=message_id, role=Role.ROLE_USER, parts=[Part(text=self.goal.goal)])

    def _answer(self, result: GoalResult | None) -> list[Artifact]:
        if result is None or not result.succeeded:
            return []
        return [Artifact(artifact_id=CONCLUSION, name=CONCLUSION, parts=[Part(text=result.content, media_type="text/plain")])]

    def _standing(self, status: GoalStatus, at: str) -> TaskStatus:
        """Tell how a goal goes on: with what is asked of the caller, in words and as `GET /v1/seats` tells it, the first whole."""
        waits, said = list[tuple[str, BaseModel]](), None
        if self.caller is not None:
            waits += [(asked_in_words(one), one) for one in asked_documents(asked_of(self.caller, status))]
            waits += [(question_in_words(one), one) for one in questions_to(self.caller, status)]
        if waits:
            parts = [part for words, one in waits for part in (Part(text=words), Part(data=ParseDict(told(one), Value())))]
            said = Message(**self._ids(), message_id=f"{self.goal.goal_id}-asks", role=Role.ROLE_AGENT, parts=parts)
        return self._status(state_of(status, self.caller), at, said)

    def _ending(self, result: GoalResult) -> TaskStatus:
        ids = self._ids()
        said = Message(
            **ids, message_id=f"{self.goal.goal_id}-end", role=Role.ROLE_AGENT, parts=[Part(text=result.content or result.reason)]
        )
        return self._status(_ENDED.get(result.reason, _FAILED), result.finished_at.isoformat(), said)

    def _status(self, state: TaskState, at: str, message: Message | None) -> TaskStatus:
        return TaskStatus(state=state, timestamp=datetime.fromisoformat(at), message=message)


def _metadata(entry: Document) -> dict[str, Any]:
    named = ("sender", "type", "comm_id", "depth")
    return {"ioa.seq": str(entry["seq"]), **{f"ioa.{name}": entry[name] for name in named}}
