"""What the gate of a nats-server lets in: never more than the authorization, and itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ioa.adapters.nats.authorization import Callout, at_the_gate, authorization, roster_of
from ioa.adapters.nats.permissions import Service, of_admin, of_agent, of_gateway, of_observer, of_service, of_user
from ioa.errors import InvalidInputError
from ioa.hosting.gate import Gate
from ioa.protocol.ids import AgentId, PoolId, TenantId, UserId

ANNA, ADA = of_user(UserId("anna")), of_agent(AgentId("ada"), PoolId("sums"))
KEYS = {
    "UANNA1": ANNA,
    "UANNA2": ANNA,
    "UADA": ADA,
    "UACME": replace(ANNA, tenant=TenantId("acme")),
    "UEYE": of_observer(),
    "UGATEWAY": of_gateway(),
    "UROUTER": of_service(Service.ROUTER),
    "UADMIN": of_admin(),
    "UTHEIRS": replace(of_service(Service.ROUTER), tenant=TenantId("acme")),
}
RENDERED = authorization(KEYS, Callout("UASKED", "AISSUER"))


def _let_in(rendered: str) -> set[str]:
    return {user["nkey"] for account in json.loads(rendered)["accounts"].values() for user in account["users"]}


@pytest.mark.parametrize(
    ("kept_out", "out"),
    [
        (set(), set()),
        ({"anna"}, {"UANNA1", "UANNA2"}),
        ({"acme/anna", "ada"}, {"UACME", "UADA"}),
        ({"UEYE"}, {"UEYE"}),
        ({"acme/service:router", "router", "service:router"}, {"UTHEIRS"}),
        ({"UGATEWAY", "UROUTER", "UADMIN", "UASKED", "router"}, set()),
    ],
)
def test_who_is_kept_out_is_let_in_no_more(kept_out: set[str], out: set[str]) -> None:
    """By his name under all his keys, or by his key; a gateway, and a service or an admin of whose server it is, never."""
    assert _let_in(at_the_gate(RENDERED, "UGATE", kept_out)) == _let_in(RENDERED) - out | {"UGATE"}


def test_the_authorization_tells_users_from_agents() -> None:
    """What a user did is counted to nobody but a user, whatever agents are called."""
    assert roster_of(RENDERED).users == {"anna", "acme/anna"}


def test_a_gate_changes_nothing_else() -> None:
    """What the others may do, and all that stands beside the accounts, is the authorization's."""
    [before, after] = [json.loads(one) for one in (RENDERED, at_the_gate(RENDERED, "UGATE", {"anna"}))]
    for one in (before, after):
        one["accounts"] = {
            name: {**account, "users": [user for user in account["users"] if user["nkey"] not in ("UGATE", "UANNA1", "UANNA2")]}
            for name, account in one["accounts"].items()
        }
    assert after == before


async def test_a_gate_follows_the_authorization_and_keeps_its_key(tmp_path: Path) -> None:
    """Who is revoked is let in no more though the gate runs on, and one that starts again is known to the server."""
    source, let_in = tmp_path / "authorization.conf", tmp_path / "gate" / "let-in.conf"
    source.write_text(RENDERED)
    gate = Gate(source, let_in)
    assert [await gate.write(frozenset()) for _ in range(2)] == [True, False]
    first = _let_in(let_in.read_text())
    source.with_name("new").write_text(authorization({key: may for key, may in KEYS.items() if key != "UADA"}))
    source.with_name("new").replace(source)
    assert await gate.write(frozenset({"anna"}))
    assert _let_in(let_in.read_text()) == first - {"UADA", "UANNA1", "UANNA2", "UASKED"}
    await Gate(source, let_in).write(frozenset())
    assert first - _let_in(let_in.read_text()) == {"UADA", "UASKED"}
    assert [oct(file.stat().st_mode & 0o777) for file in sorted(let_in.parent.iterdir())] == ["0o600", "0o600"]


def test_a_gate_starts_only_with_an_authorization(tmp_path: Path) -> None:
    """Else the server would let in nobody, or whoever wrote something else there."""
    (tmp_path / "authorization.conf").write_text('{"accounts": {"IOA": {"users": [{"user": "x"}]}}}')
    with pytest.raises(InvalidInputError):
        Gate(tmp_path / "authorization.conf", tmp_path / "gate" / "let-in.conf")
