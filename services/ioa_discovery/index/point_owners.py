"""What the points of a shard's engine stand for, in memory: reading a point's payload takes longer than finding the point."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from ioa_discovery.index.edge_library import edge
from ioa_discovery.index.shard_requests import EXAMPLE_FIELD, Row

_MAX_FACES = 1_000_000
_Face: TypeAlias = tuple[tuple[Any, ...], int]


class PointOwners:
    """The agents that points belong to, and which of their examples the points are.

    Args:
        fields: The payload that an agent is found with; the first is its id.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = list(fields)
        self._known: dict[edge.PointId, _Face] = {}

    def agents(self, engine: edge.EdgeShard, found: Sequence[edge.ScoredPoint], limit: int) -> tuple[list[Row], int]:
        """Return the first `limit` agents of points that come best first, each with its best score; and of how many points."""
        rows: dict[Any, Row] = {}
        for number, (point, (agent, _)) in enumerate(zip(found, self.of(engine, found), strict=True), 1):
            if agent[0] not in rows:
                rows[agent[0]] = (*agent, point.score)
                if len(rows) == limit:
                    return list(rows.values()), number
        return list(rows.values()), len(found)

    def of(self, engine: edge.EdgeShard, found: Sequence[edge.ScoredPoint]) -> list[_Face]:
        """Return the agent of each point, and which of its examples the point is; 0 for none."""
        known, numbers = self._known, [point.id for point in found]
        try:
            return [known[number] for number in numbers]
        except KeyError:
            self._read(engine, numbers)
            return [self._known[number] for number in numbers]

    def forget(self, points: Iterable[edge.PointId]) -> None:
        """Forget points that are deleted."""
        for point in points:
            self._known.pop(point, None)

    def _read(self, engine: edge.EdgeShard, numbers: Sequence[edge.PointId]) -> None:
        missing = [number for number in numbers if number not in self._known]
        if len(self._known) + len(missing) > _MAX_FACES:
            self._known.clear()
            missing = list(numbers)
        for record in engine.retrieve(missing, with_payload=[*self._fields, EXAMPLE_FIELD], with_vector=False):
            payload = record.payload or {}
            agent = tuple(_one(payload[field]) for field in self._fields)
            self._known[record.id] = agent, cast(int, payload[EXAMPLE_FIELD])


def _one(value: object) -> object:
    """Make equal strings one: an agent has many points, and what is the same is kept and sent once."""
    return sys.intern(value) if isinstance(value, str) else value
