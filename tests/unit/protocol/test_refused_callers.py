"""What gateways tell of those whom they refuse is put together, and holds for a while."""

from __future__ import annotations

from ioa.protocol.refused_callers import RefusedCallers, RefusedCallersList


def test_all_gateways_together_are_heard_and_one_that_is_gone_no_more() -> None:
    """Each says anew what it counts; what it said before does not count besides."""
    heard = RefusedCallersList()
    heard.hear(RefusedCallers(by="one", requests={"eve": 4}), 0.0)
    heard.hear(RefusedCallers(by="one", requests={"eve": 5}), 2.0)
    heard.hear(RefusedCallers(by="two", requests={"eve": 7, "192.0.2.7": 1}), 10.0)
    assert heard.requests(16.0) == {"eve": 12, "192.0.2.7": 1}
    assert (heard.requests(20.0), heard.requests(26.0)) == ({"eve": 7, "192.0.2.7": 1}, {})


def test_no_more_gateways_are_remembered_than_there_may_be() -> None:
    """Whoever invents gateways fills nothing, and keeps none out that was heard before."""
    heard = RefusedCallersList()
    for number in range(1_000):
        heard.hear(RefusedCallers(by=str(number), requests={"eve": 1}), 0.0)
    heard.hear(RefusedCallers(by="0", requests={"eve": 10}), 1.0)
    assert heard.requests(2.0) == {"eve": 73}
