"""The folder of an index: a shard, and `index.json`, which says which shard is the current one and of what kind it is.

The stamp goes first and comes last: a crash in between leaves a store that is filled again, never one that is wrongly trusted.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from ioa_discovery.index.edge_collections import Collections, TreeSettings, create_engines, load_engines, load_for_building
from ioa_discovery.index.edge_shard import Shard
from ioa_discovery.index.shard_requests import STAMP, CopyShard, OpenShard, ShardState

_SHARD = "shard-"
_FIRST = f"{_SHARD}1"


class ShardStore:
    """The shards in a folder."""

    def __init__(self, opening: OpenShard) -> None:
        self._opening = opening
        self._folder = Path(opening.folder)

    def open(self) -> tuple[Shard, ShardState]:
        """Open the shard that was asked for, or the current one; an empty one if that is of another kind or cannot be read."""
        name, built_points, engines = self._named() or self._current() or self._empty()
        points = engines.points()
        return Shard(engines, self._opening.fields, outside=points - built_points), ShardState(name, points, built_points)

    def copy(self, request: CopyShard, tree: TreeSettings) -> tuple[Shard, ShardState]:
        """Copy a shard under the next name and open the copy, ready for its search tree to be built."""
        name = f"{_SHARD}{int(request.source.removeprefix(_SHARD)) + 1}"
        copied = self._folder / name
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(self._folder / request.source, copied)
        shard = Shard(load_for_building(copied, self._opening.dimension, request.points, tree), self._opening.fields)
        return shard, ShardState(name, shard.points(), 0)

    def make_current(self, name: str, built_points: int) -> None:
        """Have the next start open this shard."""
        new = self._folder / f"{STAMP}.new"
        new.write_text(json.dumps({**self._kind(), "shard": name, "built_points": built_points}))
        new.replace(self._folder / STAMP)

    def remember_tree(self, name: str, points: int) -> None:
        """Note how many points are left in a shard's search tree, if the shard is the current one."""
        if self._read_stamp().get("shard") == name:
            self.make_current(name, points)

    def _kind(self) -> dict[str, Any]:
        return {**self._opening.kind, "dimension": self._opening.dimension}

    def _named(self) -> tuple[str, int, Collections] | None:
        name = self._opening.shard
        if not name:
            return None
        engines = load_engines(self._folder / name, self._opening.dimension)
        return name, engines.points(), engines

    def _current(self) -> tuple[str, int, Collections] | None:
        stamp = self._read_stamp()
        name, built_points = stamp.pop("shard", ""), stamp.pop("built_points", 0)
        if stamp != self._kind() or not isinstance(name, str) or not name.startswith(_SHARD):
            return None
        try:
            engines = load_engines(self._folder / name, self._opening.dimension)
        except Exception as error:  # noqa: BLE001 - the engine has a kind for every damage, and each means the same
            sys.stderr.write(f"The index in {self._folder} cannot be read and is begun anew: {error}\n")
            return None
        self._remove_all_but(name)
        return name, built_points, engines

    def _empty(self) -> tuple[str, int, Collections]:
        (self._folder / STAMP).unlink(missing_ok=True)
        self._remove_all_but("")
        opening = self._opening
        engines = create_engines(self._folder / _FIRST, opening.dimension, opening.keywords, opening.flag)
        self.make_current(_FIRST, 0)
        return _FIRST, 0, engines

    def _remove_all_but(self, name: str) -> None:
        """Remove what a crash or a take-over has left."""
        for folder in self._folder.glob(f"{_SHARD}*"):
            if folder.name != name:
                shutil.rmtree(folder, ignore_errors=True)

    def _read_stamp(self) -> dict[str, Any]:
        try:
            stamp = json.loads((self._folder / STAMP).read_text())
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}
