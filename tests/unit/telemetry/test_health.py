"""The port for Prometheus and for probes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, cast
from unittest.mock import Mock

import httpx
import pytest

from ioa.errors import InvalidInputError
from ioa.networks import network_of
from ioa.runtime.settings import ProcessSettings
from ioa.telemetry import process_metrics, readiness
from ioa.telemetry.health import EVERY_ADDRESS, LOOPBACK, TEXT, Answer, _Caller, _most_crowded, open_health, open_http
from tests.rig.deadline import eventually


async def get(port: int, path: str) -> httpx.Response:
    """Ask."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://127.0.0.1:{port}{path}")


async def test_a_process_is_ready_while_it_is_up_and_nothing_is_missing() -> None:
    """Liveness holds all the while; the answer names what is missing, and the metric agrees."""
    up, there = False, False
    async with open_health(0, lambda: up) as port:
        with readiness.needs("NATS", lambda: there):
            seen = [await get(port, "/readyz")]
            up = True
            seen.append(await get(port, "/readyz"))
            there = True
            seen.append(await get(port, "/readyz"))
            ready = "ioa_ready 1.0" in (await get(port, "/metrics")).text
            there = False
            unready = "ioa_ready 0.0" in (await get(port, "/metrics")).text
            alive = await get(port, "/healthz")
        seen.append(await get(port, "/readyz"))
    assert [(answer.status_code, answer.text.strip()) for answer in seen] == [
        (503, "waiting for: NATS, start or stop"),
        (503, "waiting for: NATS"),
        (200, "ready"),
        (200, "ready"),
    ]
    assert (alive.status_code, ready, unready) == (200, True, True)


async def test_gauges_are_brought_up_to_date_for_each_scrape() -> None:
    """What was given to `before_scrapes` runs then, and no more once its block has ended."""
    updates: list[None] = []
    async with open_health(0, lambda: True) as port:
        with process_metrics.before_scrapes(lambda: updates.append(None)):
            answers = [await get(port, "/metrics"), await get(port, "/metrics")]
        await get(port, "/metrics")
    assert (len(updates), [answer.status_code for answer in answers]) == (2, [200, 200])
    assert answers[0].headers["content-type"].startswith("text/plain; version=")


async def test_other_requests_are_refused_and_half_ones_hold_nothing_up() -> None:
    """Unknown paths, other methods, garbage, a request too long, and clients that ask nothing."""
    async with open_health(0, lambda: True) as port:
        async with httpx.AsyncClient(trust_env=False) as client:
            base = f"http://127.0.0.1:{port}"
            codes = [
                (await client.get(f"{base}/")).status_code,
                (await client.post(f"{base}/metrics", content=b"x")).status_code,
                (await client.head(f"{base}/healthz")).status_code,
                (await client.get(f"{base}/healthz?probe=1")).status_code,
            ]
        ends = [await _send(port, data) for data in (b"nonsense\r\n\r\n", b"GET /" + b"x" * 100_000, b"\xff\xfe\r\n\r\n")]
        _, idle = await asyncio.open_connection("127.0.0.1", port)
        answer = await get(port, "/healthz")
    idle.close()
    await idle.wait_closed()
    assert (codes, ends, answer.status_code) == ([404, 405, 200, 200], [b"", b"", b""], 200)


async def _send(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_a_port_that_is_taken_is_the_callers_to_change() -> None:
    """The error names the port and the setting."""
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        with pytest.raises(InvalidInputError, match=f"Port {taken.getsockname()[1]} cannot be had.*Name a free one"):
            async with open_health(taken.getsockname()[1], lambda: True):
                pass


async def test_the_lag_of_the_event_loop_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that is held up for 20 ms is seen to be late by as much."""
    monkeypatch.setattr(process_metrics, "LOOK_EVERY", timedelta(milliseconds=1))
    before, loop = await _lag(), asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(process_metrics.watch_event_loop())
        await asyncio.sleep(0)
        until = loop.time() + 0.02
        while loop.time() < until:
            pass
        lag = await eventually(_lag, lambda lag: lag >= before + 0.015)
        watching.cancel()
    assert lag >= before + 0.015


async def _lag() -> float:
    (family,) = process_metrics.event_loop_lag.collect()
    return next(sample.value for sample in family.samples if sample.name.endswith("_sum"))


async def test_an_answer_that_fails_says_where_to_look() -> None:
    """Whoever asks is not left with a closed connection, and the log has the cause."""

    async def broken(path: str) -> Answer:
        raise ValueError(path)

    async with open_http(broken, 0, ("127.0.0.1",)) as port:
        answer = await get(port, "/metrics")
    assert (answer.status_code, "log of this process" in answer.text) == (500, True)


async def test_idle_connections_keep_no_probe_out() -> None:
    """Of many that ask nothing only the newest stay open, on the address of this machine alone, and a probe is answered at once."""
    async with open_health(0, lambda: True) as port:
        idle = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(25)))
        answer = await get(port, "/healthz")
        ended = await eventually(lambda: sum(reader.at_eof() for reader, _ in idle), until=lambda count: count >= 6)
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.2", port)
    for _, writer in idle:
        writer.close()
    assert (answer.status_code, ended) == (200, 6)


async def test_a_flood_ends_its_own_connections() -> None:
    """Fifty of one address come in one round of the loop, ask, and read nothing: probes that are open, of another, are answered."""
    loop = asyncio.get_running_loop()
    async with open_health(0, lambda: True) as port:
        probes = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]  # kubelet's, of liveness and readiness
        with ExitStack() as stack:
            for _ in range(3):
                flood = [stack.enter_context(_begun("127.0.0.2", port)) for _ in range(50)]
                await asyncio.gather(*(loop.sock_sendall(one, b"GET /metrics HTTP/1.1\r\n\r\n") for one in flood))
            for _, probe in probes:
                probe.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            answers = [await reader.read() for reader, _ in probes]
    for _, probe in probes:
        probe.close()
    assert [answer.split(b"\r\n", 1)[0] for answer in answers] == [b"HTTP/1.1 200 OK"] * 2


def _begun(address: str, port: int) -> socket.socket:
    """Connect from an address; the kernel does it, before anybody accepts."""
    begun = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
    begun.setblocking(False)
    return begun


def test_whoever_has_a_network_ends_his_own() -> None:
    """Of IPv6 the network that has most counts first, and in it the address: an honest neighbour in it stays, too."""
    kubelet, flood, pods = "fd00:0:0:1::1", "fd00:0:0:1::9", [f"fd00:0:0:2::{pod:x}" for pod in range(1, 9)]
    assert _ended(["fd00:0:0:3::1", *pods]) == pods[0]
    assert _ended([kubelet, "fd00:0:0:3::1", flood, flood]) == flood
    assert _ended(["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.3"]) == "10.0.0.3"


def _ended(callers: Sequence[str]) -> str:
    talks = {name: _Caller(Mock(), network_of(address), address) for name, address in enumerate(callers)}
    return callers[cast(int, _most_crowded(cast(Any, talks)))]


async def test_what_many_ask_for_at_a_time_is_made_once() -> None:
    """Also where whoever asked first has gone; whoever asks later has it made anew."""
    made, may_end = list[str](), asyncio.Event()

    async def slow(path: str) -> Answer:
        made.append(path)
        await may_end.wait()
        return "200 OK", TEXT, path.encode()

    async with open_http(slow, 0, ("127.0.0.1",)) as port:
        _, gone = await _ask(port, "/metrics")
        await eventually(lambda: made == ["/metrics"])
        gone.transport.abort()
        asked = [await _ask(port, path) for path in ("/metrics", "/metrics", "/other")]
        await eventually(lambda: "/other" in made)
        may_end.set()
        answers = [await reader.read() for reader, _ in asked]
        for _, writer in asked:
            writer.close()
        later = await get(port, "/metrics")
    assert [answer.rpartition(b"\r\n\r\n")[2] for answer in answers] == [b"/metrics", b"/metrics", b"/other"]
    assert (made, later.text) == (["/metrics", "/other", "/metrics"], "/metrics")


async def _ask(port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    return reader, writer


async def test_what_is_ended_is_ended_whatever_is_unread() -> None:
    """It would else stay open beside those that are counted, for as long as its reader likes."""
    size, loop = 20_000_000, asyncio.get_running_loop()

    async def answer(path: str) -> Answer:
        return "200 OK", TEXT, b"x" * size

    async with open_http(answer, 0, ("127.0.0.1",)) as port:
        with ExitStack() as stack:
            deaf = stack.enter_context(_begun("127.0.0.2", port))
            await loop.sock_sendall(deaf, b"GET / HTTP/1.1\r\n\r\n")
            came = len(await loop.sock_recv(deaf, 1))
            for _ in range(20):
                stack.enter_context(_begun("127.0.0.2", port))
            await get(port, "/")
            while part := await loop.sock_recv(deaf, 2**20):
                came += len(part)
    assert 0 < came < size


async def test_nobody_on_the_network_reaches_the_port_unless_it_is_named() -> None:
    """By default it listens on the loopback address alone: from this machine's other addresses it is closed, and `*` opens it."""
    reached = []
    for address in (LOOPBACK, EVERY_ADDRESS):
        async with open_health(0, lambda: True, address) as port:
            reached.append([await _connects(host, port) for host in ("127.0.0.1", "127.0.0.2")])
    assert reached == [[True, False], [True, True]]
    assert ProcessSettings().metrics_address == LOOPBACK


async def _connects(host: str, port: int) -> bool:
    """Whether somebody listens. Every address of 127.0.0.0/8 is this machine's, as others are that a network leads to."""
    try:
        _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
