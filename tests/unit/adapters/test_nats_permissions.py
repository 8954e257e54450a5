"""What the permissions promise as a whole, whoever they are for."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.permissions import (
    CLIENTS,
    Permissions,
    Service,
    covers,
    crossing,
    of_admin,
    of_agent,
    of_observer,
    of_service,
    of_user,
)
from ioa.protocol.ids import AgentId, PoolId

ADA = of_agent(AgentId("ada"), PoolId("sums"))
OUTSIDE = {"agent": ADA, "user": of_user(), "observer": of_observer()}
EVERYBODY = OUTSIDE | {service.value: of_service(service) for service in Service}


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.>", "a.b.c", True),
        (">", "a", True),
        ("a.*", "a.*", True),
        ("a.>", "a.*", True),
        ("a.*", "a.>", False),
        ("a.b", "a.*", False),
        ("a.>", "a", False),
        ("a.*", "a.b.c", False),
        ("a.b.c", "a.b", False),
    ],
)
def test_a_pattern_covers_what_it_holds(pattern: str, subject: str, expected: bool) -> None:
    """A pattern covers another if every subject of the other is one of its own."""
    assert covers(pattern, subject) is expected


@pytest.mark.parametrize("name", EVERYBODY)
def test_nobody_but_the_admin_destroys(name: str) -> None:
    """No stream is deleted, no consumer but one's own watches; only what is open, goes with a goal, or is an offer is removed."""
    found = {one for one in EVERYBODY[name].publish if ".PURGE." in one or ".DELETE." in one}
    assert {one for one in found if not one.startswith("$JS.API.CONSUMER.DELETE.KV_")} == _DESTROYS.get(name, set())


_INDEXES = {f"$JS.API.STREAM.PURGE.KV_IOA_{bucket}" for bucket in ("MEMBERS", "OPEN")}
_OF_GOALS = {
    f"$JS.API.STREAM.PURGE.{stream}" for stream in ("IOA_LOG", "IOA_RESULTS", "IOA_TIMERS", "OBJ_IOA_FILES", "KV_IOA_GOAL_RECORDS")
}
_DESTROYS = {
    "discovery": {"$JS.API.CONSUMER.DELETE.IOA_OUTCOMES.*"},
    "registry": {"$JS.API.CONSUMER.DELETE.IOA_WORK.*"},
    "groups": _INDEXES | _OF_GOALS | {"$JS.API.STREAM.MSG.DELETE.IOA_WORK"},
    "router": _INDEXES,
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_nobody_outside_makes_a_consumer(name: str) -> None:
    """Who makes one has the server deliver to any subject."""
    may = OUTSIDE[name]
    made = [one for one in may.publish if ".CONSUMER.CREATE" in one or ".CONSUMER.DURABLE" in one or ".STREAM.CREATE" in one]
    assert (may.account, made) == (CLIENTS, [])


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_permitted_outside_crosses_over(name: str) -> None:
    """A permission is of no use for a subject that the clients' account does not import."""
    requests, pushes = crossing()
    may = OUTSIDE[name]
    lost = [one for one in may.publish if not any(covers(pattern, one) for pattern in requests)]
    lost += [one for one in may.subscribe if not any(covers(pattern, one) for pattern in pushes)]
    assert lost == []


def test_nothing_crosses_twice() -> None:
    """Two imports that hold the same subject would deliver one request twice."""
    for subjects in crossing():
        assert [(a, b) for a in subjects for b in subjects if a != b and covers(a, b)] == []


def test_an_agent_names_nobody_else() -> None:
    """Every subject of an agent that has a place for an agent's id has its own there."""
    bob = of_agent(AgentId("bob"), PoolId("words"))
    common = set(ADA.publish) & set(bob.publish)
    assert not any("ada" in subject or "sums" in subject for subject in common)
    assert not any(covers(mine, his) for mine in _own(ADA, common) for his in _own(bob, common))


def test_the_admin_may_do_everything() -> None:
    """For repairs by hand."""
    assert (of_admin().publish, of_admin().subscribe) == ((">",), (">",))


def _own(may: Permissions, common: set[str]) -> list[str]:
    return [*(subject for subject in may.publish if subject not in common), *may.subscribe]
