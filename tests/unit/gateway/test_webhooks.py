"""Where webhooks may lead, how what they are sent is signed, and when it is tried again."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from ioa.adapters.nats.auth.roles import of_gateway
from ioa.adapters.nats.delivery.delivery import NatsDeadLetters
from ioa.adapters.nats.delivery.work_queue import Delivery, SetAside
from ioa.adapters.nats.stores.webhooks import NatsWebhooks, follow_webhooks
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.ssrf import is_public
from ioa.errors import InvalidInputError, NotYetError, UnavailableError
from ioa.protocol.api_keys import KeyId
from ioa.protocol.codec import encode
from ioa.protocol.ids import LOCAL, CommId, GoalId, UserId
from ioa.protocol.webhooks import HookEvent, Notice, PushTarget, StreamEnds, WebhookId, signature_of, written_secret
from ioa.protocol.webhooks import Webhook as Hook
from ioa.testing.manual_clock import NEW_YEAR
from ioa_gateway.webhooks.delivery import Webhooks, again_after
from ioa_gateway.webhooks.http_post import Posting, check_url, open_posting
from ioa_gateway.webhooks.pacing import Pacing
from tests.rig.hook_receiver import open_receiver
from tests.rig.memory_delivery import MemoryDeadLetters

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


async def test_names_are_looked_up_before_anything_is_sent() -> None:
    """A name that leads inside is refused as its address is, unless inside is allowed; then its address is what is asked."""
    with ThreadPoolExecutor(1) as names:
        async with httpx.AsyncClient() as http:
            for url in ("http://localhost:8000/hook", "http://127.1/hook", "http://2130706433/", "http://[::ffff:127.0.0.1]/"):
                with pytest.raises(InvalidInputError, match="private network"):
                    await Posting(http, inside=False, names=names).find(url, LOCAL)
            found = await Posting(http, inside=True, names=names).find("https://127.0.0.1/hook?a=b", LOCAL)
    assert (found.url, found.host, found.named) == ("https://127.0.0.1:443/hook?a=b", "127.0.0.1", "127.0.0.1")


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), InvalidInputError),
        (socket.gaierror(socket.EAI_NODATA, "No address associated with hostname"), InvalidInputError),
        (UnicodeError("label empty or too long"), InvalidInputError),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), UnavailableError),
    ],
)
async def test_a_name_that_does_not_exist_is_its_writers_fault(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, told: type[Exception]
) -> None:
    """It is refused at once. Where name servers do not tell, it is looked up again when there is something to post."""

    def getaddrinfo(*_of: object, **_more: object) -> None:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with open_posting(inside=False) as posting:
        with pytest.raises(told):
            await posting.find("https://example.com/hook", LOCAL)
        with pytest.raises(told) if told is InvalidInputError else nullcontext():
            await posting.check("https://example.com/hook", LOCAL)


async def test_an_address_of_this_machine_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is one of the internet: what listens there for those inside is not posted to."""
    monkeypatch.setattr("ioa.adapters.ssrf.is_public", lambda _address: True)
    with ThreadPoolExecutor(1) as names:
        posting = Posting(httpx.AsyncClient(), inside=False, names=names)
        with pytest.raises(InvalidInputError, match="on this machine"):
            await posting.find("http://127.0.0.1/hook", LOCAL)
        assert (await posting.find("http://93.184.215.14/hook", LOCAL)).host == "93.184.215.14"


async def test_what_is_posted_arrives_as_the_url_says() -> None:
    """At its path, under its name, over a connection of its own; what may not stand in a request line is escaped."""
    async with open_receiver(503, 200) as receiver, open_posting(inside=True) as posting:
        told = [await posting.post(f"{receiver.url}/a b?c=%20d&e", LOCAL, b"{}", {"X-Mark": "1"}) for _ in range(2)]
    assert (told, receiver.asked) == ([503, 200], ["POST /hook/a%20b?c=%20d&e HTTP/1.1"] * 2)
    [(headers, body), _] = receiver.taken
    assert [headers[one] for one in ("host", "x-mark", "content-type")] == [receiver.url.split("/")[2], "1", "application/json"]
    assert body == b"{}"


def test_posts_of_a_failing_webhook_leave_slots_for_others() -> None:
    """A webhook has four posts at once, one after a failure; what waits for it returns one after the other, at first in seconds."""

    def notice(webhook: str, user: str = "anna") -> Notice:
        at = {"event": HookEvent.PHASE, "at": NEW_YEAR, "goal_id": GoalId("g"), "comm_id": CommId("room")}
        return Notice(webhook_id=WebhookId(webhook), message_id="g-1", user=UserId(user), **at)

    pacing, now, later = Pacing(), NEW_YEAR, NEW_YEAR + timedelta(seconds=10)
    slow = notice("slow")
    first, second = [pacing.enter(slow, now) for _ in range(6)][4:]
    assert (first, second, pacing.enter(notice("other"), now)) == (timedelta(seconds=1), timedelta(seconds=1.025), None)
    for _ in range(4):
        pacing.leave(slow, now, later, is_taken=False)
    assert [pacing.enter(slow, later) is None for _ in range(2)] == [True, False]
    assert (pacing.is_failing(WebhookId("slow")), pacing.enter(notice("new", "eve"), later)) == (True, None)


@pytest.mark.parametrize("url", ["ftp://a/b", "https:///b", "https://me@a/b", "https://a/b#c", "https://a:x/", "http://a/\n", "a"])
def test_a_webhook_is_a_plain_url(url: str) -> None:
    """What is no URL of HTTP, or bears a password, is refused."""
    with pytest.raises(InvalidInputError):
        check_url(url)


def hook(webhook_id: str, user: UserId = LOCAL, **more: Any) -> Hook:
    """A webhook of ends, unless it is said of what else."""
    plain = {"key_id": KeyId("web"), "url": "https://example.com", "events": ("ended",), "created_at": NEW_YEAR}
    since = StreamEnds(results=0, log=0)
    return Hook(**{"webhook_id": WebhookId(webhook_id), "user": user, "secret": SECRET, "since": since, **plain, **more})


@pytest.fixture
async def store(nats_url: str) -> AsyncIterator[NatsWebhooks]:
    """A store without webhooks."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await Topology().ensure(client.jetstream())
        yield NatsWebhooks(client)


class _Told:
    """Delivers one notice of a phase or an end, of a given age, to a receiver that answers as is said."""

    def __init__(self, store: NatsWebhooks, status: int = 200, *, lets_in: bool = True, webhook_id: str = "one") -> None:
        self.store, self.dead, self.posted = store, MemoryDeadLetters(), list[str]()
        self._webhook_id = webhook_id

        async def post(_url: str, _user: UserId, _body: bytes, headers: dict[str, str]) -> int:
            self.posted.append(headers["webhook-id"])
            return status

        async def result(_name: object) -> None:
            """Tell, as a replica that lags does, that there is none."""

        goals: Any = SimpleNamespace(result=result)
        posting: Any = SimpleNamespace(post=post)

        async def body(*_of: object) -> None:
            raise NotYetError("The result is not known here yet.")

        pushes: Any = SimpleNamespace(body=body)
        self._webhooks = Webhooks(self.store, goals, self.dead, posting, lambda _key_id: lets_in, lambda: NEW_YEAR, pushes)

    async def made(self, before: timedelta = timedelta(hours=1), push: PushTarget | None = None) -> _Told:
        """Have made the webhook a while ago."""
        await self.store.put(self._webhook_id, hook(self._webhook_id, created_at=NEW_YEAR - before, push=push))
        return self

    async def of(self, age: timedelta, event: HookEvent = HookEvent.PHASE) -> None:
        """Deliver."""
        notice = Notice(
            webhook_id=WebhookId(self._webhook_id),
            message_id="g-1",
            event=event,
            at=NEW_YEAR,
            user=LOCAL,
            goal_id=GoalId("g"),
            comm_id=CommId("room"),
        )
        delivery = Delivery(f"ioa.v1.hook.{self._webhook_id}", encode(notice), {}, 1, "IOA_HOOKS/1", NEW_YEAR - age)
        await self._webhooks.work(delivery)


async def test_what_a_lagging_replica_does_not_know_is_waited_for(store: NatsWebhooks) -> None:
    """A webhook or a result that was stored a moment ago may be missing where it is read; later it is taken for gone."""
    told = _Told(store)
    with pytest.raises(NotYetError):
        await told.of(timedelta(seconds=1))
    await told.of(timedelta(minutes=1))
    await told.made()
    with pytest.raises(NotYetError):
        await told.of(timedelta(seconds=1), HookEvent.ENDED)
    await told.of(timedelta(minutes=1), HookEvent.ENDED)
    assert told.posted == ["g-1"]


async def test_a_webhook_ends_with_its_key_and_with_410(store: NatsWebhooks) -> None:
    """Nothing is sent by the key of nobody; a receiver that is gone for good is told nothing more."""
    revoked = await _Told(store, lets_in=False, webhook_id="revoked").made()
    gone = await _Told(store, 410, webhook_id="gone").made()
    for told in (revoked, gone, gone):
        await told.of(timedelta(minutes=1))
    remaining = [one.webhook_id async for one in store.all()]
    assert (revoked.posted, gone.posted, remaining) == ([], ["g-1"], ["revoked"])
    with pytest.raises(NotYetError):  # its key may be just made, and not known here
        await (await _Told(store, lets_in=False).made(before=timedelta(0))).of(timedelta(minutes=1))


async def test_undelivered_notice_becomes_a_dead_letter_after_a_day(store: NatsWebhooks) -> None:
    """Until then it comes back, later each time."""
    told = await _Told(store, 500).made()
    with pytest.raises(UnavailableError, match="answer was 500") as again:
        await told.of(timedelta(seconds=6))
    await told.of(timedelta(days=1))
    assert (again.value.retry_after, [letter.reason.value for letter in told.dead.letters]) == (timedelta(seconds=25), ["webhook"])


async def test_push_without_a_readable_task_becomes_a_dead_letter_after_a_day(store: NatsWebhooks) -> None:
    """It does not wait for ever for a result that does not come, and its webhook goes with it."""
    told = await _Told(store).made(push=PushTarget(config_id="g", version="1.0", base_url="http://gateway"))
    with pytest.raises(NotYetError):
        await told.of(timedelta(hours=23), HookEvent.ENDED)
    await told.of(timedelta(days=1), HookEvent.ENDED)
    assert (told.posted, len(told.dead.letters), [one async for one in told.store.all()]) == ([], 1, [])


async def _never(_delivery: Delivery) -> None:
    """Work that is not begun."""


async def test_poison_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice that nobody can work on is set aside where a gateway may write, so that it does not come back for ever."""
    written = list[str]()

    async def request(subject: str, *_of: object, **_more: object) -> SimpleNamespace:
        written.append(subject)
        return SimpleNamespace(data=b'{"seq": 1}')

    async def consume(*_of: object, set_aside: SetAside, **_more: object) -> None:
        await set_aside(Delivery("ioa.v1.hook.one", b"garbage", {}, 5, "IOA_HOOKS/1", NEW_YEAR), InvalidInputError("Garbage."))

    monkeypatch.setattr("ioa.adapters.nats.stores.webhooks.consume", consume)
    client: Any = SimpleNamespace(request=request)
    await follow_webhooks(client, NatsDeadLetters(client), _never, _never)
    assert written
    assert set(written) <= set(of_gateway().publish)
