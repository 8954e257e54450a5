"""`ioa credentials`: idempotent edits of the roster, with a seed for each name, and an authorization that follows."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.auth.roles import OURS
from ioa.adapters.nats.auth.server_config import AccountLimits
from ioa.adapters.secret_stores import folder as folder_store
from ioa.adapters.secret_stores.nkeys import Key, create_seed, public_key_of, read_key
from ioa.adapters.system_folder import write_private
from ioa.cli.credentials import CredentialFolder, create, list_holders, parse_tenant, render, revoke, rotate, want
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.roster import AccessRole, AccessRoster, read_roster
from ioa.protocol.ids import TenantId
from ioa.testing.manual_clock import NEW_YEAR

_QUIET = Terminal(as_json=True)
_NOW, _HOUR = NEW_YEAR, timedelta(hours=1)
_NAMES = {
    AccessRole.USER: ["anna"],
    AccessRole.OBSERVER: ["grafana"],
    AccessRole.ADMIN: ["root"],
    AccessRole.AUDITOR: ["eve"],
    AccessRole.GATEWAY: ["web"],
}
ACME, UMBRA = TenantId("acme"), TenantId("umbra")


def _create(
    folder: Path,
    pools: Sequence[str] = (),
    names: Mapping[AccessRole, Sequence[str]] | None = None,
    tenant: TenantId | None = None,
    limits: Sequence[str] = (),
    callout: bool = False,
) -> CredentialFolder:
    keys = CredentialFolder(folder)
    create(keys, want(pools, names, tenant=tenant, limits=limits, callout=callout), _NOW, _QUIET)
    return keys


def _files(folder: Path) -> dict[str, bytes]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(".")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _seeds(folder: Path) -> set[str]:
    return {name for name in _files(folder) if not name.startswith(("nats/", "callout/"))}


def _roster(folder: Path) -> AccessRoster:
    return read_roster((folder / "nats" / "roster.json").read_bytes())


def _permitted(folder: Path, account: str | None = None) -> set[str]:
    """Return the public keys in the file of nats-server."""
    accounts = json.loads((folder / "nats" / "authorization.conf").read_text())["accounts"]
    return {user["nkey"] for name, one in accounts.items() if account in (None, name) for user in one["users"]}


def _public(folder: Path, name: str) -> str:
    return public_key_of(read_key(str(folder / name)).seed)


def test_each_name_gets_a_private_seed(tmp_path: Path) -> None:
    """The server gets the public keys, and no seed."""
    _create(tmp_path, ["writer:2", "solo"], _NAMES)
    services = {f"{name}/seed" for name in ("registry", "groups", "router", "discovery")}
    others = {f"{name}/seed" for names in _NAMES.values() for name in names}
    assert _seeds(tmp_path) == services | others | {"writer/writer-0", "writer/writer-1", "solo/solo"}
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in _files(tmp_path)} == {0o600}
    assert _permitted(tmp_path) == {_public(tmp_path, name) for name in _seeds(tmp_path)}
    written = (tmp_path / "nats" / "authorization.conf").read_text() + (tmp_path / "nats" / "roster.json").read_text()
    assert not any(read_key(str(tmp_path / name)).seed in written for name in _seeds(tmp_path))


def test_create_adds_names_and_changes_none(tmp_path: Path) -> None:
    """Running it again changes no file; names that are not given stay."""
    _create(tmp_path, ["writer:1"], {AccessRole.USER: ["anna"]}, limits=["agent_connections=6"])
    before = _files(tmp_path)
    _create(tmp_path, ["writer:1"], {AccessRole.USER: ["anna"]})
    assert _files(tmp_path) == before
    _create(tmp_path, ["writer:2"])
    after, old = _files(tmp_path), {name: data for name, data in before.items() if not name.startswith("nats/")}
    assert {name: after[name] for name in old} == old
    assert _permitted(tmp_path) == {_public(tmp_path, name) for name in _seeds(tmp_path)}
    assert _roster(tmp_path).limits == AccountLimits(agent_connections=6)


def test_create_rejects_a_name_of_another_role(tmp_path: Path) -> None:
    """A pool cannot take the name of a user that exists, and no file is written."""
    _create(tmp_path, [], {AccessRole.USER: ["anna"]})
    before = _files(tmp_path)
    with pytest.raises(InvalidInputError, match="another 'anna' already: the user"):
        _create(tmp_path, ["anna"])
    with pytest.raises(InvalidInputError, match="two of the name 'anna'"):
        _create(tmp_path, ["anna:2"])
    assert _files(tmp_path) == before


@pytest.mark.parametrize("name", [*sorted(OURS), "Local"])
def test_user_with_a_name_of_the_system_is_rejected(name: str) -> None:
    """Services would act for such a user. Other roles may have these names."""
    with pytest.raises(InvalidInputError, match=f"{name} is a name of the system's own"):
        want([], {AccessRole.USER: [name]})
    assert want([], {AccessRole.USER: ["anna"], AccessRole.ADMIN: ["admin"]}).holders


def test_old_key_connects_until_its_grace_period_ends(tmp_path: Path) -> None:
    """Each rendering drops the keys that have expired; other commands in the meantime keep the others."""
    keys = _create(tmp_path, ["writer:2"], {AccessRole.USER: ["anna"]})
    before, other = _public(tmp_path, "writer/writer-0"), _public(tmp_path, "writer/writer-1")
    rotate(keys, None, "writer-0", _HOUR, _NOW, _QUIET)
    after = _public(tmp_path, "writer/writer-0")
    _create(tmp_path, ["writer:2"])
    render(keys, _NOW + timedelta(minutes=59), _QUIET)
    assert {before, after, other} <= _permitted(tmp_path)
    render(keys, _NOW + _HOUR, _QUIET)
    assert (before in _permitted(tmp_path), {after, other} <= _permitted(tmp_path)) == (False, True)


def test_second_rotation_does_not_extend_the_first_grace_period(tmp_path: Path) -> None:
    """Each old key keeps the earlier of two ends."""
    keys = _create(tmp_path, [], {AccessRole.USER: ["anna"]})
    first = _public(tmp_path, "anna/seed")
    rotate(keys, None, "anna", _HOUR, _NOW, _QUIET)
    second = _public(tmp_path, "anna/seed")
    rotate(keys, None, "anna", 2 * _HOUR, _NOW, _QUIET)
    render(keys, _NOW + _HOUR, _QUIET)
    assert (first in _permitted(tmp_path), second in _permitted(tmp_path)) == (False, True)


def test_holder_keeps_its_inbox_when_its_key_is_replaced(tmp_path: Path) -> None:
    """The inbox is named after the holder. A seed that is copied without the name has an inbox of its public key."""
    keys = _create(tmp_path, [], {AccessRole.USER: ["anna"]})
    rotate(keys, None, "anna", timedelta(0), _NOW, _QUIET)
    key = read_key(str(tmp_path / "anna" / "seed"))
    accounts = json.loads((tmp_path / "nats" / "authorization.conf").read_text())["accounts"].values()
    users = {user["nkey"]: user["permissions"]["subscribe"]["allow"] for account in accounts for user in account["users"]}
    public = public_key_of(key.seed)
    assert (key.inbox_owner, users[public][-2:]) == ("anna", ["_INBOX.anna.>", f"_INBOX.{public}.>"])


def test_names_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With role, pool, tenant and keys."""
    keys = _create(tmp_path, ["writer:1"], _NAMES)
    _create(tmp_path, ["star"], tenant=ACME)
    rotate(keys, None, "anna", _HOUR, _NOW, _QUIET)
    capsys.readouterr()
    list_holders(keys, _NOW, _QUIET)
    found = json.loads(capsys.readouterr().out)
    assert {
        (one["name"], one["role"], one["pool"], one["tenant"], len(one["keys"])) for one in found if one["role"] != "service"
    } == {
        ("writer-0", "agent", "writer", None, 1),
        ("anna", "user", None, None, 2),
        ("grafana", "observer", None, None, 1),
        ("root", "admin", None, None, 1),
        ("eve", "auditor", None, None, 1),
        ("web", "gateway", None, None, 1),
        ("star", "agent", "star", "acme", 1),
    }
    list_holders(keys, _NOW, Terminal(as_json=False))
    assert "2026-01-01" in capsys.readouterr().out


def test_revoked_name_has_no_key_and_no_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither its key nor one in its grace period connects; the command prints what else to end."""
    keys = _create(tmp_path, ["writer:2"], {AccessRole.USER: ["anna"]})
    everybody, old = _permitted(tmp_path), _public(tmp_path, "writer/writer-0")
    rotate(keys, None, "writer-0", _HOUR, _NOW, _QUIET)
    capsys.readouterr()
    revoke(keys, None, "writer-0", _NOW, _QUIET)
    assert json.loads(capsys.readouterr().out)["then"] == ["ioa agents remove writer-0 --force"]
    assert (_permitted(tmp_path), "writer/writer-0" in _files(tmp_path)) == (everybody - {old}, False)
    revoke(keys, None, "anna", _NOW, _QUIET)
    assert json.loads(capsys.readouterr().out)["then"] == ["ioa keys revoke --user anna", "ioa goal cancel --user anna"]


def test_revoked_pool_loses_all_its_agents(tmp_path: Path) -> None:
    """The name of a pool stands for its agents."""
    keys = _create(tmp_path, ["writer:2", "solo"])
    revoke(keys, None, "writer", _NOW, _QUIET)
    assert {name for name in _seeds(tmp_path) if "/seed" not in name} == {"solo/solo"}


def test_callout_is_removed_with_its_service(tmp_path: Path) -> None:
    """It stays through other changes."""
    keys = _create(tmp_path, ["writer"], callout=True)
    callout = _roster(tmp_path).callout
    _create(tmp_path, ["solo"])
    assert _roster(tmp_path).callout == callout is not None
    revoke(keys, None, "authcallout", _NOW, _QUIET)
    assert (_roster(tmp_path).callout, "authorization" in json.loads(keys.authorization.read_text())) == (None, False)


def test_server_is_signalled_by_its_pid_file(tmp_path: Path) -> None:
    """A pid file that names no process is an error, after all files were written."""
    _create(tmp_path / "keys", [], {AccessRole.USER: ["anna"]})
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    heard: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _: heard.append(number))
    try:
        rotate(CredentialFolder(tmp_path / "keys", tmp_path / "pid"), None, "anna", timedelta(0), _NOW, _QUIET)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert heard == [signal.SIGHUP]
    with pytest.raises(UnavailableError, match="--signal reload"):
        revoke(CredentialFolder(tmp_path / "keys", tmp_path / "none"), None, "anna", _NOW, _QUIET)
    assert len(_permitted(tmp_path / "keys")) == 4


@pytest.mark.parametrize("name", ["bob", "seed", "nats", "../anna", "*"])
def test_unknown_name_is_rejected(tmp_path: Path, name: str) -> None:
    """A name that is not in the roster, or a pattern, changes nothing."""
    keys = _create(tmp_path, [], {AccessRole.USER: ["anna"]})
    before = _files(tmp_path)
    with pytest.raises(InvalidInputError, match="in the roster"):
        rotate(keys, None, name, timedelta(0), _NOW, _QUIET)
    with pytest.raises(InvalidInputError, match="in the roster"):
        revoke(keys, None, name, _NOW, _QUIET)
    assert _files(tmp_path) == before


def _rotate(keys: CredentialFolder) -> None:
    rotate(keys, None, "anna", timedelta(0), _NOW, _QUIET)


def _revoke(keys: CredentialFolder) -> None:
    revoke(keys, None, "anna", _NOW, _QUIET)


def _add(keys: CredentialFolder) -> None:
    create(keys, want(["writer:2"], {AccessRole.USER: ["bob"]}, callout=True), _NOW, _QUIET)


class _CrashError(Exception):
    """The process ends before it writes a file."""


@pytest.mark.parametrize("crash_at", range(12))
@pytest.mark.parametrize("edit", [_rotate, _revoke, _add])
def test_interrupted_command_is_repaired_by_running_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[[CredentialFolder], None], crash_at: int
) -> None:
    """Interrupted before any of its writes, and repeated: each seed connects, and no other key does."""
    keys, writes = _create(tmp_path, ["writer:1"], {AccessRole.USER: ["anna"]}), 0
    write = write_private

    def crash(path: Path, data: bytes) -> None:
        nonlocal writes
        if writes == crash_at:
            raise _CrashError
        writes += 1
        write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(folder_store, "write_private", crash)
        try:
            edit(keys)
        except _CrashError:
            patched.setattr(folder_store, "write_private", write)
            with suppress(InvalidInputError):  # a revoked name that is gone from the roster, see the next test
                edit(keys)
    asked = {callout.user} if (callout := _roster(tmp_path).callout) else set()
    assert _permitted(tmp_path) - asked == {_public(tmp_path, name) for name in _seeds(tmp_path)}
    assert ("anna/seed" in _seeds(tmp_path)) is (edit is not _revoke)


def test_revocation_that_was_not_rendered_is_rendered_by_the_next(tmp_path: Path) -> None:
    """A revocation that ended after the roster was written takes effect, though the name is gone from the roster."""
    keys = _create(tmp_path, [], {AccessRole.USER: ["anna"]})
    rendered = keys.authorization.read_bytes()
    revoke(keys, None, "anna", _NOW, _QUIET)
    keys.authorization.write_bytes(rendered)
    with pytest.raises(InvalidInputError, match="in the roster"):
        revoke(keys, None, "anna", _NOW, _QUIET)
    assert len(_permitted(tmp_path)) == 4


@pytest.mark.parametrize(("folder", "mode"), [("anna", 0o750), ("nats", 0o755), (".", 0o770)])
def test_folder_that_others_may_enter_is_rejected(tmp_path: Path, folder: str, mode: int) -> None:
    """Other users of the machine could read seeds, or replace the authorization."""
    keys = _create(tmp_path, [], {AccessRole.USER: ["anna"]})
    (tmp_path / folder).chmod(mode)
    with pytest.raises(InvalidInputError, match="chmod 700"):
        _create(tmp_path, [], {AccessRole.USER: ["anna"]})
    with pytest.raises(InvalidInputError, match="chmod 700"):
        _rotate(keys)


def test_folder_of_another_user_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner may know a seed that root would accept."""
    (tmp_path / "admin").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(InvalidInputError, match="belongs to another user"):
        _create(tmp_path, [], {AccessRole.ADMIN: ["admin"]})


@pytest.mark.parametrize(
    ("pools", "users", "why"),
    [
        (["router"], [], "two of the name"),
        (["writer"], ["writer"], "two of the name"),
        (["writer:2"], ["writer"], "two of the name"),
        (["writer:2"], ["writer-1"], "two of the name"),
        (["writer:2", "writer-1"], [], "two of the name"),
        (["nats"], [], "two of the name"),
        (["a.b"], [], "not a valid id"),
        (["writer:0"], [], "no number of replicas"),
        (["writer:many"], [], "no number of replicas"),
        ([], ["../anna"], "not a valid id"),
    ],
)
def test_invalid_name_is_rejected(pools: list[str], users: list[str], why: str) -> None:
    """Before a file is written."""
    with pytest.raises(InvalidInputError, match=why):
        want(pools, {AccessRole.USER: users})


def test_tenants_have_names_and_limits_of_their_own(tmp_path: Path) -> None:
    """The same name in two tenants has two seeds; a change of one tenant leaves the other."""
    keys = _create(tmp_path, ["writer"], {AccessRole.USER: ["anna"]}, callout=True)
    for tenant in (UMBRA, ACME):
        _create(tmp_path, ["writer:2"], {AccessRole.USER: ["anna"]}, tenant=tenant)
    _create(tmp_path, tenant=ACME, limits=["max_file=1000000"])
    _create(tmp_path, tenant=ACME, limits=["agent_connections=5"])
    assert {f"tenants/acme/{name}" for name in ("router/seed", "writer/writer-1", "anna/seed")} <= _seeds(tmp_path)
    assert _roster(tmp_path).tenants == {UMBRA: AccountLimits(), ACME: AccountLimits(max_file=1_000_000, agent_connections=5)}
    others = {name: _permitted(tmp_path, name) for name in ("IOA_AGENTS", "IOA_umbra_AGENTS", "IOA_USERS")}
    rotate(keys, ACME, "writer", _HOUR, _NOW, _QUIET)
    assert len(_permitted(tmp_path, "IOA_acme_AGENTS")) == 4
    revoke(keys, ACME, "writer", _NOW, _QUIET)
    assert _permitted(tmp_path, "IOA_acme_AGENTS") == set()
    assert {name: _permitted(tmp_path, name) for name in others} == others
    revoke(keys, ACME, None, _NOW, _QUIET)
    assert ([*_roster(tmp_path).tenants], [name for name in _seeds(tmp_path) if "acme" in name]) == ([UMBRA], [])
    assert "acme" not in keys.authorization.read_text()
    with pytest.raises(InvalidInputError, match="No name"):
        revoke(keys, None, None, _NOW, _QUIET)


def test_invalid_tenant_and_limits_are_rejected() -> None:
    """Before a file is written."""
    with pytest.raises(InvalidInputError, match="all tenants"):
        want(tenant=ACME, callout=True)
    for limit in ("max_files=5", "max_file", "max_file=much"):
        with pytest.raises(InvalidInputError, match="limit is invalid"):
            want(tenant=ACME, limits=[limit])
    with pytest.raises(InvalidInputError, match="no tenant's name"):
        parse_tenant("A.B")


def test_seed_is_read_from_its_text_or_its_file(tmp_path: Path) -> None:
    """With or without the name of its holder."""
    key = Key(create_seed(), "anna")
    (tmp_path / "seed").write_bytes(key.written())
    (tmp_path / "other").write_text("no seed")
    assert (read_key(str(tmp_path / "seed")), read_key(key.written().decode()), read_key(key.seed)) == (key, key, Key(key.seed))
    for path, why in (("other", "holds no nkey seed"), ("missing", "cannot be read")):
        with pytest.raises(InvalidInputError, match=why):
            read_key(str(tmp_path / path))


@pytest.mark.parametrize("around", ["{} ", "\t{}\n"])
def test_seed_with_blanks_around_it_is_read(around: str) -> None:
    """Blanks are copied easily."""
    seed = create_seed()
    assert read_key(around.format(seed)).seed == seed


@pytest.mark.parametrize("damage", ["x{}", "{}A", "{}?", "SA{}"])
def test_error_does_not_show_a_damaged_seed(damage: str) -> None:
    """Most of a seed may still be in it."""
    seed = create_seed()
    with pytest.raises(InvalidInputError) as caught:
        read_key(damage.format(seed))
    assert seed[2:20] not in f"{caught.value} {caught.value!r}"
