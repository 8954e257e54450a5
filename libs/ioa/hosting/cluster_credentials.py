"""Make the credentials of a system on Kubernetes: `python -m ioa.hosting.cluster_credentials PLAN.json [--unverified]`, in a pod.

Rules that hold here: a seed that is there is replaced only by a rotation that was not made yet, so that running this again changes
nothing; the authorization is rendered anew each time, so that it always says what this version of the code knows; Secrets that were
given are only read.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, Self

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ioa.adapters.kubernetes_secrets import open_kubernetes_secrets
from ioa.adapters.nats.authorization import AccountLimits, Callout, authorization
from ioa.adapters.nats.permissions import (
    OURS,
    Permissions,
    Service,
    of_admin,
    of_agent,
    of_auditor,
    of_gateway,
    of_observer,
    of_service,
    of_user,
)
from ioa.adapters.nkey_seeds import Key, account_key_of, create_account_seed, create_seed, parse_key, public_key_of
from ioa.errors import InvalidInputError, IoaError
from ioa.foreign_text import shown
from ioa.protocol.ids import AgentIdField, PoolIdField, TenantIdField, UserIdField
from ioa.protocol.model import Model

ASKED, ISSUER, REVOKED = "asked", "issuer", "revoked"
"""What an auth callout has besides its key as a service: as whom it is asked, the account's key that signs its answers, and a file
with the subjects whose tokens are taken no more, a line for each."""
AUTHORIZATION, ROUTES, ROUTE_PASSWORD = "authorization.conf", "routes.conf", "route-password"

RETIRING = ".retiring"
"""Beside a key, in a file of its name and this ending: the keys before it that are still let in."""

_ROTATION = "rotation"
_ROUTE_USER = "ioa"
_PASSWORD_BYTES = 24


class _Part(Model):
    model_config = ConfigDict(extra="forbid")


class _Identity(_Part):
    tenant: TenantIdField | None = None

    def permissions(self) -> Permissions:
        """Return what it may do."""
        return replace(self._of_role(), tenant=self.tenant)

    def _of_role(self) -> Permissions:
        raise NotImplementedError


class ServiceIdentity(_Identity):
    """A service of the control plane."""

    service: Service

    def _of_role(self) -> Permissions:
        return of_service(self.service)


class AgentIdentity(_Identity):
    """One agent of a pool."""

    agent: AgentIdField
    pool: PoolIdField

    def _of_role(self) -> Permissions:
        return of_agent(self.agent, self.pool)


class UserIdentity(_Identity):
    """Somebody who is neither."""

    user: UserIdField
    role: Literal["user", "gateway", "observer", "auditor", "admin"]

    @model_validator(mode="after")
    def _is_none_of_ours(self) -> Self:
        """Refuse a user who would be taken for the system. The other roles may do what they may under any name."""
        if self.role == "user" and self.user.casefold() in OURS:
            raise ValueError(f"{self.user} is what the system calls those of its own: a user of that name would act for others")
        return self

    def _of_role(self) -> Permissions:
        match self.role:
            case "user":
                return of_user(self.user)
            case "gateway":
                return of_gateway()
            case "observer":
                return of_observer()
            case "auditor":
                return of_auditor()
            case "admin":
                return of_admin()


class SeedsPlan(_Part):
    """A Secret: who each of its keys stands for, and whether it was given and is only read."""

    given: bool = False
    seeds: Mapping[str, ServiceIdentity | AgentIdentity | UserIdentity] = Field(min_length=1)


class Retiring(_Part):
    """A key that was replaced and is let in beside the new one: until a time, or until its rotation is said to be ended."""

    public_key: str
    until: AwareDatetime | None = None


class Rotation(_Part):
    """Secrets whose keys are to be replaced, once for each id; those before go on being let in until it is ended."""

    id: str
    of: tuple[str, ...]
    ended: bool = False


class Plan(_Part):
    """All that there should be: Secrets by name, the one for nats-server, and the nodes its servers look for (host:port).

    `tenants` are those with a name, and what each may use up; `limits` are those of the tenant without one.
    """

    rotation: Rotation | None = None
    secrets: Mapping[str, SeedsPlan]
    tenants: Mapping[TenantIdField, AccountLimits] = {}
    limits: AccountLimits = AccountLimits()
    authorization: str
    callout: str | None = None
    routes: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


class Secrets(Protocol):
    """Where Secrets are kept."""

    def read(self, name: str) -> Mapping[str, bytes] | None:
        """Return what one holds, or None."""

    def create(self, name: str, data: Mapping[str, bytes], labels: Mapping[str, str]) -> None:
        """Make one."""

    def extend(self, name: str, data: Mapping[str, bytes]) -> None:
        """Put keys into one."""


def make_credentials(plan: Plan, kept: Secrets, now: datetime, others: Mapping[str, Permissions] | None = None) -> list[str]:
    """Make what is missing and say, in a sentence each, what was done.

    Args:
        plan: What there should be.
        kept: Where seeds are.
        now: The time.
        others: Who is let in besides, by public key.

    Raises:
        InvalidInputError: A Secret that was given is not there, or holds none of the seeds it should, or something else instead.
        UnavailableError: Secrets cannot be read or written.
    """
    done: list[str] = []
    users = dict(others or {})
    for name, wanted in plan.secrets.items():
        made = _made(name, wanted, plan, kept, now, done)
        for key, identity in wanted.seeds.items():
            if key in made:
                held = key_in(name, key, made)
                may = replace(identity.permissions(), inbox_of=held.inbox_of)
                retiring = still_let_in(made, key, now, rotating=plan.rotation is not None and not plan.rotation.ended)
                users |= dict.fromkeys((public_key_of(held.seed), *(one.public_key for one in retiring)), may)
    there = kept.read(plan.authorization)
    callout = None if plan.callout is None else _callout(plan.callout, plan, kept, done)
    password = (there or {}).get(ROUTE_PASSWORD) or secrets.token_urlsafe(_PASSWORD_BYTES).encode("ascii")
    data = {
        AUTHORIZATION: authorization(users, callout, plan.tenants, plan.limits).encode(),
        ROUTES: _routes(plan.routes, password.decode("ascii")).encode(),
        ROUTE_PASSWORD: password,
    }
    _put(plan.authorization, there, data, plan.labels, kept, done)
    return done


def key_in(name: str, key: str, there: Mapping[str, bytes]) -> Key:
    """Read a key out of what a Secret holds.

    Raises:
        InvalidInputError: It is none; what it is instead is not shown.
    """
    found = parse_key(there[key].decode("ascii", "replace"))
    if found is None:
        raise InvalidInputError(f"{name} holds no nkey seed of a user as {key}.", hint="Remove it to have a new one made.")
    return found


def retiring_in(there: Mapping[str, bytes], key: str) -> Sequence[Retiring]:
    """Return the keys before this one that are noted, whether or not their time is over.

    Raises:
        InvalidInputError: What is noted cannot be read.
    """
    try:
        return _RETIRING.validate_json(there.get(f"{key}{RETIRING}", b"[]"))
    except ValidationError:
        raise InvalidInputError(
            f"{key}{RETIRING} does not say which keys were before.", hint="Remove it: keys that it named are let in no more then."
        ) from None


def still_let_in(there: Mapping[str, bytes], key: str, now: datetime, *, rotating: bool = False) -> Sequence[Retiring]:
    """Return the keys before this one whose time is not over, and, while a rotation goes on, that which it has replaced."""
    return [one for one in retiring_in(there, key) if (rotating if one.until is None else one.until > now)]


def replaced(name: str, key: str, there: Mapping[str, bytes], until: datetime | None, now: datetime) -> dict[str, bytes]:
    """Make a new key in the place of one, and return what is to be kept of both, in the order in which it is to be written.

    Raises:
        InvalidInputError: What is there is no key.
    """
    old = key_in(name, key, there)
    retiring = [*still_let_in(there, key, now), Retiring(public_key=public_key_of(old.seed), until=until)]
    new = Key(create_seed(), old.inbox_owner)
    return {f"{key}{RETIRING}": noted(retiring), key: new.written()}


def noted(retiring: Sequence[Retiring]) -> bytes:
    """Return what stands in the file of the keys before one."""
    return _RETIRING.dump_json([*retiring])


def _callout(name: str, plan: Plan, kept: Secrets, done: list[str]) -> Callout:
    """Make what an auth callout needs and does not have yet."""
    found = kept.read(name)
    there = found or {}
    makers: dict[str, Callable[[], str]] = {ASKED: create_seed, ISSUER: create_account_seed, REVOKED: str}
    made = {key: make().encode("ascii") for key, make in makers.items() if key not in there}
    _put(name, found, made, plan.labels, kept, done)
    held = {**there, **made}
    issuer = account_key_of(held[ISSUER].decode("ascii", "replace").strip())
    return Callout(public_key_of(key_in(name, ASKED, held).seed), issuer)


_RETIRING = TypeAdapter(list[Retiring])


def _made(name: str, wanted: SeedsPlan, plan: Plan, kept: Secrets, now: datetime, done: list[str]) -> Mapping[str, bytes]:
    """Return what one Secret holds when the seeds that were missing are made, unless it was given, and those to rotate replaced."""
    found = kept.read(name)
    there = found or {}
    missing = [key for key in wanted.seeds if key not in there]
    if wanted.given:
        if len(missing) == len(wanted.seeds):
            keys = ", ".join(wanted.seeds)
            raise InvalidInputError(f"The Secret {name} {'holds none of' if there else 'is not there; it should hold'} {keys}.")
        return there
    data = {key: create_seed().encode("ascii") for key in missing}
    if plan.rotation is not None and name in plan.rotation.of and there.get(_ROTATION) != plan.rotation.id.encode():
        for key in wanted.seeds:
            if key in there:
                data |= replaced(name, key, there, None, now)
        data[_ROTATION] = plan.rotation.id.encode()
    _put(name, found, data, plan.labels, kept, done)
    return {**there, **data}


def _put(
    name: str,
    there: Mapping[str, bytes] | None,
    data: Mapping[str, bytes],
    labels: Mapping[str, str],
    kept: Secrets,
    done: list[str],
) -> None:
    """Write what is new, and nothing if nothing is."""
    if there is None:
        kept.create(name, data, labels)
        done.append(f"made {name} with {len(data)} keys")
        return
    new = {key: value for key, value in data.items() if there.get(key) != value}
    if new:
        kept.extend(name, new)
        done.append(f"changed {name}: {', '.join(sorted(new))}")


def _routes(nodes: tuple[str, ...], password: str) -> str:
    """Render what goes into nats-server's cluster block: by what its nodes know each other, and where they are."""
    routes = "".join(f'  "nats://{_ROUTE_USER}:{password}@{node}"\n' for node in nodes)
    return f'authorization {{ user: "{_ROUTE_USER}", password: "{password}" }}\nroutes [\n{routes}]\n'


def main(arguments: list[str]) -> int:
    """Make the credentials that the plan names; returns the exit code."""
    try:
        try:
            plan = Plan.model_validate_json(Path(arguments[0]).read_bytes())
        except (IndexError, OSError, ValidationError) as error:
            raise InvalidInputError(f"There is no usable plan: {error}.", hint="Give the path of a plan in JSON.") from None
        with open_kubernetes_secrets(verify="--unverified" not in arguments) as kept:
            done = make_credentials(plan, kept, datetime.now(UTC))
    except IoaError as error:
        sys.stderr.write(f"error: {shown(str(error))}\n")
        return 1
    sys.stdout.write("\n".join([*done, ""]) if done else "nothing to do: all credentials are there\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
