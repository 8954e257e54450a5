"""The metrics of several processes on one port."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ioa.errors import InvalidInputError
from ioa.local.system_metrics import open_system_metrics
from ioa.telemetry.health import LOOPBACK, open_health


@asynccontextmanager
async def _merged(folder: Path, ready: Mapping[str, bool]) -> AsyncIterator[httpx.AsyncClient]:
    """Some processes that serve, one that does not, and what asks for all of them."""
    sockets = {name: folder / name for name in (*ready, "gone")}
    async with AsyncExitStack() as stack:
        for name, is_ready in ready.items():
            await stack.enter_async_context(open_health(sockets[name], partial(bool, is_ready)))
        port = await stack.enter_async_context(open_system_metrics(0, sockets))
        yield await stack.enter_async_context(httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", trust_env=False))


async def test_each_sample_says_which_process_it_is_of(tmp_path: Path) -> None:
    """A metric has one head, whatever processes have it, and who does not answer is told."""
    async with _merged(tmp_path, {"router": True, "agent-a": False}) as http:
        text = (await http.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert text.count("# TYPE ioa_ready gauge") == 1
    assert {sample.labels["process"] for sample in families["ioa_ready"].samples} == {"router", "agent-a"}
    assert {(one.labels["process"], one.value) for one in families["ioa_process_up"].samples} == {
        ("router", 1),
        ("agent-a", 1),
        ("gone", 0),
    }
    [bucket, *_] = families["ioa_event_loop_lag_seconds"].samples
    assert (bucket.name, set(bucket.labels)) == ("ioa_event_loop_lag_seconds_bucket", {"process", "le"})


async def test_the_system_is_ready_when_each_process_is(tmp_path: Path) -> None:
    """Else those are named that are not, or are not there; alive it is all the same."""
    async with _merged(tmp_path, {"router": True, "agent-a": False}) as http:
        answers = [await http.get(path) for path in ("/readyz", "/healthz", "/other")]
    assert [answer.status_code for answer in answers] == [503, 200, 404]
    assert answers[0].text == "waiting for: agent-a, gone\n"


async def test_a_port_that_is_taken_is_refused_by_number(tmp_path: Path) -> None:
    """Before any process is started."""
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match=f"Port {port} cannot be had"):
            async with open_system_metrics(port, {"router": tmp_path / "router"}):
                pass
