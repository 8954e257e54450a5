"""The engine's handles of a shard: how its halves are created, opened, and opened to build a search tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ioa_discovery.index.edge_library import edge
from ioa_discovery.index.shard_requests import BM25, EXACT_BELOW_POINTS, EXAMPLES, TEXT

_BYTES_PER_COMPONENT = 4
_LARGE_POINTS = 500_000
_LINKED_FIELD = "pool"
_CARDS, _EXAMPLES = "cards", "examples"
"""The folders of a shard's halves."""
_SEGMENTS = 2
_SEARCH_THREADS = 1
"""A half is one large segment and one that takes writes: to hand them to other threads costs more than it gains."""


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How a search tree is built: links per point, breadth of the search for them, and from how many points on it is."""

    links: int = 16
    breadth: int = 100
    from_points: int = EXACT_BELOW_POINTS
    threads: int = 0

    @classmethod
    def of_shard(cls, points: int) -> TreeSettings:
        """Return the settings for a shard of so many points. Where there are many, a walk loses its way by few links."""
        return cls() if points < _LARGE_POINTS else cls(links=32, breadth=200)


@dataclass(frozen=True, slots=True)
class Collections:
    """The engine's handles of a shard's two halves.

    Two, since within one each point would have room for a vector of either kind, on disk and in the search tree's memory.
    """

    cards: edge.EdgeShard
    examples: edge.EdgeShard

    def of(self, name: str) -> edge.EdgeShard:
        """Return the half that holds a named vector."""
        return self.examples if name == EXAMPLES else self.cards

    def both(self) -> tuple[edge.EdgeShard, edge.EdgeShard]:
        """Return both, in the order in which they are written: what the card says is true once it is there."""
        return self.examples, self.cards

    def points(self) -> int:
        """Return how many points there are."""
        return sum(engine.info().points_count for engine in self.both())


def create_engines(
    path: Path, dimension: int, keywords: Sequence[str], flag: str, *, tree: TreeSettings | None = None, wal: bool = True
) -> Collections:
    """Create an empty shard in an empty folder.

    Args:
        path: The folder.
        dimension: The vectors' length.
        keywords: Payload that is filtered by; `flag` is so too, and is 0 or 1.
        flag: See `keywords`.
        tree: How `build_tree` shall build a search tree; usually it does so beside, in a copy that is loaded for that.
        wal: Whether what was written is there after the process was killed; else only what was flushed is.
    """

    def create(name: str) -> edge.EdgeShard:
        half = path / name
        half.mkdir(parents=True)
        engine = edge.EdgeShard.create(str(half), _config(name, dimension, tree, wal=wal))
        index = edge.UpdateOperation.create_field_index
        for field in keywords:
            # Links within pools alone: those of other fields would cost more to build than looking further costs a search.
            engine.update(index(field, edge.KeywordIndexParams(enable_hnsw=field == _LINKED_FIELD)))
        engine.update(index(flag, edge.IntegerIndexParams(lookup=True, range=False, enable_hnsw=False)))
        engine.flush()
        return engine

    return Collections(create(_CARDS), create(_EXAMPLES))


def load_for_building(path: Path, dimension: int, points: int, tree: TreeSettings) -> Collections:
    """Open a shard of so many points with settings by which `build_tree` builds a search tree."""
    return load_engines(path, dimension, tree=tree, memory=edge.Memory.Cached if points < _LARGE_POINTS else edge.Memory.Cold)


def load_engines(path: Path, dimension: int, *, tree: TreeSettings | None = None, memory: edge.Memory | None = None) -> Collections:
    """Open a shard as it was left, but for what is given."""

    def load(name: str) -> edge.EdgeShard:
        return edge.EdgeShard.load(str(path / name), _config(name, dimension, tree, memory=memory))

    return Collections(load(_CARDS), load(_EXAMPLES))


def _config(
    name: str, dimension: int, tree: TreeSettings | None, *, memory: edge.Memory | None = None, wal: bool | None = None
) -> edge.EdgeConfig:
    """Describe one half of a shard; of one that is loaded, what is None stays as it is.

    A search tree holds 8-bit vectors in memory. The vectors themselves, by which it scores again what it found, lie in files
    that the system keeps in memory as far as there is room, and reads ahead where `memory` is not cold.
    """
    settings = quantization = optimizers = None
    if tree is not None:
        kilobytes = max(1, tree.from_points * dimension * _BYTES_PER_COMPONENT // 1024)
        settings = edge.HnswIndexConfig(
            m=tree.links,
            payload_m=tree.links,
            ef_construct=tree.breadth,
            full_scan_threshold=kilobytes,
            max_indexing_threads=tree.threads,
        )
        quantization = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99, always_ram=True)
        optimizers = edge.EdgeOptimizersConfig(indexing_threshold=kilobytes, default_segment_number=_SEGMENTS)
    vector = edge.EdgeVectorParams(
        dimension, edge.Distance.Cosine, hnsw_config=settings, quantization_config=quantization, memory=memory
    )
    words = {BM25: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)}
    return edge.EdgeConfig(
        vectors={EXAMPLES if name == _EXAMPLES else TEXT: vector},
        sparse_vectors=words if name == _CARDS else None,
        optimizers=optimizers,
        max_search_threads=_SEARCH_THREADS,
        wal_enabled=wal,
    )
