"""Outcomes of tasks, and the success rate of a pool by kind of task.

Pure arithmetic over a short memory. An outcome counts less the older it is, and the less its task resembles the present one.
`MAX_SHIFT` limits the change of a score.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from math import sqrt
from typing import Annotated

from pydantic import Field

from ioa.protocol.ids import AgentIdField, CommId, CommIdField, PoolIdField, SessionIdField, TaskId
from ioa.protocol.model import Model, Time

REMEMBERED = 64
"""Maximum outcomes per pool. The oldest are removed first."""
HALF_LIFE = timedelta(days=7)
"""Time after which an outcome counts half."""
KEEP = timedelta(days=30)
"""Time after which an outcome is removed."""
MAX_RECORDED_NEED_CHARS = 500

MAX_SHIFT = 0.08
"""Maximum change of a fused score by outcomes, up or down: half a standard deviation of the candidates."""
_USUAL_SUCCESS = 0.8
_USUAL_TASKS = 2.0
"""An agent starts as if it had done this many tasks with the usual success."""
_SUCCESS_WEIGHT = 0.12


class Outcome(Model):
    """The outcome of a task of a pool's agent.

    Attributes:
        need: The beginning of the task's text; empty if not all members of its group knew it.
        task: Name of the task, unique among all groups. A repeated outcome of it is ignored.
    """

    pool: PoolIdField
    need: Annotated[str, Field(max_length=MAX_RECORDED_NEED_CHARS)]
    done: bool
    at: Time
    task: Annotated[str, Field(max_length=200)] = ""


class ReportOutcomes(Model):
    """Report to discovery that a group has ended. Only its owner may; `session` is the process that asks."""

    agent_id: AgentIdField
    comm_id: CommIdField
    session: SessionIdField | None = None


class Record(Model):
    """Measured success of a pool.

    Attributes:
        done: Remembered tasks of any kind that were done.
        failed: Remembered tasks of any kind that failed.
        evidence: Sum of the outcomes' weights for the kind of task in question.
        success: Expected success rate of such tasks.
    """

    done: int = 0
    failed: int = 0
    evidence: float = 0.0
    success: float = _USUAL_SUCCESS

    @property
    def tried(self) -> bool:
        """Whether there are outcomes."""
        return self.done + self.failed > 0


UNTRIED = Record()


def name_of_task(comm_id: CommId, task_id: TaskId) -> str:
    """Return a name that no task of another group has."""
    return f"{comm_id}.{task_id}"


def weigh_outcomes(memory: Iterable[Outcome], kind: int, now: datetime) -> Record:
    """Return a pool's record for a kind of task."""
    done = failed = 0
    evidence = successes = 0.0
    for one in memory:
        age = max(timedelta(0), now - one.at)
        if age > KEEP:
            continue
        weight = likeness(kind_of_need(one.need), kind) * 0.5 ** (age / HALF_LIFE)
        evidence += weight
        done, failed = done + one.done, failed + (not one.done)
        successes += weight * one.done
    return Record(
        done=done,
        failed=failed,
        evidence=evidence,
        success=(successes + _USUAL_TASKS * _USUAL_SUCCESS) / (evidence + _USUAL_TASKS),
    )


def score_shift(record: Record) -> float:
    """Return the change of a score by a record, at most `MAX_SHIFT` up or down; 0 without outcomes of this kind of task."""
    return max(-MAX_SHIFT, min(MAX_SHIFT, _SUCCESS_WEIGHT * (record.success - _USUAL_SUCCESS))) if record.evidence else 0.0


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
    """Return a sketch of a task's subject: the set of the stems of its words, as bits, without file names and numbers."""
    return _cached_kind_of(need) if len(need) <= MAX_RECORDED_NEED_CHARS else _kind_of(need)


def _kind_of(need: str) -> int:
    kind = 0
    text = _FILE_NAME.sub(" ", need.lower())
    for word in (*_WORD.findall(text), *_UNSPACED.findall(text)):
        if word not in _SAYS_NOTHING:
            kind |= 1 << zlib.crc32(_SUFFIX.sub("", word).encode()) % _BITS
    return kind


_cached_kind_of = lru_cache(maxsize=16_384)(_kind_of)


def likeness(one: int, other: int) -> float:
    """Return the similarity of two kinds, 0 to 1: the cosine of their sets of stems."""
    common = (one & other).bit_count()
    return common / sqrt(one.bit_count() * other.bit_count()) if common else 0.0
