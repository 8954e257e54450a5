"""One user's refused messages take a share of what is kept, and leave others' there."""

from __future__ import annotations

from ioa.ports.delivery import DeadReason
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.ids import LOCAL, CommId, GoalId, UserId
from ioa.protocol.webhooks import HookEvent, Notice, WebhookId
from ioa.runtime.dead_letter_share import KEPT, SharedDeadLetters, kept_in, user_of_goal, user_of_notice
from ioa.testing.manual_clock import NEW_YEAR


class _Kept:
    """A stream in memory."""

    def __init__(self) -> None:
        self.subjects: list[str] = []

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep where a letter was published."""
        self.subjects.append(subject)


async def test_a_user_fills_his_own_share_and_no_other() -> None:
    """What eve publishes beyond it is not kept; anna's is, and so is all of a system that asks nobody who he is."""
    kept, now = _Kept(), [0.0]
    dead = SharedDeadLetters(kept, user_of_goal, lambda: now[0])

    async def refuse(subject: str, times: int) -> int:
        for _ in range(times):
            await dead.put(DeadReason.UNREADABLE, "why", subject=subject, data=b"")
        return kept.subjects.count(subject)

    eve, to_bob = subjects.goal_of(UserId("eve")), f"{subjects.goal_of(UserId('eve'))}.bob"
    assert (await refuse(eve, 600), await refuse(to_bob, 600)) == (600, KEPT.burst - 600)
    local = subjects.goal_of(LOCAL)
    assert (await refuse(subjects.goal_of(UserId("anna")), 1), await refuse(local, KEPT.burst + 1)) == (1, KEPT.burst + 1)
    now[0] = 3 / KEPT.per_second
    assert await refuse(eve, 10) == 603


async def test_large_letters_count_by_their_bytes() -> None:
    """A thousand of the largest would be a gigabyte of one user's."""
    kept = _Kept()
    dead = SharedDeadLetters(kept, user_of_goal, lambda: 0.0)
    for _ in range(100):
        await dead.put(DeadReason.UNREADABLE, "why", subject=subjects.goal_of(UserId("eve")), data=b"x" * 256_000)
    assert len(kept.subjects) == KEPT.burst // 63


async def test_what_webhooks_did_not_take_counts_for_whom_it_tells_of() -> None:
    """However many webhooks a user has, what was to be told of his goals washes out nobody's; what cannot be read is nobody's."""
    kept = _Kept()
    dead = SharedDeadLetters(kept, user_of_notice, lambda: 0.0)

    def notice(user: str) -> bytes:
        one = Notice(
            webhook_id=WebhookId("hook"),
            message_id="m",
            event=HookEvent.ENDED,
            at=NEW_YEAR,
            user=UserId(user),
            goal_id=GoalId("goal"),
            comm_id=CommId("group"),
        )
        return encode(one)

    async def refuse(hook: str, data: bytes, times: int) -> int:
        for _ in range(times):
            await dead.put(DeadReason.WEBHOOK, "why", subject=subjects.hook(hook), data=data)
        return kept.subjects.count(subjects.hook(hook))

    eve = notice("eve")
    assert (await refuse("eve-1", eve, 600), await refuse("eve-2", eve, 600)) == (600, KEPT.burst - 600)
    assert (await refuse("anna", notice("anna"), 1), await refuse("odd", b"garbage", KEPT.burst + 1)) == (1, KEPT.burst + 1)


async def test_in_a_small_store_a_user_has_a_small_share() -> None:
    """Of 20 MB a thousand letters would be a fifth: a hundredth of it is his at once, and he takes as long to fill it."""
    kept = _Kept()
    dead = SharedDeadLetters(kept, user_of_goal, lambda: 0.0, kept_in(20_000_000))
    for _ in range(1_000):
        await dead.put(DeadReason.UNREADABLE, "why", subject=subjects.goal_of(UserId("eve")), data=b"x" * 4_000)
    assert len(kept.subjects) == 48
    assert kept_in(20_000_000).per_second == KEPT.per_second * 48 / 1_000
    assert [kept_in(size).burst for size in (100_000, 10**9, None)] == [10, KEPT.burst, KEPT.burst]
