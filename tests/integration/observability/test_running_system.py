"""What a running system tells those who look after it: metrics of every process, logs with ids, and nothing of the goal's text."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from nats.aio.client import Client
from prometheus_client.parser import text_string_to_metric_families

from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import open_connection
from ioa.group.events import Said
from ioa.group.requests import Rejected, SayReply
from ioa.local.local_system import open_embedded_system
from ioa.local.pool import Pool, PooledAgent
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, AgentId, MessageId, PoolId
from ioa.protocol.messages import ConcludeGroupDiscussion, Header, Message, Phase
from ioa.protocol.operation.trace import trace_id_of
from tests.rig.deadline import eventually
from tools.metrics_page import catalogue

DOCUMENTED = {sample for metric in catalogue() for sample in metric.samples}
WORD = "xylophone"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
AGENTS = """
from ioa import Agent

greeter = Agent("greeter", description="Greets people politely", examples=["greet Ada", "say hello"], may_team_up=False)


@greeter.task
def greet(task, ctx):
    ctx.spend(tokens=5, answer_tokens=2, cost=0.5)
    return f"Hello! You said: {task}"


sitter = Agent("sitter", description="Sits on chairs", examples=["sit down", "have a seat"], may_team_up=False)


@sitter.task
def sit(task):
    return "Seated."
"""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Watched:
    """A running system, its processes' ports and its logs."""

    def __init__(self, system: NatsSystemClient, client: Client, logs: Path) -> None:
        self.system = system
        self.client = client
        self._logs = logs
        self._http = httpx.AsyncClient(trust_env=False)

    async def aclose(self) -> None:
        """Close."""
        await self._http.aclose()

    def names(self) -> list[str]:
        """The processes that stay."""
        return sorted(path.stem for path in self._logs.glob("*.log"))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """What a process has logged: JSON, every line."""
        return [json.loads(line) for line in (self._logs / f"{name}.log").read_text(encoding="utf-8").splitlines()]

    def text(self) -> str:
        """Everything that was logged."""
        return "".join(path.read_text(encoding="utf-8") for path in self._logs.glob("*.log"))

    async def get(self, name: str, path: str) -> httpx.Response:
        """Ask a process at its port."""
        port = next(line["port"] for line in self.lines(name) if line["event"] == "health_served")
        return await self._http.get(f"http://127.0.0.1:{port}{path}")

    async def samples(self, *names: str) -> Samples:
        """The samples of some processes, summed."""
        total: Samples = {}
        for name in names or self.names():
            for family in text_string_to_metric_families((await self.get(name, "/metrics")).text):
                for one in family.samples:
                    key = (one.name, frozenset(one.labels.items()))
                    total[key] = total.get(key, 0.0) + one.value
        return total

    async def value(self, metric: str, names: Sequence[str] = (), **labels: str) -> float:
        """One sample, or the sum of a metric over the labels that are not named."""
        found = await self.samples(*names)
        wanted = set(labels.items())
        return sum(value for (name, having), value in found.items() if name == metric and wanted <= having)


@asynccontextmanager
async def open_watched(folder: Path) -> AsyncIterator[Watched]:
    """A system of four services in a process and two agents in another, each process with a port."""
    file = folder / "desk.py"
    file.write_text(AGENTS, encoding="utf-8")
    pool = Pool(agents=tuple(PooledAgent(target=f"{file}:{name}") for name in ("greeter", "sitter")))
    async with (
        open_embedded_system(folder / "data", None, pool) as running,
        open_connection(running.nats("watcher")) as client,
    ):
        watched = Watched(NatsSystemClient(client), client, folder / "data" / "logs")
        try:
            yield watched
        finally:
            await watched.aclose()


async def run(system: NatsSystemClient, goal: str) -> GoalResult:
    """Launch a goal and wait for its end."""
    return await system.wait_for_result(await system.submit(GoalOrder(goal=goal, agent=AgentId("sitter"), traceparent=TRACEPARENT)))


async def test_every_process_tells_what_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal, a refused message and a dead letter show in the metrics of whom they concern, and in logs with their ids."""
    monkeypatch.setenv("IOA_METRICS_PORT", "0")
    async with open_watched(tmp_path) as watched:
        result = await run(watched.system, f"Greet Ada and her {WORD}")
        assert result.reason is Reason.CONCLUDED, result
        await _check_goal(watched, result)
        await _check_refusals(watched, result)
        await _check_processes(watched)
        await _check_trace(watched, result)


async def _check_goal(watched: Watched, result: GoalResult) -> None:
    deciders = ["services"]
    assert await eventually(lambda: watched.value("ioa_goals_ended_total", deciders, reason="concluded")) == 1
    assert await watched.value("ioa_goals_accepted_total", ["services"]) == 1
    assert await watched.value("ioa_turns_total", deciders) == result.turns
    assert await watched.value("ioa_groups_ended_total", deciders) == 1
    closed = await watched.value("ioa_tasks_closed_total", deciders, outcome="done")
    assert closed == await watched.value("ioa_tasks_assigned_total", deciders) > 0
    assert await watched.value("ioa_tokens_total", deciders, direction="in") == result.usage.tokens_in == 5 * closed
    assert await watched.value("ioa_cost_total", deciders) == 0.5 * closed
    assert await watched.value("ioa_goal_duration_seconds_count", deciders) == 1
    assert await watched.value("ioa_floor_held_seconds_count", deciders) >= result.turns
    workers = ["agents"]
    assert await watched.value("ioa_worker_task_duration_seconds_count", workers, outcome="done") == closed
    assert await watched.value("ioa_worker_decision_duration_seconds_count", workers, decision="form_team", outcome="made") == 1
    assert await watched.value("ioa_worker_agents", workers) == 2
    assert await watched.value("ioa_deliveries_total", workers, stream="IOA_WORK", outcome="done") == 1


async def _check_refusals(watched: Watched, result: GoalResult) -> None:
    claim, _ = await NatsSessions(watched.client).read(AgentId("sitter"))
    assert claim is not None
    header = Header(
        message_id=MessageId("late"),
        comm_id=result.comm_id,
        sender=AgentId("sitter"),
        state=Phase.DISCUSSING,
        turn=1,
        after=0,
        sent_at=datetime.now(UTC),
        session=claim.session.session,
    )
    late = Message(header=header, payload=ConcludeGroupDiscussion())
    reply = await NatsRequester(watched.client).request(
        subjects.say(PoolId("sitter"), AgentId("sitter"), result.comm_id), late, SayReply
    )
    assert isinstance(reply.answer, Rejected)
    await watched.client.publish(subjects.goal_of(LOCAL), b"\xff")
    assert await eventually(lambda: watched.value("ioa_dead_letters_total", reason="unreadable")) == 1
    assert await watched.value("ioa_rejections_total", ["services"]) == 1
    assert await watched.value("ioa_rejections_total", ["services"], reason="group_ended") == 1
    assert await watched.value("ioa_requests_total", ["services"], subject="comm.say", code="ok") > 1


async def _check_processes(watched: Watched) -> None:
    names = watched.names()
    assert [(await watched.get(name, "/healthz")).status_code for name in names] == [200] * len(names)
    for name in names:  # a service that only looks at the streams may have looked before they were made
        await eventually(partial(watched.get, name, "/readyz"), lambda answer: answer.status_code == 200)
    assert names == ["agents", "services"]
    for metric in ("ioa_ready", "ioa_nats_connected", "ioa_build_info"):
        assert await watched.value(metric) == len(names)
    assert await watched.value("ioa_agents", ["services"], state="online") == 2
    assert await watched.value("ioa_stream_messages", ["services"], stream="IOA_DEAD") >= 0
    assert await eventually(lambda: watched.value("ioa_event_loop_lag_seconds_count", ["services"]))
    assert await watched.value("ioa_requests_total", ["services"], subject="registry.register", code="ok") >= 2
    assert await watched.value("ioa_requests_total", ["services"], subject="discovery.search", code="ok") >= 1
    assert {name for name, _ in await watched.samples() if name.startswith("ioa_")} - DOCUMENTED == set()


async def _check_trace(watched: Watched, result: GoalResult) -> None:
    """The goal's trace stands in the log's messages and in the lines of those who worked for it; its text in no line."""
    said = [
        stored.entry.event for stored in await watched.system.group_entries(result.comm_id) if isinstance(stored.entry.event, Said)
    ]
    traces = [trace_id_of(event.message.header.traceparent) for event in said]
    assert said and set(traces) == {trace_id_of(TRACEPARENT)}
    ids = {"goal_id": result.goal_id, "comm_id": result.comm_id, "trace_id": trace_id_of(TRACEPARENT)}
    (done,) = [line for line in watched.lines("agents") if line["event"] == "task_ended"]
    assert {name: done.get(name) for name in (*ids, "agent_id", "service")} == {
        **ids,
        "agent_id": "greeter",
        "service": "ioa-agent",
    }
    assert done["task_id"]
    (accepted,) = [line for line in watched.lines("services") if line["event"] == "goal_accepted"]
    assert {name: accepted.get(name) for name in (*ids, "service")} == {**ids, "service": "ioa-groups"}
    assert WORD not in watched.text() and WORD in result.content


async def test_what_users_wrote_is_logged_where_it_was_switched_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `IOA_LOG_CONTENT` the goal, the task and what came of it are in the logs; without a port nothing is served."""
    monkeypatch.setenv("IOA_LOG_CONTENT", "true")
    async with open_watched(tmp_path) as watched:
        await run(watched.system, f"Greet Ada and her {WORD}")
        shown = {line["event"] for name in watched.names() for line in watched.lines(name) if WORD in str(line.get("content"))}
    assert shown == {"goal_accepted", "task_begun", "task_ended"}
    assert "health_served" not in watched.text()


async def test_an_agent_that_waits_for_nats_is_alive_and_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ioa agent run` answers probes before there is a server, and writes only JSON."""
    (tmp_path / "desk.py").write_text(AGENTS, encoding="utf-8")
    arguments = ("agent", "run", f"{tmp_path}/desk.py:sitter", "--url", "nats://127.0.0.1:9")
    monkeypatch.setenv("IOA_METRICS_PORT", "0")
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "ioa.cli", *arguments, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        line = json.loads(await process.stderr.readline())
        async with httpx.AsyncClient(trust_env=False) as client:
            alive, ready = [await client.get(f"http://127.0.0.1:{line['port']}{path}") for path in ("/healthz", "/readyz")]
    finally:
        process.terminate()
        code = await process.wait()
    assert (line["event"], line["service"], alive.status_code) == ("health_served", "ioa-agent", 200)
    assert (ready.status_code, ready.text, code) == (503, "waiting for: start or stop\n", 0)
