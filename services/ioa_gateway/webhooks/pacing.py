"""Limits the concurrent posts of each webhook and user, and spaces the retries of waiting notices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ioa.protocol.ids import UserId
from ioa.protocol.webhooks import Notice, WebhookId

AT_ONCE, AT_ONCE_OF_USER = 4, 8
PROBES_OF_USER = 2
"""Maximum concurrent posts to webhooks of a user whose last post failed: a post may take until its timeout."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_SOONEST, _LATEST = timedelta(seconds=1), timedelta(minutes=10)
"""Time after which a waiting notice returns."""


@dataclass
class _Posts:
    """The posts of a webhook.

    Attributes:
        running: Number of running posts.
        probes: Number of them that began after a failed post.
        is_failing: Whether the last post failed.
        last_return: When the last waiting notice returns.
        took: Duration of the last post.
    """

    running: int = 0
    probes: int = 0
    is_failing: bool = False
    last_return: datetime = _LONG_AGO
    took: timedelta = timedelta(seconds=0.1)


class Pacing:
    """Decides which notices one replica may post now."""

    def __init__(self) -> None:
        self._posts: dict[WebhookId, _Posts] = {}
        self._running, self._probes = Counter[UserId](), Counter[UserId]()

    def enter(self, notice: Notice, now: datetime) -> timedelta | None:
        """Count a post that begins now; or return the time after which its notice is to be delivered again."""
        posts = self._posts.setdefault(notice.webhook_id, _Posts())
        at_once = 1 if posts.is_failing else AT_ONCE
        is_full = self._running[notice.user] >= AT_ONCE_OF_USER
        if posts.running >= at_once or is_full or (posts.is_failing and self._probes[notice.user] >= PROBES_OF_USER):
            posts.last_return = min(max(posts.last_return + posts.took / at_once, now + _SOONEST), now + _LATEST)
            return posts.last_return - now
        posts.running += 1
        posts.probes += posts.is_failing
        self._running[notice.user] += 1
        self._probes[notice.user] += posts.is_failing
        return None

    def leave(self, notice: Notice, began: datetime, now: datetime, *, is_taken: bool | None) -> None:
        """Count a post that has ended; `is_taken` is None if nothing was sent."""
        posts = self._posts[notice.webhook_id]
        is_probe = posts.probes > 0
        posts.running -= 1
        posts.probes -= is_probe
        self._running[notice.user] -= 1
        self._probes[notice.user] -= is_probe
        self._running, self._probes = +self._running, +self._probes
        if is_taken is not None:
            posts.took, posts.is_failing = now - began, not is_taken
        if not posts.running and not posts.is_failing and posts.last_return <= now:
            del self._posts[notice.webhook_id]

    def is_failing(self, webhook_id: WebhookId) -> bool:
        """Whether the last post failed."""
        posts = self._posts.get(webhook_id)
        return posts is not None and posts.is_failing

    def forget(self, webhook_id: WebhookId) -> None:
        """Forget a webhook that was removed, unless a post to it is running."""
        posts = self._posts.get(webhook_id)
        if posts is not None and not posts.running:
            del self._posts[webhook_id]
