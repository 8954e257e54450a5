"""Fetching the public keys of an issuer, and the time for which they are trusted."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ioa.concurrency import beside
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa_authcallout import issuer_keys
from ioa_authcallout.issuer_keys import IssuerKeys, check_encrypted, fetch_keys, read_keys
from tests.rig.deadline import eventually
from tests.rig.identity_provider import Provider, open_provider


class _Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def _fetched(provider: Provider, clock: _Clock | None = None) -> IssuerKeys:
    """The keys of a provider after the first fetch."""
    keys = IssuerKeys(partial(fetch_keys, provider.url), clock or _Clock())
    await keys.refresh()
    return keys


async def test_rotated_keys_are_accepted_and_withdrawn_keys_rejected_after_a_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are fetched periodically."""
    monkeypatch.setattr(issuer_keys, "REFRESH_SECONDS", 0.02)
    async with open_provider() as provider:
        keys = await _fetched(provider)
        keys.key("k1")
        provider.keys = {"k2": ec.generate_private_key(ec.SECP256R1())}
        async with beside(keys.follow()):
            await eventually(lambda: "k2" in keys._keys)
        with pytest.raises(ForbiddenError, match="no known key of its issuer"):
            keys.key("k1")


async def test_known_keys_outlast_an_outage_of_one_hour() -> None:
    """After an hour without a successful fetch, no token can be verified."""
    clock = _Clock()
    async with open_provider() as provider:
        keys = await _fetched(provider, clock)
        provider.away, clock.now = True, 600
        await keys.refresh()
        keys.key("k1")
        clock.now = 3_700
        with pytest.raises(UnavailableError, match="no token can be verified"):
            keys.key("k1")
        provider.away = False
        await keys.refresh()
        keys.key("k1")


async def test_an_empty_key_set_counts_as_a_failed_fetch() -> None:
    """A provider that returns no key does not lock out every guest."""
    async with open_provider() as provider:
        keys = await _fetched(provider)
        provider.keys = {}
        await keys.refresh()
        keys.key("k1")


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
        keys = await _fetched(provider)
        with pytest.raises(UnavailableError):
            keys.key("k1")


async def test_a_key_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """Keys for encryption and unknown kinds are ignored. If the file becomes invalid, the keys read before stay in use."""
    file, provider = tmp_path / "jwks.json", Provider()
    more = [{"kty": "new", "kid": "k2"}, provider.answer("/keys")["keys"][0] | {"kid": "k3", "use": "enc"}]
    file.write_text(json.dumps({"keys": [*provider.answer("/keys")["keys"], *more]}))
    keys = IssuerKeys(partial(read_keys, file), _Clock())
    await keys.refresh()
    keys.key("k1")
    for key_id in ("k2", "k3", ""):
        with pytest.raises(ForbiddenError):
            keys.key(key_id)
    provider.keys["k4"] = provider.keys.pop("k1")
    file.write_text(json.dumps(provider.answer("/keys")))
    await keys.refresh()
    keys.key("k4")
    with pytest.raises(ForbiddenError):
        keys.key("k1")
    for wrong in ("[]", "{}", "no JSON", '{"keys": 1}', '{"keys": []}'):
        file.write_text(wrong)
        await keys.refresh()
        keys.key("k4")
        with pytest.raises(InvalidInputError, match="no set of keys"):
            read_keys(file)
