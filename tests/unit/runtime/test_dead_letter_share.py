"""One user's refused messages take a share of what is kept, and leave others' there."""

from __future__ import annotations

from ioa.ports.delivery import DeadReason
from ioa.protocol import subjects
from ioa.protocol.ids import LOCAL, UserId
from ioa.runtime.dead_letter_share import KEPT, SharedDeadLetters


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
    dead = SharedDeadLetters(kept, lambda: now[0])

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
