"""`ioa credentials`: seeds and a nats-server's authorization in a folder, for systems outside Kubernetes."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from ioa.adapters.nats.authorization import (
    AccountLimits,
    authorization,
    read_authorization,
    read_callout,
    read_own_limits,
    read_tenants,
)
from ioa.adapters.nats.permissions import Permissions, Service
from ioa.adapters.nkey_seeds import Key, parse_key, public_key_of
from ioa.adapters.system_folder import belongs_to_another, write_private
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.cluster_credentials import (
    ASKED,
    ISSUER,
    REVOKED,
    AgentIdentity,
    Plan,
    Retiring,
    SeedsPlan,
    ServiceIdentity,
    UserIdentity,
    key_in,
    make_credentials,
    retiring_in,
)
from ioa.hosting.cluster_credentials import AUTHORIZATION as CONFIGURATION
from ioa.protocol.ids import AgentId, PoolId, TenantId, check_tenant, check_token, is_token
from ioa.protocol.validation_errors import in_words

AUTHORIZATION, CALLOUT, TENANTS = "nats", "callout", "tenants"
SEED = "seed"
"""What the seed of whoever has a folder of his own is called; an agent's is called like the agent, in the folder of its pool."""
_LOCK = ".lock"
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_OTHERS, _OTHERS_WRITE = 0o077, 0o022
_MAX_REPLICAS = 1_000
_OF_A_REPLICA = re.compile(r"-[0-9]+")
"""How a seed's file ends in a folder with those of several agents."""


@dataclass(frozen=True)
class KeptSeed:
    """A seed in a folder of credentials: its Secret, its key there, and all that the Secret holds."""

    secret: str
    key: str
    there: Mapping[str, bytes]

    @property
    def held(self) -> Key:
        """What stands in its file.

        Raises:
            InvalidInputError: It is no seed.
        """
        return key_in(self.secret, self.key, self.there)

    @property
    def public_key(self) -> str:
        """The public key that it is for."""
        return public_key_of(self.held.seed)

    def retiring(self, known: Mapping[str, Permissions]) -> Sequence[Retiring]:
        """Return the keys before it, the newest last: those that are noted, whether or not their time is over.

        Where what is noted cannot be read, those that are let in and read its holder's answers, in any order.
        """
        try:
            return retiring_in(self.there, self.key)
        except InvalidInputError:
            owner = self.held.inbox_owner
            return [Retiring(public_key=key) for key, may in known.items() if (may.inbox_of or key) == owner]

    def keys(self, known: Mapping[str, Permissions]) -> list[str]:
        """Return its public key and those before it, the newest first."""
        return [self.public_key, *(one.public_key for one in reversed(self.retiring(known)))]

    @property
    def is_of_pool(self) -> bool:
        """Whether it is that of an agent, in the folder of its pool."""
        return self.key != SEED

    @property
    def folder(self) -> str:
        """What its folder is called: like its pool, or whoever has it to himself."""
        return self.secret.rpartition("/")[2]

    @property
    def name(self) -> str:
        """Whose it is, as the commands take it."""
        return self.key if self.is_of_pool else self.folder


class FolderSecrets:
    """Secrets as folders that only their owner may enter, each of their keys a file. One may be in another.

    Raises:
        InvalidInputError: Others may write into the folder they are in; each method, if others may enter one or own it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        _check_closed(folder, _OTHERS_WRITE)

    def find(self, secret: str, key: str) -> Sequence[tuple[str, str]]:
        """Return Secret and key of all that match two patterns, such as `*`."""
        files = [file for file in sorted(self._folder.glob(f"{secret}/{key}")) if file.is_file()]
        return [(str(file.parent.relative_to(self._folder)), file.name) for file in files]

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return what a Secret holds, or None if there is none of this name."""
        folder = self._levels(name)[-1]
        if not folder.is_dir():
            return None
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")}

    def seeds(self, secrets: str) -> Iterator[KeptSeed]:
        """Return the seeds that are somebody's, of Secrets that match a pattern."""
        return (one for one in self._anyones(secrets) if _is_somebodys(one))

    def strays(self, secrets: str) -> Iterator[KeptSeed]:
        """Return seeds that lie beside those that are somebody's, such as copies: nobody goes by them."""
        return (one for one in self._anyones(secrets) if not _is_somebodys(one))

    def _anyones(self, secrets: str) -> Iterator[KeptSeed]:
        for secret, key in self.find(secrets, "*"):
            if secret == CALLOUT:
                continue
            there = self.read(secret) or {}
            if parse_key(there.get(key, b"").decode("ascii", "replace")) is not None:
                yield KeptSeed(secret, key, there)

    def create(self, name: str, data: Mapping[str, bytes], _labels: Mapping[str, str]) -> None:
        """Make a Secret that is not there yet; folders have no labels."""
        self.extend(name, data)

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Put keys into a Secret; its other keys stay. Each appears whole or not at all."""
        *_, folder = levels = self._levels(name)
        try:
            self._folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            for level in levels:
                level.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
            for key, value in data.items():
                write_private(folder / key, value)
        except OSError as error:
            raise UnavailableError(f"{folder} cannot be written: {error.strerror}.") from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have other commands wait that change keys, while the block runs.

        Each reads who is let in and writes it anew: what another one wrote meanwhile, such as who is let in no more, would be lost.
        """
        folder = self._levels(AUTHORIZATION)[-1]
        if not folder.is_dir():  # so that nobody changes anything here
            yield
            return
        try:
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise UnavailableError(f"{folder} cannot be locked: {error.strerror}.") from None
        try:
            yield
        finally:
            os.close(descriptor)

    def remove(self, name: str, key: str) -> None:
        """Remove a key of a Secret; one that is not there stays so."""
        (self._folder / name / key).unlink(missing_ok=True)

    def _levels(self, name: str) -> Sequence[Path]:
        """Return the folder of a Secret, and before it those that it is in."""
        parts = name.split("/")
        levels = [self._folder.joinpath(*parts[: depth + 1]) for depth in range(len(parts))]
        for level in levels:
            _check_closed(level, _OTHERS)
            _check_own(level)
        return levels


def _is_somebodys(seed: KeptSeed) -> bool:
    """Whether a seed lies where `create` makes one: of who has the folder, or of an agent, called like its pool or as a replica."""
    behind = seed.key.removeprefix(seed.folder)
    is_agents = seed.key.startswith(seed.folder) and (not behind or _OF_A_REPLICA.fullmatch(behind) is not None)
    return is_token(seed.folder) and is_token(seed.key) and (is_agents or not seed.is_of_pool)


def _check_closed(folder: Path, forbidden: int) -> None:
    mode = folder.stat().st_mode & 0o777 if folder.exists() else 0
    if mode & forbidden:
        raise InvalidInputError(
            f"The folder {folder} is open to other users of this machine (mode {mode:o}), who could take or change keys.",
            hint=f"Close it with `chmod 700 {folder}`; if others were let in, replace its keys with `ioa credentials rotate`.",
        )


def _check_own(folder: Path) -> None:
    """See that who works with keys has made their folder: root enters another user's, too, in which seeds may lie that he knows."""
    if folder.exists() and belongs_to_another(folder):
        raise InvalidInputError(
            f"The folder {folder} belongs to another user of this machine, who could take or change keys.",
            hint="Run the command as that user, or choose another folder.",
        )


def plan_of(  # noqa: PLR0913  # all that there is
    pools: Sequence[str],
    users: Sequence[str],
    observers: Sequence[str],
    admins: Sequence[str],
    auditors: Sequence[str] = (),
    *,
    callout: bool = False,
    tenant: TenantId | None = None,
    limits: Sequence[str] = (),
    gateways: Sequence[str] = (),
) -> Plan:
    """Say who there is of one tenant: the services, the agents of each pool, and the others by their roles.

    Args:
        pools: Each as `ID`, or as `ID:N` for so many replicas.
        users: Who launches goals.
        observers: Who sees that all runs.
        admins: Who may do everything.
        auditors: Who reads the audit log.
        callout: Whether third parties are let in by tokens, of all tenants.
        tenant: Whose they are.
        limits: What it may use up, each as `NAME=NUMBER`; `AccountLimits` has the names.
        gateways: Who lets in others by HTTP, and may do what any user may.

    Raises:
        InvalidInputError: A name is no id, is given twice, a user's is one of the system's own, or a pool has no number of replicas
            where there should be one. Or limits do not fit, or a callout is that of one tenant alone.
    """
    if tenant is not None and callout:
        raise InvalidInputError("The auth callout lets in guests of all tenants.", hint="Give --callout without --tenant.")
    found: list[tuple[str, SeedsPlan]] = [
        (service.value, SeedsPlan(seeds={"seed": ServiceIdentity(service=service, tenant=tenant)}))
        for service in Service
        if callout or service is not Service.AUTHCALLOUT
    ]
    found += [_pool(written, tenant) for written in pools]
    others = {"user": users, "gateway": gateways, "observer": observers, "auditor": auditors, "admin": admins}
    for role, names in others.items():
        found += [(_name(name), SeedsPlan(seeds={"seed": _identity(name, role, tenant)})) for name in names]
    replicas = [key for name, seeds in found for key in seeds.seeds if key not in ("seed", name)]
    names = [AUTHORIZATION, CALLOUT, TENANTS, *(name for name, _ in found), *replicas]
    for name in names:
        if names.count(name) > 1:  # who is kept out or thrown out is told by his name
            hint = "Services, pools, their replicas and users bear different names."
            raise InvalidInputError(f"There are two of the name {name!r}.", hint=hint)
    return Plan(
        secrets={in_folder(tenant, name): seeds for name, seeds in found},
        tenants={} if tenant is None else {tenant: _limits(limits)},
        limits=_limits(limits) if tenant is None else AccountLimits(),
        authorization=AUTHORIZATION,
        callout=CALLOUT if callout else None,
    )


def in_folder(tenant: TenantId | None, name: str) -> str:
    """Return where in a folder of credentials those are that bear a name, or a pattern of names."""
    return name if tenant is None else f"{TENANTS}/{tenant}/{name}"


def parse_tenant(written: str | None) -> TenantId | None:
    """Check a tenant's name that somebody has written.

    Raises:
        InvalidInputError: It is none.
    """
    try:
        return None if written is None else TenantId(check_tenant(written))
    except ValueError as error:
        raise InvalidInputError(str(error)) from None


def _limits(written: Sequence[str]) -> AccountLimits:
    try:
        return AccountLimits.model_validate(dict(one.split("=", 1) for one in written))
    except ValidationError as error:
        why = in_words(error, "--limit")
    except ValueError:
        why = "write NAME=NUMBER"
    raise InvalidInputError(f"A limit does not fit: {why}.", hint=f"There are {', '.join(AccountLimits.model_fields)}.")


def create_credentials(folder: Path, plan: Plan, terminal: Terminal, *, now: datetime) -> None:
    """Make the seeds that are missing, write the authorization anew, and say where everything lies.

    Other tenants than the plan's are let in as before.
    """
    kept = FolderSecrets(folder)
    [tenant] = plan.tenants or [None]
    kept.extend(AUTHORIZATION, {})
    with kept.alone():
        done, left_out = _made(kept, plan, tenant, now)
    files = {name: {key: str(folder / name / key) for key in wanted.seeds} for name, wanted in plan.secrets.items()}
    if plan.callout is not None:
        files[plan.callout] = {key: str(folder / plan.callout / key) for key in (ASKED, ISSUER, REVOKED)}
    included = str(folder / AUTHORIZATION / CONFIGURATION)
    if terminal.as_json:
        terminal.document({"seeds": files, "authorization": included, "done": done, "left_out": left_out})
        return
    for sentence in done or ["nothing to do: all credentials are there"]:
        terminal.note(sentence)
    terminal.result.print(included, soft_wrap=True)


def _made(kept: FolderSecrets, plan: Plan, tenant: TenantId | None, now: datetime) -> tuple[list[str], list[str]]:
    """Make what a plan names; returns what was done, in sentences, and who is let in no more."""
    there = _rendered(kept) or ""
    before, asked = read_tenants(there), plan.callout
    others: dict[str, Permissions] = {}
    if there and (before or tenant is not None):
        others = {key: may for key, may in read_authorization(there).items() if may.tenant != tenant}
    if tenant is not None and read_callout(there) is not None:
        asked = CALLOUT
    limits = plan.limits if tenant is None else read_own_limits(there)
    whole = plan.model_copy(update={"tenants": {**before, **plan.tenants}, "limits": limits, "callout": asked})
    done = make_credentials(whole, kept, now, others)
    left_out = _left_out(kept, tenant, there)
    if left_out:
        done.append(
            f"let in no more, since not named: {', '.join(left_out)}; their seeds stay, and count again when they are named"
        )
    if tenant is not None and tenant not in before:
        done.append(f"the accounts of {tenant} are new: restart nats-server, since a reload lets no requests cross between them")
    return done, left_out


def _left_out(kept: FolderSecrets, tenant: TenantId | None, before: str) -> list[str]:
    """Return who of a tenant was let in by his seed before and is not by what is written now, by name."""
    try:
        was, now = (read_authorization(text).keys() for text in (before, _rendered(kept) or ""))
    except InvalidInputError:  # none, or one that `ioa credentials` has not written
        return []
    gone = was - now
    return [one.name for one in kept.seeds(in_folder(tenant, "*")) if one.public_key in gone]


def read_known(kept: FolderSecrets, folder: Path) -> dict[str, Permissions]:
    """Return whom the authorization in a folder lets in, by public key.

    Raises:
        InvalidInputError: There is none, or none that `ioa credentials` has written.
    """
    there = _rendered(kept)
    if there is None:
        raise InvalidInputError(
            f"There is no {folder / AUTHORIZATION / CONFIGURATION}.", hint="Make credentials with `ioa credentials create`."
        )
    return read_authorization(there)


def write_known(kept: FolderSecrets, known: Mapping[str, Permissions], gone: TenantId | None = None) -> bool:
    """Write whom the authorization lets in, and no accounts of a tenant that is gone; returns whether that has changed it."""
    there = _rendered(kept) or ""
    tenants = {tenant: limits for tenant, limits in read_tenants(there).items() if tenant != gone}
    rendered = authorization(known, read_callout(there), tenants, read_own_limits(there))
    if there == rendered:
        return False
    kept.extend(AUTHORIZATION, {CONFIGURATION: rendered.encode()})
    return True


def _rendered(kept: FolderSecrets) -> str | None:
    there = (kept.read(AUTHORIZATION) or {}).get(CONFIGURATION)
    return None if there is None else there.decode("utf-8", "replace")


def _pool(written: str, tenant: TenantId | None) -> tuple[str, SeedsPlan]:
    pool, _, count = written.partition(":")
    _name(pool)
    if not count:
        return pool, SeedsPlan(seeds={pool: AgentIdentity(agent=AgentId(pool), pool=PoolId(pool), tenant=tenant)})
    if not (count.isdecimal() and 1 <= int(count) <= _MAX_REPLICAS):
        raise InvalidInputError(f"{written!r}: {count!r} is no number of replicas from 1 to {_MAX_REPLICAS}.")
    agents = [AgentId(f"{pool}-{number}") for number in range(int(count))]
    return pool, SeedsPlan(seeds={agent: AgentIdentity(agent=agent, pool=PoolId(pool), tenant=tenant) for agent in agents})


def _identity(name: str, role: str, tenant: TenantId | None) -> UserIdentity:
    try:
        return UserIdentity.model_validate({"user": name, "role": role, "tenant": tenant})
    except ValidationError as error:
        raise InvalidInputError(f"{in_words(error, f'--{role}')}.", hint="Give another name.") from None


def _name(written: str) -> str:
    try:
        return check_token(written)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
