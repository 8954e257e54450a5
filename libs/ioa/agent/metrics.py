"""What the agents of a process do, counted over all of them: an agent's id is never a label."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram

from ioa.ports.brain_types import UndecidedError
from ioa.ports.meter import Meter
from ioa.protocol.messages import Pass, PassCause

T = TypeVar("T")

agents = Gauge("ioa_worker_agents", "Agents that run in this process")
sessions = Gauge("ioa_worker_groups", "Groups that the agents of this process take part in, each agent counted")
tasks_running = Gauge("ioa_worker_tasks_running", "Task functions that run in this process now")
task_seconds = Histogram(
    "ioa_worker_task_duration_seconds",
    "How long a task's function ran, by outcome",
    ["outcome"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0),
)
decision_seconds = Histogram(
    "ioa_worker_decision_duration_seconds",
    "Time of a decision of a brain, by kind of decision and outcome",
    ["decision", "outcome"],
    buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
retries = Counter("ioa_worker_retries_total", "Requests of an agent that were sent again because no service answered")
decisions = Counter(
    "ioa_worker_decisions_total",
    "Decisions of agents, by their maker (`nobody`: the floor was passed on, or the goal returned), and why not by the model",
    ["decision", "by", "cause"],
)


async def measured(decision: str, meter: Meter, deciding: Awaitable[T]) -> T:
    """Wait for a decision. Measure its time, and count it by its origin, or by the reason why a brain decided nothing."""
    started, outcome, cause = time.perf_counter(), "stopped", ""
    try:
        answer = await deciding
        outcome, cause = "made", str(answer.cause) if isinstance(answer, Pass) else ""
        return answer
    except Exception as error:
        is_away = isinstance(error, UndecidedError) and error.is_away
        outcome, cause = "failed", PassCause.MODEL_UNAVAILABLE if is_away else PassCause.NO_USABLE_ANSWER
        raise
    finally:
        decision_seconds.labels(decision, outcome).observe(time.perf_counter() - started)
        if (by := meter.decided_by) is not None:
            decisions.labels(decision, by.kind, by.cause).inc()
        elif cause:
            decisions.labels(decision, "nobody", cause).inc()
