"""Whom a service tells of, that it slows down."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.slowed_callers import slowed_answer, slowed_by
from ioa.ports.inspection import FLOOD, TURNED_AWAY, SlowedCaller
from ioa.quotas import Family

_FLOODERS = [SlowedCaller(f"eve-{number}", FLOOD, 20_000 + number) for number in range(60)]


@pytest.mark.parametrize("others", [TURNED_AWAY, Family.SAY])
def test_many_of_one_family_hide_nobody_of_another(others: str) -> None:
    """A network of IPv6 costs nothing, nor does a name among an agent's requests: thousands of them push no flooder out."""
    many = [SlowedCaller(f"2001:db8:0:{number:x}::/64", others, 1_000_000) for number in range(5_000)]
    for found in ((many, _FLOODERS), (_FLOODERS, many)):
        service, told = slowed_by(slowed_answer("ioa-registry", *found))
        assert (service, [one for one in told if one.family == FLOOD]) == ("ioa-registry", _FLOODERS)
        assert len(told) == 200


def test_whom_it_tells_first() -> None:
    """Of those who ask too often, who does so most; of those who were disconnected, who was last."""
    asking = [SlowedCaller(f"bob-{number}", Family.SAY, number) for number in range(300)]
    _, told = slowed_by(slowed_answer("ioa-router", _FLOODERS, asking))
    assert [one.refused for one in told if one.family == Family.SAY] == [*range(299, 159, -1)]
    assert [one for one in told if one.family == FLOOD] == _FLOODERS
