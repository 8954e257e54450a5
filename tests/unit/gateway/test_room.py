"""How much may wait for a user's webhooks, and who still has room when it is used up."""

from __future__ import annotations

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
