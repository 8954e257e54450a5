"""The process that owns a shard of the index: `python -m ioa_discovery.index.edge_process`, started by `EdgeIndex`.

One such process answers searches. Another, as long as it takes, builds a search tree over a copy; a third opens that copy and
takes over from the first. So the engine never does anything long where somebody waits for it.
"""

from __future__ import annotations

import os

from ioa_discovery.index.edge_collections import TreeSettings
from ioa_discovery.index.edge_shard import Shard
from ioa_discovery.index.engine_check import check_engine
from ioa_discovery.index.shard_requests import (
    BuildTree,
    Checkpoint,
    CompareAgents,
    CopyShard,
    CountAgents,
    DeleteAgents,
    FetchAgents,
    OpenShard,
    PutAgents,
    ScrollAgents,
    SearchAgents,
    SetPayload,
    ShardState,
    TakeOver,
)
from ioa_discovery.index.shard_store import ShardStore
from ioa_discovery.workers.worker_loop import serve

_NICENESS = 10


def open_shard(opening: object) -> ShardServant:
    """Open what the first message says."""
    match opening:
        case OpenShard():
            store = ShardStore(opening)
            return ShardServant(store, *store.open())
        case CopyShard():
            # Whoever searches meanwhile goes first.
            os.nice(_NICENESS)
            store = ShardStore(opening.opening)
            return ShardServant(store, *store.copy(opening, TreeSettings.of_shard(opening.points)))
    raise TypeError(opening)


class ShardServant:
    """An open shard that answers requests."""

    def __init__(self, store: ShardStore, shard: Shard, state: ShardState) -> None:
        self._store = store
        self._shard = shard
        self.state = state

    def answer(self, request: object) -> object:
        """Do what is asked of the shard; a change is answered by how many points are outside its search tree then."""
        match request:
            case SearchAgents(query, exact):
                return self._shard.search(query, exact=exact)
            case CompareAgents(dense, agent_ids):
                return self._shard.compare(dense, agent_ids)
            case FetchAgents(agent_ids):
                return self._shard.fetch(agent_ids)
            case CountAgents():
                return self._shard.count()
            case ScrollAgents():
                return self._shard.page(request)
            case BuildTree():
                self._shard.build_tree()
                return ShardState(self.state.name, self._shard.points(), self._shard.points())
        self._change(request)
        return self._shard.outside()

    def _change(self, request: object) -> None:
        match request:
            case PutAgents(agent_ids, records):
                self._shard.put(agent_ids, records)
            case SetPayload(agent_ids, payload):
                self._shard.set_payload(agent_ids, payload)
            case DeleteAgents(agent_ids):
                self._shard.delete(agent_ids)
            case Checkpoint():
                self._shard.flush()
                self._store.remember_tree(self.state.name, self._shard.points() - self._shard.outside())
            case TakeOver(built_points):
                self._shard.flush()
                self._store.make_current(self.state.name, built_points)
            case _:
                raise TypeError(request)

    def close(self) -> None:
        """Bring everything to disk."""
        left = self._shard.points() - self._shard.outside()
        self._shard.close()
        self._store.remember_tree(self.state.name, left)


if __name__ == "__main__":
    serve(open_shard, prepare=check_engine)
