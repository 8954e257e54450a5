"""How tasks went, and what may be concluded from it: who does a kind of task well, how fast, and at what cost.

Pure arithmetic over a short memory, the same for an agent's own contacts and for discovery. What is old counts less, what was of
another kind counts less, and who is hardly known is worth a try. How far a conclusion may move a score is bounded (`MAX_SHIFT`).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import exp, log, log2, sqrt
from statistics import median
from typing import Annotated

from pydantic import Field

from ioa.protocol.ids import AgentId, AgentIdField, CommId, CommIdField, PoolId, PoolIdField, SessionIdField, TaskId
from ioa.protocol.model import Model, Time
from ioa.protocol.usage import NOTHING, Usage

REMEMBERED = 64
"""Outcomes of one pool that are remembered, the newest."""
HALF_LIFE = timedelta(days=7)
"""After this time an outcome counts half."""
KEEP = timedelta(days=30)
"""After this time it is forgotten."""
MAX_RECORDED_NEED_CHARS = 500

MAX_SHIFT = 0.08
"""The most that outcomes move a fused score, up or down: half a standard deviation of the candidates."""
_OTHER_KIND = 0.25
"""What an outcome of a wholly different kind of task is worth: who is unreliable there may be so here."""
_USUAL_SUCCESS = 0.8
_USUAL_TASKS = 2.0
"""A stranger is taken for one who has done this many tasks with the usual success."""
_CURIOSITY = 0.2
_SUCCESS_WEIGHT = 0.12
_PACE_WEIGHT = 0.02
_COST_WEIGHT = 0.01
_SURE_TASKS = 3.0
_LIKE_ITS_OTHERS = 0.1
"""How much two outcomes of one owner have in common beforehand, whatever the tasks (an intra-class correlation): what one owner
tells is worth what ten independent owners tell at most, however much it is (the design effect: Kish, 1965)."""
_LEAST_SECONDS = 0.05
"""Below this a difference in time is noise."""


class Outcome(Model):
    """How one task of a pool's agent went.

    Attributes:
        need: The beginning of what was asked for; empty if not all of its group were told of it.
        seconds: How long it took from giving it out.
        task: Which task it was, unlike any other of any group; told twice, it counts once.
        owner: The pool of who tells it; None in an agent's own experience.
    """

    pool: PoolIdField
    agent_id: AgentIdField
    need: Annotated[str, Field(max_length=MAX_RECORDED_NEED_CHARS)]
    done: bool
    at: Time
    seconds: Annotated[float, Field(ge=0, le=1e9)]
    usage: Usage = NOTHING
    task: Annotated[str, Field(max_length=200)] = ""
    owner: Annotated[PoolIdField | None, Field(exclude_if=lambda value: value is None)] = None


class ReportOutcomes(Model):
    """Tell discovery that a group with outcomes has ended. Only its owner may; `session` is the process that asks."""

    agent_id: AgentIdField
    comm_id: CommIdField
    session: SessionIdField | None = None


class Record(Model):
    """What is known of how a pool does.

    Attributes:
        done: Tasks done of those remembered, of any kind.
        failed: Tasks failed of those remembered.
        evidence: How many tasks of the kind at hand this is worth.
        success: The share of such tasks it is expected to do.
        seconds: How long such a task takes it; None if it has done none.
        cost_micros: What such a task costs; None if it has done none.
    """

    done: int = 0
    failed: int = 0
    evidence: float = 0.0
    success: float = _USUAL_SUCCESS
    seconds: float | None = None
    cost_micros: float | None = None

    @property
    def tried(self) -> bool:
        """Whether anything is known."""
        return self.done + self.failed > 0


UNTRIED = Record()


@dataclass(frozen=True, slots=True)
class Remembered:
    """An outcome, made ready to be compared: a search may look at thousands.

    Attributes:
        at: Seconds since the epoch.
        pace: Logarithm of the seconds it took.
        kind: What it was about, see `kind_of_need`.
        owner: Whose word it is.
    """

    at: float
    done: bool
    pace: float
    cost_micros: int
    kind: int
    task: str
    owner: PoolId | None = None


def remember(outcome: Outcome) -> Remembered:
    """Make an outcome ready to be compared."""
    pace = log(max(outcome.seconds, _LEAST_SECONDS))
    kind = kind_of_need(outcome.need)
    return Remembered(
        at=outcome.at.timestamp(),
        done=outcome.done,
        pace=pace,
        cost_micros=outcome.usage.cost_micros,
        kind=kind,
        task=outcome.task,
        owner=outcome.owner,
    )


@dataclass(frozen=True)
class ToldTask:
    """What a group's log tells of the files of a task that has ended, by the names of their objects.

    Attributes:
        failed: Whether it failed.
        uses: The tasks whose results it uses.
        names: What its result refers to.
        lacks: What was not there of that which it was handed, as its assignee says.
    """

    assignee: AgentId
    failed: bool
    uses: tuple[TaskId, ...]
    names: frozenset[str]
    lacks: frozenset[str]


def unclear_tasks(told: Mapping[TaskId, ToldTask], inputs: frozenset[str]) -> frozenset[TaskId]:
    """Return the tasks that failed since files were not there to which others refer, and those whose results refer to them.

    Neither says anything of its assignee: no log tells whether the files were there. What nobody else refers to is no excuse.

    Args:
        told: The tasks of a group that have ended.
        inputs: What the goal refers to.
    """
    unclear: set[TaskId] = set()
    for task_id, task in told.items():
        used = [one for one in task.uses if one in told and told[one].assignee != task.assignee]
        if task.failed and task.lacks and task.lacks <= inputs.union(*(told[one].names for one in used)):
            unclear.add(task_id)
            unclear.update(one for one in used if task.lacks & told[one].names)
    return frozenset(unclear)


def name_of_task(comm_id: CommId, task_id: TaskId) -> str:
    """Name a task unlike any other of any group."""
    return f"{comm_id}.{task_id}"


def name_of_pool(comm_id: CommId, pool: PoolId) -> str:
    """Name all that a pool did in a group, which discovery keeps as one outcome."""
    return f"{comm_id}.{pool}"


def record_of(memory: Iterable[Remembered], kind: int, now: datetime) -> Record:
    """Conclude from what is remembered of one pool how it will do a task of a kind."""
    done = failed = 0
    evidence = successes = took = paid = 0.0
    weighed = _weighed(memory, kind, now)
    by_owner: dict[PoolId | None, float] = {}
    for one, weight in weighed:
        by_owner[one.owner] = by_owner.get(one.owner, 0.0) + weight
    counts = {owner: 1.0 if owner is None else 1 / max(1.0, 1 + (told - 1) * _LIKE_ITS_OTHERS) for owner, told in by_owner.items()}
    for one, full in weighed:
        weight = full * counts[one.owner]
        evidence += weight
        if one.done:
            done += 1
            successes += weight
            took += weight * one.pace
            paid += weight * one.cost_micros
        else:
            failed += 1
    if not done + failed:
        return UNTRIED
    return Record(
        done=done,
        failed=failed,
        evidence=evidence,
        success=(successes + _USUAL_TASKS * _USUAL_SUCCESS) / (evidence + _USUAL_TASKS),
        seconds=exp(took / successes) if successes else None,
        cost_micros=paid / successes if successes else None,
    )


def _weighed(memory: Iterable[Remembered], kind: int, now: datetime) -> list[tuple[Remembered, float]]:
    """Say of each outcome that is not too old how much it counts, by its age and by what it was about."""
    worth: dict[int, float] = {}
    today, half_life, keep = now.timestamp(), HALF_LIFE.total_seconds(), KEEP.total_seconds()
    found: list[tuple[Remembered, float]] = []
    for one in memory:
        age = today - one.at
        if age > keep:
            continue
        if one.kind not in worth:
            worth[one.kind] = _OTHER_KIND + (1 - _OTHER_KIND) * likeness(one.kind, kind)
        found.append((one, worth[one.kind] * 0.5 ** (age / half_life) if age > 0 else worth[one.kind]))
    return found


def shifts(records: Sequence[Record]) -> list[float]:
    """Say for each of several candidates for one task how far its record moves its score, at most `MAX_SHIFT` up or down.

    A success rate counts the more, the more tasks it rests on; the rest is curiosity, which prefers who is hardly known by as much
    as is known of the others (UCB1: Auer et al., 2002). Time and cost count a little, against the median of the candidates. If
    nothing is known of anybody, nobody is moved.
    """
    known = sum(record.evidence for record in records)
    if not known:
        return [0.0] * len(records)
    curiosity = _CURIOSITY * sqrt(log(1 + known))
    paces = _against_median([record.seconds for record in records])
    costs = _against_median([record.cost_micros or None for record in records])
    moved: list[float] = []
    for record, pace, cost in zip(records, paces, costs, strict=True):
        expected = record.success - _USUAL_SUCCESS + curiosity / sqrt(1 + record.evidence)
        sure = record.evidence / (record.evidence + _SURE_TASKS)
        shift = _SUCCESS_WEIGHT * expected + sure * (_PACE_WEIGHT * pace + _COST_WEIGHT * cost)
        moved.append(max(-MAX_SHIFT, min(MAX_SHIFT, shift)))
    return moved


def _against_median(values: Sequence[float | None]) -> list[float]:
    """Rate values by how far they lie below the median, in powers of two, -1 to 1; 0 for what is not known."""
    known = [value for value in values if value is not None]
    middle = median(known) if known else 0.0
    return [0.0 if value is None else log2(max(0.5, min(2.0, middle / value))) for value in values]


_FILE_NAME = re.compile(r"(?<!\S)\S+\.\w{1,5}\b")
_WORD = re.compile(r"[^\W\d_]{3,}")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_SUFFIX = re.compile(r"(?<=\w{3})(?:ings?|ions?|ed|es|e|s|ly)$")
_SAYS_NOTHING = frozenset(
    """
    the and for with from that this these those what which how who why when where are was were per all any into its his her our
    your you out over has have does not but can will would should could please give tell show make then them they
    """.split()
)
_BITS = 509


def kind_of_need(need: str) -> int:
    """Sketch what a task is about: a set of the stems of its words, as bits. Names of files and numbers are no part of it."""
    return _remembered_kind(need) if len(need) <= MAX_RECORDED_NEED_CHARS else _kind_of(need)


def _kind_of(need: str) -> int:
    kind = 0
    text = _FILE_NAME.sub(" ", need.lower())
    for word in (*_WORD.findall(text), *_UNSPACED.findall(text)):
        if word not in _SAYS_NOTHING:
            kind |= 1 << zlib.crc32(_SUFFIX.sub("", word).encode()) % _BITS
    return kind


_remembered_kind = lru_cache(maxsize=16_384)(_kind_of)


def likeness(one: int, other: int) -> float:
    """How much two kinds have in common, 0 to 1: the cosine of their sets of stems."""
    common = (one & other).bit_count()
    return common / sqrt(one.bit_count() * other.bit_count()) if common else 0.0
