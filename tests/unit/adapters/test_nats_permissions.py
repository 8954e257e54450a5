"""What the permissions promise as a whole, whoever they are for."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from ioa.adapters.nats import authorization as rendering
from ioa.adapters.nats.accounts import AGENTS, CONTROL_PLANE, USERS
from ioa.adapters.nats.authorization import User, authorization
from ioa.adapters.nats.permissions import (
    PULLS,
    STANDING,
    Service,
    covers,
    crossing_of,
    crossings,
    is_answered_often,
    of_admin,
    of_agent,
    of_auditor,
    of_observer,
    of_service,
    of_user,
)
from ioa.adapters.nats.queues import _PULL
from ioa.adapters.nats.request import SEARCH_TIMEOUT
from ioa.adapters.nats.server import MAX_SUBSCRIBED_PARTS
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa.protocol.subjects import READ_REQUESTS, user_read

ANNA = UserId("anna")
ADA = of_agent(AgentId("ada"), PoolId("sums"))
OUTSIDE = {"agent": ADA, "user": of_user(ANNA), "observer": of_observer(), "auditor": of_auditor()}
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


def test_every_export_names_who_imports_it() -> None:
    """Each import has its export, which names the importing account. The caller is shown where the subject does not name it."""
    accounts = json.loads(authorization([]))["accounts"]
    exported = {
        (kind, one[kind], importer)
        for one in accounts[CONTROL_PLANE]["exports"]
        for kind in ("service", "stream")
        if kind in one
        for importer in one["accounts"]
    }
    imports = [
        (one, kind, name) for name in (AGENTS, USERS) for one in accounts[name]["imports"] for kind in one.keys() - {"share"}
    ]
    assert exported == {(kind, one[kind]["subject"], name) for one, kind, name in imports}
    shown = {one[kind]["subject"] for one, kind, _ in imports if one.get("share")}
    assert {"ioa.*.groups.status", "ioa.*.registry.list"} <= shown
    assert not any(one.endswith(".*") for one in shown), "these subjects name their callers"


def test_every_import_of_requests_has_a_wildcard() -> None:
    """To one without, the server hands on answers as well. That of JetStream's information alone tells nobody anything then."""
    crossed = [subject for crossing in crossings().values() for subject in crossing.requests]
    assert {one for one in crossed if "*" not in one and ">" not in one} == {"$JS.API.INFO"}


def test_what_is_answered_often_is_so_as_it_crosses_over() -> None:
    """The server takes one answer to a request of an export that does not say so, and keeps the others until their time is over."""
    read, pulls = "$JS.API.DIRECT.GET.IOA_LOG", ("$JS.API.CONSUMER.MSG.NEXT.IOA_HOOKS.hooks", f"{PULLS}any")
    assert all(is_answered_often(one) and is_answered_often(crossing_of(one)) for one in (read, "$SRV.PING"))
    once = (*STANDING, *(user_read(UserId("*"), request) for request in READ_REQUESTS), *pulls)
    assert not any(is_answered_often(crossing_of(one)) for one in once)


def test_reply_routes_are_kept_longer_than_our_requests_wait() -> None:
    """A reply that arrives while its caller waits is delivered, also to a pull."""
    accounts = json.loads(authorization([User("KEY", "ada", ADA)]))["accounts"]
    exported = [one for one in accounts["IOA"]["exports"] if "service" in one]
    assert {one["response_threshold"] for one in exported} == {"16s"}
    assert max(_PULL, SEARCH_TIMEOUT) < timedelta(seconds=16)
    (pulls,) = (one for one in exported if one["service"] == f"{PULLS}*")
    assert "response_type" not in pulls, "all that have been answered would be kept as well"


def test_nothing_crosses_twice() -> None:
    """Two imports that hold the same subject would deliver one request twice."""
    for crossing in crossings().values():
        for subjects in (crossing.requests, crossing.pushes):
            assert [(a, b) for a in subjects for b in subjects if a != b and covers(a, b)] == []


def test_the_admin_may_do_everything() -> None:
    """For repairs by hand."""
    assert (of_admin().publish, of_admin().subscribe) == ((">",), (">",))


def test_what_strangers_call_themselves_is_asked_about_in_what_a_connection_may_have_waiting() -> None:
    """Of sixty at once: nats-server tells a callout of a name twice, by six letters for one (`<`), in base64."""
    callout = rendering.Callout(user="C", issuer="I")
    line = json.loads(authorization([], callout))["max_control_line"]
    assert line > 7_500, "a token fits"
    assert 60 * line * 2 * 6 * 4 // 3 <= 8 * 1024 * 1024


def test_who_does_no_more_than_he_should_subscribes_to_subjects_of_few_parts() -> None:
    """The server takes none with many, each of which takes it memory; below an inbox and what a service is sent there is room."""
    listened = [one for may in EVERYBODY.values() for one in may.subscribe]
    assert max(len(one.split(".")) for one in listened) < MAX_SUBSCRIBED_PARTS
