"""Outcomes of connections by tokens, as the status and the audit log report them."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.auth.roles import of_user
from ioa.errors import ForbiddenError, UnavailableError
from ioa.protocol.audit import Deed
from ioa.protocol.authcallout import AskCalloutStatus
from ioa.protocol.ids import UserId
from ioa.runtime.audit import AuditLog
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_authcallout.callout_messages import Guest
from ioa_authcallout.issuer_keys import IssuerKeys
from ioa_authcallout.status import RecordedVerifier
from ioa_authcallout.verifier import HolderRejectedError
from tests.rig.memory_delivery import MemoryAuditSink

_GUEST = Guest("carol", "user", "carol@example.com", "user:carol", of_user(UserId("carol")), "T1", NEW_YEAR)
_ERRORS = {
    "forged": ForbiddenError("No."),
    "revoked": HolderRejectedError("The token's subject is revoked.", "bob@example.com"),
    "away": UnavailableError("The issuer does not answer."),
}


async def test_each_outcome_is_counted_and_recorded() -> None:
    """A rejected holder is recorded by the subject of its token; a token that could not be verified is counted only."""

    async def verify(token: str) -> Guest:
        if token in _ERRORS:
            raise _ERRORS[token]
        return _GUEST

    sink = MemoryAuditSink()
    audit = AuditLog(sink, ManualClock(), "authcallout")
    recorded = RecordedVerifier(verify, IssuerKeys(dict, lambda: 0.0), "https://id.example.com", audit)
    assert await recorded.verify("good") is _GUEST
    for token, error in _ERRORS.items():
        with pytest.raises(type(error)):
            await recorded.verify(token)
    status = await recorded.status(AskCalloutStatus())
    assert (status.let_in, status.refused) == (1, dict.fromkeys((error.message for error in _ERRORS.values()), 1))
    await audit.flush()
    assert [(line.deed, line.who, line.target, line.refused) for line in sink.lines.values()] == [
        (Deed.CONNECTED, "carol", "carol@example.com", ""),
        (Deed.CONNECTED, "", "", "forbidden"),
        (Deed.CONNECTED, "", "bob@example.com", "forbidden"),
    ]
