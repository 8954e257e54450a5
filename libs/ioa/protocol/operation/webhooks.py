"""Webhooks: signed HTTP requests about goals to a URL (Standard Webhooks).

A `Notice` waits until it is sent. It names an event and contains no content: a result is read when the notice is sent.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, NewType

from pydantic import Field

from ioa.protocol.goals import Labels
from ioa.protocol.ids import IS_TOKEN, GoalIdField, GoalName, UserIdField
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.operation.api_keys import KeyIdField

WebhookId = NewType("WebhookId", str)
WebhookIdField = Annotated[WebhookId, IS_TOKEN]

_SHOWN = r"^[ -~]*$"
"""Permitted characters of a header."""
_SECRET = "whsec_"  # noqa: S105 - a prefix


class HookEvent(StrEnum):
    """Events that a webhook can send."""

    ENDED = "ended"
    """A goal has ended; sent with its result."""
    ASKED = "asked"
    """A group of a goal asks its user or a person."""


class PushTarget(Model):
    """Data for a push notification of A2A, in addition to the URL.

    Attributes:
        config_id: The client's name for it, unique within a task.
        version: Protocol version of the client.
        base_url: URL of the gateway, for files.
        token: Value of the header `X-A2A-Notification-Token`.
        authorization: Value of the header `Authorization`.
    """

    config_id: Annotated[str, Field(max_length=200)]
    version: Literal["1.0", "0.3"]
    base_url: Annotated[str, Field(max_length=500)]
    token: Annotated[str, Field(repr=False, max_length=2_000, pattern=_SHOWN)] = ""
    authorization: Annotated[str, Field(repr=False, max_length=4_000, pattern=_SHOWN)] = ""


class Webhook(Model):
    """A stored webhook.

    Attributes:
        user: The user whose goals it reports.
        key_id: The key that created it. Nothing is sent after the key expires or is revoked.
        events: The events that it sends.
        goal_id: The goal; None for all goals of the user with the labels.
        secret: The key of signatures.
        after: The sequence of a result; only later results are reported.
        push: An A2A client created it; requests use that protocol, until its task has ended.
    """

    webhook_id: WebhookIdField
    user: UserIdField
    key_id: KeyIdField
    url: str
    events: tuple[str, ...]
    goal_id: GoalIdField | None = None
    labels: Labels = Field(default_factory=dict)
    secret: Annotated[str, Field(repr=False)]
    created_at: Time
    after: int
    push: Annotated[PushTarget | None, OMITTED_IF_EMPTY] = None

    def is_of(self, goal: GoalName) -> bool:
        """Whether it reports a goal with its labels."""
        return goal.user == self.user and self.goal_id in (None, goal.goal_id)


class Notice(Model):
    """A queued message of a webhook.

    Attributes:
        message_id: The same for each attempt, and for each webhook that is informed of the event.
        item: The open item, as a reference for the answer; empty for an end.
    """

    webhook_id: WebhookIdField
    message_id: str
    event: HookEvent
    at: Time
    user: UserIdField
    goal_id: GoalIdField
    item: str = ""


def written_secret(drawn: bytes) -> str:
    """Return a secret in the form for receivers."""
    return _SECRET + base64.b64encode(drawn).decode()


def signature_of(secret: str, message_id: str, at: datetime, body: bytes) -> str:
    """Sign a message (Standard Webhooks, `v1`)."""
    key = base64.b64decode(secret.removeprefix(_SECRET))
    signed = f"{message_id}.{int(at.timestamp())}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
