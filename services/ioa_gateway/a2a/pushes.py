"""Push notifications of A2A: webhooks of a task, until the task ends. A configuration belongs to the key that created it."""

from __future__ import annotations

from a2a.compat.v0_3.conversions import to_compat_task
from a2a.types import AuthenticationInfo, StreamResponse, TaskPushNotificationConfig
from google.protobuf.json_format import MessageToJson

from ioa.client.client import Client
from ioa.errors import NotFoundError, NotYetError
from ioa.protocol.codec import validate
from ioa.protocol.ids import GoalId, GoalName
from ioa.protocol.operation.webhooks import HookEvent, Notice, PushTarget, Webhook, WebhookId
from ioa_gateway.a2a.a2a_messages import is_old
from ioa_gateway.a2a.a2a_tasks import ASKING, TaskWriter, last_page, task_state
from ioa_gateway.api.webhook_routes import WebhookOrder, prepare_webhook
from ioa_gateway.caller import Caller
from ioa_gateway.context import ApiCall
from ioa_gateway.open_questions import read_status


def push_id(call: ApiCall, task_id: str, config_id: str) -> WebhookId:
    """Return the id of the webhook of a push configuration, whose id is by default the id of the task."""
    return WebhookId(call.caller.goal_id("p", task_id, config_id or task_id))


async def prepare_push(call: ApiCall, base_url: str, goal_id: GoalId, config: TaskPushNotificationConfig) -> Webhook:
    """Return the webhook that pushes a task when it ends, or asks its user or a person; `store_webhook` stores it.

    Raises:
        IoaError: The configuration is invalid, or the key may not; see `ioa_gateway.api.webhook_routes.prepare_webhook`.
    """
    shown = config.authentication
    fields = {
        "config_id": config.id or goal_id,
        "version": "0.3" if is_old(call.headers) else "1.0",
        "base_url": base_url,
        "token": config.token,
        "authorization": f"{shown.scheme} {shown.credentials}" if shown.scheme and shown.credentials else "",
    }
    order = validate(WebhookOrder, {"url": config.url, "goal_id": goal_id, "events": tuple(HookEvent)})
    return await prepare_webhook(call, order, push_id(call, goal_id, config.id), validate(PushTarget, fields))


def describe_push(hook: Webhook) -> TaskPushNotificationConfig:
    """Describe a push configuration without the credentials of its receiver."""
    assert hook.push is not None
    scheme = hook.push.authorization.partition(" ")[0]
    return TaskPushNotificationConfig(
        id=hook.push.config_id,
        task_id=hook.goal_id or "",
        url=hook.url,
        token=hook.push.token,
        authentication=AuthenticationInfo(scheme=scheme) if scheme else None,
    )


async def notification(client: Client, push: PushTarget, notice: Notice, caller: Caller) -> bytes | None:
    """Return the body of a notification: the task without its history; None if there is nothing to send to the caller.

    The caller is the holder of the key that created the push configuration.

    Raises:
        NotYetError: The result is not stored yet.
        UnavailableError: The goal cannot be read now.
    """
    name = GoalName(notice.user, notice.goal_id)
    try:
        found = await read_status(client, caller, name)
    except NotFoundError:
        return None  # the goal was removed
    if notice.event is HookEvent.ENDED and found.status.result is None:
        raise NotYetError("The result is not known here yet.")
    if notice.event is HookEvent.ASKED and task_state(found) != ASKING:
        return None
    task = TaskWriter(found.status.record.goal, push.base_url, caller).task(found, await last_page(client, name))
    task.ClearField("history")
    if push.version == "0.3":
        return to_compat_task(task).model_dump_json(by_alias=True, exclude_none=True).encode()
    return str(MessageToJson(StreamResponse(task=task), indent=None, ensure_ascii=False)).encode()
