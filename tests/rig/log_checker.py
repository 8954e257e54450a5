"""Judging a system by what it left behind: logs, results, the members' own records, and what the agents wrote down of their work.

Results are compared with answers that are known beforehand: a log may be whole and legal, and what it came to wrong all the same.

Pure over the data given to it. Each check returns what is wrong, one sentence each; nothing wrong is an empty list.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ioa.client.replay import ReplayError, replayed
from ioa.group.events import GroupLaunched, LaunchAbandoned, MemberLost, Said
from ioa.group.policy.visibility import view_for
from ioa.group.requests import SequencedEntry
from ioa.group.state import Ended, GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Header,
    InformTaskResult,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)


@dataclass(frozen=True)
class Acceptance:
    """A message that an agent was told is in the log."""

    comm_id: CommId
    message_id: MessageId
    seq: int


@dataclass(frozen=True)
class TaskRun:
    """One run of a task's function. `task` is its words, which name it uniquely."""

    agent_id: AgentId
    task: str
    attempt: int
    returned: bool


@dataclass(frozen=True)
class Absence:
    """A time in which an agent's process did not run, or could not work, by the tester's own doing."""

    agent_id: AgentId
    since: datetime
    until: datetime

    def explains(self, at: datetime) -> bool:
        """Whether the agent may count as lost at a point in time: it was away then, or has only just come back."""
        return self.since <= at <= self.until + AFTERMATH


AFTERMATH = timedelta(seconds=20)
"""How long after an agent's return others may still take it for lost: until it has registered, two leases at most."""


@dataclass(frozen=True)
class Evidence:
    """What is known of a system that has come to rest.

    Attributes:
        goals: Every goal that was published, once.
        lost: Goals that were published before the store was lost, and not again. A result that was decided before is kept.
        results: Every message in the stream of results.
        logs: Every group's log, whole and in order.
        records: What each agent's own memory holds of each group.
        timers: The groups for which a timer is armed.
        accepted: What agents were told is in the log.
        runs: What agents did; None where nobody wrote it down.
        forgetful: Agents whose memory was taken away on the way: they may lack groups that had ended, and run a task again.
        answers: What goals must come to, as far as that is known beforehand.
        absences: When agents were away; None where nobody knows.
    """

    goals: Sequence[GoalId]
    results: Sequence[GoalResult]
    logs: Mapping[CommId, Sequence[StoredEntry]]
    records: Mapping[AgentId, Mapping[CommId, Sequence[SequencedEntry]]] = field(default_factory=dict)
    timers: frozenset[CommId] = frozenset()
    accepted: Sequence[Acceptance] = ()
    runs: Sequence[TaskRun] | None = None
    forgetful: frozenset[AgentId] = frozenset()
    answers: Mapping[GoalId, str] = field(default_factory=dict)
    absences: Sequence[Absence] | None = None
    lost: frozenset[GoalId] = frozenset()


def check(evidence: Evidence) -> list[str]:
    """Make every check; the list of what is wrong."""
    return [
        *check_substance(evidence),
        *check_results(evidence),
        *check_answers(evidence),
        *check_failures(evidence),
        *check_logs(evidence),
        *check_records(evidence),
        *check_tasks(evidence),
        *check_open_groups(evidence),
    ]


def check_substance(evidence: Evidence) -> Iterator[str]:
    """There is something to judge: evidence that is empty proves nothing."""
    if not evidence.goals:
        yield "No goal was published: there is nothing to judge."
    if evidence.goals and not evidence.logs:
        yield f"There are {len(evidence.goals)} goals and no log."
    reported = sum(report.outcome is TaskOutcome.DONE for log in evidence.logs.values() for report in _reports(log))
    if evidence.runs is not None and not evidence.runs and reported:
        yield f"{reported} tasks were reported as done, and nobody has run one."


def check_answers(evidence: Evidence) -> Iterator[str]:
    """Check that concluded goals came to what is known beforehand, unless they say what they lack and that was really away."""
    for result in evidence.results:
        wanted = evidence.answers.get(result.goal_id)
        if wanted is None or result.reason is not Reason.CONCLUDED or result.content == wanted:
            continue
        wrong = f"Goal {result.goal_id} was concluded with {result.content!r}, not {wanted!r}"
        if result.degraded is None:
            yield f"{wrong}, and says nothing of what it lacks."
        elif not any(_was_away(evidence, agent_id, result.finished_at) for agent_id in result.degraded.lost):
            yield f"{wrong}; it says that {', '.join(result.degraded.lost)} were lost, none of whom was away."


def check_failures(evidence: Evidence) -> Iterator[str]:
    """No goal ended because nobody was there while everybody was."""
    if evidence.absences is None:
        return
    for result in evidence.results:
        if result.reason not in (Reason.NO_AGENT, Reason.MEMBER_LOST):
            continue
        members = _members(evidence, result.comm_id)
        if not any(_was_away(evidence, agent_id, result.finished_at) for agent_id in members):
            yield f"Goal {result.goal_id} ended as {result.reason} ({result.content!r}), and nobody was away."


def check_losses(evidence: Evidence) -> Iterator[str]:
    """No group was told that a member is lost who was there, and no nested team was given up for want of agents who were."""
    for comm_id, log in evidence.logs.items():
        for stored in log:
            match stored.entry.event:
                case MemberLost(agent_id=agent_id, at=at) if not _is_explained(evidence, at, {agent_id}):
                    yield f"Group {comm_id} was told at {at:%H:%M:%S} that {agent_id} is lost, which was there."
                case LaunchAbandoned(reason=Reason.NO_AGENT, at=at, content=content) if not _is_explained(evidence, at):
                    yield f"Group {comm_id} was given up at {at:%H:%M:%S} ({content!r}), and nobody was away."


def check_results(evidence: Evidence) -> Iterator[str]:
    """Every goal has exactly one result, and it is what its group came to."""
    counts = Counter(result.goal_id for result in evidence.results)
    for goal_id in evidence.goals:
        if counts[goal_id] != 1:
            yield f"Goal {goal_id} has {counts[goal_id]} results, not one."
    for goal_id in sorted(counts.keys() - evidence.lost - set(evidence.goals)):
        yield f"There is a result of {goal_id}, which nobody published."
    for result in evidence.results:
        if result.goal_id in evidence.lost and result.name.comm_id not in evidence.logs:
            continue
        stage = _last_state(evidence, result.name.comm_id)
        if not isinstance(stage, Ended) or (stage.reason, stage.content) != (result.reason, result.content):
            yield f"The result of {result.goal_id} is not what its group {result.comm_id} came to."


def check_logs(evidence: Evidence) -> Iterator[str]:
    """Every accepted message is in its log where it was said to be, none twice; every state follows from the one before."""
    for comm_id, log in evidence.logs.items():
        said = Counter((one.sender, one.message_id) for _, one in _messages(log))
        yield from (f"Message {name} of {who} is {count} times in {comm_id}." for (who, name), count in said.items() if count > 1)
        try:
            for _ in replayed(log):
                pass
        except ReplayError as error:
            yield error.message
    places = {comm_id: {seq: one.message_id for seq, one in _messages(log)} for comm_id, log in evidence.logs.items()}
    for one in evidence.accepted:
        if places.get(one.comm_id, {}).get(one.seq) != one.message_id:
            yield f"Message {one.message_id} was accepted into {one.comm_id} at {one.seq} and is not there."


def check_records(evidence: Evidence) -> Iterator[str]:
    """Each member's record holds exactly what it may see, in order and without a gap. It need not hold every state."""
    for agent_id, groups in evidence.records.items():
        shown = {comm_id: list(visible(log, agent_id)) for comm_id, log in evidence.logs.items()}
        for comm_id, record in groups.items():
            whole = shown.get(comm_id, [])
            held = [(entry.seq, entry.entry.event) for entry in record]
            if held != [(stored.seq, stored.entry.event) for stored in whole]:
                yield f"{agent_id} has another record of {comm_id} than its log: {_seqs(record)}, not {_places(whole)}."
            if [entry.previous_seq for entry in record] != [0, *(entry.seq for entry in record[:-1])]:
                yield f"The record of {agent_id} of {comm_id} has a gap."
        missing = {comm_id for comm_id, entries in shown.items() if entries} - set(groups)
        if agent_id not in evidence.forgetful:
            yield from (f"{agent_id} has no record of {comm_id}." for comm_id in sorted(missing))


def check_tasks(evidence: Evidence) -> Iterator[str]:
    """Each task that was reported is reported once, and its function was not run again once a result was in the journal."""
    runs: dict[str, list[TaskRun]] = defaultdict(list)
    for run in evidence.runs or ():
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


def _messages(log: Iterable[StoredEntry]) -> Iterator[tuple[int, Header]]:
    for stored in log:
        if isinstance(stored.entry.event, Said):
            yield stored.seq, stored.entry.event.message.header


def _reports(log: Iterable[StoredEntry]) -> Iterator[InformTaskResult]:
    for stored in log:
        if isinstance(stored.entry.event, Said) and isinstance(stored.entry.event.message.payload, InformTaskResult):
            yield stored.entry.event.message.payload


def _specs(stored: StoredEntry) -> Sequence[TaskSpec]:
    event = stored.entry.event
    if isinstance(event, Said) and isinstance(event.message.payload, SyncTaskAssignment | AsyncTaskAssignment):
        return event.message.payload.tasks
    return ()


def visible(log: Sequence[StoredEntry], agent_id: AgentId) -> Iterator[StoredEntry]:
    """Yield the entries of a log as a member sees them, up to the entry that removes it."""
    event = log[0].entry.event if log else None
    policy = event.charter.policy if isinstance(event, GroupLaunched) else None
    me = next((one for one in log[-1].entry.state.members if one.agent_id == agent_id), None) if log else None
    if me is None:
        return
    for stored in log:
        yield replace(stored, entry=view_for(policy, stored.entry, agent_id, me.roles))
        if any(one.agent_id == agent_id and one.removed for one in stored.entry.state.members):
            return


def _members(evidence: Evidence, comm_id: CommId) -> set[AgentId]:
    """Return the members of a group, or everybody who was ever away if it was given up before it had any."""
    log = evidence.logs.get(comm_id, ())
    members = {member.agent_id for stored in log for member in stored.entry.state.members}
    return members or {absence.agent_id for absence in evidence.absences or ()}


def _was_away(evidence: Evidence, agent_id: AgentId, until: datetime) -> bool:
    """Whether an agent was away at some time while a goal that ended then was under way; unknown counts as yes."""
    if evidence.absences is None:
        return True
    return any(absence.agent_id == agent_id and absence.since <= until for absence in evidence.absences)


def _is_explained(evidence: Evidence, at: datetime, agents: set[AgentId] | None = None) -> bool:
    return evidence.absences is None or any(
        absence.explains(at) for absence in evidence.absences if agents is None or absence.agent_id in agents
    )


def _seqs(record: Sequence[SequencedEntry]) -> list[int]:
    return [entry.seq for entry in record]


def _places(log: Sequence[StoredEntry]) -> list[int]:
    return [stored.seq for stored in log]
