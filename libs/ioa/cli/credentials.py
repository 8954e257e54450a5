"""`ioa credentials`: edits of the roster in a folder, with a seed for each name.

Each command signals nats-server last. A command that was interrupted is repaired by running it again.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from ioa.adapters.nats.auth.roles import Service
from ioa.adapters.nats.auth.server_config import AccountLimits
from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.adapters.secret_stores.nkeys import Key, create_seed, public_key_of
from ioa.cli.command import command
from ioa.cli.console import create_table
from ioa.cli.options import parse_age
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.credentials import (
    ASKED,
    AUTHORIZATION,
    ISSUER,
    REVOKED,
    ROSTER,
    is_line,
    key_in,
    load_roster,
    make_callout,
    new_seed,
    write_changes,
    written_roster,
)
from ioa.hosting.roster import AccessRole, AccessRoster, Holder, HolderKey
from ioa.protocol.ids import TenantId, check_tenant, full_name
from ioa.protocol.team import seat_of
from ioa.protocol.validation_errors import in_words

credentials = typer.Typer(no_args_is_help=True, help="Manage the names that may connect to NATS, and their keys.")

Folder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the credentials.")]
PidFile = Annotated[
    Path | None,
    typer.Option("--pid-file", metavar="FILE", help="nats-server's `pid_file`, to signal it to reload."),
]
Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A service, a pool, an agent or a user. Default: the whole tenant."),
]
Tenant = Annotated[str | None, typer.Option("--tenant", metavar="NAME", help="The tenant.")]

NATS, CALLOUT, TENANTS = "nats", "callout", "tenants"
"""Folders of the credentials: roster and authorization, the auth callout's keys, and the seeds of tenants with a name."""
_RELOAD = "nats-server --signal reload"
_MAX_REPLICAS = 1_000


@dataclass(frozen=True)
class CredentialFolder:
    """The folder of a system's credentials.

    Attributes:
        folder: The folder.
        pid_file: File with the process id of nats-server (`pid_file` in its configuration), which is signalled to reload.
    """

    folder: Path
    pid_file: Path | None = None

    @property
    def authorization(self) -> Path:
        """The file that nats-server includes."""
        return self.folder / NATS / AUTHORIZATION

    @contextmanager
    def open(self, *, is_new: bool = False) -> Iterator[tuple[FolderSecrets, AccessRoster]]:
        """Lock the folder and read its roster.

        Raises:
            InvalidInputError: There is no roster, or other users may enter the folder.
        """
        store = FolderSecrets(self.folder)
        if not is_new and ROSTER not in (store.read(NATS) or {}):
            raise InvalidInputError(f"There is no {self.folder / NATS / ROSTER}.", hint="`ioa credentials create` writes it.")
        with store.locked(NATS):
            yield store, load_roster(store, NATS)

    def reload(self) -> bool:
        """Signal nats-server to reload, if its pid file is known; return whether it was signalled.

        Raises:
            UnavailableError: No server runs with this pid file, or it belongs to another user.
        """
        if self.pid_file is None:
            return False
        try:
            os.kill(int(self.pid_file.read_text(encoding="ascii")), signal.SIGHUP)
        except (OSError, ValueError) as error:
            raise UnavailableError(
                f"The nats-server of {self.pid_file} was not signalled: {getattr(error, 'strerror', None) or error}.",
                hint=f"All files are written; reload it with `{_RELOAD}`.",
            ) from None
        return True

    def report(self, terminal: Terminal, document: Mapping[str, object], notes: Sequence[str]) -> None:
        """Signal nats-server, and report an edit."""
        reloaded = self.reload()
        terminal.show({**document, "authorization": str(self.authorization), "reloaded": reloaded})
        reload = f"now reload the nats-server that includes {self.authorization}: `{_RELOAD}`, or give --pid-file"
        for note in (*notes, "nats-server was signalled to reload" if reloaded else reload):
            terminal.note(note)

    def seed_file(self, holder: Holder) -> str:
        """Return the path of a holder's seed."""
        return str(self.folder / _secret_name(holder) / holder.key)


@dataclass(frozen=True)
class NewNames:
    """The names that `ioa credentials create` adds, limits of their tenant, and whether third parties connect by tokens."""

    holders: Sequence[Holder]
    tenant: TenantId | None = None
    limits: Mapping[str, str] = field(default_factory=dict)
    callout: bool = False


def in_folder(tenant: TenantId | None, name: str) -> str:
    """Return the Secret of a name of a tenant."""
    return name if tenant is None else f"{TENANTS}/{tenant}/{name}"


def parse_tenant(written: str | None) -> TenantId | None:
    """Parse a tenant's name.

    Raises:
        InvalidInputError: It is no tenant's name.
    """
    try:
        return None if written is None else TenantId(check_tenant(written))
    except ValueError as error:
        raise InvalidInputError(str(error)) from None


def want(
    pools: Sequence[str] = (),
    names: Mapping[AccessRole, Sequence[str]] | None = None,
    *,
    tenant: TenantId | None = None,
    limits: Sequence[str] = (),
    callout: bool = False,
) -> NewNames:
    """Return the services, the agents of pools, and other names by role.

    Args:
        pools: Each as `ID`, or as `ID:N` for N replicas.
        names: Names of users, gateways, observers, auditors and admins.
        tenant: The tenant of all of them.
        limits: Limits of the tenant, each as `NAME=NUMBER`.
        callout: Whether third parties connect by tokens.

    Raises:
        InvalidInputError: A name is no id, or is used twice, or is one of the system's own; or a limit is unknown.
    """
    if tenant is not None and callout:
        raise InvalidInputError("The auth callout serves all tenants.", hint="Give --callout without --tenant.")
    services = [one.value for one in Service if callout or one is not Service.AUTHCALLOUT]
    found = [_holder(name, AccessRole.SERVICE, None, tenant) for name in services]
    for written in pools:
        pool, _, count = written.partition(":")
        if count and not (count.isdecimal() and 1 <= int(count) <= _MAX_REPLICAS):
            raise InvalidInputError(f"{written!r}: {count!r} is no number of replicas from 1 to {_MAX_REPLICAS}.")
        agents = [f"{pool}-{number}" for number in range(int(count))] if count else [pool]
        found += [_holder(name, AccessRole.AGENT, pool, tenant) for name in agents]
    for role, named in (names or {}).items():
        found += [_holder(name, role, None, tenant) for name in named]
    for name in (NATS, CALLOUT, TENANTS):
        if any(name in one.names for one in found):
            raise InvalidInputError(f"There are two of the name {name!r}: a folder of the credentials has it.")
    try:
        AccessRoster(holders=tuple(found))
    except ValidationError as error:
        hint = "Services, pools, their replicas and users have different names."
        raise InvalidInputError(f"{in_words(error, 'the names')}.", hint=hint) from None
    bounds = dict(one.partition("=")[::2] for one in limits)
    _limits(AccountLimits(), bounds)
    return NewNames(found, tenant, bounds, callout)


def create(keys: CredentialFolder, wanted: NewNames, now: datetime, terminal: Terminal) -> None:
    """Add names to the roster, with a seed for each name that has none, and print the file that nats-server includes.

    Raises:
        InvalidInputError: A name exists with another role.
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    done, tenant = list[str](), wanted.tenant
    with keys.open(is_new=True) as (store, roster):
        roster.add(wanted.holders)  # fails before a seed is written
        roster = roster.add(one.model_copy(update={"keys": (_make_seed(store, one, done),)}) for one in wanted.holders)
        if tenant is None:
            update: dict[str, object] = {"limits": _limits(roster.limits, wanted.limits)}
        else:
            if tenant not in roster.tenants:
                done.append(f"the accounts of {tenant} are new: restart nats-server, a reload does not connect them")
            limits = _limits(roster.tenants.get(tenant, AccountLimits()), wanted.limits)
            update = {"tenants": {**roster.tenants, tenant: limits}}
        if wanted.callout:
            if roster.callout is None:
                done.append("the auth callout is new: restart nats-server, a reload does not add it")
            update["callout"] = make_callout(store, CALLOUT)[0]
        _write(store, roster.model_copy(update=update), now)
    files = {one.name: keys.seed_file(one) for one in wanted.holders}
    if wanted.callout:
        files |= {f"{CALLOUT}/{key}": str(keys.folder / CALLOUT / key) for key in (ASKED, ISSUER, REVOKED)}
    keys.report(terminal, {"seeds": files, "done": done}, done or ["nothing to do: all names have their seeds"])
    terminal.result.print(str(keys.authorization), soft_wrap=True)


def rotate(
    keys: CredentialFolder, tenant: TenantId | None, name: str | None, grace: timedelta, now: datetime, terminal: Terminal
) -> None:
    """Replace the seeds of a name, or of a whole tenant. The keys before them expire after `grace`.

    Raises:
        InvalidInputError: There is no such name.
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    until = now + grace
    with keys.open() as (store, roster):
        found = _find(roster, tenant, name)
        if not found:
            raise _unknown(name or tenant)
        seeds = {one: create_seed() for one in found}
        _write(store, roster.rotate({one: public_key_of(seed) for one, seed in seeds.items()}, until), now)
        for one, seed in seeds.items():
            store.extend(_secret_name(one), {one.key: Key(seed, one.name).written()})
    notes = [f"{len(found)} seeds are replaced; running processes continue, and use the new seed when they reconnect"]
    if grace:
        notes.append(f"the old keys expire on {_utc(until)}; then run `ioa credentials render`")
    keys.report(terminal, {"seeds": [*map(keys.seed_file, found)], "old_keys_expire": until.isoformat()}, notes)


def render(keys: CredentialFolder, now: datetime, terminal: Terminal) -> None:
    """Render the authorization again, without keys that have expired.

    Raises:
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    with keys.open() as (store, roster):
        left = _write(store, roster, now)
    before, after = ([key.until for one in each.holders for key in one.keys] for each in (roster, left))
    expired, next_end = len(before) - len(after), min((until for until in after if until is not None), default=None)
    more = "" if next_end is None else f"; the next expires on {_utc(next_end)}"
    document = {"expired": expired, "next": None if next_end is None else next_end.isoformat()}
    keys.report(terminal, document, [f"{expired} keys have expired{more}"])


def revoke(keys: CredentialFolder, tenant: TenantId | None, name: str | None, now: datetime, terminal: Terminal) -> None:
    """Remove a name, a pool or a whole tenant from the roster, and print the commands that end its goals and keys.

    Raises:
        InvalidInputError: There is no such name. The authorization is rendered and nats-server is signalled all the same.
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    with keys.open() as (store, roster):
        found = _find(roster, tenant, name)
        tenants = {one: limits for one, limits in roster.tenants.items() if name is not None or one != tenant}
        for one in found:  # before the roster, which then still names it if the command is interrupted
            store.remove(_secret_name(one), one.key)
        _write(store, roster.remove(found).model_copy(update={"tenants": tenants}), now)
    if not found and len(tenants) == len(roster.tenants):
        keys.reload()
        raise _unknown(name or tenant)
    then: list[str] = []
    for one in found if name is not None else ():
        if one.role is AccessRole.USER:
            then += [f"ioa keys revoke --user {one.name}", f"ioa goal cancel --user {one.name}"]
        elif one.role is AccessRole.AGENT:
            then.append(f"ioa agents remove {one.name} --force")
    notes = [f"{name or tenant} is removed from the roster"]
    if then:
        notes += ["to end its goals, HTTP keys or agents, run as an admin:", *(f"  {command}" for command in then)]
    keys.report(terminal, {"revoked": [full_name(one.tenant, one.name) for one in found], "then": then}, notes)


def revoke_subject(keys: CredentialFolder, subject: str, terminal: Terminal) -> None:
    """Reject all tokens of a subject from now on.

    Raises:
        InvalidInputError: There is no auth callout, or the subject is empty or has several lines.
        UnavailableError: nats-server could not be signalled; all files are written.
    """
    with keys.open() as (store, roster):
        held = store.read(CALLOUT)
        if roster.callout is None or held is None:
            raise InvalidInputError("There is no auth callout.", hint="`ioa credentials create --callout` adds it.")
        if not is_line(subject):
            raise InvalidInputError(f"{subject!r} is no subject of a token.", hint="Give the token's claim `sub`.")
        revoked = held.get(REVOKED, b"").decode("utf-8", "replace").splitlines()
        store.extend(CALLOUT, {REVOKED: "".join(f"{line}\n" for line in dict.fromkeys([*revoked, subject])).encode()})
    file = keys.folder / CALLOUT / REVOKED
    notes = [
        f"tokens of {subject} are rejected; to accept them again, remove the line from {file}",
        "`ioa audit` shows the names of its agents and users; `ioa goal cancel --user NAME`, `ioa keys revoke --user NAME` and",
        "`ioa agents remove NAME --force` end what they started",
    ]
    keys.report(terminal, {"revoked": subject, "file": str(file)}, notes)


def list_holders(keys: CredentialFolder, now: datetime, terminal: Terminal) -> None:
    """List the names of the roster."""
    with keys.open() as (_, roster):
        found = sorted(roster.drop_expired(now).holders, key=lambda one: (one.tenant or "", one.role, one.name))
    rows = [
        (one.name, one.role, one.pool or "", one.tenant or "", key.public_key, "" if key.until is None else _utc(key.until))
        for one in found
        for key in reversed(one.keys)
    ]
    table = create_table(("name", "role", "pool", "tenant", "public key", "until"), rows)
    terminal.show([one.model_dump(mode="json") for one in found], table)


def _write(store: FolderSecrets, roster: AccessRoster, now: datetime) -> AccessRoster:
    """Write the roster without expired keys, and the authorization; return the roster."""
    roster = roster.drop_expired(now)
    write_changes(store, NATS, written_roster(roster))
    return roster


def _find(roster: AccessRoster, tenant: TenantId | None, name: str | None) -> Sequence[Holder]:
    """Return the holders of a name, or of a whole tenant with a name."""
    if name is None and tenant is None:
        raise InvalidInputError("No name is given.", hint="Name a service, a pool, an agent or a user, or a --tenant.")
    return roster.find(tenant, name)


def _secret_name(holder: Holder) -> str:
    return in_folder(holder.tenant, holder.secret)


def _make_seed(store: FolderSecrets, holder: Holder, done: list[str]) -> HolderKey:
    """Return the public key of a holder's seed, which is created if there is none."""
    name = _secret_name(holder)
    there = dict(store.read(name) or {})
    if holder.key not in there:
        there[holder.key] = new_seed(holder.name)
        store.extend(name, {holder.key: there[holder.key]})
        done.append(f"{full_name(holder.tenant, holder.name)} has a seed: {store.folder / name / holder.key}")
    return HolderKey(public_key=public_key_of(key_in(name, holder.key, there).seed))


def _holder(name: str, role: AccessRole, pool: str | None, tenant: TenantId | None) -> Holder:
    try:
        return Holder.model_validate({"name": name, "role": role, "pool": pool, "tenant": tenant})
    except ValidationError as error:
        raise InvalidInputError(f"{in_words(error, f'--{role}')}.", hint="Give another name.") from None


def _limits(before: AccountLimits, written: Mapping[str, str]) -> AccountLimits:
    try:
        return AccountLimits.model_validate({**before.model_dump(exclude_unset=True), **written})
    except ValidationError as error:
        fields = ", ".join(AccountLimits.model_fields)
        raise InvalidInputError(f"A limit is invalid: {in_words(error, '--limit')}.", hint=f"NAME=NUMBER, with {fields}.") from None


def _unknown(name: str | None) -> InvalidInputError:
    return InvalidInputError(f"There is no {name!r} in the roster.", hint="`ioa credentials list` shows all names.")


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


@command(credentials, "create")
def create_command(
    terminal: Terminal,
    out: Folder,
    pool: Annotated[
        list[str],
        typer.Option(metavar="ID[:N]", help="The agent ID; with :N the agents ID-0 to ID-(N-1)."),
    ] = [],  # noqa: B006
    user: Annotated[list[str], typer.Option(metavar="NAME", help="Launches goals and reads all goals.")] = [],  # noqa: B006
    gateway: Annotated[list[str], typer.Option(metavar="NAME", help="Serves HTTP for all users.")] = [],  # noqa: B006
    seat: Annotated[list[str], typer.Option(metavar="NAME", help="Answers as this person in teams.")] = [],  # noqa: B006
    observer: Annotated[list[str], typer.Option(metavar="NAME", help="Reads states, and no content.")] = [],  # noqa: B006
    auditor: Annotated[list[str], typer.Option(metavar="NAME", help="Reads the audit log only.")] = [],  # noqa: B006
    admin: Annotated[list[str], typer.Option(metavar="NAME", help="May do everything.")] = [],  # noqa: B006
    callout: Annotated[bool, typer.Option("--callout", help="Accept third parties by tokens (auth callout).")] = False,
    tenant: Tenant = None,
    limit: Annotated[
        list[str],
        typer.Option(metavar="NAME=N", help="Limit of the tenant, such as agent_connections=300."),
    ] = [],  # noqa: B006
    pid_file: PidFile = None,
) -> None:
    """Add names to the roster, with a seed for each, and print the file that nats-server includes.

    Names and seeds that exist stay. The services are always added. After the first --callout, and after a new tenant, restart
    nats-server: a reload is not enough.
    """
    names = {
        AccessRole.USER: user,
        AccessRole.GATEWAY: gateway,
        AccessRole.OBSERVER: observer,
        AccessRole.AUDITOR: auditor,
        AccessRole.ADMIN: admin,
    }
    pools = [*pool, *map(seat_of, seat)]
    wanted = want(pools, names, tenant=parse_tenant(tenant), limits=limit, callout=callout)
    create(CredentialFolder(out, pid_file), wanted, datetime.now(UTC), terminal)


@command(credentials, "list")
def list_names_command(terminal: Terminal, out: Folder) -> None:
    """List the names of the roster, with role, pool, tenant and keys."""
    list_holders(CredentialFolder(out), datetime.now(UTC), terminal)


@command(credentials, "rotate")
def rotate_command(
    terminal: Terminal,
    out: Folder,
    name: Name = None,
    tenant: Tenant = None,
    grace: Annotated[str, typer.Option(metavar="AGE", help="When the old keys expire: 1h, 30m, 0s.")] = "1h",
    pid_file: PidFile = None,
) -> None:
    """Replace seeds while the system runs. Running processes continue, and use the new seed when they reconnect.

    The old keys connect until the grace period has ended and `ioa credentials render` has run. With `--grace 0s` they end at once.
    """
    keys = CredentialFolder(out, pid_file)
    rotate(keys, parse_tenant(tenant), name, parse_age(grace), datetime.now(UTC), terminal)


@command(credentials, "render")
def render_command(terminal: Terminal, out: Folder, pid_file: PidFile = None) -> None:
    """Render the file of nats-server again, without keys that have expired. For a timer, or after a new version."""
    render(CredentialFolder(out, pid_file), datetime.now(UTC), terminal)


@command(credentials, "revoke")
def revoke_command(
    terminal: Terminal,
    out: Folder,
    name: Name = None,
    tenant: Tenant = None,
    subject: Annotated[bool, typer.Option("--subject", help="NAME is the subject (`sub`) of tokens; see --callout.")] = False,
    pid_file: PidFile = None,
) -> None:
    """Remove a name from the roster, and its seed. nats-server closes its connections when it reloads.

    Prints the commands that cancel the goals of a user, revoke its HTTP keys, and remove an agent's card.
    """
    keys = CredentialFolder(out, pid_file)
    if subject:
        revoke_subject(keys, name or "", terminal)
    else:
        revoke(keys, parse_tenant(tenant), name, datetime.now(UTC), terminal)
