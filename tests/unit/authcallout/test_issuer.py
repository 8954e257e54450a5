"""Where the public keys of an issuer come from, and for how long they are believed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ioa.beside import beside
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa_authcallout import issuer
from ioa_authcallout.issuer import ProviderKeys, StaticKeys, check_private
from tests.rig.deadline import eventually
from tests.rig.identity_provider import Provider, open_provider


class _Clock:
    """Seconds that pass when it is said."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def _asking(provider: Provider, clock: _Clock) -> AsyncIterator[ProviderKeys]:
    """The keys of a provider that is asked once at first, and then when a key is wanted."""

    async def never(_seconds: float) -> None:
        await asyncio.Event().wait()

    async with httpx.AsyncClient(trust_env=False) as web:
        keys = ProviderKeys(provider.url, web, clock)
        async with beside(keys.follow(never)):
            yield keys


async def test_a_new_key_is_asked_for_and_a_withdrawn_one_forgotten() -> None:
    """A token by a key of today is taken at once, one by a key that its issuer withdrew no more a minute later."""
    clock = _Clock()
    async with open_provider() as provider, _asking(provider, clock) as keys:
        await keys.key("k1")
        provider.keys = {"k2": ec.generate_private_key(ec.SECP256R1())}
        with pytest.raises(ForbiddenError):  # asked for a moment ago: who invents ids cannot have the provider asked for each
            await keys.key("k2")
        clock.now = 60
        await keys.key("k2")
        with pytest.raises(ForbiddenError, match="no key of its issuer"):
            await keys.key("k1")


async def test_a_slow_provider_is_asked_in_patience_though_others_ask_in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of invented keys cut their own asking short, not that which comes each minute: who has no key shut all guests out."""
    clock = _Clock()
    monkeypatch.setattr(issuer, "_WAIT_SECONDS", 0.01)
    async with open_provider() as provider:
        provider.takes = 0.1
        async with _asking(provider, clock) as keys:
            with pytest.raises(UnavailableError):
                await keys.key("invented")
            await eventually(lambda: _is_known(keys, "k1"))
            assert keys.away() is None


async def test_a_new_key_of_a_slow_provider_is_known_when_it_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes by a key that is new is told to try again, and let in as soon as the answer is there: it was cut off with his wait.

    Meanwhile the provider is not taken for one that is away.
    """
    clock = _Clock()
    async with open_provider() as provider, _asking(provider, clock) as keys:
        await keys.key("k1")
        provider.keys["k2"] = ec.generate_private_key(ec.SECP256R1())
        provider.takes, clock.now = 0.1, 30
        monkeypatch.setattr(issuer, "_WAIT_SECONDS", 0.01)
        for key_id in ("k2", "invented", "invented"):
            with pytest.raises(UnavailableError, match="being asked"):
                await keys.key(key_id)
        assert keys.away() is None
        await eventually(lambda: _is_known(keys, "k2"))
        with pytest.raises(ForbiddenError):
            await keys.key("invented")


async def _is_known(keys: ProviderKeys, key_id: str) -> bool:
    try:
        await keys.key(key_id)
    except UnavailableError:
        return False
    return True


async def test_known_keys_outlast_an_outage_for_an_hour() -> None:
    """Who is known by then comes in; nobody does by a key that nobody has seen, or that may have been withdrawn long ago."""
    clock = _Clock()
    async with open_provider() as provider, _asking(provider, clock) as keys:
        await keys.key("k1")
        provider.away, clock.now = True, 600
        await keys.key("k1")
        assert keys.away() is None
        with pytest.raises(UnavailableError, match="not known, and the identity provider does not answer"):
            await keys.key("k2")
        clock.now = 3_700
        assert keys.away() == 3_100
        with pytest.raises(UnavailableError, match="no token can be checked"):
            await keys.key("k1")
        provider.away, clock.now = False, 3_710
        await keys.key("k1")
        assert keys.away() is None


async def test_a_set_without_a_key_is_no_answer() -> None:
    """For one look it shut everybody out, as if all keys were withdrawn: what was known goes on as when the issuer is away."""
    clock = _Clock()
    async with open_provider() as provider, _asking(provider, clock) as keys:
        await keys.key("k1")
        kept, known = provider.keys, keys.known()
        provider.keys, clock.now = {}, 60
        assert not await keys.known_anew()
        await keys.key("k1")
        clock.now = 65
        assert keys.away() == 5
        with pytest.raises(UnavailableError, match="not known, and the identity provider does not answer"):
            await keys.key("k2")
        provider.keys = kept
        assert await keys.known_anew() == known


async def test_a_key_that_takes_over_an_id_is_another() -> None:
    """Who came by the one before is no guest of this one; one that is told in other words is the same."""
    async with open_provider() as provider, _asking(provider, _Clock()) as keys:
        await keys.key("k1")
        first = keys.known()
        assert await keys.known_anew() == first
        provider.keys = {"k1": ec.generate_private_key(ec.SECP256R1())}
        changed = asyncio.create_task(keys.changed(first))
        second = await keys.known_anew()
        await changed
        assert len(second) == 1
        assert second != first


async def test_what_is_asked_anew_is_no_answer_of_before() -> None:
    """While the issuer is being asked he may withdraw a key: that answer is waited for, and then the next one."""
    async with open_provider() as provider, _asking(provider, _Clock()) as keys:
        await keys.key("k1")
        provider.takes = 0.1
        provider.keys["k2"] = ec.generate_private_key(ec.SECP256R1())
        asked = asyncio.create_task(keys.known_anew())
        await asyncio.sleep(0.15)  # the set is being read
        provider.keys.pop("k1")
        assert len(await keys.known_anew()) == 1
        await asked


def test_keys_are_not_asked_for_in_clear() -> None:
    """Only of an issuer whose answer nobody on the way can change, or of one on this machine."""
    for url in ("https://id.example.com", "http://127.0.0.1:8080/realm", "http://localhost"):
        check_private(url)
    for url in ("http://id.example.com", "file:///etc/passwd", "id.example.com", "", "http://127.0.0.1.example.com"):
        with pytest.raises(InvalidInputError, match="not encrypted"):
            check_private(url)


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://elsewhere.example.com"},
        {},
        [],
        {"issuer": None, "jwks_uri": 7},
        {"issuer": "ITS URL", "jwks_uri": "http://keys.example.com"},
        {"issuer": "ITS URL", "jwks_uri": "http://["},
        {"issuer": "ITS URL", "jwks_uri": 7},
    ],
)
async def test_a_document_that_speaks_for_no_issuer_or_another_is_not_believed(said: object) -> None:
    """Keys are taken only from a document that names the issuer whose tokens are taken."""
    async with open_provider() as provider:
        provider.document = json.loads(json.dumps(said).replace("ITS URL", provider.url))
        async with _asking(provider, _Clock()) as keys:
            with pytest.raises(UnavailableError):
                await keys.key("k1")


async def test_keys_out_of_a_file_are_those_that_can_be_used(tmp_path: Path) -> None:
    """One of an unknown kind, or for encryption, does not keep the others out; what is no set of keys is refused at the start."""
    file = tmp_path / "jwks.json"
    known = Provider().answer("/keys")
    assert known is not None
    file.write_text(
        json.dumps(
            {
                "keys": [
                    *known["keys"],
                    {"kty": "new", "kid": "k2"},
                    {"kty": "EC", "kid": "k5", "crv": "P-256", "x": 7, "y": []},
                    {"kid": "k3", "use": "enc"},
                    "k4",
                ]
            }
        )
    )
    keys = StaticKeys(file)
    await keys.key("k1")
    for key_id in ("k2", "k3", "k4", "k5", ""):
        with pytest.raises(ForbiddenError):
            await keys.key(key_id)
    for wrong in ("[]", "{}", "no JSON", '{"keys": 1}'):
        file.write_text(wrong)
        with pytest.raises(InvalidInputError, match="no set of keys"):
            StaticKeys(file)


async def test_keys_out_of_a_file_are_those_that_stand_there_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callout whose file is brought up to date later than that of another ends nobody who came by a key that is new in it."""
    monkeypatch.setattr(issuer, "_FILE_SECONDS", 0.01)
    file, provider = tmp_path / "jwks.json", Provider()
    file.write_text(json.dumps(provider.answer("/keys")))
    keys = StaticKeys(file)
    before = keys.known()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(keys.changed(before))
        await asyncio.sleep(0.05)
        provider.keys["k2"] = provider.keys.pop("k1")
        draft = tmp_path / "draft"
        draft.write_text(json.dumps(provider.answer("/keys") | {"more": 1}))
        draft.replace(file)
        await keys.key("k2")
        with pytest.raises(ForbiddenError):
            await keys.key("k1")
        provider.keys["k3"] = ec.generate_private_key(ec.SECP256R1())
        draft.write_text(json.dumps(provider.answer("/keys")))
        draft.replace(file)
    assert len(await keys.known_anew()) == 2
    draft.write_text('{"keys": []}')
    draft.replace(file)
    assert len(await keys.known_anew()) == 2, "a set without a key is no answer"
