"""Accepted tokens, and the permissions that they give."""

from __future__ import annotations

import base64
import hmac
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ioa.adapters.nats.auth.nats_credentials import read_credentials
from ioa.adapters.nats.auth.roles import of_agent, of_observer, of_user
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.secret_stores.nkeys import create_account_seed, create_seed
from ioa.adapters.system_clock import SystemClock
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa.protocol.ids import AgentId, PoolId, TenantId, UserId
from ioa.protocol.operation.audit import Deed
from ioa.protocol.subjects import inbox_prefix_of
from ioa.runtime.audit_log import AuditLog
from ioa_authcallout.callout_messages import sign_jwt
from ioa_authcallout.issuer_keys import IssuerKeys, read_keys
from ioa_authcallout.verifier import KnownNames, TokenVerifier
from tests.rig.identity_provider import Provider
from tests.rig.memory_delivery import MemoryAuditSink


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def provider() -> Provider:
    """An issuer whose keys are in a file."""
    return Provider(url="https://id.example.com")


@pytest.fixture
def audit() -> AuditLog:
    """An audit log in memory."""
    return AuditLog(MemoryAuditSink(), SystemClock(), "authcallout")


@pytest.fixture
async def verifier(provider: Provider, audit: AuditLog, tmp_path: Path) -> TokenVerifier:
    """A verifier that rejects the subject of mallory, and names that have keys."""
    (tmp_path / "jwks.json").write_text(json.dumps(provider.answer("/keys")))

    names = KnownNames({"mallory@example.com"}, {"calculator", "Writer", "Writer-0", "eva", "acme/anna"}, {"acme"})
    keys = IssuerKeys(partial(read_keys, tmp_path / "jwks.json"), time.monotonic)
    await keys.refresh()
    return TokenVerifier(keys, provider.url, "ioa", "ioa", audit, read_names=lambda: names, now=_now)


async def test_each_outcome_is_recorded(provider: Provider, verifier: TokenVerifier, audit: AuditLog) -> None:
    """A rejected holder is recorded by the subject of its token; a token that could not be verified is not."""
    await verifier.verify(provider.token({"role": "user", "name": "carol"}))
    for token in ("forged", provider.token(sub="mallory@example.com")):
        with pytest.raises(ForbiddenError):
            await verifier.verify(token)
    verifier._keys._fetched_at = float("-inf")
    with pytest.raises(UnavailableError):
        await verifier.verify(provider.token())
    assert [(line.deed, line.who, line.target, line.refused) for line in audit._waiting] == [
        (Deed.CONNECTED, "carol", "guest@example.com", ""),
        (Deed.CONNECTED, "", "", "forbidden"),
        (Deed.CONNECTED, "", "mallory@example.com", "forbidden"),
    ]


@pytest.mark.parametrize(
    ("claim", "name", "may"),
    [
        ({"role": "agent", "agent": "guest-1", "pool": "guest"}, "guest-1", of_agent(AgentId("guest-1"), PoolId("guest"))),
        ({"role": "agent", "agent": "solo"}, "solo", of_agent(AgentId("solo"), PoolId("solo"))),
        ({"role": "user", "name": "bob"}, "bob", of_user(UserId("bob"))),
        ({"role": "observer", "name": "eye"}, "eye", of_observer("eye")),
        ({"role": "user", "name": "anna"}, "anna", of_user(UserId("anna"))),
        ({"role": "observer", "name": "eye", "tenant": "acme"}, "acme/eye", replace(of_observer("eye"), tenant=TenantId("acme"))),
    ],
)
async def test_a_claim_gives_the_rights_of_its_role(
    provider: Provider, verifier: TokenVerifier, claim: dict[str, Any], name: str, may: object
) -> None:
    """They are the very ones that a key of that role is given, until the token runs out."""
    guest = await verifier.verify(provider.token(claim, lasts=600))
    assert (guest.name, guest.may) == (name, may)
    tenant, role = f"{claim['tenant']}/" if "tenant" in claim else "", claim["role"]
    assert guest.holder == f"{tenant}{role}:{name.removeprefix(tenant)}", "a key, and who is called so in another role, is another"
    assert timedelta(seconds=590) <= guest.until - _now() <= timedelta(seconds=610)


async def test_a_connection_by_a_long_lived_token_ends_after_one_hour(provider: Provider, verifier: TokenVerifier) -> None:
    """Afterwards the token is verified again."""
    for lasts in (10**7, 10**17):
        assert (await verifier.verify(provider.token(lasts=lasts))).until - _now() <= timedelta(hours=1)


async def test_a_holder_reads_answers_at_its_own_place(provider: Provider, verifier: TokenVerifier) -> None:
    """The client finds it by its token as the callout does, for each token of the holder the same, and another for each other."""
    mine, again, others = provider.token(), provider.token(lasts=60), provider.token(sub="eve@example.com")
    prefix = inbox_prefix_of((await verifier.verify(mine)).inbox_owner).encode()
    assert [read_credentials(None, one, None).inbox_prefix == prefix for one in (mine, again, others)] == [True, True, False]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"aud": "somebody"}, "audience"),
        ({"iss": "https://elsewhere.example.com"}, "another issuer"),
        ({"lasts": -60}, "expired"),
        ({"sub": 7}, "is invalid"),
        ({"sub": "anna@example.com "}, "cannot be revoked"),
        ({"sub": ""}, "cannot be revoked"),
        ({"sub": "an\ud800na"}, "cannot be revoked"),
        ({"nbf": 4_102_444_800}, "is invalid"),
        ({"exp": float("inf")}, "is invalid"),
        ({"sub": "mallory@example.com"}, "is revoked"),
        ({"more": "x" * 20_000}, "longer than"),
        ({"claim": {"role": "admin", "name": "root"}}, "is no role and name"),
        ({"claim": {"role": "agent", "agent": "*"}}, "is no role and name"),
        ({"claim": {"role": "agent", "agent": "guest-1", "pool": ">"}}, "is no role and name"),
        ({"claim": {"role": "agent", "agent": "a", "quotas": {}}}, "is no role and name"),
        ({"claim": {"role": "agent", "agent": "a", "tenant": "A_AGENTS"}}, "is no role and name"),
        ({"claim": {"role": "agent", "agent": "a", "tenant": "umbra"}}, "an unknown tenant"),
        ({"claim": {"role": "user", "name": "anna", "tenant": "acme"}}, "a holder of a key"),
        ({"claim": {"role": "user", "name": "bob", "pool": "x"}}, "is no role and name"),
        ({"claim": {"role": "agent", "agent": "calculator"}}, "a holder of a key"),
        ({"claim": {"role": "agent", "agent": "calculator-7", "pool": "guests"}}, "of a seat, or of a replica"),
        ({"claim": {"role": "agent", "agent": "human-anna"}}, "of a seat, or of a replica"),
        ({"claim": {"role": "agent", "agent": "guest-1", "pool": "eva"}}, "a holder of a key"),
        ({"claim": {"role": "agent", "agent": "guest-1", "pool": "anna", "tenant": "acme"}}, "a holder of a key"),
        ({"claim": {"role": "agent", "agent": "guest-1", "pool": "writer-7"}}, "of a seat, or of a replica"),
        ({"claim": {"role": "agent", "agent": "Calculator"}}, "a holder of a key"),
        ({"claim": {"role": "agent", "agent": "WRITER-7"}}, "of a seat, or of a replica"),
        ({"claim": {"role": "agent", "agent": "router"}}, "a holder of a key"),
        ({"claim": {"role": "user", "name": "admin"}}, "a holder of a key"),
        ({"claim": {"role": "user", "name": "local"}}, "a holder of a key"),
    ],
)
async def test_no_other_token_is_taken(provider: Provider, verifier: TokenVerifier, wrong: dict[str, Any], why: str) -> None:
    """For another audience, outside of its time, revoked, or without a valid name and role. The error contains only the reason."""
    token = provider.token(**wrong)
    with pytest.raises(ForbiddenError, match=why) as caught:
        await verifier.verify(token)
    assert token not in str(caught.value)


async def test_a_token_must_be_signed_by_its_issuer(provider: Provider, verifier: TokenVerifier) -> None:
    """Unsigned, signed by another key, or with the public key as a secret."""
    claims = jwt.decode(provider.token(), options={"verify_signature": False})
    published = provider.keys["k1"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    unsigned = jwt.encode(claims, "x" * 32, algorithm="HS256", headers={"kid": "k1"}).rpartition(".")[0]
    by_public_key = base64.urlsafe_b64encode(hmac.digest(published, unsigned.encode(), "sha256")).rstrip(b"=").decode()
    forged = [
        Provider(url=provider.url).token(),
        jwt.encode(claims, "", algorithm="none", headers={"kid": "k1"}),
        f"{unsigned}.{by_public_key}",
        sign_jwt(create_account_seed(), claims),
        provider.token(key_id="k1")[:-4] + "AAAA",
        "",
        "no.jwt",
        f"{'W1tbW1tb' * 1_000}.e30.AAAA",  # a header of thousands of brackets
    ]
    for token in forged:
        with pytest.raises(ForbiddenError):
            await verifier.verify(token)


async def test_a_seed_and_a_token_are_not_both_taken() -> None:
    """At the start."""
    both = NatsSettings("nats://127.0.0.1:1", "both", seed=create_seed(), token="a.b.c")
    with pytest.raises(InvalidInputError, match="A seed and a token are set"):
        async with open_connection(both, patience=timedelta(0)):
            pass


def test_token_is_read_from_text_or_file(provider: Provider, tmp_path: Path) -> None:
    """Text that is no token, and a file that cannot be read, are reported without their content."""
    token = provider.token()
    (tmp_path / "token").write_text(f" {token}\n")
    read = [read_credentials(None, given, None).token for given in (f"{token} ", str(tmp_path / "token"))]
    assert read == [token, token]
    (tmp_path / "long").write_text(f"a.{'b' * 7_500}.c")
    with pytest.raises(InvalidInputError, match=r"7,504 characters.* 7,500"):
        read_credentials(None, str(tmp_path / "long"), None)
    for text, error in (("eyJ-my-secret", "no JWT"), ("my-secret", "No such file")):
        with pytest.raises(InvalidInputError, match=error) as caught:
            read_credentials(None, text, None)
        assert "my-secret" not in str(caught.value)
