"""What the agents of a process do, counted over all of them: an agent's id is never a label."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Gauge, Histogram

from ioa.protocol.decisions import DecidedBy

agents = Gauge("ioa_worker_agents", "Agents that run in this process")
sessions = Gauge("ioa_worker_groups", "Groups that the agents of this process take part in, each agent counted")
tasks_running = Gauge("ioa_worker_tasks_running", "Task functions that run in this process now")
task_seconds = Histogram(
    "ioa_worker_task_duration_seconds",
    "How long a task's function ran, by outcome; `stopped` is one whose group needed it no more",
    ["outcome"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0),
)
decision_seconds = Histogram(
    "ioa_worker_decision_duration_seconds",
    "How long a brain thought, by what it had to decide and whether it could",
    ["decision", "outcome"],
    buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
abandoned_functions = Gauge("ioa_worker_abandoned_functions", "Functions that were cancelled, ignored it, and still run")
retries = Counter("ioa_worker_retries_total", "How often an agent had to ask again because nobody answered")
decisions = Counter(
    "ioa_worker_decisions_total",
    "Decisions of agents, by what decided (`nobody`: the floor was passed on, or the goal given back), and why not the model",
    ["decision", "by", "cause"],
)


def count_decision(decision: str, by: DecidedBy | None, undecided: str = "") -> None:
    """Count a decision by whoever took it, or, if nobody did, why."""
    if by is not None:
        decisions.labels(decision, by.kind, by.cause).inc()
    elif undecided:
        decisions.labels(decision, "nobody", undecided).inc()


@contextmanager
def timed_decision(decision: str) -> Iterator[None]:
    """Measure how long the block thinks, and whether it fails or is cancelled."""
    started, outcome = time.perf_counter(), "stopped"
    try:
        yield
        outcome = "made"
    except Exception:
        outcome = "failed"
        raise
    finally:
        decision_seconds.labels(decision, outcome).observe(time.perf_counter() - started)


class TaskClock:
    """Measures one run of a task's function. `outcome` is set when there is one."""

    def __init__(self) -> None:
        self.outcome = "stopped"


@contextmanager
def timed_task() -> Iterator[TaskClock]:
    """Measure one run of a task's function."""
    clock, started = TaskClock(), time.perf_counter()
    with tasks_running.track_inprogress():
        try:
            yield clock
        finally:
            task_seconds.labels(clock.outcome).observe(time.perf_counter() - started)
