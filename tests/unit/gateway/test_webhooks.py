"""Destinations, retries and limits of webhooks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import Mock

import pytest

from ioa.adapters.nats.delivery.work_queue import Delivery
from ioa.adapters.nats.stores.webhook_store import NatsWebhooks
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.ssrf import is_public
from ioa.errors import InvalidInputError, NotYetError, UnavailableError
from ioa.protocol.codec import encode, validate
from ioa.protocol.ids import LOCAL, GoalId
from ioa.protocol.operation.api_keys import KeyId
from ioa.protocol.operation.webhooks import HookEvent, Notice, PushTarget, Webhook, WebhookId, written_secret
from ioa.testing.manual_clock import NEW_YEAR
from ioa_gateway.api.webhook_routes import WebhookOrder
from ioa_gateway.caller import Caller
from ioa_gateway.webhooks.http_post import open_http_post
from ioa_gateway.webhooks.webhook_service import AT_ONCE, WebhookService, again_after
from tests.rig.deadline import eventually
from tests.rig.hook_receiver import open_receiver
from tests.rig.memory_delivery import MemoryDeadLetters


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
        *(
            "168.63.129.16",
            "::127.0.0.1",
            "::a9fe:a9fe",
            "::ffff:0:7f00:1",
            "fec0::1",
            "64:ff9b:1::7f00:1",
            "2001:0:7f00:1::",
            "5f00::1",
        ),
        # What the registries of special addresses have, and Pythons before 3.11.10 and 3.12.4 take for public.
        *("192.0.0.8", "192.0.0.192", "192.88.99.1", "192.31.196.1", "192.175.48.1", "255.255.255.255"),
        *("2001:4:112::1", "2001:20::1", "2001:db8::1", "2620:4f:8000::1", "3fff::1", "100::1"),
        *("::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"),
    ],
)
def test_nothing_inside_is_posted_to(address: str) -> None:
    """No address of this machine, of private networks, or of what serves a cloud's secrets, however it is written."""
    assert not is_public(address)


def test_what_is_outside_is_posted_to() -> None:
    """Addresses of the internet, of both versions."""
    assert all(map(is_public, ("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14")))


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/hook", "http://127.1/hook", "http://2130706433/", "http://[::ffff:127.0.0.1]/"]
)
async def test_url_that_leads_inside_is_rejected(url: str) -> None:
    """At creation and at each post; with `inside` it is a destination."""
    async with open_http_post(inside=False) as http:
        for attempt in (http.check(url), http.post(url, b"{}", {})):
            with pytest.raises(InvalidInputError, match="private network"):
                await attempt
    async with open_http_post(inside=True) as http:
        await http.check(url)


@pytest.mark.parametrize("failure", [socket.gaierror(socket.EAI_NONAME, "Name or service not known"), UnicodeError("too long")])
async def test_url_of_an_unknown_name_is_rejected(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    """At creation; each post looks the name up again."""
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=failure))
    async with open_http_post(inside=False) as http:
        with pytest.raises(InvalidInputError, match="cannot be resolved"):
            await http.check("https://example.com/hook")
        with pytest.raises(UnavailableError):
            await http.post("https://example.com/hook", b"{}", {})


async def test_public_address_of_this_machine_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that listen there may be meant for callers inside."""
    monkeypatch.setattr("ioa.adapters.ssrf.is_public", lambda _address: True)
    async with open_http_post(inside=False) as http:
        with pytest.raises(InvalidInputError, match="to this machine"):
            await http.check("http://127.0.0.1/hook")


async def test_post_arrives_as_the_url_says() -> None:
    """Each has its own connection, and the path is escaped; redirects are not followed."""
    async with open_receiver(307, 200) as receiver, open_http_post(inside=True) as http:
        statuses = [await http.post(f"{receiver.url}/a b?c=%20d&e", b"{}", {}) for _ in range(2)]
    assert (statuses, receiver.asked) == ([307, 200], ["POST /hook/a%20b?c=%20d&e HTTP/1.1"] * 2)
    [(headers, body), _] = receiver.taken
    assert (headers["host"], headers["content-type"]) == (receiver.url.split("/")[2], "application/json")
    assert body == b"{}"


@pytest.mark.parametrize("url", ["ftp://a/b", "https://", "https://a:x/", "", "a"])
def test_webhook_with_an_invalid_url_is_rejected(url: str) -> None:
    """Only URLs of HTTP are accepted."""
    with pytest.raises(InvalidInputError):
        validate(WebhookOrder, {"url": url})


@pytest.fixture
async def store(nats_url: str) -> AsyncIterator[NatsWebhooks]:
    """A store without webhooks."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await Topology().ensure(client.jetstream())
        yield NatsWebhooks(client)


class _Deliveries:
    """Delivers notices of a webhook, of a given age, to a receiver that answers with a status."""

    def __init__(self, store: NatsWebhooks, status: int = 200, *, is_valid: bool = True, webhook_id: str = "one") -> None:
        self.store, self.dead, self.posted = store, MemoryDeadLetters(), list[str]()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self._webhook_id = webhook_id

        async def post(_url: str, _body: bytes, headers: dict[str, str]) -> int:
            self.posted.append(headers["webhook-id"])
            await self.may_end.wait()
            return status

        async def result(_name: object) -> None:
            """Return no result, as a replica that lags."""

        async def goal(_name: object, **_options: object) -> object:
            return SimpleNamespace(result=None, standing=None)

        goals: Any = SimpleNamespace(result=result, goal=goal)
        http: Any = SimpleNamespace(post=post)
        caller = Caller("web", LOCAL, frozenset()) if is_valid else None
        self._service = WebhookService(self.store, goals, self.dead, http, lambda _key_id: caller, lambda: NEW_YEAR, print)

    async def made(self, before: timedelta = timedelta(hours=1), push: PushTarget | None = None) -> Self:
        """Store the webhook as created some time ago."""
        hook = Webhook(
            webhook_id=WebhookId(self._webhook_id),
            user=LOCAL,
            key_id=KeyId("web"),
            url="https://example.com",
            events=("ended",),
            secret=written_secret(b"secret"),
            created_at=NEW_YEAR - before,
            after=0,
            push=push,
        )
        await self.store.put(self._webhook_id, hook)
        return self

    async def deliver(self, age: timedelta, event: HookEvent = HookEvent.ASKED) -> None:
        """Deliver a notice."""
        notice = Notice(
            webhook_id=WebhookId(self._webhook_id),
            message_id="g-1",
            event=event,
            at=NEW_YEAR,
            user=LOCAL,
            goal_id=GoalId("g"),
        )
        delivery = Delivery(f"ioa.v1.hook.{self._webhook_id}", encode(notice), {}, 1, "IOA_HOOKS/1", NEW_YEAR - age)
        await self._service.deliver(delivery)


async def test_result_that_a_replica_lacks_is_waited_for(store: NatsWebhooks) -> None:
    """A new result may be missing where it is read; later it was removed. A notice without a webhook is dropped."""
    deliveries = _Deliveries(store)
    await deliveries.deliver(timedelta(seconds=1))
    await deliveries.made()
    with pytest.raises(NotYetError):
        await deliveries.deliver(timedelta(seconds=1), HookEvent.ENDED)
    await deliveries.deliver(timedelta(minutes=1), HookEvent.ENDED)
    assert deliveries.posted == ["g-1"]


async def test_webhook_has_a_limit_of_concurrent_posts(store: NatsWebhooks) -> None:
    """A notice above the limit returns later; a slot is free again after a post."""
    deliveries = await _Deliveries(store).made()
    deliveries.may_end.clear()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(deliveries.deliver(timedelta(0)))
        await eventually(lambda: len(deliveries.posted) == AT_ONCE)
        with pytest.raises(NotYetError) as busy:
            await deliveries.deliver(timedelta(seconds=3))
        deliveries.may_end.set()
    await deliveries.deliver(timedelta(seconds=3))
    assert (busy.value.retry_after, len(deliveries.posted)) == (timedelta(seconds=4), AT_ONCE + 1)


async def test_webhook_ends_with_its_key_and_with_410(store: NatsWebhooks) -> None:
    """Nothing is sent by a revoked key; a webhook whose receiver is gone is removed."""
    revoked = await _Deliveries(store, is_valid=False, webhook_id="revoked").made()
    gone = await _Deliveries(store, 410, webhook_id="gone").made()
    for deliveries in (revoked, gone, gone):
        await deliveries.deliver(timedelta(minutes=1))
    remaining = [one.webhook_id async for one in store.all()]
    assert (revoked.posted, gone.posted, remaining) == ([], ["g-1"], ["revoked"])
    with pytest.raises(NotYetError):  # its key may be new, and unknown here
        await (await _Deliveries(store, is_valid=False).made(before=timedelta(0))).deliver(timedelta(minutes=1))


async def test_undelivered_notice_becomes_a_dead_letter_after_a_day(store: NatsWebhooks) -> None:
    """Until then it returns, later each time."""
    deliveries = await _Deliveries(store, 500).made()
    with pytest.raises(UnavailableError, match="answer was 500") as again:
        await deliveries.deliver(timedelta(seconds=6))
    await deliveries.deliver(timedelta(days=1))
    assert again.value.retry_after == timedelta(seconds=25)
    assert [letter.reason.value for letter in deliveries.dead.letters] == ["webhook"]


async def test_push_without_a_readable_task_becomes_a_dead_letter_after_a_day(store: NatsWebhooks) -> None:
    """It does not wait for ever for a result that does not come, and its webhook goes with it."""
    deliveries = await _Deliveries(store).made(push=PushTarget(config_id="g", version="1.0", base_url="http://gateway"))
    with pytest.raises(NotYetError):
        await deliveries.deliver(timedelta(hours=23), HookEvent.ENDED)
    await deliveries.deliver(timedelta(days=1), HookEvent.ENDED)
    assert (deliveries.posted, len(deliveries.dead.letters), [one async for one in deliveries.store.all()]) == ([], 1, [])
