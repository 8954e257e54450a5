"""Fetching the public keys of an issuer, and the time for which they are trusted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ioa.beside import beside
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa_authcallout import issuer_keys
from ioa_authcallout.issuer_keys import FileKeys, ProviderKeys, check_encrypted
from tests.rig.deadline import eventually
from tests.rig.identity_provider import Provider, open_provider


class _Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def _fetching(provider: Provider, clock: _Clock | None = None) -> AsyncIterator[ProviderKeys]:
    """The keys of a provider after the first fetch."""
    keys = ProviderKeys(provider.url, clock or _Clock())
    async with beside(keys.follow()):
        yield keys


async def _is_known(keys: ProviderKeys, key_id: str) -> bool:
    try:
        await keys.key(key_id)
    except (ForbiddenError, UnavailableError):
        return False
    return True


async def _rejection(keys: ProviderKeys, key_id: str) -> str:
    try:
        await keys.key(key_id)
    except UnavailableError as error:
        return error.message
    except ForbiddenError:
        return ""
    return ""


async def test_rotated_keys_are_fetched_and_withdrawn_keys_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token with an unknown key id causes a fetch, after which a withdrawn key is unknown."""
    monkeypatch.setattr(issuer_keys, "COOLDOWN_SECONDS", 0.01)
    async with open_provider() as provider, _fetching(provider) as keys:
        await keys.key("k1")
        provider.keys = {"k2": ec.generate_private_key(ec.SECP256R1())}
        await eventually(lambda: _is_known(keys, "k2"))
        with pytest.raises(ForbiddenError, match="no key of its issuer"):
            await keys.key("k1")


async def test_withdrawn_keys_are_rejected_after_the_next_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are fetched periodically, also while no token has an unknown key id."""
    monkeypatch.setattr(issuer_keys, "COOLDOWN_SECONDS", 0.01)
    monkeypatch.setattr(issuer_keys, "REFRESH_SECONDS", 0.02)
    async with open_provider() as provider, _fetching(provider) as keys:
        await keys.key("k1")
        provider.keys = {"k2": ec.generate_private_key(ec.SECP256R1())}
        await eventually(lambda: "k1" not in keys._keys)


async def test_many_unknown_key_ids_cause_one_fetch_per_cooldown() -> None:
    """Tokens with invented key ids do not make the callout send requests to the provider."""
    async with open_provider() as provider, _fetching(provider) as keys:
        await keys.key("k1")
        before = provider.requests
        for number in range(100):
            with pytest.raises(ForbiddenError):
                await keys.key(f"invented-{number}")
        assert provider.requests == before


async def test_known_keys_are_accepted_while_the_provider_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token with an unknown key waits a limited time; tokens with known keys do not wait."""
    monkeypatch.setattr(issuer_keys, "COOLDOWN_SECONDS", 0.0)
    monkeypatch.setattr(issuer_keys, "_WAIT_SECONDS", 0.01)
    async with open_provider() as provider, _fetching(provider) as keys:
        await eventually(lambda: _is_known(keys, "k1"))
        provider.takes = 0.5
        assert "does not answer" in await eventually(lambda: _rejection(keys, "invented"))
        await keys.key("k1")


async def test_known_keys_outlast_an_outage_of_one_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known keys stay in use for an hour after the last fetch; an unknown key is rejected as not verifiable."""
    monkeypatch.setattr(issuer_keys, "COOLDOWN_SECONDS", 0.01)
    clock = _Clock()
    async with open_provider() as provider, _fetching(provider, clock) as keys:
        await keys.key("k1")
        provider.away, clock.now = True, 600
        assert "is unknown, and the identity provider does not answer" in await eventually(lambda: _rejection(keys, "k2"))
        await keys.key("k1")
        clock.now = 3_700
        assert keys.failing_seconds() == 3_100
        with pytest.raises(UnavailableError, match="no token can be verified"):
            await keys.key("k1")
        provider.away = False
        await eventually(lambda: _is_known(keys, "k1"))
        assert keys.failing_seconds() is None


async def test_an_empty_key_set_counts_as_a_failed_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that returns no key does not lock out every guest."""
    monkeypatch.setattr(issuer_keys, "COOLDOWN_SECONDS", 0.01)
    async with open_provider() as provider, _fetching(provider) as keys:
        await keys.key("k1")
        provider.keys = {}
        assert await eventually(lambda: _rejection(keys, "k2"))
        await keys.key("k1")


def test_keys_are_fetched_by_https_only() -> None:
    """A URL without encryption is accepted on this machine only."""
    for url in ("https://id.example.com", "http://127.0.0.1:8080/realm", "http://localhost"):
        check_encrypted(url)
    for url in ("http://id.example.com", "file:///etc/passwd", "id.example.com", "", "http://127.0.0.1.example.com"):
        with pytest.raises(InvalidInputError, match="not encrypted"):
            check_encrypted(url)


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://elsewhere.example.com"},
        [],
        {"issuer": "ITS URL", "jwks_uri": "http://keys.example.com"},
        {"issuer": "ITS URL", "jwks_uri": 7},
    ],
)
async def test_a_discovery_document_of_another_issuer_is_rejected(document: object) -> None:
    """Keys are used only if the discovery document names the configured issuer."""
    async with open_provider() as provider:
        provider.document = json.loads(json.dumps(document).replace("ITS URL", provider.url))
        async with _fetching(provider) as keys:
            with pytest.raises(UnavailableError):
                await keys.key("k1")


async def test_a_key_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """Keys for encryption and unknown kinds are ignored. An invalid file is rejected; later, the keys read before stay in use."""
    file, provider, draft = tmp_path / "jwks.json", Provider(), tmp_path / "draft"
    more = [{"kty": "new", "kid": "k2"}, provider.answer("/keys")["keys"][0] | {"kid": "k3", "use": "enc"}]
    file.write_text(json.dumps({"keys": [*provider.answer("/keys")["keys"], *more]}))
    keys = FileKeys(file)
    await keys.key("k1")
    for key_id in ("k2", "k3", ""):
        with pytest.raises(ForbiddenError):
            await keys.key(key_id)
    provider.keys["k4"] = provider.keys.pop("k1")
    draft.write_text(json.dumps(provider.answer("/keys")))
    draft.replace(file)
    await keys.key("k4")
    with pytest.raises(ForbiddenError):
        await keys.key("k1")
    for wrong in ("[]", "{}", "no JSON", '{"keys": 1}', '{"keys": []}'):
        draft.write_text(wrong)
        draft.replace(file)
        await keys.key("k4")
        with pytest.raises(InvalidInputError, match="no set of keys"):
            FileKeys(file)
