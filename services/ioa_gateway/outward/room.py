"""How much may wait for a user's webhooks: what those that nobody answers are to be told is tried again and again, for a day.

A user has so much for all that he is told of, of which what is no end of a goal takes half at the most. When it is used up, each
webhook still has a part, so that those that fail leave room for the others: its key's part of the user's is divided by the webhooks
of the key. What waited for webhooks that were removed since counts until it is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ioa.protocol.ids import UserId
from ioa.protocol.webhooks import HookEvent, Notice, Webhook, WebhookId

OF_USER = 10_000


class Room:
    """Says what may be queued, by how much waited when that was counted last and what has been queued since.

    Before it was counted, and where it cannot be, the queue's own bounds are all that there is.
    """

    def __init__(self) -> None:
        self._counted: Mapping[WebhookId, int] | None = None
        self._since, self._asked_since = Counter[WebhookId](), Counter[WebhookId]()
        self._of_users = Counter[UserId]()
        self._users: dict[WebhookId, UserId] = {}
        self._parts: dict[WebhookId, int] = {}

    def see(self, hooks: Sequence[Webhook]) -> None:
        """Learn which webhooks there are."""
        keys = {hook.user: set[str]() for hook in hooks}
        for hook in hooks:
            keys[hook.user].add(hook.key_id)
        of_key = Counter((hook.user, hook.key_id) for hook in hooks)
        self._parts = {hook.webhook_id: len(keys[hook.user]) * of_key[hook.user, hook.key_id] for hook in hooks}
        self._users.update((hook.webhook_id, hook.user) for hook in hooks)

    def ask(self) -> None:
        """Note that what waits is being counted: what is queued from now on may be in the count or not."""
        self._asked_since = Counter()

    def count(self, waiting: Mapping[WebhookId, int] | None) -> None:
        """Take a count; None if it cannot be had."""
        self._counted, self._since = waiting, self._asked_since
        self._asked_since = Counter()
        self._users = {one: user for one, user in self._users.items() if one in self._parts or one in (waiting or ())}
        self._of_users = Counter()
        for one, user in self._users.items():
            self._of_users[user] += self._of(one)

    def take(self, notice: Notice) -> bool:
        """Count a notice, or say that there is no room for it."""
        if self._counted is not None:
            most = OF_USER if notice.event is HookEvent.ENDED else OF_USER // 2
            part = max(1, most // self._parts.get(notice.webhook_id, 1))
            waits = self._of_users[notice.user]
            if waits >= most and (waits >= 2 * most or self._of(notice.webhook_id) >= part):
                return False
        for counts in (self._since, self._asked_since):
            counts[notice.webhook_id] += 1
        self._of_users[notice.user] += 1
        return True

    def _of(self, webhook_id: WebhookId) -> int:
        return (self._counted or {}).get(webhook_id, 0) + self._since[webhook_id]
