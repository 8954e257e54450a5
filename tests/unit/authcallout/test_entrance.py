"""What is noted of who comes by a token, and of who does not come in."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.callout import Guest
from ioa.adapters.nats.permissions import of_user
from ioa.errors import ForbiddenError
from ioa.protocol.audit import AuditLine, Deed
from ioa.protocol.ids import UserId
from ioa.runtime.audit import AuditLog
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_authcallout.entrance import CalloutEntrance
from ioa_authcallout.issuer import Keys


class _Kept:
    def __init__(self) -> None:
        self.lines: list[AuditLine] = []

    async def put(self, line: AuditLine, *, key: str) -> None:
        self.lines.append(line)


class _AtHand(Keys):
    def away(self) -> None:
        return None


async def test_who_is_kept_out_is_noted_by_the_subject_of_the_token() -> None:
    """The name that its claim gives a guest may be another one's subject: he would stand in the log for what he did not do."""
    kept, guest = _Kept(), Guest("carol", "user", "bob", "user:carol", of_user(UserId("carol")), "T1", NEW_YEAR)

    async def judge(_token: str) -> Guest:
        return guest

    audit = AuditLog(kept, ManualClock(), "authcallout")
    entrance = CalloutEntrance(judge, _AtHand(), "https://id.example.com", audit, lambda: {"user:carol"})
    with pytest.raises(ForbiddenError, match="kept out"):
        await entrance.judge("token")
    await audit.flush()
    assert [(line.deed, line.who, line.target, line.refused) for line in kept.lines] == [(Deed.CONNECTED, "", "bob", "forbidden")]
