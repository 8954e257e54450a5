"""Push configurations of A2A: webhooks of one task each, told in that protocol until the task has ended."""

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
from ioa_gateway.a2a.asking import AdmittedRequest, is_old
from ioa_gateway.routes.webhooks import WebhookOrder, check_webhook, is_made_by, make_webhook, shown_url


async def check_push(asked: AdmittedRequest, goal_id: GoalId, config: TaskPushNotificationConfig) -> None:
    """See that something can be pushed there by the caller's key.

    Raises:
        IoaError: It cannot (`ioa_gateway.routes.webhooks.check_webhook`), or what is to be shown there fits into no header.
    """
    await check_webhook(asked.call, _webhook_id(asked, goal_id, _target(asked, config, goal_id).config_id), config.url)


async def pushed(asked: AdmittedRequest, goal: Goal, config: TaskPushNotificationConfig) -> Webhook:
    """Have a task pushed to a URL that has been checked: when it ends, comes to another phase, or asks its caller.

    Raises:
        IoaError: See `ioa_gateway.routes.webhooks.make_webhook`.
    """
    push = _target(asked, config, goal.goal_id)
    order = validate(WebhookOrder, {"url": config.url, "goal_id": goal.goal_id, "events": tuple(HookEvent)})
    return await make_webhook(asked.call, order, _webhook_id(asked, goal.goal_id, push.config_id), push)


async def pushes_of(asked: AdmittedRequest, goal: Goal) -> Sequence[Webhook]:
    """Return where a task is pushed to. Keys of other labels have configurations of their own, under whatever ids."""
    mine = (asked.call.caller.user, goal.goal_id, asked.call.caller.labels)
    return await asked.call.webhooks(lambda one: one.push is not None and (one.user, one.goal_id, one.labels) == mine)


async def push_of(asked: AdmittedRequest, goal: Goal, config_id: str) -> Webhook | None:
    """Return one of them by the id of its configuration."""
    wanted = config_id or goal.goal_id
    return next((one for one in await pushes_of(asked, goal) if one.push is not None and one.push.config_id == wanted), None)


def config_of(asked: AdmittedRequest, hook: Webhook) -> TaskPushNotificationConfig:
    """Show a configuration; credentials are shown to nobody, and its URL and its token to the key that made it."""
    assert hook.push is not None
    scheme = hook.push.authorization.partition(" ")[0]
    return TaskPushNotificationConfig(
        id=hook.push.config_id,
        task_id=hook.goal_id or "",
        url=shown_url(asked.call, hook),
        token=hook.push.token if is_made_by(asked.call, hook) else "",
        authentication=AuthenticationInfo(scheme=scheme) if scheme else None,
    )


def _webhook_id(asked: AdmittedRequest, goal_id: GoalId, config_id: str) -> WebhookId:
    caller = asked.call.caller
    named = json.dumps([caller.user, goal_id, config_id, *sorted(caller.labels.items())])
    return WebhookId("p" + hashlib.sha256(named.encode()).hexdigest()[:31])


def _target(asked: AdmittedRequest, config: TaskPushNotificationConfig, task_id: str) -> PushTarget:
    if not config.url:
        raise InvalidInputError("A push configuration needs a URL.")
    shown = config.authentication
    version: Literal["1.0", "0.3"] = "0.3" if is_old(asked.call.headers) else "1.0"
    said = {
        "config_id": config.id or task_id,
        "version": version,
        "base_url": asked.base_url,
        "token": config.token,
        "authorization": f"{shown.scheme} {shown.credentials}" if shown.scheme and shown.credentials else "",
    }
    return validate(PushTarget, said)
