"""Push configurations of A2A: webhooks of a task, until the task ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

from a2a.types.a2a_pb2 import AuthenticationInfo, TaskPushNotificationConfig

from ioa.errors import InvalidInputError
from ioa.protocol.codec import validate
from ioa.protocol.goals import Goal
from ioa.protocol.ids import GoalId
from ioa.protocol.webhooks import HookEvent, PushTarget, Webhook, WebhookId
from ioa_gateway.a2a.requests import A2ARequest, is_old
from ioa_gateway.api.webhooks import WebhookOrder, check_webhook, is_made_by, make_webhook, shown_url


async def check_push(request: A2ARequest, goal_id: GoalId, config: TaskPushNotificationConfig) -> None:
    """Check that the caller's key may push a task to the URL.

    Raises:
        IoaError: The key may not (`ioa_gateway.api.webhooks.check_webhook`), or the configuration is invalid.
    """
    _target(request, config, goal_id)
    await check_webhook(request.call, _webhook_id(request, goal_id, config.id), config.url)


async def create_push(request: A2ARequest, goal: Goal, config: TaskPushNotificationConfig) -> Webhook:
    """Push a task to a checked URL when it ends, changes its phase, or asks its caller.

    Raises:
        IoaError: See `ioa_gateway.api.webhooks.make_webhook`.
    """
    order = validate(WebhookOrder, {"url": config.url, "goal_id": goal.goal_id, "events": tuple(HookEvent)})
    webhook_id = _webhook_id(request, goal.goal_id, config.id)
    return await make_webhook(request.call, order, webhook_id, _target(request, config, goal.goal_id))


async def list_pushes(request: A2ARequest, goal: Goal) -> Sequence[Webhook]:
    """Return the push configurations of a task that keys with the caller's labels created."""
    mine = (request.call.caller.user, goal.goal_id, request.call.caller.labels)
    return await request.call.webhooks(lambda one: one.push is not None and (one.user, one.goal_id, one.labels) == mine)


async def find_push(request: A2ARequest, goal: Goal, config_id: str) -> Webhook | None:
    """Return the push configuration of a task with an id, by default the id of the task."""
    return await request.call.hooks.store.find(_webhook_id(request, goal.goal_id, config_id))


def describe_push(request: A2ARequest, hook: Webhook) -> TaskPushNotificationConfig:
    """Describe a push configuration without credentials. Only the key that created it gets its token and its full URL."""
    assert hook.push is not None
    scheme = hook.push.authorization.partition(" ")[0]
    return TaskPushNotificationConfig(
        id=hook.push.config_id,
        task_id=hook.goal_id or "",
        url=shown_url(request.call, hook),
        token=hook.push.token if is_made_by(request.call, hook) else "",
        authentication=AuthenticationInfo(scheme=scheme) if scheme else None,
    )


def _webhook_id(request: A2ARequest, goal_id: GoalId, config_id: str) -> WebhookId:
    caller = request.call.caller
    content = json.dumps([caller.user, goal_id, config_id or goal_id, *sorted(caller.labels.items())])
    return WebhookId("p" + hashlib.sha256(content.encode()).hexdigest()[:31])


def _target(request: A2ARequest, config: TaskPushNotificationConfig, goal_id: GoalId) -> PushTarget:
    if not config.url:
        raise InvalidInputError("A push configuration needs a URL.")
    shown = config.authentication
    version: Literal["1.0", "0.3"] = "0.3" if is_old(request.call.headers) else "1.0"
    fields = {
        "config_id": config.id or goal_id,
        "version": version,
        "base_url": request.base_url,
        "token": config.token,
        "authorization": f"{shown.scheme} {shown.credentials}" if shown.scheme and shown.credentials else "",
    }
    return validate(PushTarget, fields)
