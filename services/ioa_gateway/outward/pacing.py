"""How many messages are posted at a time, so that no webhook and no user holds up those of others.

What is put off comes back when its turn is likely to have come: the more of a webhook wait, the later. What finds no place comes
back as fast as its user's posts may begin, his webhooks by turns, whatever others do, since each time costs less than the post that
he may begin. A webhook that fails is left alone as a whole, longer each time, and then tried with one message; what waits for all
that fail comes back at one rate, of which users have equal parts, and of these their webhooks.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ioa.protocol.ids import UserId
from ioa.protocol.webhooks import Notice, Webhook, WebhookId

AT_ONCE, AT_ONCE_OF_USER = 4, 8
PROBES_OF_USER = 2
"""How many webhooks of a user that failed are tried at a time: one that does not answer takes as long as a post may."""
APART_OF_USER, BURST_OF_USER = timedelta(milliseconds=20), 100
"""How far apart the posts of one user begin, and how many may begin before that counts: each costs the event loop some ms, in which
others' requests wait, of which TLS is the most."""
BACK_APART = timedelta(milliseconds=5)
"""How far apart what is put off for webhooks that fail comes back, of all users together."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_SOON, _LATEST = timedelta(seconds=1), timedelta(minutes=10)
_LEFT_ALONE = timedelta(minutes=5)
_USUAL = timedelta(seconds=0.1)


@dataclass
class _OfUser:
    """How it goes with a user's webhooks.

    Attributes:
        webhooks: How many are known of.
        failing: How many of these fail.
        posts: How many go on.
        probes: How many of these are probes.
        begun_until: Until when those that were begun have taken what he may have begun.
        last_back: When the last message comes back of a webhook of which no other one did.
    """

    webhooks: int = 0
    failing: int = 0
    posts: int = 0
    probes: int = 0
    begun_until: datetime = _LONG_AGO
    last_back: datetime = _LONG_AGO


@dataclass
class _Standing:
    """How it goes with one webhook.

    Attributes:
        user: Whose it is.
        posts: How many go on.
        is_probed: Whether the one that goes on shows if the webhook still fails.
        failures: How many failed since one was taken, of those that were begun one after another.
        left_until: When it is tried again.
        last_back: When the last message comes back that was put off.
        took: How long a post took lately.
    """

    user: UserId
    posts: int = 0
    is_probed: bool = False
    failures: int = 0
    left_until: datetime = _LONG_AGO
    last_back: datetime = _LONG_AGO
    took: timedelta = _USUAL

    def is_over(self, now: datetime) -> bool:
        """Whether nothing of it comes any more, and it has not failed lately: others deliver what was put off here, too."""
        return not self.posts and max(self.last_back, self.left_until + _LATEST) <= now


class Pacing:
    """Says which messages one replica may post now."""

    def __init__(self) -> None:
        self._standings: OrderedDict[WebhookId, _Standing] = OrderedDict()
        self._of_users: OrderedDict[UserId, _OfUser] = OrderedDict()

    def enter(self, hook: Webhook | Notice, now: datetime) -> timedelta | None:
        """Count a post that begins now; or return in how long its message is to come back."""
        self._look_at_one(now)
        one, of_user = self._of(hook)
        at_once, probes = (1, PROBES_OF_USER) if one.failures else (AT_ONCE, AT_ONCE_OF_USER)
        has_place = one.posts < at_once and of_user.posts < AT_ONCE_OF_USER and of_user.probes < probes
        if now < one.left_until or not has_place or not self._may_begin(of_user, now):
            return self._put_off(one, of_user, now)
        one.is_probed = one.failures > 0
        one.posts += 1
        of_user.posts += 1
        of_user.probes += one.is_probed
        return None

    def _may_begin(self, of_user: _OfUser, now: datetime) -> bool:
        """Count a post of a user that begins now, unless too many have."""
        begun_until = max(of_user.begun_until, now) + APART_OF_USER
        if begun_until > now + APART_OF_USER * BURST_OF_USER:
            return False
        of_user.begun_until = begun_until
        return True

    def _put_off(self, one: _Standing, of_user: _OfUser, now: datetime) -> timedelta:
        """Return in how long a message is to come back: webhooks that wait one behind another, and so what waits for each."""
        if one.failures:
            back = max(one.last_back + BACK_APART * of_user.webhooks * len(self._of_users), one.left_until)
        elif one.last_back > now:
            back = one.last_back + max(APART_OF_USER, one.took / AT_ONCE_OF_USER) * (of_user.webhooks - of_user.failing)
        else:
            back = of_user.last_back = min(max(of_user.last_back + APART_OF_USER, now + _SOON), now + _LATEST)
        one.last_back = min(max(back, one.last_back + one.took / AT_ONCE, now + _SOON), now + _LATEST)
        return one.last_back - now

    def leave(self, hook: Webhook | Notice, began: datetime, now: datetime, *, is_taken: bool | None) -> None:
        """Count a post that has ended; None if it was never sent."""
        one, of_user = self._of(hook)
        one.posts -= 1
        of_user.posts -= 1
        of_user.probes -= one.is_probed
        one.is_probed = False
        if is_taken is not None:
            one.took = now - began
        if is_taken:
            of_user.failing -= one.failures > 0
            one.failures, one.left_until = 0, _LONG_AGO
        elif is_taken is False and now >= one.left_until:  # those that fail together count once
            one.left_until = now + min(_SOON * (1 << min(one.failures, 10)), _LEFT_ALONE)
            of_user.failing += one.failures == 0
            one.failures += 1
        if one.is_over(now):
            self._drop(hook.webhook_id)

    def is_failing(self, webhook_id: WebhookId) -> bool:
        """Whether the last post failed."""
        one = self._standings.get(webhook_id)
        return one is not None and one.failures > 0

    def forget(self, webhook_id: WebhookId) -> None:
        """Forget a webhook that is gone, unless it is being posted to."""
        one = self._standings.get(webhook_id)
        if one is not None and not one.posts:
            self._drop(webhook_id)

    def _of(self, hook: Webhook | Notice) -> tuple[_Standing, _OfUser]:
        one = self._standings.get(hook.webhook_id)
        if one is None:
            one = self._standings[hook.webhook_id] = _Standing(hook.user)
            self._of_users.setdefault(hook.user, _OfUser()).webhooks += 1
        return one, self._of_users[one.user]

    def _look_at_one(self, now: datetime) -> None:
        """Forget a webhook of which nothing has come for long, since it was removed, or others deliver, and a user who has none.

        Each is looked at in turn.
        """
        if not self._of_users:
            return
        user, of_user = next(iter(self._of_users.items()))
        self._of_users.move_to_end(user)
        if not of_user.webhooks and of_user.begun_until <= now:
            del self._of_users[user]
        if not self._standings:
            return
        webhook_id, one = next(iter(self._standings.items()))
        if one.is_over(now):
            self._drop(webhook_id)
        else:
            self._standings.move_to_end(webhook_id)

    def _drop(self, webhook_id: WebhookId) -> None:
        one = self._standings.pop(webhook_id)
        of_user = self._of_users[one.user]
        of_user.webhooks -= 1
        of_user.failing -= one.failures > 0
