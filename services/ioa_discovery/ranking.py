"""Order of matches by fused score, load and outcomes.

Load and outcomes change a score by less than the distance of a good match to a poor one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ioa.protocol.agents.outcomes import MAX_SHIFT, UNTRIED, Record, kind_of_need, score_shift
from ioa.protocol.agents.search import Need, Search, Shift
from ioa.protocol.cards import Load
from ioa.protocol.ids import AgentId, PoolId
from ioa_discovery.experience import Experience
from ioa_discovery.replicas import Named, Replicas

LOAD_SHIFT = 0.02
"""Reduction of the score of an agent without a free slot."""
REACH = 2 * MAX_SHIFT + LOAD_SHIFT
"""Maximum difference of two scores that load and outcomes can invert, about one standard deviation of the candidates."""


class Match(NamedTuple):
    """A pool that matches a need, the agent of it that was found, and the fused score."""

    pool: PoolId
    found: AgentId
    score: float


class Placed(NamedTuple):
    """A match, the replica that is named for it, and the changes of its score."""

    match: Match
    named: Named
    record: Record
    moved: tuple[Shift, ...]

    @property
    def score(self) -> float:
        """The score that orders the hits."""
        return self.match.score + sum(shift.amount for shift in self.moved)


class Ranking:
    """Order matches. Without replicas and experience, every match keeps its place, with the agent that was found."""

    def __init__(self, replicas: Replicas | None, experience: Experience | None) -> None:
        self._replicas = replicas
        self._experience = experience

    def place(self, search: Search, need: Need, matches: Iterable[Match]) -> list[Placed]:
        """Return the best `need.k` of the matches, which come best first. A pool without an allowed agent is left out."""
        placed: list[Placed] = []
        allowed, kind = _allowance(search, need), kind_of_need(need.text)
        for match in matches:
            if len(placed) >= need.k and match.score < placed[need.k - 1].match.score - REACH:
                break
            named: Named | None = Named(match.found)
            if self._replicas is not None:
                named = self._replicas.name(match.found, purpose=search.purpose or need.text, allowed=allowed, by=search.by)
            if named is not None:
                record = UNTRIED if self._experience is None else self._experience.record(match.pool, kind)
                placed.append(Placed(match, named, record, (*_load_shift(named.load), *_outcome_shift(record))))
        best = sorted(placed, key=lambda one: (-one.score, one.match.pool))[: need.k]
        if best and search.purpose and self._replicas is not None:
            self._replicas.nominate(best[0].named.agent_id, search.purpose)
        return best


def excluded(search: Search, need: Need) -> tuple[AgentId, ...]:
    """Return the agents that must not be found for a need."""
    return (*search.exclude, search.by) if need.filters.not_self and search.by is not None else search.exclude


def _allowance(search: Search, need: Need) -> Callable[[AgentId, bool], bool]:
    out, must_be_online = frozenset(excluded(search, need)), need.filters.online
    return lambda agent_id, online: (online or not must_be_online) and agent_id not in out


def _load_shift(load: Load) -> tuple[Shift, ...]:
    if not load.tasks:
        return ()
    waiting = max(0, load.tasks - load.slots)
    reason = f"{load.tasks - waiting} of {load.slots} slots taken" + (f", {waiting} tasks waiting" if waiting else "")
    return (Shift(cause="load", amount=-LOAD_SHIFT * min(1.0, load.busy), reason=reason),)


def _outcome_shift(record: Record) -> tuple[Shift, ...]:
    amount = score_shift(record)
    if not amount:
        return ()
    reason = f"{record.done} of {record.done + record.failed} tasks done, {record.success:.0%} expected for this kind"
    return (Shift(cause="outcomes", amount=amount, reason=reason),)
