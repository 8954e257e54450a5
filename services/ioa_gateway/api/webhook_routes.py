"""Routes of webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter
from pydantic import Field, HttpUrl

from ioa.errors import ForbiddenError, NotFoundError, OverQuotaError
from ioa.protocol.codec import validate
from ioa.protocol.goals import Labels, bears
from ioa.protocol.ids import GoalIdField, GoalName, UserIdField, is_token
from ioa.protocol.model import Instruction, Model
from ioa.protocol.operation.api_keys import Scope
from ioa.protocol.operation.webhooks import HookEvent, PushTarget, Webhook, WebhookId, written_secret
from ioa_gateway.context import ApiCall, WebhooksCall
from ioa_gateway.webhooks.webhook_service import queue_notice

MOST = 100
"""Maximum webhooks of a key."""

router = APIRouter()


class WebhookOrder(Instruction):
    """A webhook to create: for one goal, for goals with labels, or for all goals of the key's user."""

    url: HttpUrl
    events: Annotated[tuple[HookEvent, ...], Field(min_length=1, max_length=len(HookEvent))] = (HookEvent.ENDED,)
    goal_id: GoalIdField | None = None
    labels: Labels = Field(default_factory=dict)


class WebhookDocument(Model):
    """A webhook, without its secret. Only the key that created it gets the path of the URL, which can be a secret."""

    webhook_id: WebhookId
    user: UserIdField
    url: str
    events: tuple[str, ...]
    goal_id: GoalIdField | None
    labels: dict[str, str]
    created_at: datetime


class MadeDocument(WebhookDocument):
    """A new webhook with its secret, which is returned once."""

    secret: str


class WebhooksDocument(Model):
    """The webhooks of the key's user, oldest first."""

    webhooks: tuple[WebhookDocument, ...]


@router.post("/webhooks", status_code=201)
async def make(call: WebhooksCall, order: WebhookOrder) -> MadeDocument:
    """Make a webhook. If its goal has ended, its message is sent at once."""
    if order.goal_id is not None:
        await call.goal(None, order.goal_id)
    hook = await prepare_webhook(call, order, WebhookId(call.draw(8).hex()))
    await store_webhook(call, hook)
    return MadeDocument(**_shown(call, hook).model_dump(), secret=hook.secret)


async def prepare_webhook(call: ApiCall, order: WebhookOrder, webhook_id: WebhookId, push: PushTarget | None = None) -> Webhook:
    """Return a new webhook that the caller's key may store. The DNS lookup of its host comes last.

    Raises:
        ForbiddenError: The key lacks a scope, or has another value of a label.
        InvalidInputError: The address of the URL is not allowed, or its name does not exist.
        OverQuotaError: The key has the maximum number of webhooks.
    """
    caller = call.caller
    caller.check(Scope.GOALS_READ, Scope.WEBHOOKS_WRITE)  # its messages contain results
    if any(order.labels.get(name, value) != value for name, value in caller.labels.items()):
        raise ForbiddenError("The labels of this key have other values.", hint="Leave that label out.")
    others = [one async for one in call.hooks.all() if is_made_by(call, one) and one.webhook_id != webhook_id]
    if len(others) >= MOST:
        raise OverQuotaError(f"This key has {MOST} webhooks already.", hint="Remove some.")
    made = {
        "webhook_id": webhook_id,
        "user": caller.user,
        "key_id": caller.key_id,
        "url": str(order.url),
        "events": tuple(dict.fromkeys(order.events)),
        "goal_id": order.goal_id,
        "labels": {**order.labels, **caller.labels},
        "secret": written_secret(call.draw(32)),
        "created_at": call.keyring.now(),
        "after": await call.hooks.last_result(),
        "push": push,
    }
    hook = validate(Webhook, made)
    await call.http_post.check(hook.url)
    return hook


async def store_webhook(call: ApiCall, hook: Webhook) -> None:
    """Store a webhook, and replace a webhook of the same id. If its goal has ended, its message is sent at once."""
    hooks, name = call.hooks, hook.goal_id and GoalName(hook.user, hook.goal_id)
    await hooks.put(hook.webhook_id, hook)
    ended = await call.client.result(name) if name and HookEvent.ENDED in hook.events else None
    if ended is not None and bears(await hooks.labels(ended.name), hook.labels):
        await queue_notice(hooks, hook, HookEvent.ENDED, ended.name, ended.finished_at)


@router.get("/webhooks")
async def list_all(call: WebhooksCall) -> WebhooksDocument:
    """List the webhooks of the caller's user."""
    return WebhooksDocument(webhooks=tuple([_shown(call, hook) async for hook in call.hooks.all() if _is_seen(call, hook)]))


@router.get("/webhooks/{webhook_id}")
async def show(call: WebhooksCall, webhook_id: str) -> WebhookDocument:
    """Show a webhook."""
    return _shown(call, await _found(call, webhook_id))


@router.delete("/webhooks/{webhook_id}", status_code=204)
async def remove(call: WebhooksCall, webhook_id: str) -> None:
    """Remove a webhook, and drop its pending messages."""
    await call.hooks.erase((await _found(call, webhook_id)).webhook_id)


async def _found(call: ApiCall, webhook_id: str) -> Webhook:
    found = await call.hooks.find(WebhookId(webhook_id)) if is_token(webhook_id) else None
    if found is None or not _is_seen(call, found):
        raise NotFoundError("There is no such webhook.", hint="`GET /v1/webhooks` lists them.")
    return found


def is_made_by(call: ApiCall, hook: Webhook) -> bool:
    """Whether the caller's key has made a webhook."""
    return hook.key_id == call.caller.key_id


def _is_seen(call: ApiCall, hook: Webhook) -> bool:
    """Whether the caller may see a webhook."""
    return hook.user == call.caller.user and bears(hook.labels, call.caller.labels)


def _shown(call: ApiCall, hook: Webhook) -> WebhookDocument:
    url = hook.url if is_made_by(call, hook) else urlsplit(hook.url)._replace(path="", query="", fragment="").geturl()
    return WebhookDocument.model_validate(hook.model_copy(update={"url": url}), from_attributes=True)
