"""Webhooks: making, listing and removing them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from ioa.client.documents import told
from ioa.errors import ForbiddenError, NotFoundError, OverQuotaError
from ioa.protocol.api_keys import Scope
from ioa.protocol.codec import validate
from ioa.protocol.ids import GoalIdField, GoalName, UserIdField, is_token
from ioa.protocol.labels import Labels, bears
from ioa.protocol.model import Instruction, Model
from ioa.protocol.webhooks import HookEvent, PushTarget, Webhook, WebhookId, written_secret
from ioa_gateway.calls import ApiCall, Nothing, document
from ioa_gateway.outward.tail import notice_of_end

MOST = 100
"""How many webhooks may be made by a key: one that is handed out with labels takes none from its user's others."""


class WebhookOrder(Instruction):
    """Where to, of which goals, and what of them: with neither goal nor labels of all the key's user launches."""

    url: Annotated[str, Field(min_length=1, max_length=2_000)]
    events: Annotated[tuple[HookEvent, ...], Field(min_length=1, max_length=len(HookEvent))] = (HookEvent.ENDED,)
    goal_id: GoalIdField | None = None
    labels: Labels = Field(default_factory=dict)


class WebhookDocument(Model):
    """A webhook, without its secret."""

    webhook_id: WebhookId
    user: UserIdField
    url: str
    events: tuple[str, ...]
    goal_id: GoalIdField | None
    labels: dict[str, str]
    created_at: datetime


class MadeDocument(WebhookDocument):
    """A webhook that was just made. Its secret is told once."""

    secret: str


class WebhooksDocument(Model):
    """The webhooks of the key's user, oldest first."""

    webhooks: tuple[WebhookDocument, ...]


async def make(call: ApiCall, _query: Nothing, order: WebhookOrder) -> Response:
    """Make a webhook. If its goal has ended already, that is told at once."""
    hook = await make_webhook(call, order, WebhookId(call.hooks.draw(8).hex()))
    shown = MadeDocument(**_shown(hook).model_dump(), secret=hook.secret)
    return document(told(shown), 201, {"Location": f"/v1/webhooks/{hook.webhook_id}"})


async def make_webhook(call: ApiCall, order: WebhookOrder, webhook_id: WebhookId, push: PushTarget | None = None) -> Webhook:
    """Keep a webhook; one of the same id is replaced. If its goal has ended already, that is told at once.

    Raises:
        ForbiddenError: The caller's key is not for that.
        NotFoundError: There is no such goal.
        InvalidInputError: The URL leads to nowhere that may be posted to.
        OverQuotaError: The caller's key has as many as it may have.
        RateLimitedError: The key makes very many.
    """
    caller, hooks = call.caller, call.hooks
    caller.check(Scope.GOALS_READ, Scope.WEBHOOKS_WRITE)  # it is sent results
    call.limits.check_webhook(caller.key_id)
    if any(order.labels.get(name, value) != value for name, value in caller.labels.items()):
        raise ForbiddenError("This key has another value of one of these labels.", hint="Leave that label out.")
    name = None if order.goal_id is None else await call.goal(None, order.goal_id)
    await hooks.posting.check(order.url)
    made = {
        "webhook_id": webhook_id,
        "user": caller.user,
        "key_id": caller.key_id,
        "url": order.url,
        "events": tuple(dict.fromkeys(order.events)),
        "goal_id": order.goal_id,
        "labels": {**order.labels, **caller.labels},
        "secret": written_secret(hooks.draw(32)),
        "created_at": call.keyring.now(),
        "since": await hooks.store.ends(),
        "push": push,
    }
    hook = validate(Webhook, made)
    async with hooks.of_user(caller.user):
        await check_room(call, hook.webhook_id)
        await hooks.store.put(hook)
        try:
            await check_room(call, hook.webhook_id)  # another replica may have made one at the same time
        except OverQuotaError:
            await hooks.store.remove(hook.webhook_id)
            raise
    await _tell_of_the_end(call, hook, name)
    return hook


async def list_all(call: ApiCall, _query: Nothing, _body: Nothing) -> Response:
    """List the webhooks of the caller's user."""
    mine = [hook for hook in await call.hooks.store.all() if is_seen(call, hook)]
    return document(told(WebhooksDocument(webhooks=tuple(map(_shown, mine)))))


async def show(call: ApiCall, _query: Nothing, _body: Nothing) -> Response:
    """Show a webhook."""
    return document(told(_shown(await _found(call))))


async def remove(call: ApiCall, _query: Nothing, _body: Nothing) -> Response:
    """Remove a webhook; what waits for it is dropped."""
    await call.hooks.store.remove((await _found(call)).webhook_id)
    return Response(status_code=204)


async def check_room(call: ApiCall, webhook_id: WebhookId) -> None:
    """See that the caller's key may have a webhook besides all others of its own.

    Raises:
        OverQuotaError: It may not.
    """
    others = [one for one in await call.hooks.store.all() if one.key_id == call.caller.key_id and one.webhook_id != webhook_id]
    if len(others) >= MOST:
        raise OverQuotaError(f"This key has {MOST} webhooks already.", hint="Remove some.")


async def _tell_of_the_end(call: ApiCall, hook: Webhook, name: GoalName | None) -> None:
    if name is None or HookEvent.ENDED not in hook.events:
        return
    ended = await call.client.result(name)
    if ended is not None and bears((await call.client.goal(name)).record.goal.labels, hook.labels):
        await call.hooks.store.queue(notice_of_end(hook, ended))


async def _found(call: ApiCall) -> Webhook:
    webhook_id = call.path["webhook_id"]
    found = await call.hooks.store.find(WebhookId(webhook_id)) if is_token(webhook_id) else None
    if found is None or not is_seen(call, found):
        raise NotFoundError("There is no such webhook.", hint="`GET /v1/webhooks` lists them.")
    return found


def is_seen(call: ApiCall, hook: Webhook) -> bool:
    """Whether a webhook is the caller's to see."""
    return hook.user == call.caller.user and bears(hook.labels, call.caller.labels)


def _shown(hook: Webhook) -> WebhookDocument:
    return WebhookDocument(**{name: getattr(hook, name) for name in WebhookDocument.model_fields})
