"""Verification of tokens: signature, issuer, audience, times, and the claim that names the holder."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal

import jwt
from jwt.exceptions import ExpiredSignatureError, InvalidAudienceError, InvalidIssuerError, PyJWTError
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from ioa.adapters.nats.auth.credentials import inbox_owner
from ioa.adapters.nats.auth.roles import OURS, Permissions, of_agent, of_observer, of_user
from ioa.errors import ForbiddenError
from ioa.hosting.credentials import is_line
from ioa.protocol.ids import AgentId, AgentIdField, PoolId, PoolIdField, TenantIdField, UserIdField, full_name
from ioa.protocol.model import Model
from ioa.protocol.team import is_seat
from ioa_authcallout.callout_messages import Guest
from ioa_authcallout.issuer_keys import IssuerKeys

_ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
"""Accepted signatures, all by a public key."""
_MAX_CHARS = 16 * 1024
_LEEWAY = timedelta(seconds=5)
_MAX_LIFETIME = timedelta(hours=1)
"""Maximum lifetime of a connection; afterwards its token is verified again."""
_REASONS: Mapping[type[Exception], str] = {
    ExpiredSignatureError: "has expired",
    InvalidAudienceError: "is for another audience",
    InvalidIssuerError: "is from another issuer",
}
_REPLICA = re.compile(r"-\d+$")


class _Claim(Model):
    model_config = ConfigDict(extra="forbid")

    tenant: TenantIdField | None = None


class _AgentClaim(_Claim):
    role: Literal["agent"]
    agent: AgentIdField
    pool: PoolIdField | None = None

    @property
    def name(self) -> str:
        return self.agent

    @property
    def permissions(self) -> Permissions:
        return of_agent(self.agent, self.pool or PoolId(self.agent))


class _OtherClaim(_Claim):
    role: Literal["user", "observer"]
    name: UserIdField

    @property
    def permissions(self) -> Permissions:
        return of_user(self.name) if self.role == "user" else of_observer(self.name)


class HolderRejectedError(ForbiddenError):
    """A valid token whose holder is rejected. `subject` is that of the token."""

    def __init__(self, message: str, subject: str) -> None:
        super().__init__(message)
        self.subject = subject


_CLAIM: TypeAdapter[_AgentClaim | _OtherClaim] = TypeAdapter(Annotated[_AgentClaim | _OtherClaim, Field(discriminator="role")])


@dataclass(frozen=True)
class KnownNames:
    """Names with which tokens are compared.

    Attributes:
        revoked: The revoked subjects.
        reserved: The names of holders of keys and of their pools, as `full_name` writes them.
        tenants: The named tenants of the server.
    """

    revoked: Collection[str]
    reserved: Collection[str]
    tenants: Collection[str]


class TokenVerifier:
    """Verifies tokens of one issuer.

    Args:
        keys: Public keys of the issuer.
        issuer: Required issuer (`iss`).
        audience: Required audience (`aud`).
        claim: Name of the claim that contains role and name of the holder.
        read_names: Reads the names; called in a thread for each token.
        now: Returns the current time.
    """

    def __init__(
        self,
        keys: IssuerKeys,
        issuer: str,
        audience: str,
        claim: str,
        *,
        read_names: Callable[[], KnownNames],
        now: Callable[[], datetime],
    ) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._claim = claim
        self._read_names = read_names
        self._now = now

    async def verify(self, token: str) -> Guest:
        """Return the holder of a token, its permissions, and the end of its connection.

        Raises:
            ForbiddenError: The token is rejected; the message gives the reason and no content of the token.
            UnavailableError: The issuer's keys or the names cannot be read.
        """
        if not token:
            raise ForbiddenError("The key is unknown, and there is no token.")
        if len(token) > _MAX_CHARS:
            raise ForbiddenError(f"The token is longer than {_MAX_CHARS:,} characters.")
        try:
            key = self._keys.key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            reason = _REASONS.get(type(error), f"is invalid ({type(error).__name__})")
            raise ForbiddenError(f"The token {reason}.") from None
        subject = str(claims["sub"])
        if not is_line(subject) or not subject.isprintable():
            raise ForbiddenError("The token's subject is not one line, or begins or ends with a blank, so it cannot be revoked.")
        names = await asyncio.to_thread(self._read_names)
        if subject in names.revoked:
            raise HolderRejectedError("The token's subject is revoked.", subject)
        holder = self._holder(claims.get(self._claim), subject)
        _check_names(holder, subject, names)
        now = self._now()
        end = min(int(claims["exp"]), int((now + _MAX_LIFETIME - _LEEWAY).timestamp())) + _LEEWAY.total_seconds()
        return Guest(
            name=full_name(holder.tenant, holder.name),
            role=holder.role,
            subject=subject,
            holder=full_name(holder.tenant, f"{holder.role}:{holder.name}"),
            may=replace(holder.permissions, tenant=holder.tenant),
            inbox_owner=inbox_owner(self._issuer, subject),
            until=datetime.fromtimestamp(end, now.tzinfo),
        )

    def _holder(self, claimed: object, subject: str) -> _AgentClaim | _OtherClaim:
        try:
            return _CLAIM.validate_python(claimed)
        except ValidationError:
            raise HolderRejectedError(f"The token's claim {self._claim!r} is no role and name.", subject) from None


def _check_names(holder: _AgentClaim | _OtherClaim, subject: str, names: KnownNames) -> None:
    """Reject names of holders of keys, ignoring case, since people and file systems confuse them."""
    if holder.tenant is not None and holder.tenant not in names.tenants:
        raise HolderRejectedError("The token's claim names an unknown tenant.", subject)
    reserved = {one.casefold() for one in names.reserved}
    pool = (holder.pool or holder.agent,) if isinstance(holder, _AgentClaim) else ()
    for plain in {one.casefold() for one in (holder.name, *pool)}:
        name = full_name(holder.tenant, plain)
        if plain in OURS or name in reserved:
            raise HolderRejectedError("The token's claim contains the name of a holder of a key, or of its pool.", subject)
        if pool and (is_seat(AgentId(plain)) or _REPLICA.sub("", name) in reserved):
            raise HolderRejectedError("The token's claim contains the name of a seat, or of a replica of a pool.", subject)
