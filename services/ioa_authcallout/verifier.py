"""Verification of tokens: signature, issuer, audience, times, and the claim that names the holder. Outcomes are recorded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import jwt
import structlog
from jwt.exceptions import ExpiredSignatureError, InvalidAudienceError, InvalidIssuerError, PyJWTError
from prometheus_client import Counter
from pydantic import ConfigDict

from ioa.adapters.nats.auth.nats_credentials import inbox_owner
from ioa.adapters.nats.auth.roles import OURS, Permissions, of_agent, of_observer, of_user
from ioa.errors import Fault, ForbiddenError, IoaError, row_of
from ioa.hosting.credential_store import is_line
from ioa.protocol.ids import AgentId, AgentIdField, PoolId, PoolIdField, TenantIdField, UserIdField, full_name
from ioa.protocol.model import Model
from ioa.protocol.operation.audit import Deed
from ioa.protocol.teams.team_file import is_seat
from ioa.runtime.audit_log import AuditLog
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

_log = structlog.get_logger(__name__)

callouts = Counter(
    "ioa_callouts_total",
    "Connections without a known key: token accepted (let_in), rejected (refused), or not verified (unchecked)",
    ["outcome"],
)
for _outcome in ("let_in", "refused", "unchecked"):
    callouts.labels(_outcome)


class _Claim(Model):
    """Role and name of a holder: `agent` and optionally `pool` of an agent, `name` of others."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantIdField | None = None
    role: Literal["agent", "user", "observer"]
    agent: AgentIdField | None = None
    pool: PoolIdField | None = None
    name: UserIdField | None = None

    def holder(self) -> tuple[str, Permissions, tuple[str, ...]]:
        """Return the name, the permissions, and all names that no holder of a key may have; `ValueError` if the claim lacks one."""
        match self:
            case _Claim(role="agent", agent=str(agent), name=None):
                pool = self.pool or PoolId(agent)
                return agent, of_agent(agent, pool), (agent, pool)
            case _Claim(role="user", name=str(name), agent=None, pool=None):
                return name, of_user(name), (name,)
            case _Claim(role="observer", name=str(name), agent=None, pool=None):
                return name, of_observer(name), (name,)
            case _:
                raise ValueError


class HolderRejectedError(ForbiddenError):
    """A valid token whose holder is rejected. `subject` is that of the token."""

    def __init__(self, message: str, subject: str) -> None:
        super().__init__(message)
        self.subject = subject


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
        audit: Records accepted and rejected connections, without any part of a token.
        read_names: Reads the names; called in a thread for each token.
        now: Returns the current time.
    """

    def __init__(
        self,
        keys: IssuerKeys,
        issuer: str,
        audience: str,
        claim: str,
        audit: AuditLog,
        *,
        read_names: Callable[[], KnownNames],
        now: Callable[[], datetime],
    ) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._claim = claim
        self._audit = audit
        self._read_names = read_names
        self._now = now

    async def verify(self, token: str) -> Guest:
        """Return the holder of a token, its permissions, and the end of its connection. Each outcome is counted and recorded.

        Raises:
            ForbiddenError: The token is rejected; the message gives the reason and no content of the token.
            UnavailableError: The issuer's keys or the names cannot be read.
        """
        try:
            guest = await self._verify(token)
        except IoaError as error:
            row = row_of(error)
            callouts.labels("refused" if row.fault is Fault.CALLER else "unchecked").inc()
            if row.fault is Fault.CALLER:
                subject = error.subject if isinstance(error, HolderRejectedError) else ""
                self._audit.note(Deed.CONNECTED, target=subject, refused=row.wire_code, why=error.message)
            _log.info("connection_rejected", why=error.message)
            raise
        callouts.labels("let_in").inc()
        self._audit.note(Deed.CONNECTED, who=guest.name, target=guest.subject, why=guest.role)
        _log.info("connection_accepted", name=guest.name, until=guest.until.isoformat())
        return guest

    async def _verify(self, token: str) -> Guest:
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
        try:
            claim = _Claim.model_validate(claims.get(self._claim))
            name, permissions, all_names = claim.holder()
        except ValueError:
            raise HolderRejectedError(f"The token's claim {self._claim!r} is no role and name.", subject) from None
        if why := _find_conflict(claim, all_names, names):
            raise HolderRejectedError(f"The token's claim {why}.", subject)
        now = self._now()
        end = min(int(claims["exp"]), int((now + _MAX_LIFETIME - _LEEWAY).timestamp())) + _LEEWAY.total_seconds()
        return Guest(
            name=full_name(claim.tenant, name),
            role=claim.role,
            subject=subject,
            holder=full_name(claim.tenant, f"{claim.role}:{name}"),
            may=replace(permissions, tenant=claim.tenant),
            inbox_owner=inbox_owner(self._issuer, subject),
            until=datetime.fromtimestamp(end, now.tzinfo),
        )


def _find_conflict(claim: _Claim, names: Collection[str], known: KnownNames) -> str:
    """Compare the names of a holder with those of holders of keys, ignoring case, since people and file systems confuse them."""
    if claim.tenant is not None and claim.tenant not in known.tenants:
        return "names an unknown tenant"
    reserved = {one.casefold() for one in known.reserved}
    for plain in {one.casefold() for one in names}:
        name = full_name(claim.tenant, plain)
        if plain in OURS or name in reserved:
            return "contains the name of a holder of a key, or of its pool"
        if claim.role == "agent" and (is_seat(AgentId(plain)) or _REPLICA.sub("", name) in reserved):
            return "contains the name of a seat, or of a replica of a pool"
    return ""
