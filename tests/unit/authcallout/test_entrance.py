"""What is noted of who comes by a token, and of who does not come in."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import pytest

from ioa.adapters.nats.callout import Guest
from ioa.adapters.nats.permissions import of_user
from ioa.errors import ForbiddenError, UnavailableError
from ioa.protocol.audit import AuditLine
from ioa.protocol.authcallout import AskCalloutStatus
from ioa.protocol.ids import UserId
from ioa.runtime.audit import AuditLog
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_authcallout.entrance import CalloutEntrance
from ioa_authcallout.issuer import IssuerKey, Keys
from ioa_authcallout.tokens import HolderRefusedError


class _Kept:
    def __init__(self) -> None:
        self.lines: list[AuditLine] = []

    async def put(self, line: AuditLine, *, key: str) -> None:
        self.lines.append(line)


class _AtHand(Keys):
    async def key(self, key_id: str) -> IssuerKey:
        raise NotImplementedError(key_id)

    def away(self) -> None:
        return None


async def test_a_token_that_was_refused_is_not_looked_at_again_at_once() -> None:
    """It costs a digest for some seconds; one whose issuer is away is looked at each time, and so is one that lets in."""
    now, judged = [0.0], list[str]()
    refusals = {"forged": ForbiddenError("No."), "away": UnavailableError("The issuer is away.")}

    async def judge(token: str) -> Guest:
        judged.append(token)
        if token in refusals:
            raise refusals[token]
        return Guest("carol", "user", "carol", "user:carol", of_user(UserId("carol")), "T1", NEW_YEAR)

    entrance = _entrance(judge, now)
    for at, token in ((0, "forged"), (1, "forged"), (2, "away"), (3, "away"), (4, "good"), (4.5, "good"), (5.5, "forged")):
        now[0] = at
        with suppress(ForbiddenError, UnavailableError):
            await entrance.judge(token, "192.0.2.7")
    assert judged == ["forged", "away", "away", "good", "good", "forged"]
    assert (await entrance.status(AskCalloutStatus())).refused == {"No.": 3, "The issuer is away.": 2}


class _Question:
    """What a refusal has passed through: the question of a server, of up to 125 kB."""


@pytest.mark.parametrize("refusal", [partial(ForbiddenError, "No."), partial(HolderRefusedError, "Bob is shut out.", "bob")])
async def test_a_refusal_keeps_nothing_of_who_was_refused(refusal: Callable[[], ForbiddenError]) -> None:
    """Anybody without a key can be refused ten thousand times in a few seconds; the same is said again meanwhile."""
    judged, questions = list[str](), weakref.WeakSet[_Question]()

    async def judge(token: str) -> Guest:
        judged.append(token)
        raise refusal()

    entrance = _entrance(judge, [0.0])

    async def ask(token: str) -> str:
        question = _Question()
        questions.add(question)
        try:
            await entrance.judge(token, "192.0.2.7")
        except ForbiddenError as error:
            return f"{type(error).__name__} {error.message} {getattr(error, 'subject', '')}"
        return ""

    told = [await ask(token) for token in ("a", "b", "a", "b")]
    gc.collect()
    assert (judged, len(set(told)), len(questions)) == (["a", "b"], 1, 0)


async def test_from_where_very_many_come_is_told_and_they_are_answered_no_more() -> None:
    """For a minute; others, of whom few came, are answered and not named."""
    now = [0.0]

    async def judge(_token: str) -> Guest:
        raise ForbiddenError("No.")

    entrance = _entrance(judge, now)
    for _ in range(150):
        entrance.given_up("192.0.2.7")
    with suppress(ForbiddenError):
        await entrance.judge("token", "192.0.2.8")
    assert [entrance.is_answered(f"192.0.2.{number}") for number in (7, 8)] == [False, True]
    status = await entrance.status(AskCalloutStatus())
    assert (status.crowding, sum(status.refused.values())) == ({"192.0.2.7": 150}, 151)
    now[0] = 30.0
    assert entrance.is_answered("192.0.2.7")
    assert (await entrance.status(AskCalloutStatus())).crowding == {"192.0.2.7": 150}
    now[0] = 90.0
    assert (await entrance.status(AskCalloutStatus())).crowding == {}


def _entrance(judge: Callable[[str], Awaitable[Guest]], now: list[float]) -> CalloutEntrance:
    audit = AuditLog(_Kept(), ManualClock(), "authcallout")
    return CalloutEntrance(judge, _AtHand(), "https://id.example.com", audit, lambda: now[0])
