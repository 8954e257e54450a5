"""Who is ended when the issuer of tokens has withdrawn a key, or a subject is revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import pytest

from ioa.errors import ForbiddenError
from ioa.ports.connections import ConnectionId, ShownToken
from ioa.runtime.process import background
from ioa_authcallout.withdrawal import Guests, KnownKeys, end_taken_no_more
from tests.rig.deadline import eventually

_FIRST, _SECOND = ConnectionId("S1", 1), ConnectionId("S2", 1)


class _Issuer(KnownKeys):
    """Says keys, and others when it is asked anew."""

    def __init__(self, *told: str) -> None:
        self._known = self.next = frozenset(told)
        self._told = asyncio.Event()
        self.asked = 0

    def known(self) -> Collection[str]:
        return self._known

    async def changed(self, since: Collection[str]) -> None:
        while self._known == since:
            self._told.clear()
            await self._told.wait()

    async def known_anew(self) -> Collection[str]:
        self.asked += 1
        self._known = self.next
        self._told.set()
        return self._known


class _ByTurns(_Issuer):
    """Leaves the last key out each other time."""

    def __init__(self, *told: str) -> None:
        super().__init__(*told[:-1])
        self._old, self._new = frozenset(told[:-1]), frozenset(told)

    def known(self) -> Collection[str]:
        return self._old

    async def known_anew(self) -> Collection[str]:
        self.next = self._new if self.asked % 2 else self._old
        return await super().known_anew()


class _Connected(Guests):
    """Guests, by the keys that let them in; whose token it was is called like the key."""

    def __init__(self, **keys: ConnectionId) -> None:
        self.there = {connection: ShownToken(key, f"T-{key}") for key, connection in keys.items()}
        self.may, self.looks = True, 0

    async def connected(self) -> Mapping[ConnectionId, ShownToken]:
        self.looks += 1
        if not self.may:
            raise ForbiddenError("Not yet.")
        return dict(self.there)

    async def end(self, connections: Collection[ConnectionId]) -> None:
        for one in connections:
            self.there.pop(one)


def _revoked(*owners: str) -> Callable[[], Awaitable[Collection[str]]]:
    async def revoked() -> Collection[str]:
        return owners

    return revoked


@pytest.mark.parametrize("told", [("a", "b"), ()], ids=["the issuer answers", "it does not"])
async def test_who_is_revoked_is_ended_by_whichever_callout_he_came(told: Sequence[str]) -> None:
    """He may have come by one that did not know it yet. Nobody else is."""
    issuer, guests = _Issuer(*told), _Connected(a=_FIRST, b=_SECOND)
    async with background(end_taken_no_more(issuer, _revoked("T-a", "T-c"), guests, sure=60.0, every=0.001)):
        await eventually(lambda: list(guests.there), lambda there: there == [_SECOND])
        looks = guests.looks
        await eventually(lambda: guests.looks, lambda now: now > looks + 3)
    assert list(guests.there) == [_SECOND]


async def test_who_came_by_a_key_that_is_gone_is_ended_once_that_is_sure() -> None:
    """On whichever server; the issuer is asked once more first, and who came by a key that is there stays."""
    issuer, guests = _Issuer("b"), _Connected(a=_FIRST, b=_SECOND)
    async with background(end_taken_no_more(issuer, _revoked(), guests, sure=0.0, every=0.001)):
        await eventually(lambda: list(guests.there), lambda there: there == [_SECOND])
        looks = guests.looks
        await eventually(lambda: guests.looks, lambda now: now > looks + 3)
    assert issuer.asked == 1


async def test_nobody_is_ended_who_came_by_a_key_that_is_newer() -> None:
    """Another replica was told of it a moment ago: this one knows it when it has asked."""
    issuer, guests = _Issuer("a"), _Connected(a=_FIRST, b=_SECOND)
    issuer.next = frozenset({"a", "b"})
    async with background(end_taken_no_more(issuer, _revoked(), guests, sure=0.0, every=0.001)):
        await eventually(lambda: guests.looks, lambda now: now > 3)
    assert (len(guests.there), issuer.asked) == (2, 1)


async def test_nobody_is_ended_while_the_issuer_tells_no_keys() -> None:
    """Neither when it tells none at first, nor when it does not answer the second time."""
    for issuer in (_Issuer(), _Issuer("b")):
        issuer.next, guests = frozenset(), _Connected(a=_FIRST, b=_SECOND)
        async with background(end_taken_no_more(issuer, _revoked(), guests, sure=0.0, every=0.001)):
            await asyncio.sleep(0.05)
        assert len(guests.there) == 2


async def test_they_are_ended_when_that_is_allowed() -> None:
    """An authorization that is older than the callout keeps it from it until it is brought up to date."""
    issuer, guests = _Issuer("b"), _Connected(a=_FIRST, b=_SECOND)
    guests.may = False
    async with background(end_taken_no_more(issuer, _revoked(), guests, sure=0.0, every=0.001)):
        await eventually(lambda: guests.looks, lambda now: now > 3)
        guests.may = True
        await eventually(lambda: list(guests.there), lambda there: there == [_SECOND])


async def test_nobody_is_ended_for_a_node_of_the_issuer_that_tells_what_it_told_before() -> None:
    """He tells a newer key by turns: its guests were ended again and again until the last node told it, too."""
    issuer, guests = _ByTurns("a", "b"), _Connected(a=_FIRST, b=_SECOND)
    async with background(end_taken_no_more(issuer, _revoked(), guests, sure=0.05, every=0.02)):
        await eventually(lambda: guests.looks, lambda now: now > 12)
    assert len(guests.there) == 2


async def test_a_key_is_withdrawn_when_it_is_missing_for_a_while() -> None:
    """And not before, however often the issuer is asked meanwhile; looked is sooner than each minute then."""
    issuer, guests = _Issuer("b"), _Connected(a=_FIRST, b=_SECOND)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with background(end_taken_no_more(issuer, _revoked(), guests, sure=0.3, every=60)):
        await eventually(lambda: list(guests.there), lambda there: there == [_SECOND])
    assert loop.time() - begun >= 0.3
