"""Requests and services: replies, typed errors, rate limits, fairness between callers, and draining at the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from ioa.adapters.nats.requests.rate_limit import RateLimit
from ioa.adapters.nats.requests.request import NatsRequester, read_error
from ioa.adapters.nats.requests.service import DEFAULT_LIMITS, REJECTED, ServiceEndpoint, ServiceLimits, answer, open_service
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.adapters.nats.wire.subscriptions import MessageSink
from ioa.errors import ERRORS, InvalidInputError, IoaError, PayloadTooLargeError, RateLimitedError, UnavailableError
from ioa.protocol.codec import encode
from ioa.protocol.model import Model
from ioa.telemetry import log_context
from tests.contract.control_plane.conftest import heard
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash

SUBJECT, NAMED = "ioa.v1.test.echo", "ioa.v1.user.*.test.echo"
SOON = timedelta(milliseconds=200)


class Echo(Model):
    """A request and its reply."""

    text: str


async def echo(request: Echo) -> Echo:
    """Reply with the request."""
    return request


@asynccontextmanager
async def serving(
    client: Client, *endpoints: ServiceEndpoint, limits: ServiceLimits = DEFAULT_LIMITS
) -> AsyncIterator[NatsRequester]:
    """Run one replica, and a requester."""
    async with open_service(client, "ioa-test", "Answers tests", "0.1.0", endpoints, limits=limits):
        await heard(client)
        yield NatsRequester(client)


class Held:
    """A handler that notes requests and holds them until `go` is set."""

    def __init__(self) -> None:
        self.served = list[str]()
        self.go = asyncio.Event()

    async def __call__(self, request: Echo) -> Echo:
        """Handle a request."""
        self.served.append(request.text)
        await self.go.wait()
        return request


@pytest.fixture(params=[False, True], ids=["shared", "own"])
def own(request: pytest.FixtureRequest) -> bool:
    """Whether the endpoint belongs to one replica."""
    return bool(request.param)


async def test_request_is_answered(client: Client, own: bool) -> None:
    """The handler gets the decoded request, the caller the decoded reply."""
    async with serving(client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo), per_replica=own)) as requester:
        assert await requester.request(SUBJECT, Echo(text="Grüße ✂"), Echo) == Echo(text="Grüße ✂")


@pytest.mark.parametrize("kind", [kind for kind in ERRORS if kind.__module__ == IoaError.__module__])
async def test_error_keeps_its_class(client: Client, kind: type[IoaError]) -> None:
    """An error of a handler arrives as the same class, with message and hint on one line each."""
    raised = kind("It broke:\nGrüße ✂, {a}.", hint="Mend\r\nit.")

    async def fail(_: Echo) -> Echo:
        raise raised

    async with serving(client, ServiceEndpoint("fail", SUBJECT, answer(Echo, fail))) as requester:
        with pytest.raises(IoaError) as caught:
            await requester.request(SUBJECT, Echo(text=""), Echo)
    assert (type(caught.value), caught.value.message, caught.value.hint) == (type(raised), "It broke: Grüße ✂, {a}.", "Mend it.")


async def test_crash_is_reported_without_details(client: Client) -> None:
    """After an unexpected exception the caller gets an error, and the next request is answered."""

    async def divide(request: Echo) -> Echo:
        return Echo(text=str(1 // len(request.text)))

    async with serving(client, ServiceEndpoint("divide", SUBJECT, answer(Echo, divide))) as requester:
        with pytest.raises(IoaError, match="its log contains the reason"):
            await requester.request(SUBJECT, Echo(text=""), Echo)
        assert await requester.request(SUBJECT, Echo(text="x"), Echo) == Echo(text="1")


@pytest.mark.parametrize("garbage", [b"", b"\x81\xa4text\x07"])
async def test_garbage_is_invalid_input(client: Client, garbage: bytes) -> None:
    """A payload that cannot be decoded is rejected."""
    async with serving(client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo))):
        reply = await client.request(SUBJECT, garbage, timeout=5)
    assert isinstance(read_error(reply.headers or {}), InvalidInputError)


async def test_missing_service_is_reported_immediately(client: Client) -> None:
    """A request to a service that does not run fails at once."""
    async with asyncio.timeout(1):
        with pytest.raises(UnavailableError, match="No service listens"):
            await NatsRequester(client).request(SUBJECT, Echo(text=""), Echo)


async def test_too_large_request_is_not_sent(client: Client) -> None:
    """A request above the server's limit is rejected by the client."""
    with pytest.raises(PayloadTooLargeError):
        await NatsRequester(client).request(SUBJECT, Echo(text="x" * 1_000_001), Echo)


async def test_too_large_reply_is_reported(client: Client) -> None:
    """A reply that fits into no message arrives as an error, and the connection stays open."""

    async def grow(_subject: str, _data: bytes) -> bytes:
        return b"x" * (client.max_payload + 1)

    async with serving(client, ServiceEndpoint("grow", SUBJECT, grow)) as requester:
        with pytest.raises(PayloadTooLargeError):
            await requester.request(SUBJECT, Echo(text=""), Echo)
        assert client.is_connected


async def test_large_request_is_rejected_unread(client: Client) -> None:
    """An endpoint rejects requests above its size; the error states the size."""
    read = list[int]()

    async def note(_subject: str, data: bytes) -> bytes:
        read.append(len(data))
        return data

    async with serving(client, ServiceEndpoint("note", SUBJECT, note, max_bytes=1_000)) as requester:
        overhead = len(encode(Echo(text="x" * 900))) - 900
        await requester.request(SUBJECT, Echo(text="x" * (1_000 - overhead)), Echo)
        with pytest.raises(PayloadTooLargeError, match="1,001 bytes"):
            await requester.request(SUBJECT, Echo(text="x" * (1_001 - overhead)), Echo)
    assert read == [1_000]


async def test_requests_run_concurrently(client: Client, own: bool) -> None:
    """A slow request does not delay others."""
    last_came = asyncio.Event()

    async def wait_for_last(request: Echo) -> Echo:
        if request.text == "last":
            last_came.set()
        await last_came.wait()
        return request

    async with serving(client, ServiceEndpoint("wait", SUBJECT, answer(Echo, wait_for_last), per_replica=own)) as requester:
        asked = [str(number) for number in range(40)] + ["last"]
        answers = await asyncio.gather(*(requester.request(SUBJECT, Echo(text=text), Echo) for text in asked))
    assert [given.text for given in answers] == asked


async def test_queue_keys_are_served_round_robin(client: Client) -> None:
    """Two slots per key of three: waiting keys are served in turn."""
    held = Held()
    endpoint = ServiceEndpoint("slow", NAMED, answer(Echo, held), queue_key=lambda subject: subject.split(".")[3])
    limits = ServiceLimits(max_concurrent=3, max_concurrent_per_key=2)
    async with asyncio.TaskGroup() as group, serving(client, endpoint, limits=limits) as requester:
        for key, count in (("big", 6), ("small", 1), ("other", 2)):
            for number in range(count):
                group.create_task(requester.request(f"ioa.v1.user.{key}.test.echo", Echo(text=f"{key} {number}"), Echo))
        await heard(client)
        await heard(client)
        before = list(held.served)
        asyncio.get_running_loop().call_soon(held.go.set)
    assert before == ["big 0", "big 1", "small 0"]
    assert max(held.served.index("other 0"), held.served.index("other 1")) <= 6


async def test_full_queue_rejects_only_its_caller(client: Client) -> None:
    """Requests beyond a caller's queue are rejected with a retry time; other callers are served."""
    held = Held()
    endpoint = ServiceEndpoint("slow", NAMED, answer(Echo, held))
    limits = ServiceLimits(max_concurrent=2, max_concurrent_per_key=1, max_waiting_per_key=1)

    async def ask(caller: str) -> str:
        try:
            return (
                await NatsRequester(client).request(f"ioa.v1.user.{caller}.test.echo", Echo(text=caller), Echo, timeout=SOON * 4)
            ).text
        except RateLimitedError as error:
            return f"retry {error.retry_after}"

    async with asyncio.TaskGroup() as group, serving(client, endpoint, limits=limits):
        asked = [group.create_task(ask(caller)) for caller in ("eve", "eve", "eve", "ada")]
        await heard(client)
        await heard(client)
        asyncio.get_running_loop().call_soon(held.go.set)
    assert [one.result() for one in asked] == ["eve", "eve", "retry 0:00:01", "ada"]


async def test_caller_above_its_rate_is_delayed_and_finishes(client: Client, own: bool) -> None:
    """Every request of a caller far above its rate is answered in the end, on the same connection, and other callers at once."""
    endpoint = ServiceEndpoint("echo", NAMED, answer(Echo, echo), per_replica=own)
    before = client.stats["reconnects"]
    with capture_logs() as lines:
        async with serving(client, endpoint, limits=ServiceLimits(RateLimit(per_second=200, burst=2))) as requester:
            texts = [str(number) for number in range(100)]
            asked = [asyncio.ensure_future(requester.request("ioa.v1.user.eve.test.echo", Echo(text=text), Echo)) for text in texts]
            for text in texts[:2]:
                assert await requester.request("ioa.v1.user.ada.test.echo", Echo(text=text), Echo) == Echo(text=text)
            assert not asked[-1].done()
            assert [(await one).text for one in asked] == texts
    assert (client.is_connected, client.stats["reconnects"]) == (True, before)
    assert [(line["caller"], line["kind"]) for line in lines if line["event"] == "caller_rate_limited"] == [("eve", "rate")]


async def test_rate_limited_caller_gets_its_retry_time_and_is_listed(client: Client) -> None:
    """The error states when to retry, and the statistics list the caller; expensive requests count as several."""
    limited = ServiceEndpoint("echo", NAMED, answer(Echo, echo), cost=85)
    async with serving(client, limited, limits=ServiceLimits(RateLimit(per_second=1, burst=100))) as requester:
        await requester.request("ioa.v1.user.eve.test.echo", Echo(text="x" * 80), Echo)
        for _ in range(3):
            with pytest.raises(RateLimitedError) as rejected:
                await requester.request("ioa.v1.user.eve.test.echo", Echo(text="x" * 80), Echo, timeout=SOON)
        statistics = json.loads((await client.request("$SRV.STATS.ioa-test", timeout=5)).data)
    assert rejected.value.retry_after is not None and rejected.value.retry_after > SOON
    assert statistics["endpoints"][0]["data"] == {REJECTED: [["eve", "rate", 3]]}


async def test_exempt_caller_has_no_rate_limit(client: Client) -> None:
    """A caller that acts for many users is not limited."""
    endpoint = ServiceEndpoint("echo", NAMED, answer(Echo, echo))
    async with serving(client, endpoint, limits=ServiceLimits(RateLimit(per_second=0.5, burst=1))) as requester:
        await asyncio.gather(*(requester.request("ioa.v1.user._gateway.test.echo", Echo(text=text), Echo) for text in "abc"))
        await requester.request("ioa.v1.user.ada.test.echo", Echo(text=""), Echo)
        with pytest.raises(RateLimitedError):
            await requester.request("ioa.v1.user.ada.test.echo", Echo(text=""), Echo, timeout=SOON)


async def test_request_is_dropped_after_the_timeout(client: Client) -> None:
    """A request that waited longer than the timeout of its endpoint is not handled; a newer one is."""
    held = Held()

    def dropped() -> float:
        return REGISTRY.get_sample_value("ioa_requests_total", {"subject": "other", "code": "overdue"}) or 0.0

    before = dropped()
    limits = ServiceLimits(max_concurrent=1)
    async with (
        asyncio.TaskGroup() as group,
        serving(client, ServiceEndpoint("slow", SUBJECT, answer(Echo, held), timeout=SOON), limits=limits) as requester,
    ):
        first = group.create_task(requester.request(SUBJECT, Echo(text="first"), Echo))
        await heard(client)
        with pytest.raises(UnavailableError):
            await requester.request(SUBJECT, Echo(text="given up"), Echo, timeout=SOON)
        await heard(client)
        await asyncio.sleep(SOON.total_seconds())  # on a busy machine the request may have arrived only now
        last = group.create_task(requester.request(SUBJECT, Echo(text="last"), Echo))
        await heard(client)
        await heard(client)
        held.go.set()
    assert (first.result().text, last.result().text, held.served) == ("first", "last", ["first", "last"])
    assert dropped() - before == 1


async def test_request_logs_nothing_of_the_request_before(client: Client) -> None:
    """The ids bound to log lines are those of the request that is handled."""
    held, about = Held(), list[dict[str, str]]()

    async def work(request: Echo) -> Echo:
        about.append(dict(log_context.add_ids(None, "", {})))
        log_context.bind({"agent_id": request.text})
        return await held(request)

    endpoint = ServiceEndpoint("work", SUBJECT, answer(Echo, work))
    async with asyncio.TaskGroup() as group, serving(client, endpoint, limits=ServiceLimits(max_concurrent=1)) as requester:
        for text in ("ada", "bob", "eve"):
            group.create_task(requester.request(SUBJECT, Echo(text=text), Echo))
        await heard(client)
        await heard(client)
        asyncio.get_running_loop().call_soon(held.go.set)
    assert about == [{}, {}, {}]


async def test_stopping_service_answers_received_and_waiting_requests(client: Client, own: bool) -> None:
    """Requests that run or wait at the end are answered; later ones reach no service."""
    held = Held()
    endpoint = ServiceEndpoint("slow", SUBJECT, answer(Echo, held), per_replica=own)
    async with asyncio.TaskGroup() as group, serving(client, endpoint, limits=ServiceLimits(max_concurrent=1)) as requester:
        asked = [group.create_task(requester.request(SUBJECT, Echo(text=str(number)), Echo)) for number in range(5)]
        await heard(client)  # the tasks send while this waits
        await heard(client)  # their requests have arrived
        asyncio.get_running_loop().call_soon(held.go.set)
    assert [one.result().text for one in asked] == ["0", "1", "2", "3", "4"]
    with pytest.raises(UnavailableError):
        await NatsRequester(client).request(SUBJECT, Echo(text="x"), Echo)


async def test_service_answers_after_a_crash_of_the_server(client: Client, nats_server: NatsServer, own: bool) -> None:
    """After nats-server was killed and restarted, the same replica answers."""
    async with serving(client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo), per_replica=own)) as requester:
        await crash(nats_server)
        await nats_server.start()

        async def asked() -> Echo | None:
            with suppress(UnavailableError):
                return await requester.request(SUBJECT, Echo(text="back"), Echo, timeout=timedelta(seconds=1))
            return None

        assert await eventually(asked, lambda given: given is not None) == Echo(text="back")


async def test_service_stops_while_the_server_is_away(client: Client, nats_server: NatsServer) -> None:
    """A replica ends without a server."""
    async with asyncio.timeout(5), serving(client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo))):
        await crash(nats_server)
        await eventually(lambda: not client.is_connected)
    assert not client.is_connected


async def test_request_is_sent_once(client: Client) -> None:
    """A request without a reply is not repeated."""
    received = list[Msg]()
    await client.subscribe(SUBJECT, future=MessageSink(received.append))
    with pytest.raises(UnavailableError, match="did not answer"):
        await NatsRequester(client).request(SUBJECT, Echo(text="it"), Echo, timeout=SOON)
    assert len(received) == 1
