"""Who the holder of a token is here: its signature, issuer, audience and times are checked, and then its claim is read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Literal

import jwt
from jwt.exceptions import ExpiredSignatureError, InvalidAudienceError, InvalidIssuerError, PyJWTError
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from ioa.adapters.nats.callout import Guest
from ioa.adapters.nats.permissions import OURS, Permissions, of_agent, of_observer, of_user
from ioa.adapters.nats.tokens import inbox_owner
from ioa.errors import ForbiddenError
from ioa.protocol.ids import AgentId, AgentIdField, PoolId, PoolIdField, TenantIdField, UserIdField, full_name
from ioa.protocol.model import Model
from ioa.protocol.team import is_seat
from ioa.runtime.watched_file import is_line
from ioa_authcallout.issuer import Keys

_ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
"""What issuers sign with whose keys are public. Nothing symmetric, and never none."""
_MAX_CHARS = 16 * 1024
_LEEWAY = timedelta(seconds=5)
_LONGEST = timedelta(days=1)
"""For how long a token lets in at most, however long it lasts: then it is judged anew."""


_REPLICA = re.compile(r"-\d+$")


class _Claim(Model):
    model_config = ConfigDict(extra="forbid")

    tenant: TenantIdField | None = None


class _AgentClaim(_Claim):
    role: Literal["agent"]
    agent: AgentIdField
    pool: PoolIdField | None = None

    def of_role(self) -> Permissions:
        return of_agent(self.agent, self.pool or PoolId(self.agent))

    @property
    def called(self) -> str:
        return self.agent


class _OtherClaim(_Claim):
    role: Literal["user", "observer"]
    name: UserIdField

    def of_role(self) -> Permissions:
        return of_user(self.name) if self.role == "user" else of_observer()

    @property
    def called(self) -> str:
        return self.name


class HolderRefusedError(ForbiddenError):
    """A token is its issuer's, but its holder is not let in. `subject` is whose it is."""

    def __init__(self, message: str, subject: str) -> None:
        super().__init__(message)
        self.subject = subject


_CLAIM: TypeAdapter[_AgentClaim | _OtherClaim] = TypeAdapter(Annotated[_AgentClaim | _OtherClaim, Field(discriminator="role")])


class TokenJudge:
    """Judges tokens of one issuer.

    Args:
        keys: Those of the issuer.
        issuer: Who must have issued a token.
        audience: Whom it must be for.
        claim: Where it says who its holder is.
        revoked: Returns the subjects whose tokens are taken no more.
        taken: Returns the names that keys have, those of a tenant as `full_name` has them.
        tenants: Returns the tenants with a name that the server knows.
        now: The time.
    """

    def __init__(
        self,
        keys: Keys,
        issuer: str,
        audience: str,
        claim: str,
        *,
        revoked: Callable[[], Awaitable[Collection[str]]],
        taken: Callable[[], Awaitable[Collection[str]]],
        tenants: Callable[[], Awaitable[Collection[str]]],
        now: Callable[[], datetime],
    ) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._claim = claim
        self._revoked = revoked
        self._taken = taken
        self._tenants = tenants
        self._now = now

    async def judge(self, token: str) -> Guest:
        """Say who the holder of a token is, and until when.

        Raises:
            ForbiddenError: It is none that is taken; the message says why, and nothing of what it holds.
            UnavailableError: Its issuer's key is not known, and the issuer does not answer.
        """
        if not token:
            raise ForbiddenError("This key is not known here, and there is no token.")
        if len(token) > _MAX_CHARS:
            raise ForbiddenError(f"The token is longer than {_MAX_CHARS:,} characters.")
        try:
            key = await self._keys.key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key.jwk,
                algorithms=_ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except ExpiredSignatureError:
            raise ForbiddenError("The token has run out.") from None
        except InvalidAudienceError:
            raise ForbiddenError("The token is for somebody else (its audience).") from None
        except InvalidIssuerError:
            raise ForbiddenError("The token is of another issuer.") from None
        except (PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ForbiddenError(f"The token cannot be taken ({type(error).__name__}).") from None
        subject = str(claims["sub"])
        if not is_line(subject) or not subject.isprintable():
            raise ForbiddenError("The token's subject is not one line, or has blanks at its ends, so that nobody could revoke it.")
        if subject in await self._revoked():
            raise HolderRefusedError("The token's subject is let in no more.", subject)
        holder = self._holder(claims.get(self._claim), subject)
        name = full_name(holder.tenant, holder.called)
        if holder.tenant is not None and holder.tenant not in await self._tenants():
            raise HolderRefusedError("The token's claim names a tenant that is not here.", subject)
        await self._check_names(holder, subject)
        now = self._now()
        lasts = min(int(claims["exp"]), int((now + _LONGEST - _LEEWAY).timestamp())) + _LEEWAY.total_seconds()
        until = datetime.fromtimestamp(lasts, now.tzinfo)
        may = replace(holder.of_role(), tenant=holder.tenant)
        known_by = full_name(holder.tenant, f"{holder.role}:{holder.called}")
        return Guest(name, holder.role, subject, known_by, may, inbox_owner(str(claims["iss"]), subject), until)

    async def _check_names(self, holder: _AgentClaim | _OtherClaim, subject: str) -> None:
        """See that nobody who comes with a key is called so, in capitals or not: people and file systems take both for the same."""
        taken = {one.casefold() for one in await self._taken()}
        agent = (holder.agent, holder.pool or holder.agent) if isinstance(holder, _AgentClaim) else ()
        for called in dict.fromkeys((holder.called, *agent)):
            plain = called.casefold()
            name = full_name(holder.tenant, plain)
            if plain in OURS or name in taken:
                raise HolderRefusedError(
                    "The token's claim bears a name, or a pool's, that somebody has who comes with a key.", subject
                )
            if agent and (is_seat(AgentId(plain)) or _REPLICA.sub("", name) in taken):
                raise HolderRefusedError(
                    "The token's claim bears the name of a person's seat, or of a replica of a pool, or names it as its pool.",
                    subject,
                )

    def _holder(self, claimed: object, subject: str) -> _AgentClaim | _OtherClaim:
        try:
            return _CLAIM.validate_python(claimed)
        except ValidationError:
            why = f"The token's claim {self._claim!r} does not say who its holder is here."
            raise HolderRefusedError(why, subject) from None
