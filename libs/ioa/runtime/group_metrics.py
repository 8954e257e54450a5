"""What happens in groups, counted by whoever appends it: routers, and group setup for launches and lost members.

Each entry is counted by the process whose append it was, so that sums over all replicas are exact but for appends whose process
died before it counted. What a discussion is made of is counted first and by little more than additions: it costs a router a
microsecond a message. Ids are never labels.
"""

from __future__ import annotations

from prometheus_client import Counter

from ioa.group.events import Event, Said, SubgroupClosed, input_of
from ioa.group.rejection import RejectionCode
from ioa.group.state import Asking, ClosedTask, Concluding, Discussing, Ended, Gathering, GroupState, OpenTask, TaskMode
from ioa.group.table import TABLE
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Phase, TaskOutcome
from ioa.protocol.usage import MICROS, NOTHING, Usage
from ioa.telemetry.fast_metrics import TalliedTimes, Tally

entries = Tally(
    "ioa_group_entries_total",
    "Entries appended to group logs, by what happened",
    ["event"],
    [(row.name,) for row in TABLE.values()],
)
turns = Tally("ioa_turns_total", "Messages that used up a turn of a discussion")
phases = Counter("ioa_group_phases_entered_total", "How often groups entered a phase", ["phase"])
groups_ended = Counter("ioa_groups_ended_total", "Groups that ended, nested ones too, by reason", ["reason"])
tasks_assigned = Counter("ioa_tasks_assigned_total", "Tasks given out, by whether the discussion waits for them", ["mode"])
tasks_closed = Counter(
    "ioa_tasks_closed_total", "Tasks that ended, by outcome; what is rejected counts as done before", ["outcome"]
)
tasks_suspected = Counter("ioa_tasks_suspected_total", "Tasks whose lease ran out once, or whose assignee was lost")
floor_held = TalliedTimes(
    "ioa_floor_held_seconds",
    "How long a member had the floor before it spoke or lost it",
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
silences = Counter("ioa_floor_silences_total", "How often a member let the floor run out")
rejections = Counter("ioa_rejections_total", "Messages of members that were refused, by reason", ["reason"])
progress = Counter("ioa_progress_reports_total", "Reports of progress that were accepted without an entry")
conflicts = Counter("ioa_append_conflicts_total", "Appends that lost their race against another process's")
unreadable = Counter(
    "ioa_groups_unreadable_total", "Looks at groups that cannot be gone on with, since an entry of their log cannot be read"
)
effects_failed = Counter("ioa_effects_failed_total", "What ended groups owed and could not be given, such as what is too large")
tokens = Counter("ioa_tokens_total", "Tokens of language models that members and tasks reported", ["direction"])
cost = Counter("ioa_cost_total", "What members and tasks reported to have paid, in the currency that agents count in")

# All label values are there from the start, so that the first event is an increase.
_phase_of = {phase: phases.labels(phase.value) for phase in Phase}
_end_of = {reason: groups_ended.labels(reason.value) for reason in Reason}
_mode_of = {mode: tasks_assigned.labels(mode.value) for mode in TaskMode}
_outcome_of = {outcome: tasks_closed.labels(outcome.value) for outcome in TaskOutcome}
_rejection_of = {code: rejections.labels(code.value) for code in RejectionCode}
_tokens_in, _tokens_out = tokens.labels("in"), tokens.labels("out")


def count_entry(before: GroupState | None, event: Event, after: GroupState) -> None:
    """Count an entry that this process has appended, and what it changed. What did not change is the same object."""
    if before is None:
        _count_opening(event, after)
        return
    old, unchanged = before.stage, after.tasks is before.tasks and after.spent is before.spent
    if unchanged and isinstance(event, Said) and isinstance(old, Discussing) and isinstance(after.stage, Discussing):
        entries.counts[(event.message.payload.type,)] += 1
        turns.counts[()] += after.turns_taken - before.turns_taken
        if after.turn != before.turn:
            floor_held.observe((event.at - old.since).total_seconds())
    else:
        _count_more(before, event, after)


def count_rejection(code: RejectionCode) -> None:
    """Count a message that was refused."""
    _rejection_of[code].inc()


def count_progress() -> None:
    """Count a report of progress that was accepted without an entry."""
    progress.inc()


def _count_opening(event: Event, after: GroupState) -> None:
    entries.counts[(input_of(event).type,)] += 1
    _phase_of[after.phase].inc()
    _count_usage(NOTHING, after.spent)
    if isinstance(after.stage, Ended):
        _end_of[after.stage.reason].inc()


def _count_more(before: GroupState, event: Event, after: GroupState) -> None:
    entries.counts[(input_of(event).type,)] += 1
    turns.counts[()] += after.turns_taken - before.turns_taken
    if after.stage is not before.stage:
        _count_stage(before, event, after)
    if after.silences > before.silences:
        silences.inc(after.silences - before.silences)
    if after.tasks is not before.tasks:
        _count_tasks(before, after)
    if after.spent is not before.spent and not isinstance(event, SubgroupClosed):  # a nested team's was counted in its own group
        _count_usage(before.spent, after.spent)


def _count_stage(before: GroupState, event: Event, after: GroupState) -> None:
    old, new = before.stage, after.stage
    if after.turn != before.turn or type(new) is not type(old):
        if isinstance(old, Discussing | Asking | Concluding):
            floor_held.observe((event.at - old.since).total_seconds())
    if isinstance(old, Gathering):
        closed = len(old.seats) - (len(new.seats) if isinstance(new, Gathering) and after.turn == before.turn else 0)
        for _ in range(closed):
            floor_held.observe((event.at - old.since).total_seconds())
    if isinstance(new, Ended):
        _end_of[new.reason].inc()
    if after.phase != before.phase:
        _phase_of[after.phase].inc()


def _count_tasks(before: GroupState, after: GroupState) -> None:
    """Of a thousand tasks, which are the same objects but for one or two, these alone are looked at."""
    same = set(map(id, before.tasks))
    for new in [task for task in after.tasks if id(task) not in same]:
        old = before.task(new.task_id)
        if isinstance(new, ClosedTask):
            if not isinstance(old, ClosedTask) or new.outcome is not old.outcome:
                _outcome_of[new.outcome].inc()
        elif old is None:
            _mode_of[new.mode].inc()
        elif isinstance(new, OpenTask) and isinstance(old, OpenTask) and new.suspect and not old.suspect:
            tasks_suspected.inc()


def _count_usage(before: Usage, after: Usage) -> None:
    used = after.beyond(before)
    if used != NOTHING:
        _tokens_in.inc(used.tokens_in)
        _tokens_out.inc(used.tokens_out)
        cost.inc(used.cost_micros / MICROS)
