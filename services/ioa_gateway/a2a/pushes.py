"""Push notifications of A2A: webhooks of a task, until the task ends. A configuration belongs to the key that created it."""

from __future__ import annotations

from collections.abc import Sequence

from a2a.compat.v0_3.conversions import to_compat_task
from a2a.types.a2a_pb2 import AuthenticationInfo, StreamResponse, TaskPushNotificationConfig
from google.protobuf.json_format import MessageToJson

from ioa.client.client import Client
from ioa.errors import NotYetError
from ioa.protocol.codec import validate
from ioa.protocol.ids import GoalId, GoalName
from ioa.protocol.operation.webhooks import HookEvent, Notice, PushTarget, Webhook, WebhookId
from ioa_gateway.a2a.messages import A2ARequest, is_old
from ioa_gateway.a2a.tasks import ASKING, TaskWriter, last_page, task_state
from ioa_gateway.api.webhooks import WebhookOrder, check_webhook, is_made_by, make_webhook
from ioa_gateway.caller import Caller
from ioa_gateway.open_questions import with_groups


def push_id(request: A2ARequest, task_id: str, config_id: str) -> WebhookId:
    """Return the id of the webhook of a push configuration, whose id is by default the id of the task."""
    return WebhookId(request.call.caller.goal_id("p", task_id, config_id or task_id))


async def check_push(request: A2ARequest, goal_id: GoalId, config: TaskPushNotificationConfig) -> None:
    """Check that the caller's key may push a task to the URL.

    Raises:
        IoaError: The key may not (`ioa_gateway.api.webhooks.check_webhook`), or the configuration is invalid.
    """
    _target(request, config, goal_id)
    await check_webhook(request.call, _order(config, goal_id), push_id(request, goal_id, config.id))


async def create_push(request: A2ARequest, goal_id: GoalId, config: TaskPushNotificationConfig) -> Webhook:
    """Push a task to a checked URL when it ends, or asks its user or a person.

    Raises:
        IoaError: See `ioa_gateway.api.webhooks.make_webhook`.
    """
    order = _order(config, goal_id)
    return await make_webhook(request.call, order, push_id(request, goal_id, config.id), _target(request, config, goal_id))


async def list_pushes(request: A2ARequest, goal_id: GoalId) -> Sequence[Webhook]:
    """Return the push configurations of a task that the caller's key created."""
    hooks = request.call.hooks.all()
    return [one async for one in hooks if one.push is not None and one.goal_id == goal_id and is_made_by(request.call, one)]


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
    """Return the body of a notification: the task without its history; None for a question that is not for the caller.

    Args:
        client: The client that reads the goal.
        push: The push configuration.
        notice: The event.
        caller: The holder of the key that created the push configuration.

    Raises:
        NotFoundError: The goal was removed.
        NotYetError: The result is not stored yet.
        UnavailableError: The goal cannot be read now.
    """
    name = GoalName(notice.user, notice.goal_id)
    found = await client.goal(name, with_team=bool(caller.people))
    if notice.event is HookEvent.ENDED and found.result is None:
        raise NotYetError("The result is not known here yet.")
    status = await with_groups(client, name, found)
    if notice.event is HookEvent.ASKED and task_state(status, caller) != ASKING:
        return None
    task = TaskWriter(status.record.goal, push.base_url, caller).task(status, await last_page(client, name))
    task.ClearField("history")
    if push.version == "0.3":
        return to_compat_task(task).model_dump_json(by_alias=True, exclude_none=True).encode()
    return str(MessageToJson(StreamResponse(task=task), indent=None, ensure_ascii=False)).encode()


def _order(config: TaskPushNotificationConfig, goal_id: GoalId) -> WebhookOrder:
    return validate(WebhookOrder, {"url": config.url, "goal_id": goal_id, "events": tuple(HookEvent)})


def _target(request: A2ARequest, config: TaskPushNotificationConfig, goal_id: GoalId) -> PushTarget:
    shown = config.authentication
    fields = {
        "config_id": config.id or goal_id,
        "version": "0.3" if is_old(request.call.headers) else "1.0",
        "base_url": request.base_url,
        "token": config.token,
        "authorization": f"{shown.scheme} {shown.credentials}" if shown.scheme and shown.credentials else "",
    }
    return validate(PushTarget, fields)
