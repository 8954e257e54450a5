"""What requests and services promise: an answer, or an error of the class it was raised as."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.endpoints import Bounds, ServiceEndpoint, answer
from ioa.adapters.nats.requester import NatsRequester
from ioa.adapters.nats.server import NatsServer
from ioa.adapters.nats.service import open_service
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.slowed_callers import slowed_in_statistics
from ioa.errors import (
    ERRORS,
    InvalidInputError,
    IoaError,
    PayloadTooLargeError,
    RateLimitedError,
    UnavailableError,
    row_of,
)
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.codec import encode
from ioa.protocol.model import Model
from ioa.protocol.registry import Deregister
from ioa.protocol.subjects import CALLER_AT
from ioa.quotas import Family, Rate
from ioa.telemetry import log_context
from tests.contract.control_plane.conftest import heard
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash

SUBJECT = "ioa.v1.test.echo"
SOON = timedelta(milliseconds=200)
AT_ONCE = timedelta(seconds=2)
"""How long who owes nothing waits at the most, on a busy machine; who owes something is put off for longer."""
_REFUSED = 50


class Echo(Model):
    """Something to send to and fro."""

    text: str


async def echo(request: Echo) -> Echo:
    """Answer with what was asked."""
    return request


@asynccontextmanager
async def serving(client: Client, *endpoints: ServiceEndpoint) -> AsyncIterator[NatsRequester]:
    """One replica that answers, and somebody to ask it."""
    async with open_service(client, "ioa-test", "Answers tests", "0.1.0", endpoints):
        await heard(client)
        yield NatsRequester(client)


@pytest.fixture(params=[False, True], ids=["shared", "own"])
def own(request: pytest.FixtureRequest) -> bool:
    """Whether the subject is shared by all replicas or belongs to one: both ways promise the same."""
    return bool(request.param)


async def test_a_request_is_answered(nats_client: Client, own: bool) -> None:
    """A request comes to its endpoint's method, decoded, and its answer comes back."""
    async with serving(nats_client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo), is_own=own)) as requester:
        assert await requester.request(SUBJECT, Echo(text="Grüße ✂"), Echo) == Echo(text="Grüße ✂")


@pytest.mark.parametrize("kind", [kind for kind in ERRORS if kind.__module__ == IoaError.__module__])
async def test_an_error_keeps_its_class(nats_client: Client, kind: type[IoaError], own: bool) -> None:
    """Whatever a service raises arrives as the class it was, with message and hint on one line each."""
    raised = kind("It broke:\nGrüße ✂, {a}.", hint="Mend\r\nit.")

    async def fail(_: Echo) -> Echo:
        raise raised

    async with serving(nats_client, ServiceEndpoint("fail", SUBJECT, answer(Echo, fail), is_own=own)) as requester:
        with pytest.raises(IoaError) as caught:
            await requester.request(SUBJECT, Echo(text=""), Echo)
    assert (type(caught.value), caught.value.message, caught.value.hint) == (type(raised), "It broke: Grüße ✂, {a}.", "Mend it.")


async def test_a_crash_is_told_and_survived(nats_client: Client, own: bool) -> None:
    """A method that fails in a way nobody foresaw says so to the asker, who learns no details, and answers the next one."""

    async def divide(request: Echo) -> Echo:
        return Echo(text=str(1 // len(request.text)))

    async with serving(nats_client, ServiceEndpoint("divide", SUBJECT, answer(Echo, divide), is_own=own)) as requester:
        with pytest.raises(IoaError, match="its log says why"):
            await requester.request(SUBJECT, Echo(text=""), Echo)
        assert await requester.request(SUBJECT, Echo(text="x"), Echo) == Echo(text="1")


@pytest.mark.parametrize("garbage", [b"", b"\xc1", b"\x81\xa4text\x07", b"{}", b"\x90" * 4_000])
async def test_garbage_is_the_askers_fault(nats_client: Client, garbage: bytes, own: bool) -> None:
    """A payload that is no request is refused as invalid input."""
    async with serving(nats_client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo), is_own=own)):
        reply = await nats_client.request(SUBJECT, garbage, timeout=5)
    assert (reply.headers or {}).get("Nats-Service-Error-Code") == row_of(InvalidInputError).wire_code


async def test_who_asks_and_waits_for_no_answer_is_no_mistake_of_the_service(nats_client: Client, own: bool) -> None:
    """Each such request, good or bad, was told as a crash with a traceback, so that anybody wrote as many as he liked."""
    with capture_logs() as lines:
        async with serving(nats_client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo), is_own=own)) as requester:
            for data in (encode(Echo(text="x")), b"garbage"):
                await nats_client.publish(SUBJECT, data)
            await requester.request(SUBJECT, Echo(text="y"), Echo)
    assert [line["event"] for line in lines] == ["request_failed"]


async def test_of_what_one_caller_does_wrong_a_line_in_a_second_is_logged(nats_client: Client, own: bool) -> None:
    """He makes the words of each, and is told each; others' lines, and those of what is not a caller's fault, stand beside his."""

    async def refuse(subject: str, data: bytes) -> bytes:
        error = {"anna": UnavailableError}.get(subject.rpartition(".")[2], InvalidInputError)
        raise error(f"{subject} says {data.decode()}.")

    by_name = ServiceEndpoint("refuse", f"{SUBJECT}.*", refuse, caller_at=CALLER_AT, family=Family.SAY, is_own=own)
    began = time.monotonic()
    with capture_logs() as lines:
        async with serving(nats_client, by_name):
            for number in range(_REFUSED):
                for caller in ("mallory", "bob", "eve", "anna"):
                    reply = await nats_client.request(f"{SUBJECT}.{caller}", b"%d" % number, timeout=5)
                    assert (reply.headers or {})["Nats-Service-Error"] == f"{SUBJECT}.{caller} says {number}."
    failed = [line for line in lines if line["event"] == "request_failed"]
    assert {line["error"].split()[0].rpartition(".")[2] for line in failed} == {"mallory", "bob", "eve", "anna"}
    written = [line["caller"] for line in failed]
    most = 1 + int(time.monotonic() - began)
    assert [1 <= written.count(caller) <= most for caller in ("mallory", "bob", "eve")] == [True] * 3
    assert (most < _REFUSED, written.count("anna")) == (True, _REFUSED)


async def test_nobody_there_is_told_at_once(nats_client: Client) -> None:
    """A request to a service that does not run fails at once and says so."""
    async with asyncio.timeout(1):
        with pytest.raises(UnavailableError, match="Nobody serves"):
            await NatsRequester(nats_client).request(SUBJECT, Echo(text=""), Echo)


async def test_silence_is_unavailable(nats_client: Client) -> None:
    """A service that does not answer in time is unavailable, which a retry can help."""
    never = asyncio.Event()

    async def hang(request: Echo) -> Echo:
        await never.wait()
        return request

    async with serving(nats_client, ServiceEndpoint("hang", SUBJECT, answer(Echo, hang))) as requester:
        with pytest.raises(UnavailableError, match="did not answer"):
            await requester.request(SUBJECT, Echo(text=""), Echo, timeout=SOON)
        never.set()


async def test_a_request_too_large_is_not_sent(nats_client: Client) -> None:
    """What does not fit into a message is refused before it leaves."""
    with pytest.raises(PayloadTooLargeError):
        await NatsRequester(nats_client).request(SUBJECT, Echo(text="x" * 1_000_001), Echo)


async def test_an_answer_too_large_is_told(nats_client: Client) -> None:
    """An answer that fits into no message arrives as that error, not as silence."""

    async def grow(_: Echo) -> Echo:
        return Echo(text="x" * 1_000_001)

    async with serving(nats_client, ServiceEndpoint("grow", SUBJECT, answer(Echo, grow))) as requester:
        with pytest.raises(PayloadTooLargeError):
            await requester.request(SUBJECT, Echo(text=""), Echo)


async def test_another_kind_of_answer_is_refused(nats_client: Client) -> None:
    """An answer that is not what was asked for is never taken for it."""
    async with serving(nats_client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo))) as requester:
        with pytest.raises(InvalidInputError):
            await requester.request(SUBJECT, Echo(text="x"), Deregister)


async def test_requests_run_side_by_side(nats_client: Client, own: bool) -> None:
    """One slow request blocks no other."""
    last_came = asyncio.Event()

    async def wait_for_last(request: Echo) -> Echo:
        if request.text == "last":
            last_came.set()
        await last_came.wait()
        return request

    async with serving(nats_client, ServiceEndpoint("wait", SUBJECT, answer(Echo, wait_for_last), is_own=own)) as requester:
        asked = [str(number) for number in range(40)] + ["last"]
        answers = await asyncio.gather(*(requester.request(SUBJECT, Echo(text=text), Echo) for text in asked))
    assert [given.text for given in answers] == asked


async def test_too_many_requests_wait_or_come_again(nats_client: Client, own: bool) -> None:
    """Two at once are answered, two more when there is room, and all others are told at once to come again."""
    all_refused, go = asyncio.Event(), asyncio.Event()
    taken: list[str] = []

    async def slow(request: Echo) -> Echo:
        taken.append(request.text)
        await go.wait()
        return request

    async def ask(requester: NatsRequester, number: int) -> str:
        try:
            return (await requester.request(SUBJECT, Echo(text=str(number)), Echo)).text
        except UnavailableError as error:
            refused.append(error.message)
            if len(refused) == 5:
                all_refused.set()
            return "refused"

    refused: list[str] = []
    endpoint = ServiceEndpoint("slow", SUBJECT, answer(Echo, slow), is_own=own)
    async with (
        open_service(nats_client, "ioa-test", "Answers tests", "0.1.0", [endpoint], bounds=Bounds(max_concurrent=2, max_queued=2)),
        asyncio.TaskGroup() as group,
    ):
        await heard(nats_client)
        answers = [group.create_task(ask(NatsRequester(nats_client), number)) for number in range(9)]
        await all_refused.wait()
        taken_before = list(taken)
        go.set()
    assert taken_before == ["0", "1"]
    assert [one.result() for one in answers] == ["0", "1", "2", "3", *["refused"] * 5]
    assert set(refused) == {"Too many requests wait for slow."}


async def test_a_service_that_fails_begins_nothing_more(nats_client: Client, own: bool) -> None:
    """What is raised is why it failed, and nothing else; requests that wait are not begun."""
    begun = list[str]()

    async def slow(request: Echo) -> Echo:
        begun.append(request.text)
        await asyncio.Event().wait()
        return request

    endpoint = ServiceEndpoint("slow", SUBJECT, answer(Echo, slow), is_own=own)
    with pytest.raises(ExceptionGroup) as failed:
        async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=Bounds(max_concurrent=1)):
            await heard(nats_client)
            for number in range(3):
                await nats_client.publish(SUBJECT, encode(Echo(text=str(number))), reply="nobody")
            await heard(nats_client)
            raise UnavailableError("The store is gone.")
    assert (begun, [type(error) for error in failed.value.exceptions]) == (["0"], [UnavailableError])


def _lane(subject: str) -> str:
    return subject.split(".")[3]


async def test_one_lanes_thousand_requests_stand_in_nobodys_way(nats_client: Client, own: bool) -> None:
    """Whoever asks for another lane is answered before those that wait in a full one, and waiting lanes take turns."""
    go, served = asyncio.Event(), list[str]()

    async def slow(request: Echo) -> Echo:
        served.append(request.text)
        await go.wait()
        return request

    endpoint = ServiceEndpoint("slow", "ioa.v1.test.*", answer(Echo, slow), is_own=own, lane=_lane)
    async with (
        asyncio.TaskGroup() as group,
        open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=Bounds(max_concurrent=3, lane_max_concurrent=2)),
    ):
        requester = NatsRequester(nats_client)
        await heard(nats_client)
        for lane, count in (("big", 6), ("small", 1), ("other", 2)):
            for number in range(count):
                group.create_task(requester.request(f"ioa.v1.test.{lane}", Echo(text=f"{lane} {number}"), Echo))
        await heard(nats_client)
        await heard(nats_client)
        before = list(served)
        asyncio.get_running_loop().call_soon(go.set)
    assert before == ["big 0", "big 1", "small 0"]
    assert served[3:] in (
        ["big 2", "other 0", "big 3", "other 1", "big 4", "big 5"],
        ["other 0", "big 2", "other 1", "big 3", "big 4", "big 5"],
    )


async def test_a_full_lane_refuses_only_its_own(nats_client: Client, own: bool) -> None:
    """What one lane may keep waiting is bounded, by its number and by the bytes of all; other lanes are taken all the same."""
    go = asyncio.Event()

    async def slow(request: Echo) -> Echo:
        await go.wait()
        return Echo(text=request.text[:8])

    async def ask(lane: str, text: str) -> str:
        try:
            return (await NatsRequester(nats_client).request(f"ioa.v1.test.{lane}", Echo(text=text), Echo)).text
        except UnavailableError:
            return "refused"

    endpoint = ServiceEndpoint("slow", "ioa.v1.test.*", answer(Echo, slow), is_own=own, lane=_lane)
    bounds = Bounds(max_concurrent=2, lane_max_concurrent=1, lane_max_queued=2, max_queued_bytes=10_000)
    async with (
        asyncio.TaskGroup() as group,
        open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds),
    ):
        await heard(nats_client)
        texts = [
            ("big", "big 0"),
            ("big", "big 1"),
            ("big", "big 2"),
            ("big", "big 3"),
            ("small", "small 0"),
            ("huge", "x" * 20_000),
        ]
        asked = [group.create_task(ask(lane, text)) for lane, text in texts]
        await heard(nats_client)
        await heard(nats_client)
        asyncio.get_running_loop().call_soon(go.set)
    assert [one.result() for one in asked] == ["big 0", "big 1", "big 2", "refused", "small 0", "refused"]


async def test_no_line_about_a_request_names_what_the_one_before_was_about(nats_client: Client) -> None:
    """Who has answered one begins the next that waited: its lines named the agent and the group of the first."""
    go, about = asyncio.Event(), list[dict[str, str]]()

    async def work(request: Echo) -> Echo:
        about.append(dict(log_context.add_ids(None, "", {})))
        log_context.bind({"agent_id": request.text})
        await go.wait()
        return request

    endpoint = ServiceEndpoint("work", "ioa.v1.test.*", answer(Echo, work), caller_at=CALLER_AT)
    async with (
        asyncio.TaskGroup() as group,
        open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=Bounds(max_concurrent=1)),
    ):
        await heard(nats_client)
        for one in ("ada", "bob", "eve"):
            group.create_task(NatsRequester(nats_client).request(f"ioa.v1.test.{one}", Echo(text=one), Echo))
        await heard(nats_client)
        await heard(nats_client)
        asyncio.get_running_loop().call_soon(go.set)
    assert about == [{}, {}, {}]


async def test_who_asks_too_often_waits_and_comes_back(nats_client: Client, own: bool) -> None:
    """Beyond its quota a caller is answered at its rate; whoever asks does not notice but by the time."""
    endpoint = ServiceEndpoint("echo", "ioa.v1.test.*", answer(Echo, echo), is_own=own, caller_at=CALLER_AT)
    bounds = Bounds(rates={Family.OTHERS: Rate(per_second=100, burst=2)})
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        requester, texts = NatsRequester(nats_client), [str(number) for number in range(12)]
        answers = await asyncio.gather(*(requester.request("ioa.v1.test.ada", Echo(text=text), Echo) for text in texts))
    assert [one.text for one in answers] == texts


@pytest.mark.parametrize("is_refused", [False, True], ids=["answered", "refused"])
async def test_what_takes_long_to_answer_counts_by_its_time(nats_client: Client, own: bool, is_refused: bool) -> None:
    """Of its caller, and whether it is answered or refused: a small request may have megabytes read."""

    async def work(request: Echo) -> Echo:
        until = time.thread_time() + (0.0 if request.text == "x" else 0.05)
        while time.thread_time() < until:
            pass
        if is_refused and request.text != "x":
            raise InvalidInputError("No.")
        return request

    endpoint = ServiceEndpoint("work", "ioa.v1.test.*", answer(Echo, work), is_own=own, caller_at=CALLER_AT)
    bounds = Bounds(rates={Family.OTHERS: Rate(per_second=1, burst=10, second_counts=300)})
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        requester = NatsRequester(nats_client)
        with suppress(InvalidInputError):
            await requester.request("ioa.v1.test.mallory", Echo(text="much"), Echo)
        with pytest.raises(RateLimitedError):
            await requester.request("ioa.v1.test.mallory", Echo(text="x"), Echo, timeout=SOON)
        for _ in range(2):
            assert await requester.request("ioa.v1.test.ada", Echo(text="x"), Echo, timeout=AT_ONCE) == Echo(text="x")


async def test_what_is_a_callers_own_work_does_not_count_by_its_time(nats_client: Client) -> None:
    """Storing a piece of a file takes long, and its family bounds how many there may be."""

    async def work(request: Echo) -> Echo:
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass
        return request

    endpoint = ServiceEndpoint("work", "ioa.v1.test.*", answer(Echo, work), caller_at=CALLER_AT, is_work=True)
    bounds = Bounds(rates={Family.OTHERS: Rate(per_second=1, burst=10, second_counts=300)})
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        requester = NatsRequester(nats_client)
        for _ in range(3):
            assert await requester.request("ioa.v1.test.ada", Echo(text="x"), Echo, timeout=AT_ONCE) == Echo(text="x")


async def test_a_flood_is_told_when_to_come_back_and_named(nats_client: Client, own: bool) -> None:
    """Who does not come back later is refused, and told by name to operators; others are served at once."""
    limited = ServiceEndpoint("echo", "ioa.v1.test.*", answer(Echo, echo), is_own=own, caller_at=CALLER_AT)
    told = ServiceEndpoint("told", "ioa.v1.told", answer(Echo, echo))
    bounds = Bounds(rates={Family.OTHERS: Rate(per_second=0.5, burst=1)})
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [told, limited], bounds=bounds):
        await heard(nats_client)
        requester = NatsRequester(nats_client)
        await requester.request("ioa.v1.test.mallory", Echo(text="x"), Echo)
        with pytest.raises(RateLimitedError) as refused:
            await requester.request("ioa.v1.test.mallory", Echo(text="x"), Echo, timeout=SOON)
        for _ in range(49):
            await nats_client.publish("ioa.v1.test.mallory", encode(Echo(text="x")), reply="nobody")
        assert await requester.request("ioa.v1.test.ada", Echo(text="x"), Echo) == Echo(text="x")
        stats = await nats_client.request("$SRV.STATS.ioa-test", timeout=5)
    assert refused.value.retry_after is not None and refused.value.retry_after > SOON
    assert slowed_in_statistics(stats.data)[1] == [SlowedCaller("mallory", "others", 50)]


async def test_who_goes_on_regardless_is_answered_each_time(nats_client: Client, own: bool) -> None:
    """The server keeps what is not answered for as long as it waits for that, between accounts, with its long reply subject."""
    endpoint = ServiceEndpoint("echo", "ioa.v1.test.*", answer(Echo, echo), is_own=own, caller_at=CALLER_AT)
    bounds = Bounds(rates={Family.OTHERS: Rate(per_second=0.5, burst=1)})
    answered, inbox = list[str](), nats_client.new_inbox()
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        await nats_client.subscribe(f"{inbox}.*", future=MessageSink(lambda message: answered.append(message.subject)))
        for number in range(300):
            await nats_client.publish("ioa.v1.test.mallory", encode(Echo(text="x")), reply=f"{inbox}.{number}")
        await eventually(lambda: answered, lambda found: len(found) == 300, within=timedelta(seconds=10))
    assert len(set(answered)) == 300


async def test_a_request_that_is_too_large_is_refused_unread(nats_client: Client, own: bool) -> None:
    """Each subject has a size, beyond which its requests are not looked at; the error says both sizes."""
    read = list[bytes]()

    async def note(_subject: str, data: bytes) -> bytes:
        read.append(data)
        return b""

    endpoint = ServiceEndpoint("note", SUBJECT, note, is_own=own, max_bytes=1_000)
    usual = ServiceEndpoint("usual", "ioa.v1.test.usual", note, is_own=own)
    async with serving(nats_client, endpoint, usual) as requester:
        for subject, size in ((SUBJECT, 1_000), ("ioa.v1.test.usual", 60_000)):
            await requester.ask(subject, b"x" * size)
        for subject, size in ((SUBJECT, 1_001), ("ioa.v1.test.usual", 70_000)):
            with pytest.raises(PayloadTooLargeError, match=f"{size:,} bytes"):
                await requester.ask(subject, b"x" * size)
    assert [len(one) for one in read] == [1_000, 60_000]


async def test_who_asks_for_many_is_not_bounded_as_one(nats_client: Client, own: bool) -> None:
    """Its requests are answered side by side however many they are, where another caller is answered one, and then none."""
    all_here = asyncio.Barrier(3)

    async def meet(request: Echo) -> Echo:
        if request.text:
            await all_here.wait()
        return request

    endpoint = ServiceEndpoint(
        *("meet", "ioa.v1.test.*", answer(Echo, meet)),
        is_own=own,
        caller_at=CALLER_AT,
        caller_max_concurrent=1,
        for_many=("_groups",),
    )
    bounds = Bounds(rates={Family.OTHERS: Rate(per_second=0.5, burst=1)})
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        requester = NatsRequester(nats_client)
        await asyncio.gather(*(requester.request("ioa.v1.test._groups", Echo(text=text), Echo) for text in "abc"))
        await requester.request("ioa.v1.test.ada", Echo(text=""), Echo)
        with pytest.raises(RateLimitedError):
            await requester.request("ioa.v1.test.ada", Echo(text=""), Echo, timeout=SOON)


async def test_callers_take_turns(nats_client: Client, own: bool) -> None:
    """Whoever has many requests waiting is answered one of them in a round, and may keep no more waiting than so many."""
    go, served = asyncio.Event(), list[str]()

    async def slow(request: Echo) -> Echo:
        served.append(request.text)
        await go.wait()
        return request

    async def ask(caller: str, text: str) -> str:
        try:
            return (await NatsRequester(nats_client).request(f"ioa.v1.test.{caller}", Echo(text=text), Echo, timeout=SOON * 4)).text
        except UnavailableError:
            return "refused"

    endpoint = ServiceEndpoint("slow", "ioa.v1.test.*", answer(Echo, slow), is_own=own, caller_at=CALLER_AT)
    bounds = Bounds(max_concurrent=1, lane_max_concurrent=1, caller_max_queued=4)
    async with (
        asyncio.TaskGroup() as group,
        open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds),
    ):
        await heard(nats_client)
        asked = [group.create_task(ask("mallory", f"mallory {number}")) for number in range(6)]
        asked += [group.create_task(ask("ada", f"ada {number}")) for number in range(2)]
        await heard(nats_client)
        await heard(nats_client)
        asyncio.get_running_loop().call_soon(go.set)
    assert served == ["mallory 0", "ada 0", "mallory 1", "ada 1", "mallory 2", "mallory 3", "mallory 4"]
    assert [one.result() for one in asked][4:] == ["mallory 4", "refused", "ada 0", "ada 1"]


async def test_what_its_caller_has_given_up_is_dropped(nats_client: Client, own: bool) -> None:
    """A request that waited for longer than its caller does is not worked on, and counted; one that is waited for is."""
    go, served = asyncio.Event(), list[str]()

    async def slow(request: Echo) -> Echo:
        served.append(request.text)
        await go.wait()
        return request

    def dropped() -> float:
        return REGISTRY.get_sample_value("ioa_requests_total", {"subject": "other", "code": "overdue"}) or 0.0

    endpoint, before = ServiceEndpoint("slow", SUBJECT, answer(Echo, slow), is_own=own), dropped()
    async with (
        asyncio.TaskGroup() as group,
        open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=Bounds(max_concurrent=1)),
    ):
        requester = NatsRequester(nats_client)
        await heard(nats_client)
        first = group.create_task(requester.request(SUBJECT, Echo(text="first"), Echo))
        await heard(nats_client)
        with pytest.raises(UnavailableError):
            await requester.request(SUBJECT, Echo(text="given up"), Echo, timeout=SOON)
        await heard(nats_client)
        await asyncio.sleep(SOON.total_seconds())  # on a busy machine it may have come only now, and is waited for from there
        last = group.create_task(requester.request(SUBJECT, Echo(text="last"), Echo))
        await heard(nats_client)
        await heard(nats_client)
        go.set()
    assert (first.result().text, last.result().text, served) == ("first", "last", ["first", "last"])
    assert dropped() - before == 1


async def test_a_request_reaches_one_replica(nats_client: Client, nats_server: NatsServer) -> None:
    """Replicas share the requests: each is answered once."""
    served: list[str] = []

    async def note(request: Echo) -> Echo:
        served.append(request.text)
        return request

    endpoint = ServiceEndpoint("note", SUBJECT, answer(Echo, note))
    async with (
        open_connection(NatsSettings(nats_server.url, "second")) as second,
        open_service(second, "ioa-test", "Answers tests", "0.1.0", [endpoint]),
        serving(nats_client, endpoint) as requester,
    ):
        await heard(second)
        await asyncio.gather(*(requester.request(SUBJECT, Echo(text=str(number)), Echo) for number in range(60)))
    assert sorted(served, key=int) == [str(number) for number in range(60)]


async def test_leaving_finishes_what_is_in_flight(nats_client: Client, own: bool) -> None:
    """A replica that is told to stop still answers what it has taken, and takes nothing more."""
    taken, leave = asyncio.Event(), asyncio.Event()

    async def slow(request: Echo) -> Echo:
        taken.set()
        await leave.wait()
        return request

    async def ask(requester: NatsRequester) -> Echo:
        return await requester.request(SUBJECT, Echo(text="x"), Echo)

    async with (
        asyncio.TaskGroup() as group,
        serving(nats_client, ServiceEndpoint("slow", SUBJECT, answer(Echo, slow), is_own=own)) as requester,
    ):
        asked = group.create_task(ask(requester))
        await taken.wait()
        leave.set()
    assert asked.result() == Echo(text="x")
    with pytest.raises(UnavailableError):
        await NatsRequester(nats_client).request(SUBJECT, Echo(text="x"), Echo)


async def test_leaving_answers_what_waits(nats_client: Client, own: bool) -> None:
    """Requests that wait for their turn when a replica is told to stop were taken, and are answered."""
    go = asyncio.Event()

    async def slow(request: Echo) -> Echo:
        await go.wait()
        return request

    endpoint = ServiceEndpoint("slow", SUBJECT, answer(Echo, slow), is_own=own)
    async with (
        asyncio.TaskGroup() as group,
        open_service(nats_client, "ioa-test", "Answers tests", "0.1.0", [endpoint], bounds=Bounds(max_concurrent=1)),
    ):
        requester = NatsRequester(nats_client)
        await heard(nats_client)
        asked = [group.create_task(requester.request(SUBJECT, Echo(text=str(number)), Echo)) for number in range(5)]
        await heard(nats_client)  # the tasks ask while this waits
        await heard(nats_client)  # and by now all they asked has come
        asyncio.get_running_loop().call_soon(go.set)
    assert [one.result().text for one in asked] == ["0", "1", "2", "3", "4"]


async def test_a_service_answers_again_after_a_crash_of_the_server(nats_client: Client, nats_server: NatsServer, own: bool) -> None:
    """Nothing has to be restarted when nats-server was killed: the same replica answers."""
    async with serving(nats_client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo), is_own=own)) as requester:
        await crash(nats_server)
        await nats_server.start()

        async def asked() -> Echo | None:
            try:
                return await requester.request(SUBJECT, Echo(text="back"), Echo, timeout=timedelta(seconds=1))
            except UnavailableError:
                return None

        assert await eventually(asked, lambda given: given is not None) == Echo(text="back")


async def test_a_service_can_stop_while_the_server_is_away(nats_client: Client, nats_server: NatsServer, own: bool) -> None:
    """A replica ends in good order even when there is nobody left to tell."""
    async with asyncio.timeout(5), serving(nats_client, ServiceEndpoint("echo", SUBJECT, answer(Echo, echo), is_own=own)):
        await crash(nats_server)
        await eventually(lambda: not nats_client.is_connected)
    assert not nats_client.is_connected


async def test_what_may_be_asked_twice_is_when_an_answer_is_lost(nats_client: Client) -> None:
    """A server that reads its configuration anew loses an answer; who may ask again does so long before its patience ends."""
    heard_with: list[str] = []

    async def answer_second(message: Msg) -> None:
        heard_with.append((message.headers or {})["Ioa-Patience"])
        if len(heard_with) == 2:
            await message.respond(encode(Echo(text="it")))

    await nats_client.subscribe(SUBJECT, cb=answer_second)
    asking = NatsRequester(nats_client).request(SUBJECT, Echo(text="it"), Echo, timeout=SOON, is_repeatable=True)
    assert await asking == Echo(text="it")
    assert heard_with == ["20", "180"], "who answers is told how long it is waited for"


async def test_what_may_not_be_asked_twice_is_asked_once(nats_client: Client) -> None:
    """What nobody says that it may be repeated is not, however long its answer takes."""
    heard_of: list[Msg] = []
    await nats_client.subscribe(SUBJECT, future=MessageSink(heard_of.append))
    with pytest.raises(UnavailableError, match="did not answer"):
        await NatsRequester(nats_client).request(SUBJECT, Echo(text="it"), Echo, timeout=SOON)
    assert len(heard_of) == 1


async def _echoed(_subject: str, data: bytes) -> bytes:
    return data
