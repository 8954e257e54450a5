"""Webhooks: whoever asked for it is told by HTTP what became of goals, signed as Standard Webhooks says.

What is to be told waits as a `Notice`, which names what happened and holds nothing that was said: a result is read when it is sent.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, NewType

from pydantic import AfterValidator, Field

from ioa.protocol.api_keys import KeyIdField
from ioa.protocol.ids import AgentIdField, CommIdField, GoalIdField, GoalName, UserIdField, check_token
from ioa.protocol.labels import Labels
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time

WebhookId = NewType("WebhookId", str)
WebhookIdField = Annotated[WebhookId, AfterValidator(check_token)]

_SHOWN = r"^[ -~]*$"
"""What a header may hold."""
_SECRET = "whsec_"  # noqa: S105 - how every secret begins


class HookEvent(StrEnum):
    """What a webhook tells of."""

    ENDED = "ended"
    """A goal has ended; with its result."""
    PHASE = "phase"
    """A goal's group has come to another phase."""
    TURN = "turn"
    """The floor of a goal's group was granted anew."""


class StreamEnds(Model):
    """The sequences that results and logs had come to."""

    results: int
    log: int


class PushTarget(Model):
    """What a push notification of A2A needs besides a URL.

    Attributes:
        config_id: The client's name for it, of which a task has one each.
        version: Of the protocol, as the client speaks it.
        base_url: Of the gateway, where files are fetched.
        token: Shown to the receiver in `X-A2A-Notification-Token`.
        authorization: Shown to it in `Authorization`.
    """

    config_id: Annotated[str, Field(max_length=200)]
    version: Literal["1.0", "0.3"]
    base_url: Annotated[str, Field(max_length=500)]
    token: Annotated[str, Field(repr=False, max_length=2_000, pattern=_SHOWN)] = ""
    authorization: Annotated[str, Field(repr=False, max_length=4_000, pattern=_SHOWN)] = ""


class Webhook(Model):
    """A webhook as it is kept.

    Attributes:
        user: Whose goals it tells of.
        key_id: By which key it was made; when that lets nobody in any more, nothing more is told.
        events: What it tells of. A later version may know more.
        goal_id: The goal; None for all of the user that bear the labels.
        secret: What messages are signed with.
        since: It tells only of what was stored behind these.
        push: A client of A2A made it, and is told in that protocol, until its task has ended.
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
    since: StreamEnds
    push: Annotated[PushTarget | None, OMITTED_IF_EMPTY] = None

    def is_of(self, goal: GoalName) -> bool:
        """Whether it tells of a goal, if that bears its labels."""
        return goal.owner == self.user and self.goal_id in (None, goal.goal_id)


class Notice(Model):
    """One thing that a webhook is to tell.

    Attributes:
        message_id: The same however often it is sent, and to every webhook that tells of it.
        seq: Of the entry that it came by; 0 of an end.
        phase: Where the group stands since, unless it is an end.
        turn: The number of the floor grant, of `phase` and `turn`.
        floor: Who may speak since.
    """

    webhook_id: WebhookIdField
    message_id: str
    event: HookEvent
    at: Time
    user: UserIdField
    goal_id: GoalIdField
    comm_id: CommIdField
    seq: int = 0
    phase: Annotated[str, OMITTED_IF_EMPTY] = ""
    turn: Annotated[int, OMITTED_IF_EMPTY] = 0
    floor: Annotated[tuple[AgentIdField, ...], OMITTED_IF_EMPTY] = ()


def written_secret(drawn: bytes) -> str:
    """Write a secret as receivers are given it."""
    return _SECRET + base64.b64encode(drawn).decode()


def signature_of(secret: str, message_id: str, at: datetime, body: bytes) -> str:
    """Sign a message (Standard Webhooks, `v1`)."""
    key = base64.b64decode(secret.removeprefix(_SECRET))
    signed = f"{message_id}.{int(at.timestamp())}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
