"""`ioa credentials`: idempotent edits of the roster, with a seed for each name, and an authorization that follows."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ioa.adapters.nats.auth.roles import OURS
from ioa.adapters.nats.auth.server_config import AccountLimits
from ioa.adapters.secret_stores import folder as folder_store
from ioa.adapters.secret_stores.nkeys import create_seed, public_key_of, read_key
from ioa.adapters.system_folder import write_private
from ioa.cli import credentials
from ioa.cli.credentials import authorization_file
from ioa.cli.output.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.roster import AccessRoster, read_roster

_QUIET = Terminal(as_json=True)
_NAMES: dict[str, Any] = {"user": ["anna"], "observer": ["grafana"], "admin": ["root"], "auditor": ["eve"], "gateway": ["web"]}

create: Callable[..., None] = partial(credentials.create, _QUIET)
rotate: Callable[..., None] = partial(credentials.rotate, _QUIET)
render: Callable[..., None] = partial(credentials.render, _QUIET)
revoke: Callable[..., None] = partial(credentials.revoke, _QUIET)


def _files(folder: Path) -> dict[str, bytes]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(".")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _seeds(folder: Path) -> set[str]:
    return {name for name in _files(folder) if not name.startswith(("nats/", "callout/"))}


def _roster(folder: Path) -> AccessRoster:
    return read_roster((folder / "nats" / "roster.json").read_bytes())


def _permitted(folder: Path, account: str | None = None) -> set[str]:
    """Return the public keys in the file of nats-server."""
    accounts = json.loads(authorization_file(folder).read_text())["accounts"]
    return {user["nkey"] for name, one in accounts.items() if account in (None, name) for user in one["users"]}


def _public(folder: Path, name: str) -> str:
    return public_key_of(read_key(str(folder / name)).seed)


def test_each_name_gets_a_private_seed(tmp_path: Path) -> None:
    """The server gets the public keys, and no seed."""
    create(out=tmp_path, pool=["writer:2", "solo"], **_NAMES)
    services = {f"{name}/seed" for name in ("registry", "groups", "router", "discovery")}
    others = {f"{name}/seed" for names in _NAMES.values() for name in names}
    assert _seeds(tmp_path) == services | others | {"writer/writer-0", "writer/writer-1", "solo/solo"}
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in _files(tmp_path)} == {0o600}
    assert _permitted(tmp_path) == {_public(tmp_path, name) for name in _seeds(tmp_path)}
    written = authorization_file(tmp_path).read_text() + (tmp_path / "nats" / "roster.json").read_text()
    assert not any(read_key(str(tmp_path / name)).seed in written for name in _seeds(tmp_path))


def test_create_adds_names_and_changes_none(tmp_path: Path) -> None:
    """Running it again changes no file; names that are not given stay."""
    create(out=tmp_path, pool=["writer:1"], user=["anna"], limit=["agent_connections=6"])
    before = _files(tmp_path)
    create(out=tmp_path, pool=["writer:1"], user=["anna"])
    assert _files(tmp_path) == before
    create(out=tmp_path, pool=["writer:2"])
    after, old = _files(tmp_path), {name: data for name, data in before.items() if not name.startswith("nats/")}
    assert {name: after[name] for name in old} == old
    assert _permitted(tmp_path) == {_public(tmp_path, name) for name in _seeds(tmp_path)}
    assert _roster(tmp_path).limits == AccountLimits(agent_connections=6)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"pool": ["anna"]}, "another 'anna' already: the user"),
        ({"pool": ["anna:2"]}, "two of the name 'anna'"),
        ({"pool": ["writer:2"], "user": ["writer-1"]}, "two of the name"),
        ({"pool": ["writer:2", "writer-1"]}, "two of the name"),
        ({"pool": ["nats"]}, "two of the name"),
        ({"pool": ["a.b"]}, "not a valid id"),
        ({"pool": ["writer:0"]}, "no number of replicas"),
        ({"user": ["../anna"]}, "not a valid id"),
        *(({"user": [name]}, f"{name} is a name of the system's own") for name in (*sorted(OURS), "Local")),
        ({"tenant": "acme", "callout": True}, "all tenants"),
        *(({"tenant": "acme", "limit": [limit]}, "limit is invalid") for limit in ("max_files=5", "max_file", "max_file=much")),
        ({"tenant": "A.B"}, "no tenant's name"),
    ],
)
def test_invalid_name_or_limit_is_rejected(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    """Before a file is written. Services would act for a user with a name of the system."""
    create(out=tmp_path, user=["anna"])
    before = _files(tmp_path)
    with pytest.raises(InvalidInputError, match=why):
        create(out=tmp_path, **options)
    assert _files(tmp_path) == before


def test_old_keys_connect_until_the_next_rendering(tmp_path: Path) -> None:
    """Other commands, and a second rotation, keep them. A rotation with `--now` ends them itself."""
    create(out=tmp_path, pool=["writer:2"])
    keys, other = [_public(tmp_path, "writer/writer-0")], _public(tmp_path, "writer/writer-1")
    for _ in range(2):
        rotate("writer-0", out=tmp_path)
        keys.append(_public(tmp_path, "writer/writer-0"))
    create(out=tmp_path, pool=["writer:2"])
    assert {*keys, other} <= _permitted(tmp_path)
    render(out=tmp_path)
    assert ({keys[-1], other} <= _permitted(tmp_path), {*keys[:-1]} & _permitted(tmp_path)) == (True, set())
    rotate("writer-0", out=tmp_path, at_once=True)
    assert (keys[-1] in _permitted(tmp_path), _public(tmp_path, "writer/writer-0") in _permitted(tmp_path)) == (False, True)


def test_holder_keeps_its_inbox_when_its_key_is_replaced(tmp_path: Path) -> None:
    """The inbox is named after the holder. A seed that is copied without the name has an inbox of its public key."""
    create(out=tmp_path, user=["anna"])
    rotate("anna", out=tmp_path, at_once=True)
    key = read_key(str(tmp_path / "anna" / "seed"))
    accounts = json.loads(authorization_file(tmp_path).read_text())["accounts"].values()
    users = {user["nkey"]: user["permissions"]["subscribe"]["allow"] for account in accounts for user in account["users"]}
    public = public_key_of(key.seed)
    assert (key.inbox_owner, users[public][-2:]) == ("anna", ["_INBOX.anna.>", f"_INBOX.{public}.>"])


def test_revoked_name_has_no_key_and_no_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither its key nor an old key connects; a pool means its agents."""
    create(out=tmp_path, pool=["writer:2", "solo"], user=["anna"])
    rotate("writer-0", out=tmp_path)
    for name, revoked in {"writer-0": ["writer-0"], "anna": ["anna"], "writer": ["writer-1"]}.items():
        capsys.readouterr()
        revoke(name, out=tmp_path)
        assert json.loads(capsys.readouterr().out)["revoked"] == revoked
    assert _permitted(tmp_path) == {_public(tmp_path, name) for name in _seeds(tmp_path)}
    assert {name for name in _seeds(tmp_path) if name.partition("/")[0] in ("writer", "anna", "solo")} == {"solo/solo"}


def test_callout_is_removed_with_its_service(tmp_path: Path) -> None:
    """It stays through other changes."""
    create(out=tmp_path, pool=["writer"], callout=True)
    callout = _roster(tmp_path).callout
    create(out=tmp_path, pool=["solo"])
    assert _roster(tmp_path).callout == callout is not None
    revoke("authcallout", out=tmp_path)
    assert (_roster(tmp_path).callout, "authorization" in json.loads(authorization_file(tmp_path).read_text())) == (None, False)


def test_server_is_signalled_by_its_pid_file(tmp_path: Path) -> None:
    """A pid file that names no process is an error, after all files were written."""
    create(out=tmp_path / "keys", user=["anna"])
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    received: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _: received.append(number))
    try:
        rotate("anna", out=tmp_path / "keys", pid_file=tmp_path / "pid")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert received == [signal.SIGHUP]
    with pytest.raises(UnavailableError, match="--signal reload"):
        revoke("anna", out=tmp_path / "keys", pid_file=tmp_path / "none")
    assert len(_permitted(tmp_path / "keys")) == 4


@pytest.mark.parametrize("name", ["bob", "seed", "nats", "../anna", "*"])
def test_unknown_name_is_rejected(tmp_path: Path, name: str) -> None:
    """A name that is not in the roster, or a pattern, changes nothing."""
    create(out=tmp_path, user=["anna"])
    before = _files(tmp_path)
    for edit in (rotate, revoke):
        with pytest.raises(InvalidInputError, match="in the roster"):
            edit(name, out=tmp_path)
    assert _files(tmp_path) == before


class _CrashError(Exception):
    """The process ends before it writes a file."""


@pytest.mark.parametrize("crash_at", range(12))
@pytest.mark.parametrize(
    "edit",
    [
        partial(rotate, "anna", at_once=True),
        partial(revoke, "anna"),
        partial(create, pool=["writer:2"], user=["bob"], callout=True),
    ],
)
def test_interrupted_command_is_repaired_by_running_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[..., None], crash_at: int
) -> None:
    """Interrupted before any of its writes, and repeated: each seed connects, and no other key does."""
    create(out=tmp_path, pool=["writer:1"], user=["anna"])
    writes, write = 0, write_private

    def crash(path: Path, data: bytes) -> None:
        nonlocal writes
        if writes == crash_at:
            raise _CrashError
        writes += 1
        write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(folder_store, "write_private", crash)
        try:
            edit(out=tmp_path)
        except _CrashError:
            patched.setattr(folder_store, "write_private", write)
            with suppress(InvalidInputError):  # a revoked name that is gone from the roster, see the next test
                edit(out=tmp_path)
    asked = {callout.user} if (callout := _roster(tmp_path).callout) else set()
    assert _permitted(tmp_path) - asked == {_public(tmp_path, name) for name in _seeds(tmp_path)}
    assert ("anna/seed" in _seeds(tmp_path)) is ("anna" not in edit.args or "at_once" in edit.keywords)  # type: ignore[attr-defined]


def test_revocation_that_was_not_rendered_is_rendered_by_the_next(tmp_path: Path) -> None:
    """A revocation that ended after the roster was written takes effect, though the name is gone from the roster."""
    create(out=tmp_path, user=["anna"])
    rendered = authorization_file(tmp_path).read_bytes()
    revoke("anna", out=tmp_path)
    authorization_file(tmp_path).write_bytes(rendered)
    with pytest.raises(InvalidInputError, match="in the roster"):
        revoke("anna", out=tmp_path)
    assert len(_permitted(tmp_path)) == 4


@pytest.mark.parametrize(("folder", "mode"), [("anna", 0o750), ("nats", 0o755), (".", 0o770)])
def test_folder_that_others_may_enter_is_rejected(tmp_path: Path, folder: str, mode: int) -> None:
    """Other users of the machine could read seeds, or replace the authorization."""
    create(out=tmp_path, user=["anna"])
    (tmp_path / folder).chmod(mode)
    for edit in (partial(create, user=["anna"]), partial(rotate, "anna")):
        with pytest.raises(InvalidInputError, match="chmod 700"):
            edit(out=tmp_path)


def test_folder_of_another_user_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner may know a seed that root would accept."""
    (tmp_path / "admin").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(InvalidInputError, match="belongs to another user"):
        create(out=tmp_path, admin=["admin"])


def test_tenants_have_names_and_limits_of_their_own(tmp_path: Path) -> None:
    """The same name in two tenants has two seeds; a change of a tenant changes no other tenant."""
    create(out=tmp_path, pool=["writer"], user=["anna"], callout=True)
    for tenant in ("umbra", "acme"):
        create(out=tmp_path, pool=["writer:2"], user=["anna"], tenant=tenant)
    for limit in ("max_file=1000000", "agent_connections=5"):
        create(out=tmp_path, tenant="acme", limit=[limit])
    assert {f"tenants/acme/{name}" for name in ("router/seed", "writer/writer-1", "anna/seed")} <= _seeds(tmp_path)
    assert _roster(tmp_path).tenants == {"umbra": AccountLimits(), "acme": AccountLimits(max_file=1_000_000, agent_connections=5)}
    others = {name: _permitted(tmp_path, name) for name in ("IOA_AGENTS", "IOA_umbra_AGENTS", "IOA_USERS")}
    rotate("writer", out=tmp_path, tenant="acme")
    assert len(_permitted(tmp_path, "IOA_acme_AGENTS")) == 4
    revoke("writer", out=tmp_path, tenant="acme")
    assert _permitted(tmp_path, "IOA_acme_AGENTS") == set()
    assert {name: _permitted(tmp_path, name) for name in others} == others
    revoke(out=tmp_path, tenant="acme")
    assert ([*_roster(tmp_path).tenants], [name for name in _seeds(tmp_path) if "acme" in name]) == (["umbra"], [])
    assert "acme" not in authorization_file(tmp_path).read_text()
    with pytest.raises(InvalidInputError, match="No name"):
        revoke(out=tmp_path)


@pytest.mark.parametrize("damage", ["x{}", "{}A", "{}?", "SA{}"])
def test_error_does_not_show_a_damaged_seed(damage: str) -> None:
    """Most of a seed may still be in it."""
    seed = create_seed()
    with pytest.raises(InvalidInputError) as caught:
        read_key(damage.format(seed))
    assert seed[2:20] not in f"{caught.value} {caught.value!r}"
