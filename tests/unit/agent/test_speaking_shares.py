"""What one user's goals leave to others of what an agent may say."""

from __future__ import annotations

from ioa.agent.speaking_shares import SpeakingShares
from ioa.protocol.ids import UserId
from ioa.quotas import RATES, Admitted, Buckets, Family

ANNA, EVE, ADA = UserId("anna"), UserId("eve"), "ada"
RATE = RATES[Family.SAY]


def test_a_user_whose_goals_have_an_agent_speak_without_end_leaves_half_to_others() -> None:
    """What is said for others is said at once, and routers refuse nothing, so that the doctor does not name the agent."""
    shares, router = SpeakingShares(), Buckets({Family.SAY: RATE})
    of_anna = [shares.take(ANNA, 200, now=float(second)) for second in range(20)]
    of_eve = [shares.take(EVE, 200, now=0.0) for _ in range(20 * int(RATE.per_second))]
    said = sorted([*of_eve, *(float(second) for second in range(20))])
    assert set(of_anna) == {0.0}
    assert all(isinstance(router.judge(ADA, Family.SAY, at), Admitted) for at in said)
    assert 0.9 < len([at for at in of_eve if at < 20]) / (20 * RATE.per_second / 2 + RATE.burst) < 1.1


def test_a_user_alone_has_all_that_an_agent_may_say() -> None:
    """Nothing is kept for those who are not there, and who comes later does not wait for what was said before."""
    shares = SpeakingShares()
    assert {shares.take(EVE, 200, now=0.0) for _ in range(1_000)} == {0.0}
    assert {shares.take(ANNA, 200, now=0.0) for _ in range(10)} == {0.0}
    assert max(shares.take(EVE, 200, now=0.0) for _ in range(1_000)) > 10


def test_a_user_is_alone_again_when_nothing_is_said_for_others() -> None:
    """An agent that has worked for a second user once does not go on at half its pace for the first one."""
    shares = SpeakingShares()
    shares.take(ANNA, 200, now=0.0)
    assert max(shares.take(EVE, 200, now=59.0) for _ in range(1_000)) > 10
    shares = SpeakingShares()
    shares.take(ANNA, 200, now=0.0)
    assert max(shares.take(EVE, 200, now=70.0) for _ in range(1_000)) == 0.0


def test_what_is_long_counts_by_its_bytes() -> None:
    """Routers count a message once more for each so many bytes."""
    shares, unit = SpeakingShares(), RATE.unit_bytes or 0
    shares.take(ANNA, 200, now=0.0)
    few = [shares.take(EVE, 200, now=0.0) for _ in range(int(RATE.burst))]
    shares = SpeakingShares()
    shares.take(ANNA, 200, now=0.0)
    assert unit and sum(few) < sum(shares.take(EVE, 3 * unit, now=0.0) for _ in range(int(RATE.burst)))
