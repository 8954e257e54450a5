"""Who comes in, and who does not: counted, logged, and noted in the audit log. Nothing of a token is."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

import structlog
from prometheus_client import Counter as Metric

from ioa.adapters.nats.arrivals import digest_of
from ioa.adapters.nats.callout import Guest
from ioa.errors import Fault, ForbiddenError, IoaError, row_of
from ioa.protocol.audit import Deed
from ioa.protocol.authcallout import AskCalloutStatus, CalloutStatus
from ioa.runtime.audit import AuditLog
from ioa_authcallout.issuer import Keys
from ioa_authcallout.refusals import Refusals
from ioa_authcallout.tokens import HolderRefusedError

_log = structlog.get_logger(__name__)

callouts = Metric(
    "ioa_callouts_total",
    "Connections without a known key, by whether their token let them in, was refused, or could not be checked",
    ["outcome"],
)
for _outcome in ("let_in", "refused", "unchecked"):
    callouts.labels(_outcome)


_TOO_MANY = "Too many connected at once without a known key."
_REFUSED_SECONDS = 5.0
"""For how long a token that was refused is not looked at again."""
_MOST_REFUSED = 10_000


class CalloutEntrance:
    """Judges who comes, and keeps count. `clock` returns seconds that never go back."""

    def __init__(
        self,
        judge: Callable[[str], Awaitable[Guest]],
        keys: Keys,
        issuer: str,
        audit: AuditLog,
        clock: Callable[[], float],
    ) -> None:
        self._judge = judge
        self._keys = keys
        self._issuer = issuer
        self._audit = audit
        self._let_in = 0
        self._refused: Counter[str] = Counter()
        self._clock = clock
        self._refusals = Refusals(clock)
        self._lately: OrderedDict[bytes, tuple[float, Callable[[], ForbiddenError]]] = OrderedDict()
        """Until when each token is not looked at, and what makes its refusal anew: one that was raised keeps what it came by."""

    async def judge(self, token: str, address: str) -> Guest:
        """Say who the holder of a token is, as `TokenJudge` does, and note it."""
        try:
            guest = await self._looked_at(token)
        except IoaError as error:
            self._refused[error.message] += 1
            self._refusals.note(address)
            row = row_of(error)
            if row.fault is Fault.CALLER:
                callouts.labels("refused").inc()
                subject = error.subject if isinstance(error, HolderRefusedError) else ""
                self._audit.note(Deed.CONNECTED, target=subject, refused=row.wire_code, why=error.message)
            else:
                callouts.labels("unchecked").inc()
            _log.info("not_let_in", why=error.message)
            raise
        self._let_in += 1
        callouts.labels("let_in").inc()
        self._audit.note(Deed.CONNECTED, who=guest.name, target=guest.subject, why=guest.role)
        _log.info("let_in", name=guest.name, until=guest.until.isoformat())
        return guest

    def is_answered(self, address: str) -> bool:
        """Whether somebody of this address who is not let in is told so: not if very many were lately."""
        return self._refusals.is_answered(address)

    def given_up(self, address: str) -> None:
        """Count somebody who was not judged, since too many waited."""
        self._refused[_TOO_MANY] += 1
        self._refusals.note(address)
        callouts.labels("unchecked").inc()

    async def _looked_at(self, token: str) -> Guest:
        """Judge a token, but one that was refused a moment ago, as are those that everybody can make again and again."""
        digest, now = digest_of(token), self._clock()
        until, refused = self._lately.get(digest, (now, None))
        if refused is not None and now < until:
            raise refused()
        try:
            return await self._judge(token)
        except ForbiddenError as error:
            self._lately[digest] = (now + _REFUSED_SECONDS, _anew(error))
            self._lately.move_to_end(digest)
            if len(self._lately) > _MOST_REFUSED:
                self._lately.popitem(last=False)
            raise

    async def status(self, _asked: AskCalloutStatus) -> CalloutStatus:
        """Tell how it goes."""
        return CalloutStatus(
            issuer=self._issuer,
            away=self._keys.away(),
            let_in=self._let_in,
            refused=dict(self._refused),
            crowding=self._refusals.many(),
        )


def _anew(error: ForbiddenError) -> Callable[[], ForbiddenError]:
    """Return what makes the same refusal again, without what the first one has seen."""
    if isinstance(error, HolderRefusedError):
        return partial(HolderRefusedError, error.message, error.subject)
    return partial(ForbiddenError, error.message, hint=error.hint)
