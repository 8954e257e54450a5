"""The port for Prometheus and for probes."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest

from ioa.errors import InvalidInputError
from ioa.runtime.known_settings import LOOPBACK
from ioa.runtime.settings import ProcessSettings
from ioa.telemetry import process_metrics, readiness
from ioa.telemetry.health import EVERY_ADDRESS, open_health


async def get(port: int, path: str) -> httpx.Response:
    """Ask."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://127.0.0.1:{port}{path}")


async def test_a_process_is_ready_while_it_is_up_and_nothing_is_missing() -> None:
    """The process stays alive. The answer names the missing parts, and the metric agrees."""
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
        with pytest.raises(
            InvalidInputError, match=f"Port {taken.getsockname()[1]} of 127.0.0.1 is not available.*IOA_METRICS_PORT"
        ):
            async with open_health(taken.getsockname()[1], lambda: True):
                pass


async def test_failed_metrics_return_500_with_a_hint() -> None:
    """The client gets an answer, and the log has the cause."""

    def fail() -> None:
        raise ValueError

    async with open_health(0, lambda: True) as port:
        with process_metrics.before_scrapes(fail):
            answer = await get(port, "/metrics")
    assert (answer.status_code, "log of this process" in answer.text) == (500, True)


async def test_port_is_bound_to_loopback_by_default() -> None:
    """By default it listens on the loopback address alone: from this machine's other addresses it is closed, and `*` opens it."""
    reached = []
    for address in (LOOPBACK, EVERY_ADDRESS):
        async with open_health(0, lambda: True, address) as port:
            reached.append([await _connects(host, port) for host in ("127.0.0.1", "127.0.0.2")])
    assert reached == [[True, False], [True, True]]
    assert ProcessSettings().metrics_address == LOOPBACK


async def _connects(host: str, port: int) -> bool:
    """Return whether the port is open at a host. All addresses of 127.0.0.0/8 belong to this machine."""
    try:
        _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
