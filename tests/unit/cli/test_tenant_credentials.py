"""`ioa credentials … --tenant`: each tenant's keys in folders of their own, and nobody touches another's."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.authorization import AccountLimits, read_callout, read_own_limits, read_tenants
from ioa.cli.credentials import create_credentials, parse_tenant, plan_of
from ioa.cli.key_rotation import KeyFolder, expire, revoke, rotate
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
from ioa.protocol.ids import TenantId
from ioa.testing.manual_clock import NEW_YEAR

_QUIET, _NOW = Terminal(as_json=True), NEW_YEAR
ACME, UMBRA = TenantId("acme"), TenantId("umbra")


def _create(folder: Path, tenant: TenantId | None, pools: list[str], limits: tuple[str, ...] = ()) -> None:
    create_credentials(folder, plan_of(pools, ["anna"], [], [], tenant=tenant, limits=limits), _QUIET, now=_NOW)


def _rendered(folder: Path) -> str:
    return (folder / "nats" / "authorization.conf").read_text()


def _let_in(folder: Path, account: str) -> set[str]:
    return {user["nkey"] for user in json.loads(_rendered(folder))["accounts"][account]["users"]}


def _files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_a_tenant_is_added_beside_others(tmp_path: Path) -> None:
    """Its seeds lie in folders of its own, closed ones; everybody who was let in before still is, by the same keys."""
    create_credentials(tmp_path, plan_of(["writer"], ["anna"], [], [], callout=True), _QUIET, now=_NOW)
    before, callout = (
        {name: _let_in(tmp_path, name) for name in ("IOA", "IOA_AGENTS", "IOA_USERS")},
        read_callout(_rendered(tmp_path)),
    )
    _create(tmp_path, UMBRA, ["writer"])
    _create(tmp_path, ACME, ["writer:2"], ("max_file=1000000",))
    assert {f"tenants/acme/{name}" for name in ("router/seed", "writer/writer-1", "anna/seed")} <= _files(tmp_path)
    assert {folder.stat().st_mode & 0o777 for folder in tmp_path.rglob("*") if folder.is_dir()} == {0o700}
    assert {name: _let_in(tmp_path, name) for name in before} == before
    assert [len(_let_in(tmp_path, name)) for name in ("IOA_acme", "IOA_acme_AGENTS", "IOA_umbra_AGENTS")] == [4, 2, 1]
    assert read_callout(_rendered(tmp_path)) == callout is not None
    assert read_tenants(_rendered(tmp_path)) == {ACME: AccountLimits(max_file=1_000_000), UMBRA: AccountLimits()}


def test_naming_everybody_is_naming_everybody_of_one_tenant(tmp_path: Path) -> None:
    """Who is left out is let in no more; another tenant's stay, as do its limits."""
    _create(tmp_path, ACME, ["writer:2"], ("agent_connections=5",))
    _create(tmp_path, UMBRA, ["writer:2"])
    _create(tmp_path, None, [])
    umbra = _let_in(tmp_path, "IOA_umbra_AGENTS")
    _create(tmp_path, ACME, ["writer:1"], ("agent_connections=6",))
    assert (len(_let_in(tmp_path, "IOA_acme_AGENTS")), _let_in(tmp_path, "IOA_umbra_AGENTS")) == (1, umbra)
    assert read_tenants(_rendered(tmp_path))[ACME] == AccountLimits(agent_connections=6)


async def test_keys_of_a_tenant_are_replaced_and_revoked_alone(tmp_path: Path) -> None:
    """The same name in another tenant is somebody else, whatever is done; a grace ends for all alike."""
    for tenant in (None, ACME, UMBRA):
        await asyncio.to_thread(_create, tmp_path, tenant, ["writer"])
    others = {name: _let_in(tmp_path, name) for name in ("IOA_AGENTS", "IOA_umbra_AGENTS")}
    keys = KeyFolder(tmp_path, None, ACME)
    await asyncio.to_thread(rotate, keys, "writer", timedelta(hours=1), _NOW, _QUIET)
    graced = len(_let_in(tmp_path, "IOA_acme_AGENTS"))
    await asyncio.to_thread(expire, KeyFolder(tmp_path, None), _NOW + timedelta(hours=1), _QUIET)
    expired = len(_let_in(tmp_path, "IOA_acme_AGENTS"))
    await revoke(keys, "writer", None, _NOW, _QUIET)
    assert (graced, expired, _let_in(tmp_path, "IOA_acme_AGENTS")) == (2, 1, set())
    assert {name: _let_in(tmp_path, name) for name in others} == others


async def test_a_tenant_is_thrown_out_as_a_whole(tmp_path: Path) -> None:
    """Nobody of it is let in, none of its accounts is left, and its seeds are gone; others stay."""
    for tenant in (ACME, UMBRA):
        await asyncio.to_thread(_create, tmp_path, tenant, ["writer"])
    await revoke(KeyFolder(tmp_path, None, ACME), None, None, _NOW, _QUIET)
    assert [*read_tenants(_rendered(tmp_path))] == [UMBRA]
    assert not [name for name in _files(tmp_path) if name.startswith("tenants/acme/")]
    with pytest.raises(InvalidInputError, match="not said whose"):
        await revoke(KeyFolder(tmp_path, None), None, None, _NOW, _QUIET)


def test_limits_of_a_system_without_tenants_stay_until_it_is_made_anew(tmp_path: Path) -> None:
    """They hold for the tenant without a name, whatever is done for others; who names everybody again says them again."""
    few = AccountLimits(agent_connections=6, user_subscriptions=7)
    _create(tmp_path, None, ["writer"], limits=("agent_connections=6", "user_subscriptions=7"))
    _create(tmp_path, ACME, ["writer"])
    kept = read_own_limits(_rendered(tmp_path))
    _create(tmp_path, None, ["writer"])
    assert (kept, read_own_limits(_rendered(tmp_path))) == (few, AccountLimits())


def test_what_fits_no_tenant_is_refused_before_anything_is_made() -> None:
    """An auth callout of one tenant alone, misspelt limits and names that do not fit."""
    with pytest.raises(InvalidInputError, match="all tenants"):
        plan_of([], [], [], [], tenant=ACME, callout=True)
    for limit in ("max_files=5", "max_file", "max_file=much"):
        with pytest.raises(InvalidInputError, match="does not fit"):
            plan_of([], [], [], [], tenant=ACME, limits=[limit])
    with pytest.raises(InvalidInputError, match="no tenant's name"):
        parse_tenant("A.B")
