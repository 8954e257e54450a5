"""`ioa credentials create`: seeds that stay, an authorization that follows, and names that fit."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from ioa.adapters.nkey_seeds import create_seed, public_key_of, read_key
from ioa.cli.credentials import create_credentials, plan_of, upgrade_credentials
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError

_QUIET = Terminal(as_json=True)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_everybody_gets_a_seed(tmp_path: Path) -> None:
    """Each service, each replica of a pool, a pool of one agent and each other have a file that only its owner may read."""
    create_credentials(tmp_path, plan_of(["writer:2", "solo"], ["anna"], ["grafana"], ["root"]), _QUIET)
    seeds = {name for name in _files(tmp_path) if not name.startswith("nats/")}
    services = {f"{name}/seed" for name in ("registry", "groups", "router", "discovery")}
    others = {"writer/writer-0", "writer/writer-1", "solo/solo", "anna/seed", "grafana/seed", "root/seed"}
    assert seeds == services | others
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in _files(tmp_path)} == {0o600}


def test_the_authorization_names_who_has_a_seed(tmp_path: Path) -> None:
    """The server is told the public key of everybody, and of nobody else, and never a seed."""
    create_credentials(tmp_path, plan_of(["solo"], ["anna"], [], []), _QUIET)
    text = (tmp_path / "nats" / "authorization.conf").read_text()
    users = {user["nkey"] for account in json.loads(text)["accounts"].values() for user in account["users"]}
    seeds = [data.decode() for name, data in _files(tmp_path).items() if not name.startswith("nats/")]
    assert users == {public_key_of(seed) for seed in seeds}
    assert not any(seed in text for seed in seeds)


def test_a_seed_that_is_there_stays(tmp_path: Path) -> None:
    """Made again, with more to make, everything that was there is as it was; who is not named is let in no more."""
    create_credentials(tmp_path, plan_of(["writer:1"], ["anna"], [], []), _QUIET)
    before = _files(tmp_path)
    create_credentials(tmp_path, plan_of(["writer:1"], ["anna"], [], []), _QUIET)
    assert _files(tmp_path) == before
    create_credentials(tmp_path, plan_of(["writer:2"], [], [], []), _QUIET)
    after, authorization = _files(tmp_path), "nats/authorization.conf"
    assert {name: after[name] for name in before if name != authorization} == {
        name: data for name, data in before.items() if name != authorization
    }
    anna = public_key_of(before["anna/seed"].decode()).encode()
    assert (anna in before[authorization], anna in after[authorization]) == (True, False)


def test_an_authorization_is_brought_up_to_date_without_naming_anybody(tmp_path: Path) -> None:
    """Whoever an older version let in is let in with what this one allows; seeds stay, and doing it again changes nothing."""
    create_credentials(tmp_path, plan_of(["writer:2", "solo"], ["anna"], ["grafana"], ["root"]), _QUIET)
    current, file = _files(tmp_path), tmp_path / "nats" / "authorization.conf"
    file.write_text(file.read_text().replace("ioa.v1.registry.register.solo.solo", "ioa.v1.registry.register.old"))
    for _ in range(2):
        upgrade_credentials(tmp_path, _QUIET)
        assert _files(tmp_path) == current


def test_what_is_not_there_cannot_be_brought_up_to_date(tmp_path: Path) -> None:
    """The error says how credentials are made."""
    with pytest.raises(InvalidInputError, match="ioa credentials create"):
        upgrade_credentials(tmp_path, _QUIET)


@pytest.mark.parametrize(
    ("pools", "users", "why"),
    [
        (["router"], [], "two of the name"),
        (["writer"], ["writer"], "two of the name"),
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
