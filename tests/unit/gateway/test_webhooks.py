"""Where webhooks may lead, how what they are sent is signed, and when it is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from ioa.errors import InvalidInputError
from ioa.protocol.webhooks import signature_of, written_secret
from ioa_gateway.outward.posting import Posting, check_url, is_public
from ioa_gateway.outward.webhooks import again_after

SECRET = written_secret(b"told to the receiver alone, once")


def test_receivers_verify_what_they_get() -> None:
    """The public library of Standard Webhooks takes a message as signed, and none that was changed."""
    now, body = datetime.now(UTC), '{"type":"goal.ended","data":{"goal_id":"größe"}}'.encode()
    headers = {"webhook-id": "g-ended", "webhook-timestamp": str(int(now.timestamp()))}
    headers["webhook-signature"] = signature_of(SECRET, "g-ended", now, body)
    assert Webhook(SECRET).verify(body, headers) == {"type": "goal.ended", "data": {"goal_id": "größe"}}
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body, {**headers, "webhook-id": "other-ended"})


def test_what_nobody_takes_is_tried_for_a_day() -> None:
    """After 1, 5, 25 s and so on, and a last time when the day is over."""
    age, tried = timedelta(0), []
    while age < timedelta(days=1):
        tried.append(again_after(age).total_seconds())
        age += timedelta(seconds=tried[-1])
    assert (tried[:4], age) == ([1, 5, 25, 125], timedelta(days=1))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
        *("::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"),
    ],
)
def test_nothing_inside_is_posted_to(address: str) -> None:
    """No address of this machine, of private networks, or of what serves a cloud's secrets, however it is written."""
    assert not is_public(address)


def test_what_is_outside_is_posted_to() -> None:
    """Addresses of the internet, of both versions."""
    assert all(map(is_public, ("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14")))


async def test_names_are_looked_up_before_anything_is_sent() -> None:
    """A name that leads inside is refused as its address is, unless inside is allowed; then its address is what is asked."""
    async with httpx.AsyncClient(verify=False) as http:
        for url in ("http://localhost:8000/hook", "http://127.1/hook", "http://2130706433/", "http://[::ffff:127.0.0.1]/"):
            with pytest.raises(InvalidInputError, match="private network"):
                await Posting(http, inside=False).find(url)
        found = await Posting(http, inside=True).find("https://127.0.0.1/hook?a=b")
    assert (found.url, found.host, found.named) == ("https://127.0.0.1:443/hook?a=b", "127.0.0.1", "127.0.0.1")


@pytest.mark.parametrize("url", ["ftp://a/b", "https:///b", "https://me@a/b", "https://a/b#c", "https://a:x/", "http://a/\n", "a"])
def test_a_webhook_is_a_plain_url(url: str) -> None:
    """What is no URL of HTTP, or bears a password, is refused."""
    with pytest.raises(InvalidInputError):
        check_url(url)
