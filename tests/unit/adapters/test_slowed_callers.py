"""The callers that a service reports as slowed down."""

from __future__ import annotations

from ioa.adapters.nats.slowed_callers import slowed_answer, slowed_by
from ioa.ports.inspection import CHANGING, SlowedCaller
from ioa.quotas import Family

_CHANGING = [SlowedCaller(f"eve-{number}", CHANGING, 20_000 - number) for number in range(60)]


def test_many_callers_of_one_family_leave_room_for_other_families() -> None:
    """Thousands of callers of one family do not push out callers of another family."""
    many = [SlowedCaller(f"bob-{number}", Family.SAY, 1_000_000) for number in range(5_000)]
    for found in ((many, _CHANGING), (_CHANGING, many)):
        service, told = slowed_by(slowed_answer("ioa-discovery", *found))
        assert (service, [one for one in told if one.family == CHANGING]) == ("ioa-discovery", _CHANGING)
        assert len(told) == 200


def test_callers_with_most_rejections_come_first() -> None:
    """The answer contains the callers with the largest numbers."""
    asking = [SlowedCaller(f"bob-{number}", Family.SAY, number) for number in range(300)]
    _, told = slowed_by(slowed_answer("ioa-router", asking))
    assert [one.refused for one in told] == [*range(299, 99, -1)]
