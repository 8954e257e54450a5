"""What a push notification of A2A holds: the task as it stands when it is sent, without what was said."""

from __future__ import annotations

import json

from a2a.compat.v0_3.conversions import to_compat_task
from a2a.types.a2a_pb2 import StreamResponse, Task
from google.protobuf.json_format import MessageToDict

from ioa.client.client import Client
from ioa.errors import NotYetError
from ioa.fair_semaphore import FairSemaphore
from ioa.protocol.ids import GoalName
from ioa.protocol.webhooks import HookEvent, Notice, PushTarget
from ioa_gateway.a2a.tasks import Telling, last_page
from ioa_gateway.asked import awaited_people, questions_to
from ioa_gateway.callers import Caller


async def notification(client: Client, push: PushTarget, notice: Notice, caller: Caller, turns: FairSemaphore) -> bytes | None:
    """Write what is pushed; None if a turn has begun that is nobody's who is told of it.

    Args:
        client: Where the goal is read.
        push: What for.
        notice: What has happened.
        caller: Who is told.
        turns: Whose charter and log are read, which are held until what is pushed is written.

    Raises:
        NotFoundError: The goal is known no more.
        NotYetError: How it ended is not known here yet.
        UnavailableError: It cannot be read now.
    """
    name = GoalName(notice.user, notice.goal_id)
    # Groups have dozens of turns a second, of which hardly any asks its caller: that is told by how the goal stands, before its
    # charter or anything of its log is read.
    status = await client.goal(name, with_team=False)
    if notice.event is HookEvent.ENDED and status.result is None:
        raise NotYetError("The result is not known here yet.")
    awaited = awaited_people(caller, status)
    if notice.event is HookEvent.TURN and not (awaited or questions_to(caller, status)):
        return None
    async with turns.slot(name.owner):
        if awaited:
            status = await client.goal(name)
        entries = (await last_page(client, name)).documents
        telling = Telling(status.record.goal, push.base_url, caller)
        return _written(telling.task(status, entries, with_history=False), push.version)


def _written(task: Task, version: str) -> bytes:
    if version == "0.3":
        return to_compat_task(task).model_dump_json(by_alias=True, exclude_none=True).encode()
    return json.dumps(MessageToDict(StreamResponse(task=task)), ensure_ascii=False, separators=(",", ":")).encode()
