"""The roster of a system: the names that may connect to NATS, with the role and the public keys of each.

The roster is the source of truth. The authorization of nats-server is rendered from it, and only nats-server reads that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from ioa.adapters.nats.auth.roles import (
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
from ioa.adapters.nats.auth.server_config import AccountLimits, Callout, User, authorization
from ioa.errors import InvalidInputError
from ioa.protocol.ids import AgentId, PoolId, TenantId, TenantIdField, UserId, check_token, full_name
from ioa.protocol.model import Instruction
from ioa.protocol.texts import in_words


class AccessRole(StrEnum):
    """The role of the holder of a name."""

    SERVICE = "service"
    AGENT = "agent"
    USER = "user"
    GATEWAY = "gateway"
    OBSERVER = "observer"
    AUDITOR = "auditor"
    ADMIN = "admin"


_Name = Annotated[str, AfterValidator(check_token)]


class Holder(Instruction):
    """A name that may connect.

    Attributes:
        name: Unique within the tenant, also among the names of pools.
        role: The role.
        pool: The pool of an agent.
        tenant: None for the tenant without a name.
        keys: The public keys, the newest last.
    """

    name: _Name
    role: AccessRole
    pool: _Name | None = None
    tenant: TenantIdField | None = None
    keys: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        """Reject a user with a name of the system's own: services would act for it. Other roles may have any name."""
        if self.role is AccessRole.USER and self.name.casefold() in OURS:
            raise ValueError(f"{self.name} is a name of the system's own: a user with it could act for others")
        if self.role is AccessRole.SERVICE and self.name not in {*Service}:
            raise ValueError(f"{self.name} is no service")
        if (self.role is AccessRole.AGENT) is (self.pool is None):
            raise ValueError(f"{self.name}: an agent has a pool, and no other role has")
        return self

    @property
    def full_name(self) -> str:
        """The name, after the tenant's."""
        return full_name(self.tenant, self.name)

    @property
    def names(self) -> frozenset[str]:
        """The names that address the holder: its own name and its pool's name."""
        return frozenset((self.name, self.pool or self.name))

    @property
    def secret(self) -> str:
        """The Secret with its seed in a folder of credentials."""
        return self.pool or self.name

    @property
    def key(self) -> str:
        """The key of its seed in this Secret."""
        return "seed" if self.pool is None else self.name

    def permissions(self) -> Permissions:
        """Return the permissions of its role."""
        match self.role:
            case AccessRole.SERVICE:
                found = of_service(Service(self.name))
            case AccessRole.AGENT:
                found = of_agent(AgentId(self.name), PoolId(self.secret))
            case AccessRole.USER:
                found = of_user(UserId(self.name))
            case AccessRole.GATEWAY:
                found = of_gateway()
            case AccessRole.OBSERVER:
                found = of_observer(self.name)
            case AccessRole.AUDITOR:
                found = of_auditor(self.name)
            case AccessRole.ADMIN:
                found = of_admin()
        return replace(found, tenant=self.tenant)


class AccessRoster(Instruction):
    """All names that may connect.

    Attributes:
        holders: The names.
        tenants: The tenants with a name, and their limits.
        limits: The limits of the tenant without a name.
        callout: The auth callout, if third parties connect by tokens.
    """

    holders: tuple[Holder, ...] = ()
    tenants: Mapping[TenantIdField, AccountLimits] = Field(default_factory=dict)
    limits: AccountLimits = AccountLimits()
    callout: Callout | None = None

    @model_validator(mode="after")
    def _check_unique(self) -> Self:
        """Reject a name that two holders have, or a holder and the pool of others."""
        pools = {full_name(one.tenant, one.pool) for one in self.holders if one.pool not in (None, one.name)}
        for one in self.holders:
            if one.full_name in pools:
                raise ValueError(f"There are two of the name {one.name!r}")
            pools.add(one.full_name)
        return self

    def add(self, holders: Iterable[Holder]) -> AccessRoster:
        """Return the roster with more holders. A holder with the same name, role and pool keeps its keys, and gets the new ones.

        Raises:
            InvalidInputError: The name exists with another role or pool.
        """
        found = {one.full_name: one for one in self.holders}
        for new in holders:
            old = found.get(new.full_name, new)
            if (old.role, old.pool) != (new.role, new.pool):
                what = old.role if old.pool is None else f"{old.role} of the pool {old.pool}"
                raise InvalidInputError(f"There is another {new.name!r} already: the {what}.", hint="Choose another name.")
            kept = (key for key in old.keys if key not in new.keys)
            found[new.full_name] = new.model_copy(update={"keys": (*kept, *new.keys)})
        return self._with(holders=tuple(found.values()))

    def drop_old_keys(self, holders: Collection[Holder] | None = None) -> AccessRoster:
        """Return the roster with only the newest key of each of these holders; None: of all holders."""
        named = None if holders is None else {one.full_name for one in holders}
        return self._with(
            holders=tuple(
                one.model_copy(update={"keys": one.keys[-1:]}) if named is None or one.full_name in named else one
                for one in self.holders
            )
        )

    def remove(self, holders: Sequence[Holder]) -> AccessRoster:
        """Return the roster without these holders. Without the service `authcallout`, no third party connects."""
        gone = {one.full_name for one in holders}
        without = {"callout": None} if Service.AUTHCALLOUT.value in gone else {}
        return self._with(holders=tuple(one for one in self.holders if one.full_name not in gone), **without)

    def find(self, tenant: TenantId | None, name: str | None) -> Sequence[Holder]:
        """Return the agents of a pool, or else the holder of a name; without a name, all holders of the tenant."""
        own = [one for one in self.holders if one.tenant == tenant]
        if name is None:
            return own
        return [one for one in own if one.pool == name] or [one for one in own if one.name == name]

    def names(self) -> frozenset[str]:
        """Return the names of all holders and of their pools, as `full_name` writes them."""
        return frozenset(full_name(one.tenant, name) for one in self.holders for name in one.names)

    def render(self) -> str:
        """Render the authorization of nats-server."""
        holders = sorted(self.holders, key=lambda one: (one.tenant or "", one.name))
        users = [User(key, one.name, may) for one in holders for may in (one.permissions(),) for key in one.keys]
        named = {one.tenant: AccountLimits() for one in holders if one.tenant is not None}
        return authorization(users, self.callout, {**named, **self.tenants}, self.limits)

    def _with(self, **fields: object) -> AccessRoster:
        try:
            return AccessRoster.model_validate({name: getattr(self, name) for name in AccessRoster.model_fields} | fields)
        except ValidationError as error:
            raise InvalidInputError(f"{in_words(error, 'roster')}.", hint="Choose another name.") from None


def read_roster(written: bytes | str) -> AccessRoster:
    """Parse a roster.

    Raises:
        InvalidInputError: It is no roster.
    """
    try:
        return AccessRoster.model_validate_json(written)
    except ValidationError as error:
        message = f"roster.json is no roster: {in_words(error, 'roster')}."
        raise InvalidInputError(message, hint="`ioa credentials create` writes it; restore it.") from None
