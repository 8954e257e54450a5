"""`ioa credentials`: edits of the roster in a folder, with a seed for each name.

Each command signals nats-server last. A command that was interrupted is repaired by running it again.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from pydantic import ValidationError

from ioa.adapters.nats.auth.roles import Service
from ioa.adapters.nats.auth.server_config import AccountLimits
from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.adapters.secret_stores.nkeys import Key, create_seed, public_key_of
from ioa.cli.command import command
from ioa.cli.output.console import create_table
from ioa.cli.output.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.credential_store import (
    ASKED,
    AUTHORIZATION,
    ISSUER,
    REVOKED,
    ROSTER,
    is_line,
    load_roster,
    make_callout,
    make_seeds,
    write_roster,
)
from ioa.hosting.roster import AccessRole, AccessRoster, Holder
from ioa.protocol.ids import TenantId, check_tenant, full_name
from ioa.protocol.teams.team_file import seat_of
from ioa.protocol.texts import in_words

credentials = typer.Typer(no_args_is_help=True, help="Manage the names that may connect to NATS, and their keys.")

NATS, CALLOUT, TENANTS = "nats", "callout", "tenants"
"""Folders of the credentials: roster and authorization, the auth callout's keys, and the seeds of tenants with a name."""
_RELOAD = "nats-server --signal reload"
_MAX_REPLICAS = 1_000
_THEN = (
    "to end what a name started, run as an admin: `ioa goal cancel --user NAME`, `ioa keys revoke --user NAME`, "
    "`ioa agents remove NAME --force`"
)


def in_folder(tenant: str | None, name: str) -> str:
    """Return the Secret of a name of a tenant."""
    return name if tenant is None else f"{TENANTS}/{tenant}/{name}"


def authorization_file(folder: Path) -> Path:
    """Return the file of a folder of credentials that nats-server includes."""
    return folder / NATS / AUTHORIZATION


@contextmanager
def open_roster(folder: Path, *, is_new: bool = False) -> Iterator[tuple[FolderSecrets, AccessRoster]]:
    """Lock a folder of credentials and read its roster.

    Raises:
        InvalidInputError: There is no roster, unless `is_new` is True; or other users may enter the folder.
    """
    store = FolderSecrets(folder)
    if not is_new and ROSTER not in (store.read(NATS) or {}):
        raise InvalidInputError(f"There is no {folder / NATS / ROSTER}.", hint="`ioa credentials create` writes it.")
    with store.locked(NATS):
        yield store, load_roster(store, NATS)


@command(credentials, "create")
def create(
    terminal: Terminal,
    *,
    out: Path,
    pool: Sequence[str] = (),
    user: Sequence[str] = (),
    gateway: Sequence[str] = (),
    seat: Sequence[str] = (),
    observer: Sequence[str] = (),
    auditor: Sequence[str] = (),
    admin: Sequence[str] = (),
    callout: bool = False,
    tenant: str | None = None,
    limit: Sequence[str] = (),
    pid_file: Path | None = None,
) -> None:
    """Add names to the roster, with a seed for each, and print the file that nats-server includes.

    Names and seeds that exist stay. The services are always added. After the first --callout, and after a new tenant, restart
    nats-server: a reload is not enough.

    Args:
        out (DIR): Folder of the credentials.
        pool (ID[:N]): The agent ID; with :N the agents ID-0 to ID-(N-1).
        user (NAME): Launches goals and reads all goals.
        gateway (NAME): Serves HTTP for all users.
        seat (NAME): Answers as this person in teams.
        observer (NAME): Reads states, and no content.
        auditor (NAME): Reads the audit log only.
        admin (NAME): May do everything.
        callout: Accept third parties by tokens (auth callout).
        tenant (NAME): The tenant.
        limit (NAME=N): Limit of the tenant, such as agent_connections=300.
        pid_file (FILE): nats-server's `pid_file`, to signal it to reload.

    Raises:
        InvalidInputError: A name is not valid, is used twice, or exists with another role; or a limit is unknown.
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    if tenant is not None and callout:
        raise InvalidInputError("The auth callout serves all tenants.", hint="Give --callout without --tenant.")
    names = {AccessRole.USER: user, AccessRole.GATEWAY: gateway, AccessRole.OBSERVER: observer}
    names |= {AccessRole.AUDITOR: auditor, AccessRole.ADMIN: admin}
    names[AccessRole.SERVICE] = [one for one in Service if callout or one is not Service.AUTHCALLOUT]
    space = _parse_tenant(tenant)
    wanted = _new_holders([*pool, *map(seat_of, seat)], names, space)
    _limits(AccountLimits(), limit)  # fails before a file is written
    with open_roster(out, is_new=True) as (store, roster):
        roster.add(wanted)  # fails before a seed is written, if a name exists with another role
        made = [make_seeds(store, _secret(one), {one.key: one}) for one in wanted]
        keyed = [one for found, _ in made for one in found]
        new = [one.name for one, (_, changed) in zip(wanted, made, strict=True) if changed]
        update: dict[str, object] = {"limits": _limits(roster.limits, limit)}
        if space is not None:
            update = {"tenants": {**roster.tenants, space: _limits(roster.tenants.get(space, AccountLimits()), limit)}}
        if callout:
            update["callout"] = make_callout(store, CALLOUT)[0]
        write_roster(store, NATS, roster.add(keyed).model_copy(update=update))
    files = {one.name: str(out / _secret(one) / one.key) for one in wanted}
    if callout:
        files |= {f"{CALLOUT}/{key}": str(out / CALLOUT / key) for key in (ASKED, ISSUER, REVOKED)}
    notes = [f"{name} has a new seed: {files[name]}" for name in new]
    _finish(terminal, out, pid_file, {"seeds": files, "new": new}, notes or ["all names have their seeds"])
    terminal.result.print(str(authorization_file(out)), soft_wrap=True)


@command(credentials, "list")
def list_names(terminal: Terminal, *, out: Path) -> None:
    """List the names of the roster, with role, pool, tenant and keys, the newest key first.

    Args:
        out (DIR): Folder of the credentials.
    """
    with open_roster(out) as (_, roster):
        found = sorted(roster.holders, key=lambda one: (one.tenant or "", one.role, one.name))
    rows = [(one.name, one.role, one.pool or "", one.tenant or "", key) for one in found for key in reversed(one.keys)]
    table = create_table(("name", "role", "pool", "tenant", "public key"), rows)
    terminal.show([one.model_dump(mode="json") for one in found], table)


@command(credentials, "rotate")
def rotate(
    terminal: Terminal,
    name: str | None = None,
    *,
    out: Path,
    tenant: str | None = None,
    at_once: bool = False,
    pid_file: Path | None = None,
) -> None:
    """Replace seeds while the system runs. Running processes continue, and use the new seed when they reconnect.

    The old keys connect until `ioa credentials render` runs.

    Args:
        name (NAME): A service, a pool, an agent or a user. Default: the whole tenant.
        out (DIR): Folder of the credentials.
        tenant (NAME): The tenant.
        at_once (--now): The old keys end now, such as stolen ones.
        pid_file (FILE): nats-server's `pid_file`, to signal it to reload.

    Raises:
        InvalidInputError: There is no such name.
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    with open_roster(out) as (store, roster):
        found = _find(roster, _parse_tenant(tenant), name)
        if not found:
            raise _unknown(name or tenant)
        seeds = {one: create_seed() for one in found}
        roster = roster.add(one.model_copy(update={"keys": (public_key_of(seed),)}) for one, seed in seeds.items())
        write_roster(store, NATS, roster.drop_old_keys(found) if at_once else roster)
        for one, seed in seeds.items():
            store.extend(_secret(one), {one.key: Key(seed, one.name).written()})
    notes = [f"{len(found)} seeds are replaced; running processes continue, and use the new seed when they reconnect"]
    notes += [] if at_once else ["the old keys connect until `ioa credentials render` runs"]
    _finish(terminal, out, pid_file, {"seeds": [str(out / _secret(one) / one.key) for one in found]}, notes)


@command(credentials, "render")
def render(terminal: Terminal, *, out: Path, pid_file: Path | None = None) -> None:
    """Render the file of nats-server again, without the old keys of rotations. Also for a new version.

    Args:
        out (DIR): Folder of the credentials.
        pid_file (FILE): nats-server's `pid_file`, to signal it to reload.

    Raises:
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    with open_roster(out) as (store, roster):
        removed = sum(max(0, len(one.keys) - 1) for one in roster.holders)
        write_roster(store, NATS, roster.drop_old_keys())
    _finish(terminal, out, pid_file, {"removed": removed}, [f"{removed} old keys are removed"])


@command(credentials, "revoke")
def revoke(
    terminal: Terminal,
    name: str | None = None,
    *,
    out: Path,
    tenant: str | None = None,
    subject: bool = False,
    pid_file: Path | None = None,
) -> None:
    """Remove a name from the roster, and its seed. nats-server closes its connections when it reloads.

    Goals of a user, its HTTP keys, and an agent's card are removed by other commands, which are printed.

    Args:
        name (NAME): A service, a pool, an agent or a user. Default: the whole tenant.
        out (DIR): Folder of the credentials.
        tenant (NAME): The tenant.
        subject: NAME is the subject (`sub`) of tokens; see --callout.
        pid_file (FILE): nats-server's `pid_file`, to signal it to reload.

    Raises:
        InvalidInputError: There is no such name. The authorization is rendered and nats-server is signalled all the same.
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    if subject:
        document: dict[str, object] = {"revoked": name, "file": str(_revoke_subject(out, name or ""))}
        _finish(terminal, out, pid_file, document, [f"tokens of {name} are rejected: {document['file']}", _THEN])
        return
    with open_roster(out) as (store, roster):
        found = _find(roster, _parse_tenant(tenant), name)
        tenants = {one: limits for one, limits in roster.tenants.items() if name is not None or one != tenant}
        for one in found:  # before the roster, which then still names it if the command is interrupted
            store.remove(_secret(one), one.key)
        write_roster(store, NATS, roster.remove(found).model_copy(update={"tenants": tenants}))
    if not found and len(tenants) == len(roster.tenants):
        _reload(pid_file)
        raise _unknown(name or tenant)
    revoked = [full_name(one.tenant, one.name) for one in found]
    _finish(terminal, out, pid_file, {"revoked": revoked}, [f"{name or tenant} is removed from the roster", _THEN])


def _revoke_subject(folder: Path, subject: str) -> Path:
    """Reject all tokens of a subject from now on; return the file of the rejected subjects."""
    with open_roster(folder) as (store, roster):
        held = store.read(CALLOUT)
        if roster.callout is None or held is None:
            raise InvalidInputError("There is no auth callout.", hint="`ioa credentials create --callout` adds it.")
        if not is_line(subject):
            raise InvalidInputError(f"{subject!r} is no subject of a token.", hint="Give the token's claim `sub`.")
        revoked = held.get(REVOKED, b"").decode("utf-8", "replace").splitlines()
        store.extend(CALLOUT, {REVOKED: "".join(f"{line}\n" for line in dict.fromkeys([*revoked, subject])).encode()})
    return folder / CALLOUT / REVOKED


def _finish(terminal: Terminal, folder: Path, pid_file: Path | None, document: Mapping[str, object], notes: Sequence[str]) -> None:
    """Signal nats-server, and report an edit."""
    reloaded, authorization = _reload(pid_file), authorization_file(folder)
    terminal.show({**document, "authorization": str(authorization), "reloaded": reloaded})
    reload = f"now reload the nats-server that includes {authorization}: `{_RELOAD}`, or give --pid-file"
    for note in (*notes, "nats-server was signalled to reload" if reloaded else reload):
        terminal.note(note)


def _reload(pid_file: Path | None) -> bool:
    """Signal nats-server to reload, if its pid file is known; return whether it was signalled.

    Raises:
        UnavailableError: No server runs with this pid file, or it belongs to another user.
    """
    if pid_file is None:
        return False
    try:
        os.kill(int(pid_file.read_text(encoding="ascii")), signal.SIGHUP)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        hint = f"All files are written; reload it with `{_RELOAD}`."
        raise UnavailableError(f"The nats-server of {pid_file} was not signalled: {why}.", hint=hint) from None
    return True


def _new_holders(pools: Sequence[str], names: Mapping[AccessRole, Sequence[str]], tenant: TenantId | None) -> Sequence[Holder]:
    """Return the agents of pools, each `ID` or `ID:N` for N replicas, and the holders of other names.

    Raises:
        InvalidInputError: A name is no id, is used twice, or is a name of the system.
    """
    wanted: list[tuple[str, AccessRole, str | None]] = [(name, role, None) for role, named in names.items() for name in named]
    for written in pools:
        pool, _, count = written.partition(":")
        if count and not (count.isdecimal() and 1 <= int(count) <= _MAX_REPLICAS):
            raise InvalidInputError(f"{written!r}: {count!r} is no number of replicas from 1 to {_MAX_REPLICAS}.")
        agents = [f"{pool}-{number}" for number in range(int(count))] if count else [pool]
        wanted += [(name, AccessRole.AGENT, pool) for name in agents]
    hint = "Services, pools, their replicas and users have different names."
    try:
        found = [Holder(name=name, role=role, pool=pool, tenant=tenant) for name, role, pool in wanted]
        AccessRoster(holders=tuple(found))
    except ValidationError as error:
        raise InvalidInputError(f"{in_words(error, 'the names')}.", hint=hint) from None
    for name in {NATS, CALLOUT, TENANTS} & {name for one in found for name in one.names}:
        raise InvalidInputError(f"There are two of the name {name!r}: a folder of the credentials has it.", hint=hint)
    return found


def _limits(before: AccountLimits, written: Sequence[str]) -> AccountLimits:
    """Return limits with changes, each `NAME=NUMBER`."""
    try:
        return AccountLimits.model_validate(
            {**before.model_dump(exclude_unset=True), **dict(one.partition("=")[::2] for one in written)}
        )
    except ValidationError as error:
        fields = ", ".join(AccountLimits.model_fields)
        raise InvalidInputError(f"A limit is invalid: {in_words(error, '--limit')}.", hint=f"NAME=NUMBER, with {fields}.") from None


def _parse_tenant(written: str | None) -> TenantId | None:
    try:
        return None if written is None else TenantId(check_tenant(written))
    except ValueError as error:
        raise InvalidInputError(str(error)) from None


def _find(roster: AccessRoster, tenant: TenantId | None, name: str | None) -> Sequence[Holder]:
    """Return the holders of a name, or of a whole tenant with a name."""
    if name is None and tenant is None:
        raise InvalidInputError("No name is given.", hint="Name a service, a pool, an agent or a user, or a --tenant.")
    return roster.find(tenant, name)


def _unknown(name: str | None) -> InvalidInputError:
    return InvalidInputError(f"There is no {name!r} in the roster.", hint="`ioa credentials list` shows all names.")


def _secret(holder: Holder) -> str:
    return in_folder(holder.tenant, holder.secret)
