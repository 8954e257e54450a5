"""How much may wait for a user's webhooks, and who still has room when it is used up."""

from __future__ import annotations

from collections import Counter

import pytest

from ioa.protocol.api_keys import KeyId
from ioa.protocol.ids import CommId, GoalId, UserId
from ioa.protocol.webhooks import HookEvent, Notice, WebhookId
from ioa.testing.manual_clock import NEW_YEAR
from ioa_gateway.outward.room import OF_USER, Room
from tests.unit.gateway.test_webhooks import hook

EVE, ANNA = UserId("eve"), UserId("anna")


def notice(webhook_id: str, user: UserId = EVE, event: HookEvent = HookEvent.ENDED) -> Notice:
    """Something that a webhook is to tell."""
    of: dict[str, object] = {"webhook_id": WebhookId(webhook_id), "event": event, "user": user}
    about = {"goal_id": GoalId("g"), "comm_id": CommId("g"), "message_id": "g", "at": NEW_YEAR}
    return Notice.model_validate({**of, **about})


def taken(room: Room, webhook_id: str, offered: int, event: HookEvent = HookEvent.ENDED, user: UserId = EVE) -> int:
    """Offer so many for one webhook, and return how many there was room for."""
    return sum(room.take(notice(webhook_id, user, event)) for _ in range(offered))


def test_what_waits_for_a_user_is_bounded_however_many_webhooks_she_has() -> None:
    """A hundred webhooks that nobody answers are told no more than one; other users, and ends of goals, have room."""
    room = Room()
    room.see([*(hook(f"e{number}", EVE) for number in range(100)), hook("a", ANNA)])
    room.count({})
    turns = sum(taken(room, f"e{number}", 1_000, HookEvent.TURN) for number in range(100))
    assert OF_USER // 2 <= turns < OF_USER
    ends = sum(taken(room, f"e{number}", 1_000) for number in range(100))
    assert OF_USER <= turns + ends <= 2 * OF_USER
    assert taken(room, "a", 100, HookEvent.TURN, ANNA) == 100


def test_a_webhook_that_fails_leaves_room_for_its_users_others() -> None:
    """When all is used up by one, each other one has its part of its key's: keys that are handed out take none from each other."""
    room = Room()
    hooks = [hook("dead", EVE), *(hook(f"b{number}", EVE, key_id=KeyId("handed-out")) for number in range(50))]
    room.see([*hooks, hook("mine", EVE, key_id=KeyId("mine"))])
    room.count({WebhookId("dead"): OF_USER})
    assert taken(room, "dead", 10) == 0
    assert taken(room, "mine", OF_USER) == OF_USER // 3
    assert taken(room, "b0", OF_USER) == OF_USER // 150


def test_what_waited_for_removed_webhooks_counts_until_it_is_gone() -> None:
    """Whoever removes her webhooks and makes new ones has no more room by that; they are forgotten with what waited for them."""
    room = Room()
    room.see([hook("old", EVE)])
    room.count({WebhookId("old"): 2 * OF_USER})
    room.see([hook("new", EVE)])
    room.count({WebhookId("old"): 2 * OF_USER})
    assert taken(room, "new", 10) == 0
    room.count({})
    assert taken(room, "new", 10) == 10


def test_what_is_queued_while_it_is_counted_counts() -> None:
    """It may be in the count or not. Of what was queued before, the count tells all."""
    room = Room()
    room.see([hook("one", EVE)])
    room.count({})
    assert taken(room, "one", 100) == 100
    room.ask()
    assert taken(room, "one", OF_USER - 100) == OF_USER - 100
    room.count({WebhookId("one"): 100})
    assert taken(room, "one", 100) == 0
    room.ask()
    room.count({WebhookId("one"): OF_USER - 10})
    assert taken(room, "one", 100) == 10


@pytest.mark.parametrize("known", [False, True])
def test_where_nothing_can_be_counted_all_is_queued(known: bool) -> None:
    """The bounds of the queue are what stands then."""
    room = Room()
    room.see([hook("one", EVE)])
    if known:
        room.count({WebhookId("one"): 2 * OF_USER})
        room.count(None)
    assert Counter(room.take(notice("one")) for _ in range(2 * OF_USER)) == {True: 2 * OF_USER}
