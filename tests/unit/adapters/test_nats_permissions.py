"""What the permissions promise as a whole, whoever they are for."""

from __future__ import annotations

import json
from datetime import timedelta

from ioa.adapters.nats.auth.roles import (
    AGENTS,
    CONTROL_PLANE,
    PULLS,
    PUSHES_TO,
    REQUESTS_OF,
    USERS,
    Service,
    of_admin,
    of_agent,
    of_auditor,
    of_observer,
    of_service,
    of_user,
)
from ioa.adapters.nats.auth.server_config import User, authorization
from ioa.adapters.nats.delivery.work_queue import _PULL
from ioa.adapters.nats.requests.request import SEARCH_TIMEOUT
from ioa.adapters.nats.wire.embedded_server import MAX_SUBSCRIBED_PARTS
from ioa.protocol.ids import AgentId, PoolId, UserId
from tools.subjects_page import covers

ANNA = UserId("anna")
ADA = of_agent(AgentId("ada"), PoolId("sums"))
OUTSIDE = {"agent": ADA, "user": of_user(ANNA), "observer": of_observer("eye"), "auditor": of_auditor("tom")}
EVERYBODY = OUTSIDE | {service.value: of_service(service) for service in Service}


def test_imports_name_their_account_and_contain_a_wildcard() -> None:
    """To an import without a wildcard, the server delivers replies of other requests as well; no role may use the only one."""
    accounts = json.loads(authorization([]))["accounts"]
    exported = {
        (kind, one[kind], importer)
        for one in accounts[CONTROL_PLANE]["exports"]
        for kind in ("service", "stream")
        if kind in one
        for importer in one["accounts"]
    }
    imports = {(kind, one[kind]["subject"], name) for name in (AGENTS, USERS) for one in accounts[name]["imports"] for kind in one}
    assert exported == imports
    assert {one for kind, one, _ in imports if kind == "service" and "*" not in one and ">" not in one} == {"$JS.API.INFO"}
    assert not any("$JS.API.INFO" in may.publish for may in OUTSIDE.values())


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
    for subjects in (*REQUESTS_OF.values(), *PUSHES_TO.values()):
        assert [(a, b) for a in subjects for b in subjects if a != b and covers(a, b)] == []


def test_the_admin_may_do_everything() -> None:
    """For repairs by hand."""
    assert (of_admin().publish, of_admin().subscribe) == ((">",), (">",))


def test_who_does_no_more_than_he_should_subscribes_to_subjects_of_few_parts() -> None:
    """The server takes none with many, each of which takes it memory; below an inbox and what a service is sent there is room."""
    listened = [one for may in EVERYBODY.values() for one in may.subscribe]
    assert max(len(one.split(".")) for one in listened) < MAX_SUBSCRIBED_PARTS
