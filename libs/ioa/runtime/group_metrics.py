"""Metrics of groups, counted by the process that appended the entry: routers, and group setup.

Sums over all replicas are exact, except for appends of a process that ended before it counted them. Ids are no labels.
"""

from __future__ import annotations

from functools import cache

from prometheus_client import Counter, Histogram

from ioa.group.events import Event, SubgroupClosed, input_of
from ioa.group.rejection import RejectionCode
from ioa.group.state import Asking, ClosedTask, Concluding, Discussing, Ended, Gathering, GroupState, OpenTask, TaskMode
from ioa.group.table import TABLE
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Phase, TaskOutcome
from ioa.protocol.usage import MICROS, NOTHING

entries = Counter("ioa_group_entries_total", "Entries appended to group logs, by event", ["event"])
turns = Counter("ioa_turns_total", "Messages that used a turn of a discussion")
phases = Counter("ioa_group_phases_entered_total", "Phases that groups entered", ["phase"])
groups_ended = Counter("ioa_groups_ended_total", "Groups that ended, including nested groups, by reason", ["reason"])
tasks_assigned = Counter("ioa_tasks_assigned_total", "Assigned tasks; for a `sync` task the discussion waits", ["mode"])
tasks_closed = Counter("ioa_tasks_closed_total", "Tasks that ended; a rejected task counts as done before", ["outcome"])
tasks_suspected = Counter("ioa_tasks_suspected_total", "Tasks whose lease expired once, or whose assignee was lost")
floor_held = Histogram(
    "ioa_floor_held_seconds",
    "Time for which a member, or the members of a gathering, had the floor",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
silences = Counter("ioa_floor_silences_total", "Floors that expired without a message")
rejections = Counter("ioa_rejections_total", "Rejected messages of members, by reason", ["reason"])
conflicts = Counter("ioa_append_conflicts_total", "Appends that lost the race against another process")
tokens = Counter("ioa_tokens_total", "Tokens of language models that members and tasks reported", ["direction"])
cost = Counter("ioa_cost_total", "Costs that members and tasks reported, in the currency of the agents")

_entries_of_type = cache(entries.labels)  # `labels` takes longer than `inc`

# All label values exist from the start, so that the first event is an increase.
for _metric, _values in (
    (entries, [row.name for row in TABLE.values()]),
    (phases, Phase),
    (groups_ended, Reason),
    (tasks_assigned, TaskMode),
    (tasks_closed, TaskOutcome),
    (rejections, RejectionCode),
    (tokens, ("in", "out")),
):
    for _value in _values:
        _metric.labels(_value)


def count_entry(before: GroupState | None, event: Event, after: GroupState) -> None:
    """Count an entry that this process has appended. Parts of the state that did not change are the same objects."""
    _entries_of_type(input_of(event).type).inc()
    if before is None or after.stage is not before.stage:
        _count_stage(before, event, after)
    if before is not None:
        turns.inc(after.turns_taken - before.turns_taken)
        if after.silences > before.silences:
            silences.inc(after.silences - before.silences)
        if after.tasks is not before.tasks:
            _count_tasks(before, after)
    spent = NOTHING if before is None else before.spent
    if after.spent is not spent and not isinstance(event, SubgroupClosed):  # a nested group counts its own usage
        used = after.spent.beyond(spent)
        tokens.labels("in").inc(used.tokens_in)
        tokens.labels("out").inc(used.tokens_out)
        cost.inc(used.cost_micros / MICROS)


def _count_stage(before: GroupState | None, event: Event, after: GroupState) -> None:
    new = after.stage
    if before is not None and isinstance(old := before.stage, (Discussing, Asking, Gathering, Concluding)):
        if after.turn != before.turn or type(new) is not type(old):
            floor_held.observe((event.at - old.since).total_seconds())
    if isinstance(new, Ended):
        groups_ended.labels(new.reason).inc()
    if before is None or after.phase != before.phase:
        phases.labels(after.phase).inc()


def _count_tasks(before: GroupState, after: GroupState) -> None:
    """Count the tasks that changed: unchanged tasks are the same objects."""
    same = set(map(id, before.tasks))
    for new in [task for task in after.tasks if id(task) not in same]:
        old = before.task(new.task_id)
        if isinstance(new, ClosedTask):
            if not isinstance(old, ClosedTask) or new.outcome is not old.outcome:
                tasks_closed.labels(new.outcome).inc()
        elif old is None:
            tasks_assigned.labels(new.mode).inc()
        elif isinstance(new, OpenTask) and isinstance(old, OpenTask) and new.suspect and not old.suspect:
            tasks_suspected.inc()
