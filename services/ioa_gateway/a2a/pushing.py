"""The body of an A2A push notification: the task when it is sent, without its history."""

from __future__ import annotations

import json

from a2a.compat.v0_3.conversions import to_compat_task
from a2a.types.a2a_pb2 import StreamResponse
from google.protobuf.json_format import MessageToDict

from ioa.client.client import Client
from ioa.errors import NotYetError
from ioa.fair_semaphore import FairSemaphore
from ioa.protocol.ids import GoalName
from ioa.protocol.webhooks import HookEvent, Notice, PushTarget
from ioa_gateway.a2a.tasks import TaskWriter, last_page
from ioa_gateway.caller import Caller
from ioa_gateway.open_questions import awaited_people, questions_to


async def notification(client: Client, push: PushTarget, notice: Notice, caller: Caller, turns: FairSemaphore) -> bytes | None:
    """Return the body of a notification; None for a turn that asks the caller nothing.

    Args:
        client: The client that reads the goal.
        push: The push configuration.
        notice: The event.
        caller: The holder of the key that created the push configuration.
        turns: Limits concurrent reads per user.

    Raises:
        NotFoundError: The goal was removed.
        NotYetError: The result is not stored yet.
        UnavailableError: The goal cannot be read now.
    """
    name = GoalName(notice.user, notice.goal_id)
    # Groups have dozens of turns a second, and few ask the caller: the status alone decides before charter or log are read.
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
        task = TaskWriter(status.record.goal, push.base_url, caller).task(status, entries)
        task.ClearField("history")
        if push.version == "0.3":
            return to_compat_task(task).model_dump_json(by_alias=True, exclude_none=True).encode()
        return json.dumps(MessageToDict(StreamResponse(task=task)), ensure_ascii=False, separators=(",", ":")).encode()
