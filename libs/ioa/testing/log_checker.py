"""Judging a system by what it left behind: logs, results, the members' own records, and what the agents wrote down of their work.

Pure over the data given to it. Each check returns what is wrong, one sentence each; nothing wrong is an empty list.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ioa.cli.replaying import ReplayError, replayed
from ioa.group.events import Said
from ioa.group.requests import SequencedEntry
from ioa.group.state import Ended, GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, comm_id_of_goal
from ioa.protocol.messages import AsyncTaskAssignment, InformTaskResult, SyncTaskAssignment, TaskOutcome, TaskSpec


@dataclass(frozen=True)
class Acceptance:
    """A message that an agent was told is in the log."""

    comm_id: CommId
    message_id: MessageId
    seq: int


@dataclass(frozen=True)
class Run:
    """One run of a task's function. `task` is its words, which name it uniquely."""

    agent_id: AgentId
    task: str
    attempt: int
    returned: bool


@dataclass(frozen=True)
class Evidence:
    """What is known of a system that has come to rest.

    Attributes:
        goals: Every goal that was published, once.
        results: Every message in the stream of results.
        logs: Every group's log, whole and in order.
        records: What each agent's own memory holds of each group.
        timers: The groups for which a timer is armed.
        accepted: What agents were told is in the log.
        runs: What agents did; empty where nobody wrote it down.
        forgetful: Agents whose memory was taken away on the way: they may lack groups that had ended, and run a task again.
    """

    goals: Sequence[GoalId]
    results: Sequence[GoalResult]
    logs: Mapping[CommId, Sequence[StoredEntry]]
    records: Mapping[AgentId, Mapping[CommId, Sequence[SequencedEntry]]] = field(default_factory=dict)
    timers: frozenset[CommId] = frozenset()
    accepted: Sequence[Acceptance] = ()
    runs: Sequence[Run] = ()
    forgetful: frozenset[AgentId] = frozenset()


def check(evidence: Evidence) -> list[str]:
    """Make every check; the list of what is wrong."""
    return [
        *check_results(evidence),
        *check_logs(evidence),
        *check_records(evidence),
        *check_tasks(evidence),
        *check_open_groups(evidence),
    ]


def check_results(evidence: Evidence) -> Iterator[str]:
    """Every goal has exactly one result, and it is what its group came to."""
    counts = Counter(result.goal_id for result in evidence.results)
    for goal_id in evidence.goals:
        if counts[goal_id] != 1:
            yield f"Goal {goal_id} has {counts[goal_id]} results, not one."
    for goal_id in sorted(set(counts) - set(evidence.goals)):
        yield f"There is a result of {goal_id}, which nobody published."
    for result in evidence.results:
        stage = _last_state(evidence, comm_id_of_goal(result.goal_id))
        if not isinstance(stage, Ended) or (stage.reason, stage.content) != (result.reason, result.content):
            yield f"The result of {result.goal_id} is not what its group {result.comm_id} came to."


def check_logs(evidence: Evidence) -> Iterator[str]:
    """Every accepted message is in its log where it was said to be, none twice; every state follows from the one before."""
    for comm_id, log in evidence.logs.items():
        said = Counter(message_id for _, message_id in _messages(log))
        yield from (f"Message {message_id} is {count} times in {comm_id}." for message_id, count in said.items() if count > 1)
        try:
            for _ in replayed(log):
                pass
        except ReplayError as error:
            yield error.message
    places = {comm_id: dict(_messages(log)) for comm_id, log in evidence.logs.items()}
    for one in evidence.accepted:
        if places.get(one.comm_id, {}).get(one.seq) != one.message_id:
            yield f"Message {one.message_id} was accepted into {one.comm_id} at {one.seq} and is not there."


def check_records(evidence: Evidence) -> Iterator[str]:
    """Each member's record holds exactly what it may see, in order and without a gap."""
    for agent_id, groups in evidence.records.items():
        visible = {comm_id: _visible(log, agent_id) for comm_id, log in evidence.logs.items()}
        for comm_id, record in groups.items():
            if _entries(record) != visible.get(comm_id, []):
                yield f"{agent_id} has another record of {comm_id} than its log: {_seqs(record)}, not {_places(visible[comm_id])}."
            if [entry.previous_seq for entry in record] != [0, *(entry.seq for entry in record[:-1])]:
                yield f"The record of {agent_id} of {comm_id} has a gap."
        missing = {comm_id for comm_id, entries in visible.items() if entries} - set(groups)
        if agent_id not in evidence.forgetful:
            yield from (f"{agent_id} has no record of {comm_id}." for comm_id in sorted(missing))


def check_tasks(evidence: Evidence) -> Iterator[str]:
    """Each task that was reported is reported once, and its function was not run again once a result was in the journal."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in evidence.runs:
        runs[run.task].append(run)
    for comm_id, log in evidence.logs.items():
        words = {spec.task_id: spec.task_desc for stored in log for spec in _specs(stored)}
        reports = Counter(report.task_id for report in _reports(log))
        yield from (f"Task {task_id} of {comm_id} has {count} results." for task_id, count in reports.items() if count > 1)
        for report in _reports(log):
            done = runs.get(words[report.task_id], [])
            begun = [run.attempt for run in done if not run.returned]
            if report.outcome is not TaskOutcome.DONE or not done or {run.agent_id for run in done} & evidence.forgetful:
                continue
            if len(set(begun)) != len(begun):
                yield f"Task {report.task_id} of {comm_id} was begun twice in one attempt: {begun}."
            if not report.task_conclusion.endswith(f" in attempt {max(begun)}"):
                yield f"Task {report.task_id} of {comm_id} was run again after it had finished: {begun}, {report.task_conclusion}."


def check_open_groups(evidence: Evidence) -> Iterator[str]:
    """No group is open that nothing will move on, and none whose goal has ended."""
    ended = {result.goal_id for result in evidence.results}
    for comm_id, log in evidence.logs.items():
        state = log[-1].entry.state
        if state.phase.is_terminal:
            continue
        if comm_id not in evidence.timers:
            yield f"Group {comm_id} is open ({state.phase}) and no timer is armed for it."
        if state.goal_id in ended:
            yield f"Group {comm_id} is open ({state.phase}) though its goal {state.goal_id} has ended."


def recovery_after(logs: Mapping[CommId, Sequence[StoredEntry]], at: datetime) -> timedelta:
    """How long after `at` until each group that was open then had moved on; zero if none was open.

    A group whose nested team works moves on with it, so only its team is asked.
    """
    waits = [timedelta(0)]
    for log in logs.values():
        before = [stored for stored in log if stored.entry.event.at <= at]
        after = [stored for stored in log if stored.entry.event.at > at]
        if before and after and not before[-1].entry.state.phase.is_terminal and not _is_served(before[-1].entry.state):
            waits.append(after[0].entry.event.at - at)
    return max(waits)


def _is_served(state: GroupState) -> bool:
    return any(task.subgroup is not None for task in state.open_tasks)


def _last_state(evidence: Evidence, comm_id: CommId) -> object:
    log = evidence.logs.get(comm_id)
    return log[-1].entry.state.stage if log else None


def _messages(log: Iterable[StoredEntry]) -> Iterator[tuple[int, MessageId]]:
    for stored in log:
        if isinstance(stored.entry.event, Said):
            yield stored.seq, stored.entry.event.message.header.message_id


def _reports(log: Iterable[StoredEntry]) -> Iterator[InformTaskResult]:
    for stored in log:
        if isinstance(stored.entry.event, Said) and isinstance(stored.entry.event.message.payload, InformTaskResult):
            yield stored.entry.event.message.payload


def _specs(stored: StoredEntry) -> Sequence[TaskSpec]:
    event = stored.entry.event
    if isinstance(event, Said) and isinstance(event.message.payload, SyncTaskAssignment | AsyncTaskAssignment):
        return event.message.payload.tasks
    return ()


def _visible(log: Sequence[StoredEntry], agent_id: AgentId) -> list[StoredEntry]:
    return [stored for stored in log if agent_id in stored.entry.audience]


def _entries(record: Sequence[SequencedEntry]) -> list[StoredEntry]:
    return [StoredEntry(entry.seq, entry.entry) for entry in record]


def _seqs(record: Sequence[SequencedEntry]) -> list[int]:
    return [entry.seq for entry in record]


def _places(log: Sequence[StoredEntry]) -> list[int]:
    return [stored.seq for stored in log]
