"""`ioa credentials create`: seeds that stay, an authorization that follows, and names that fit."""

from __future__ import annotations

import json
import os
import signal
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.permissions import OURS
from ioa.adapters.nkey_seeds import Key, create_seed, public_key_of, read_key
from ioa.cli.credentials import create_credentials, plan_of
from ioa.cli.key_listing import list_holders
from ioa.cli.key_rotation import KeyFolder, expire, revoke, rotate
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol.ids import TenantId
from ioa.testing.manual_clock import NEW_YEAR

_QUIET = Terminal(as_json=True)
_NOW, _HOUR = NEW_YEAR, timedelta(hours=1)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_everybody_gets_a_seed(tmp_path: Path) -> None:
    """Each service, each replica of a pool, a pool of one agent and each other have a file that only its owner may read."""
    create_credentials(tmp_path, plan_of(["writer:2", "solo"], ["anna"], ["grafana"], ["root"]), _QUIET, now=_NOW)
    seeds = {name for name in _files(tmp_path) if not name.startswith("nats/")}
    services = {f"{name}/seed" for name in ("registry", "groups", "router", "discovery")}
    others = {"writer/writer-0", "writer/writer-1", "solo/solo", "anna/seed", "grafana/seed", "root/seed"}
    assert seeds == services | others
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in _files(tmp_path)} == {0o600}


def test_the_authorization_names_who_has_a_seed(tmp_path: Path) -> None:
    """The server is told the public key of everybody, and of nobody else, and never a seed."""
    create_credentials(tmp_path, plan_of(["solo"], ["anna"], [], []), _QUIET, now=_NOW)
    text = (tmp_path / "nats" / "authorization.conf").read_text()
    users = {user["nkey"] for account in json.loads(text)["accounts"].values() for user in account["users"]}
    seeds = [data.decode() for name, data in _files(tmp_path).items() if not name.startswith("nats/")]
    assert users == {public_key_of(seed) for seed in seeds}
    assert not any(seed in text for seed in seeds)


def test_a_seed_that_is_there_stays(tmp_path: Path) -> None:
    """Made again, with more to make, everything that was there is as it was; who is not named is let in no more."""
    create_credentials(tmp_path, plan_of(["writer:1"], ["anna"], [], []), _QUIET, now=_NOW)
    before = _files(tmp_path)
    create_credentials(tmp_path, plan_of(["writer:1"], ["anna"], [], []), _QUIET, now=_NOW)
    assert _files(tmp_path) == before
    create_credentials(tmp_path, plan_of(["writer:2"], [], [], []), _QUIET, now=_NOW)
    after, authorization = _files(tmp_path), "nats/authorization.conf"
    assert {name: after[name] for name in before if name != authorization} == {
        name: data for name, data in before.items() if name != authorization
    }
    anna = public_key_of(before["anna/seed"].decode()).encode()
    assert (anna in before[authorization], anna in after[authorization]) == (True, False)


@pytest.mark.parametrize("name", [*sorted(OURS), "Local"])
def test_no_user_is_called_as_the_system_calls_its_own(name: str) -> None:
    """`local` would be everybody, and `admin` own what admins launch. What others may do does not follow from their names."""
    with pytest.raises(InvalidInputError, match=rf"^--user: {name} is what the system calls those of its own"):
        plan_of([], [name], [], [])
    assert "admin" in plan_of([], ["anna"], [], ["admin"]).secrets


def _let_in(folder: Path) -> set[str]:
    accounts = json.loads((folder / "nats" / "authorization.conf").read_text())["accounts"].values()
    return {user["nkey"] for account in accounts for user in account["users"]}


def _public(folder: Path, name: str) -> str:
    return public_key_of(read_key(str(folder / name)).seed)


def test_an_old_key_is_let_in_for_its_grace_and_no_longer(tmp_path: Path) -> None:
    """Old and new are let in until it is over, whatever else is done to the folder meanwhile; then only the new one."""
    plan, keys = plan_of(["writer:2"], ["anna"], [], []), KeyFolder(tmp_path, None)
    create_credentials(tmp_path, plan, _QUIET, now=_NOW)
    before, other = _public(tmp_path, "writer/writer-0"), _public(tmp_path, "writer/writer-1")
    rotate(keys, "writer-0", timedelta(hours=1), _NOW, _QUIET)
    after = _public(tmp_path, "writer/writer-0")
    create_credentials(tmp_path, plan, _QUIET, now=_NOW)
    expire(keys, _NOW + timedelta(minutes=59), _QUIET)
    assert {before, after, other} <= _let_in(tmp_path)
    expire(keys, _NOW + timedelta(hours=1), _QUIET)
    assert (before in _let_in(tmp_path), {after, other} <= _let_in(tmp_path)) == (False, True)
    assert not list(tmp_path.rglob("*.retiring"))


def test_a_holder_reads_its_answers_where_it_began(tmp_path: Path) -> None:
    """A process that lives through any number of rotations goes on hearing what it asked, as does one that starts later."""
    create_credentials(tmp_path, plan_of([], ["anna"], [], []), _QUIET, now=_NOW)
    first = _public(tmp_path, "anna/seed")
    for _ in range(3):
        rotate(KeyFolder(tmp_path, None), "anna", timedelta(0), _NOW, _QUIET)
    create_credentials(tmp_path, plan_of([], ["anna"], [], []), _QUIET, now=_NOW)
    key = read_key(str(tmp_path / "anna" / "seed"))
    text = (tmp_path / "nats" / "authorization.conf").read_text()
    users = [user for account in json.loads(text)["accounts"].values() for user in account["users"]]
    [reads] = [user["permissions"]["subscribe"]["allow"] for user in users if user["nkey"] == public_key_of(key.seed)]
    assert (key.inbox_owner, reads[-1]) == (first, f"_INBOX.{first}.>")


def test_who_is_not_named_again_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever forgets somebody among all whom he names has thrown him out, and is told whom; of whom he had no more, nobody is."""
    loud = Terminal(as_json=False)
    create_credentials(tmp_path, plan_of(["writer:2", "solo"], ["anna"], ["grafana"], ["root"]), loud, now=_NOW)
    assert "not named" not in capsys.readouterr().err
    for said in ("let in no more, since not named: anna, root, solo, writer-1;", None):
        create_credentials(tmp_path, plan_of(["writer:1"], [], ["grafana"], []), loud, now=_NOW)
        told = capsys.readouterr().err.replace("\n", " ")
        assert said in told if said is not None else "not named" not in told
    create_credentials(tmp_path, plan_of(["writer:1"], [], [], [], tenant=TenantId("acme")), loud, now=_NOW)
    assert "not named" not in capsys.readouterr().err


def test_who_is_let_in_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with his role, an agent with its pool, of whichever tenant; and whose seed lets in no more."""
    everybody = plan_of(["writer:1", "solo"], ["anna", "bob"], ["grafana"], ["root"], ["eve"], gateways=["web"])
    create_credentials(tmp_path, everybody, _QUIET, now=_NOW)
    create_credentials(tmp_path, plan_of(["star"], [], [], [], tenant=TenantId("acme")), _QUIET, now=_NOW)
    without_bob = plan_of(["writer:1", "solo"], ["anna"], ["grafana"], ["root"], ["eve"], gateways=["web"])
    create_credentials(tmp_path, without_bob, _QUIET, now=_NOW)
    rotate(KeyFolder(tmp_path, None), "anna", timedelta(hours=1), _NOW, _QUIET)
    capsys.readouterr()
    list_holders(tmp_path, _QUIET)
    found = json.loads(capsys.readouterr().out)
    assert {(one["name"], one["role"], one["pool"], one["tenant"]) for one in found if one["role"] != "service"} == {
        ("writer-0", "agent", "writer", ""),
        ("solo", "agent", "solo", ""),
        ("anna", "user", "", ""),
        ("bob", "", "", ""),
        ("grafana", "observer", "", ""),
        ("root", "admin", "", ""),
        ("eve", "auditor", "", ""),
        ("web", "gateway", "", ""),
        ("star", "agent", "star", "acme"),
    }
    assert {one["name"] for one in found if one["role"] == "service"} == {"registry", "groups", "router", "discovery"}
    assert [one["name"] for one in found if one["old_keys"]] == ["anna"]
    list_holders(tmp_path, Terminal(as_json=False))
    assert "not let in" in capsys.readouterr().out


async def test_who_is_revoked_is_let_in_by_no_key(tmp_path: Path) -> None:
    """Neither by the one that he has nor by one in its grace; his seed is gone, and everybody else is let in as before."""
    create_credentials(tmp_path, plan_of(["writer:2"], ["anna"], [], []), _QUIET, now=_NOW)
    keys, everybody = KeyFolder(tmp_path, None), _let_in(tmp_path)
    old = _public(tmp_path, "writer/writer-0")
    rotate(keys, "writer-0", timedelta(hours=1), _NOW, _QUIET)
    await revoke(keys, "writer-0", None, _NOW, _QUIET)
    assert (_let_in(tmp_path), {name for name in _files(tmp_path) if "writer-0" in name}) == (everybody - {old}, set())


def test_the_server_is_told_by_its_pid_file(tmp_path: Path) -> None:
    """It reloads at once where its pid file is named; where none is, or it is stale, the command says what to run."""
    create_credentials(tmp_path / "keys", plan_of([], ["anna"], [], []), _QUIET, now=_NOW)
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    heard: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _: heard.append(number))
    try:
        rotate(KeyFolder(tmp_path / "keys", tmp_path / "pid"), "anna", timedelta(0), _NOW, _QUIET)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert heard == [signal.SIGHUP]
    with pytest.raises(UnavailableError, match="--signal reload"):
        rotate(KeyFolder(tmp_path / "keys", tmp_path / "none"), "anna", timedelta(0), _NOW, _QUIET)


@pytest.mark.parametrize("name", ["bob", "seed", "nats", "../anna", "*"])
def test_nobody_is_rotated_who_is_not_there(tmp_path: Path, name: str) -> None:
    """A name that is nobody's, or a pattern, changes nothing."""
    create_credentials(tmp_path, plan_of([], ["anna"], [], []), _QUIET, now=_NOW)
    before = _files(tmp_path)
    with pytest.raises(InvalidInputError, match="no key of"):
        rotate(KeyFolder(tmp_path, None), name, timedelta(0), _NOW, _QUIET)
    assert _files(tmp_path) == before


@pytest.mark.parametrize(("folder", "mode"), [("anna", 0o750), ("nats", 0o755), (".", 0o770)])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, folder: str, mode: int) -> None:
    """Whoever reads a seed, or puts another authorization in the place of ours, holds the system; the error says what to do."""
    create_credentials(tmp_path, plan_of([], ["anna"], [], []), _QUIET, now=_NOW)
    (tmp_path / folder).chmod(mode)
    with pytest.raises(InvalidInputError, match="chmod 700"):
        create_credentials(tmp_path, plan_of([], ["anna"], [], []), _QUIET, now=_NOW)
    with pytest.raises(InvalidInputError, match="chmod 700"):
        rotate(KeyFolder(tmp_path, None), "anna", timedelta(0), _NOW, _QUIET)


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root enters it though nobody else may: an admin's seed that its owner has put there would be let in."""
    (tmp_path / "admin").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(InvalidInputError, match="belongs to another user"):
        create_credentials(tmp_path, plan_of([], [], [], ["admin"]), _QUIET, now=_NOW)


@pytest.mark.parametrize(
    ("pools", "users", "why"),
    [
        (["router"], [], "two of the name"),
        (["writer"], ["writer"], "two of the name"),
        (["writer:2"], ["writer-1"], "two of the name"),
        (["writer:2", "writer-1"], [], "two of the name"),
        (["nats"], [], "two of the name"),
        (["a.b"], [], "not a valid id"),
        (["writer:0"], [], "no number of replicas"),
        (["writer:many"], [], "no number of replicas"),
        ([], ["../anna"], "not a valid id"),
    ],
)
def test_a_name_that_does_not_fit_is_refused(pools: list[str], users: list[str], why: str) -> None:
    """Doubled names, names that are no ids and impossible numbers are said before anything is made."""
    with pytest.raises(InvalidInputError, match=why):
        plan_of(pools, users, [], [])


def test_a_seed_is_given_as_itself_or_by_its_file(tmp_path: Path) -> None:
    """Both name the same user; anything else is refused with what was expected."""
    seed = create_seed()
    (tmp_path / "seed").write_text(f"{seed}\n")
    (tmp_path / "other").write_text("no seed")
    assert (read_key(seed).seed, read_key(str(tmp_path / "seed")).seed) == (seed, seed)
    for path, why in (("other", "holds no nkey seed"), ("missing", "cannot be read")):
        with pytest.raises(InvalidInputError, match=why):
            read_key(str(tmp_path / path))


def test_a_key_that_was_replaced_is_given_as_itself_too(tmp_path: Path) -> None:
    """What its file holds then, the seed and whose answers it reads, may stand in a variable as the seed alone did before."""
    key = Key(create_seed(), public_key_of(create_seed()))
    assert read_key(key.written().decode()) == key


@pytest.mark.parametrize("damage", ["{} ", "\t{}\n"])
def test_a_seed_with_blanks_around_it_is_the_seed(damage: str) -> None:
    """A blank that was copied with it makes it no other seed."""
    seed = create_seed()
    assert read_key(damage.format(seed)).seed == seed


@pytest.mark.parametrize("damage", ["x{}", "{}A", "{}?", "SA{}"])
def test_a_damaged_seed_is_shown_to_nobody(damage: str) -> None:
    """What may be a seed, or most of one, does not stand in the error that refuses it."""
    seed = create_seed()
    with pytest.raises(InvalidInputError) as caught:
        read_key(damage.format(seed))
    assert seed[2:20] not in f"{caught.value} {caught.value!r}"


async def test_who_is_thrown_out_is_so_whatever_else_lies_in_the_folder(tmp_path: Path) -> None:
    """An old seed that was kept, a folder among seeds, and a note of another's that is cut off: each ended the command first."""
    create_credentials(tmp_path, plan_of(["writer:2"], ["anna", "mallory"], [], []), _QUIET, now=_NOW)
    keys, old = KeyFolder(tmp_path, None), (tmp_path / "mallory" / "seed").read_bytes()
    rotate(keys, "mallory", _HOUR, _NOW, _QUIET)
    stolen = {_public(tmp_path, "mallory/seed"), public_key_of(old.decode())}
    for name in ("seed.old", "seed-old", "mallory-0-old", "seed.old.retiring"):
        (tmp_path / "mallory" / name).write_bytes(old)
    (tmp_path / "anna" / "old").mkdir()
    (tmp_path / "anna" / "seed.retiring").touch()
    assert stolen <= _let_in(tmp_path)
    await revoke(keys, "mallory", None, _NOW, _QUIET)
    assert not stolen & _let_in(tmp_path)
    assert sorted(file.name for file in (tmp_path / "mallory").iterdir()) == [
        "mallory-0-old",
        "seed-old",
        "seed.old",
        "seed.old.retiring",
    ]


async def test_a_note_of_old_keys_that_is_cut_off_keeps_none_of_them_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which they were the authorization tells: it is said whose cannot be read, and they end with their holder or a rotation."""
    create_credentials(tmp_path, plan_of([], ["anna"], [], ["root"]), _QUIET, now=_NOW)
    keys, first = KeyFolder(tmp_path, None), {name: _public(tmp_path, f"{name}/seed") for name in ("anna", "root")}
    for name in first:
        rotate(keys, name, _HOUR, _NOW, _QUIET)
        (tmp_path / name / "seed.retiring").write_bytes(b"")
    expire(keys, _NOW + _HOUR, Terminal(as_json=False))
    assert "anna: seed.retiring does not say" in capsys.readouterr().err
    assert {*first.values()} <= _let_in(tmp_path)
    rotate(keys, "anna", timedelta(0), _NOW, _QUIET)
    await revoke(keys, "root", None, _NOW, _QUIET)
    assert not {*first.values()} & _let_in(tmp_path)
    assert _public(tmp_path, "anna/seed") in _let_in(tmp_path)


def test_a_copy_of_a_seed_beside_it_is_no_further_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It got a key of its own at the next rotation, which was let in. It is told of, and left as it is."""
    create_credentials(tmp_path, plan_of(["writer:2"], ["anna"], [], []), _QUIET, now=_NOW)
    copies = {name: tmp_path / "writer" / name for name in ("writer-0.bak", "writer-0-old", "kept")}
    seed = (tmp_path / "writer" / "writer-0").read_bytes()
    for copy in copies.values():
        copy.write_bytes(seed)
    let_in = len(_let_in(tmp_path))
    rotate(KeyFolder(tmp_path, None), "writer", timedelta(0), _NOW, _QUIET)
    assert (len(_let_in(tmp_path)), {copy.read_bytes() for copy in copies.values()}) == (let_in, {seed})
    list_holders(tmp_path, Terminal(as_json=False))
    told = capsys.readouterr().err
    assert [name for name, copy in copies.items() if f"{copy} is nobody's" in told] == [*copies]
