"""Commands that change keys, ended in their middle, or one in the middle of another: who is to go goes, and nobody else."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from ioa.adapters.nats.permissions import Permissions
from ioa.adapters.nkey_seeds import public_key_of, read_key
from ioa.adapters.system_folder import write_private
from ioa.cli.credentials import FolderSecrets, create_credentials, plan_of, write_known
from ioa.cli.key_listing import list_holders
from ioa.cli.key_rotation import KeyFolder, expire, revoke, rotate
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol.api_keys import KeyId
from ioa.protocol.ids import AgentId, GoalId, GoalName, TenantId, UserId
from ioa.testing.manual_clock import NEW_YEAR


def _services(folder: Path) -> set[str]:
    return {_public(folder, f"{service}/seed") for service in ("registry", "discovery", "groups", "router")}


class _System:
    """Records the revocation steps; the server and the admin connection can be unavailable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = self.admin = True
        self.told: list[str] = []
        monkeypatch.setattr(KeyFolder, "reload", self._reload)
        monkeypatch.setattr("ioa.cli.key_rotation._forget", self._forget)
        monkeypatch.setattr("ioa.cli.key_rotation._end_keys", self._end_keys)
        monkeypatch.setattr("ioa.cli.key_rotation._end_goals", self._end_goals)

    def _reload(self, _then: str = "") -> bool:
        if not self.server:
            raise UnavailableError("No server.")
        self.told.append("server")
        return True

    async def _forget(self, agents: list[AgentId], *_: object) -> tuple[list[AgentId], str]:
        self.told += [f"card {one}" for one in agents if self.admin]
        return (agents, "") if self.admin else ([], "no admin")

    async def _end_keys(self, users: Sequence[UserId], *_: object) -> tuple[list[KeyId], str]:
        self.told += [f"keys {one}" for one in users if self.admin]
        return [], "" if self.admin else "no admin"

    async def _end_goals(self, users: Sequence[UserId], *_: object, **__: object) -> tuple[list[GoalName], str]:
        self.told += [f"goals {one}" for one in users if self.admin]
        return [], "" if self.admin else "no admin"


_QUIET = Terminal(as_json=True)
_NOW, _HOUR, _MONTH = NEW_YEAR, timedelta(hours=1), timedelta(days=30)
_MOST_STEPS = 20


class _Killed(BaseException):
    """What ends a command where it stands, as a signal does that nobody can catch."""


def _let_in(folder: Path) -> set[str]:
    accounts = json.loads((folder / "nats" / "authorization.conf").read_text())["accounts"].values()
    return {user["nkey"] for account in accounts for user in account["users"]}


def _public(folder: Path, name: str) -> str:
    return public_key_of(read_key(str(folder / name)).seed)


def _made(folder: Path) -> KeyFolder:
    create_credentials(folder, plan_of(["writer:2"], ["anna"], [], []), _QUIET, now=_NOW)
    return KeyFolder(folder, None)


@contextmanager
def _killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End a command before it writes or removes a file for the `step`-th time."""
    done = 0

    def next_step() -> None:
        nonlocal done
        done += 1
        if done == step:
            raise _Killed

    write, remove = write_private, FolderSecrets.remove

    def written(path: Path, data: bytes) -> None:
        next_step()
        write(path, data)

    def removed(self: FolderSecrets, name: str, key: str) -> None:
        next_step()
        remove(self, name, key)

    with monkeypatch.context() as patched:
        patched.setattr("ioa.cli.credentials.write_private", written)
        patched.setattr(FolderSecrets, "remove", removed)
        with suppress(_Killed):
            yield


async def test_who_is_revoked_after_the_grace_is_let_in_by_no_key(tmp_path: Path) -> None:
    """By the key of before neither, whose grace is over, and which nobody has ended yet."""
    keys, first = _made(tmp_path), _let_in(tmp_path)
    gone = _public(tmp_path, "writer/writer-0")
    rotate(keys, "writer-0", _HOUR, _NOW, _QUIET)
    await revoke(keys, "writer-0", None, _NOW + 2 * _HOUR, _QUIET)
    assert _let_in(tmp_path) == first - {gone}


@pytest.mark.parametrize("step", range(1, _MOST_STEPS))
async def test_a_revocation_that_was_interrupted_is_mended_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Wherever it ended, given again it does the rest: no key of the name is let in, and nothing is left of them."""
    keys, first = _made(tmp_path), _let_in(tmp_path)
    gone = {_public(tmp_path, f"writer/writer-{number}") for number in range(2)}
    rotate(keys, "writer", _HOUR, _NOW, _QUIET)
    with _killed_at(step, monkeypatch):
        await revoke(keys, "writer", None, _NOW, _QUIET)
    with suppress(InvalidInputError):  # where it came to its end
        await revoke(keys, "writer", None, _NOW, _QUIET)
    assert (_let_in(tmp_path), list((tmp_path / "writer").iterdir())) == (first - gone, [])


@pytest.mark.parametrize("step", range(1, _MOST_STEPS))
def test_a_rotation_that_was_interrupted_is_mended_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Wherever it ended, given again it replaces the keys that are let in; the stolen ones are let in no more."""
    keys = _made(tmp_path)
    stolen = {_public(tmp_path, f"writer/writer-{number}") for number in range(2)}
    with _killed_at(step, monkeypatch):
        rotate(keys, "writer", timedelta(0), _NOW, _QUIET)
    rotate(keys, "writer", timedelta(0), _NOW, _QUIET)
    held = {_public(tmp_path, f"writer/writer-{number}") for number in range(2)}
    assert (_let_in(tmp_path) & stolen, held <= _let_in(tmp_path)) == (set(), True)
    assert not list(tmp_path.rglob("*.retiring"))


def test_a_key_that_is_let_in_no_more_is_not_so_again_for_a_longer_grace(tmp_path: Path) -> None:
    """The server was not told that it ended, so that it is noted still: a later rotation does not bring it back."""
    keys = _made(tmp_path)
    stolen = _public(tmp_path, "anna/seed")
    with pytest.raises(UnavailableError):
        rotate(KeyFolder(tmp_path, tmp_path / "no server"), "anna", timedelta(0), _NOW, _QUIET)
    rotate(keys, "anna", _HOUR, _NOW, _QUIET)
    assert stolen not in _let_in(tmp_path)


@pytest.mark.parametrize("step", range(1, _MOST_STEPS))
def test_what_was_interrupted_is_told_to_the_server_when_it_is_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """What `expire` has written, and did not come to tell of, it tells the next time."""
    keys = _made(tmp_path)
    old = _public(tmp_path, "anna/seed")
    rotate(keys, "anna", _HOUR, _NOW, _QUIET)
    let_in_by_the_server = [_let_in(tmp_path)]

    def reload(_keys: KeyFolder) -> bool:
        let_in_by_the_server.append(_let_in(tmp_path))
        return True

    monkeypatch.setattr(KeyFolder, "reload", reload)
    with _killed_at(step, monkeypatch):
        expire(keys, _NOW + _HOUR, _QUIET)
    expire(keys, _NOW + _HOUR, _QUIET)
    assert old not in let_in_by_the_server[-1]


def test_who_is_revoked_is_not_let_in_by_another_command_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer's `expire` has read who is let in when somebody is revoked: it does not write him back."""
    keys, gone = _made(tmp_path), _public(tmp_path, "anna/seed")
    rotate(keys, "writer-0", _HOUR, _NOW, _QUIET)
    revoked = threading.Event()
    by_timer = threading.Thread(target=expire, args=(keys, _NOW + _HOUR, _QUIET))

    def write_later(kept: FolderSecrets, known: Mapping[str, Permissions], gone: TenantId | None = None) -> bool:
        if threading.current_thread() is by_timer:
            revoking.start()
            revoked.wait(0.5)
        return write_known(kept, known, gone)

    def revoke_anna() -> None:
        asyncio.run(revoke(keys, "anna", None, _NOW, _QUIET))
        revoked.set()

    monkeypatch.setattr("ioa.cli.key_rotation.write_known", write_later)
    revoking = threading.Thread(target=revoke_anna)
    by_timer.start()
    by_timer.join()
    revoking.join()
    assert gone not in _let_in(tmp_path)


@pytest.mark.parametrize("found", [[KeyId("k1")], []], ids=["by this command", "just before, by another"])
async def test_what_is_launched_by_http_while_gateways_still_know_the_key_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[KeyId]
) -> None:
    """A key of HTTP lets in for some seconds more, whoever ended it: what is launched meanwhile does not go on."""
    keys, launched = _made(tmp_path), set[GoalName]()
    ended = asyncio.Event()

    async def end_keys(_url: str | None, _user: UserId) -> list[KeyId]:
        ended.set()
        return found

    async def end_goals(_url: str | None, _user: UserId, cancelled: list[GoalName]) -> None:
        cancelled += launched - {*cancelled}

    async def launch_meanwhile() -> None:
        await ended.wait()
        await asyncio.sleep(0.02)
        launched.add(GoalName(UserId("anna"), GoalId("late")))

    async def is_of_this_tenant(_tenant: TenantId | None, _url: str | None) -> None:
        pass

    monkeypatch.setattr("ioa.cli.key_rotation.end_keys_of", end_keys)
    monkeypatch.setattr("ioa.cli.key_rotation.end_goals_of", end_goals)
    monkeypatch.setattr("ioa.cli.key_rotation._check_tenant", is_of_this_tenant)
    monkeypatch.setattr("ioa.cli.key_rotation.GATEWAYS_LOOK_WITHIN", timedelta(seconds=0.1), raising=False)
    told = StringIO()
    with redirect_stdout(told):
        async with asyncio.TaskGroup() as group:
            group.create_task(launch_meanwhile())
            await revoke(keys, "anna", None, _NOW, _QUIET)
    assert launched and '"anna/late"' in told.getvalue()


def test_repeated_rotation_keeps_only_the_previous_key(tmp_path: Path) -> None:
    """Each rotation ends all keys except the new one and the previous one, even if `expire` never runs."""
    keys = _made(tmp_path)
    held = [_public(tmp_path, "anna/seed")]
    for month in range(4):
        rotate(keys, "anna", _HOUR, _NOW + month * _MONTH, _QUIET)
        held.append(_public(tmp_path, "anna/seed"))
    assert [one in _let_in(tmp_path) for one in held] == [False, False, False, True, True]
    assert len(json.loads((tmp_path / "anna" / "seed.retiring").read_bytes())) == 1, "and no more than that is noted"


def test_rotation_without_grace_ends_keys_of_earlier_rotations(tmp_path: Path) -> None:
    """A stolen key loses the grace period that an earlier rotation gave it."""
    keys = _made(tmp_path)
    stolen = _public(tmp_path, "anna/seed")
    rotate(keys, "anna", _MONTH, _NOW, _QUIET)
    rotate(keys, "anna", timedelta(0), _NOW + _HOUR, _QUIET)
    assert stolen not in _let_in(tmp_path)


@pytest.mark.parametrize("step", range(1, _MOST_STEPS))
def test_interrupted_rotation_keeps_the_unreplaced_seed_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """A seed that the interrupted rotation did not replace stays authorised after the grace period."""
    keys = _made(tmp_path)
    with _killed_at(step, monkeypatch):
        rotate(keys, "anna", _HOUR, _NOW, _QUIET)
    seen_by_the_server = _let_in(tmp_path)
    was_let_in = _public(tmp_path, "anna/seed") in seen_by_the_server
    expire(keys, _NOW + _HOUR, _QUIET)
    assert (_public(tmp_path, "anna/seed") in _let_in(tmp_path)) == was_let_in


@pytest.mark.parametrize("step", range(1, _MOST_STEPS))
@pytest.mark.parametrize(("first", "then"), [(timedelta(0), _HOUR), (_HOUR, timedelta(0)), (_MONTH, _HOUR)])
def test_repeated_rotation_uses_the_last_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, first: timedelta, then: timedelta
) -> None:
    """After an interruption, the second rotation's grace applies to all old keys."""
    keys = _made(tmp_path)
    with _killed_at(step, monkeypatch):
        rotate(keys, "writer", first, _NOW, _QUIET)
    served = _let_in(tmp_path)
    rotate(keys, "writer", then, _NOW, _QUIET)
    for_now = _let_in(tmp_path)
    expire(keys, _NOW + then, _QUIET)
    held = {_public(tmp_path, name) for name in ("writer/writer-0", "writer/writer-1", "anna/seed")} | _services(tmp_path)
    assert for_now == held | (served if then else set())
    assert _let_in(tmp_path) == held


async def test_user_created_during_revocation_keeps_the_new_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new seed is authorised and the revoked key is not."""
    keys, stolen, system = _made(tmp_path), _public(tmp_path, "anna/seed"), _System(monkeypatch)

    async def made_meanwhile(*_: object) -> tuple[list[KeyId], str]:
        _made(tmp_path)
        return [], ""

    monkeypatch.setattr("ioa.cli.key_rotation._end_keys", made_meanwhile)
    await revoke(keys, "anna", None, _NOW, _QUIET)
    assert (tmp_path / "anna" / "seed").exists()
    assert (stolen in _let_in(tmp_path), _public(tmp_path, "anna/seed") in _let_in(tmp_path)) == (False, True)
    assert system.told[0] == "server"


async def test_second_revocation_ends_goals_of_a_connected_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user that stayed connected because no server was reloaded may have launched more goals."""
    keys, system = _made(tmp_path), _System(monkeypatch)
    with monkeypatch.context() as by_hand:
        by_hand.setattr(KeyFolder, "reload", lambda *_: False)
        await revoke(keys, "anna", None, _NOW, _QUIET)
    system.told.clear()
    await revoke(keys, "anna", None, _NOW, _QUIET)
    assert system.told[:1] == ["server"] and "goals anna" in system.told


def test_pool_rotation_excludes_unauthorised_replicas(tmp_path: Path) -> None:
    """A replica that a smaller pool left out gets no new key."""
    keys = _made(tmp_path)
    create_credentials(tmp_path, plan_of(["writer:1"], ["anna"], [], []), _QUIET, now=_NOW)
    stolen, other = (_public(tmp_path, f"writer/writer-{number}") for number in range(2))
    rotate(keys, "writer", timedelta(0), _NOW, _QUIET)
    assert (stolen in _let_in(tmp_path), _public(tmp_path, "writer/writer-0") in _let_in(tmp_path)) == (False, True)
    assert _public(tmp_path, "writer/writer-1") == other
    with pytest.raises(InvalidInputError, match="not let in"):
        rotate(keys, "writer-1", timedelta(0), _NOW, _QUIET)


async def test_key_without_seed_file_is_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The listing follows the server's authorisation, not the seed files."""
    keys = _made(tmp_path)
    lost = _public(tmp_path, "writer/writer-1")
    (tmp_path / "writer" / "writer-1").unlink()
    rotate(keys, "anna", _HOUR, _NOW, _QUIET)
    capsys.readouterr()
    list_holders(tmp_path, _QUIET)
    found = {one["public_key"]: one for one in json.loads(capsys.readouterr().out)}
    told = found[lost]
    assert (told["name"], told["role"], told["has_seed"]) == ("writer-1", "agent", False)
    assert {one["name"]: one["old_keys"] for one in found.values() if one["old_keys"]} == {"anna": 1}
    await revoke(keys, "writer-1", None, _NOW, _QUIET)
    assert lost not in _let_in(tmp_path)


@pytest.mark.parametrize("with_seed", [True, False])
@pytest.mark.parametrize(("name", "told"), [("anna", ["keys anna", "goals anna"]), ("writer-0", ["card writer-0"]), ("eye", [])])
async def test_revocation_resumes_at_the_first_failed_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: list[str], with_seed: bool
) -> None:
    """Repeated revocation completes the remaining steps in order and then leaves no record."""
    create_credentials(tmp_path, plan_of(["writer:2"], ["anna"], ["eye"], []), _QUIET, now=_NOW)
    keys, system = KeyFolder(tmp_path, None), _System(monkeypatch)
    if not with_seed and name != "eye":  # an observer is found by its seed only
        FolderSecrets(tmp_path).remove(*("writer", "writer-0") if name == "writer-0" else (name, "seed"))
    system.server = False
    with pytest.raises(UnavailableError):
        await revoke(keys, name, None, _NOW, _QUIET)
    system.server, system.admin = True, False
    await revoke(keys, name, None, _NOW, _QUIET)
    if told:
        system.admin = True
        await revoke(keys, name, None, _NOW, _QUIET)
    assert system.told == ["server", *told]
    with pytest.raises(InvalidInputError, match="no key of"):
        await revoke(keys, name, None, _NOW, _QUIET)
    assert not list((tmp_path / "nats").glob("revoked*"))
