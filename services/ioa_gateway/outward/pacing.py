"""How many messages are posted at a time, so that no webhook and no user holds up those of others.

What is put off comes back when its turn is likely to have come: the more of a webhook wait, the later. A webhook that fails is
left alone as a whole, longer each time, and then tried with one message.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ioa.protocol.ids import UserId
from ioa.protocol.webhooks import Webhook, WebhookId

AT_ONCE, AT_ONCE_OF_USER = 4, 8
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_SOON, _LATEST = timedelta(seconds=1), timedelta(minutes=10)
_LEFT_ALONE = timedelta(minutes=5)
_USUAL = timedelta(seconds=0.1)


@dataclass
class _Standing:
    """How it goes with one webhook.

    Attributes:
        posts: How many go on.
        failures: How many failed since one was taken, of those that were begun one after another.
        left_until: When it is tried again.
        last_back: When the last message comes back that was put off.
        took: How long a post took lately.
    """

    posts: int = 0
    failures: int = 0
    left_until: datetime = _LONG_AGO
    last_back: datetime = _LONG_AGO
    took: timedelta = _USUAL


class Pacing:
    """Says which messages one replica may post now."""

    def __init__(self) -> None:
        self._standings: dict[WebhookId, _Standing] = {}
        self._of_users = Counter[UserId]()

    def enter(self, hook: Webhook, now: datetime) -> timedelta | None:
        """Count a post that begins now; or return in how long its message is to come back."""
        one = self._standings.setdefault(hook.webhook_id, _Standing())
        at_once = 1 if one.failures else AT_ONCE
        if now >= one.left_until and one.posts < at_once and self._of_users[hook.user] < AT_ONCE_OF_USER:
            one.posts += 1
            self._of_users[hook.user] += 1
            return None
        one.last_back = min(max(one.last_back + one.took / AT_ONCE, one.left_until, now + _SOON), now + _LATEST)
        return one.last_back - now

    def leave(self, hook: Webhook, began: datetime, now: datetime, *, is_taken: bool | None) -> None:
        """Count a post that has ended; None if it was never sent."""
        one = self._standings[hook.webhook_id]
        one.posts -= 1
        self._of_users[hook.user] -= 1
        if not self._of_users[hook.user]:
            del self._of_users[hook.user]
        if is_taken is not None:
            one.took = now - began
        if is_taken:
            one.failures, one.left_until = 0, _LONG_AGO
        elif is_taken is False and now >= one.left_until:  # those that fail together count once
            one.left_until = now + min(_SOON * (1 << min(one.failures, 10)), _LEFT_ALONE)
            one.failures += 1
        if not (one.posts or one.failures) and one.last_back <= now:
            del self._standings[hook.webhook_id]

    def is_failing(self, webhook_id: WebhookId) -> bool:
        """Whether the last post failed."""
        one = self._standings.get(webhook_id)
        return one is not None and one.failures > 0

    def forget(self, webhook_id: WebhookId) -> None:
        """Forget a webhook that is gone, unless it is being posted to."""
        one = self._standings.get(webhook_id)
        if one is not None and not one.posts:
            del self._standings[webhook_id]
