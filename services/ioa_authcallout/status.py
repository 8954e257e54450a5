"""Accepted and rejected connections: counted, logged, and recorded in the audit log. No part of a token is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import Counter as Metric

from ioa.errors import Fault, IoaError, row_of
from ioa.protocol.audit import Deed
from ioa.protocol.authcallout import AskCalloutStatus, CalloutStatus
from ioa.runtime.audit import AuditLog
from ioa_authcallout.callout_messages import Guest
from ioa_authcallout.issuer_keys import IssuerKeys
from ioa_authcallout.verifier import HolderRejectedError

_log = structlog.get_logger(__name__)

callouts = Metric(
    "ioa_callouts_total",
    "Connections without a known key: token accepted (let_in), rejected (refused), or not verified (unchecked)",
    ["outcome"],
)
for _outcome in ("let_in", "refused", "unchecked"):
    callouts.labels(_outcome)


class RecordedVerifier:
    """Verifies tokens and records each outcome."""

    def __init__(self, verify: Callable[[str], Awaitable[Guest]], keys: IssuerKeys, issuer: str, audit: AuditLog) -> None:
        self._verify = verify
        self._keys = keys
        self._issuer = issuer
        self._audit = audit
        self._accepted = 0
        self._rejected: Counter[str] = Counter()

    async def verify(self, token: str) -> Guest:
        """Return the holder of a token, as `TokenVerifier.verify` does."""
        try:
            guest = await self._verify(token)
        except IoaError as error:
            self._rejected[error.message] += 1
            row = row_of(error)
            callouts.labels("refused" if row.fault is Fault.CALLER else "unchecked").inc()
            if row.fault is Fault.CALLER:
                subject = error.subject if isinstance(error, HolderRejectedError) else ""
                self._audit.note(Deed.CONNECTED, target=subject, refused=row.wire_code, why=error.message)
            _log.info("connection_rejected", why=error.message)
            raise
        self._accepted += 1
        callouts.labels("let_in").inc()
        self._audit.note(Deed.CONNECTED, who=guest.name, target=guest.subject, why=guest.role)
        _log.info("connection_accepted", name=guest.name, until=guest.until.isoformat())
        return guest

    async def status(self, _request: AskCalloutStatus) -> CalloutStatus:
        """Return the counts of this replica."""
        failing = self._keys.failing_seconds()
        return CalloutStatus(issuer=self._issuer, away=failing, let_in=self._accepted, refused=dict(self._rejected))
