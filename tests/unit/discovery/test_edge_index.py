"""What the index does with a shard that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from ioa.ports.agent_index import IndexQuery, SparseVector
from ioa.protocol.search import Filters
from ioa_discovery.index.edge_index import EdgeIndex
from ioa_discovery.index.live_shard import LiveShard
from ioa_discovery.workers.worker_pipe import WorkerFailedError

NEED = IndexQuery((1.0, 0.0), SparseVector((), ()), Filters(), (), 10)


class FailingShard:
    """A shard that fails as it is told. False in this: there is no process."""

    def __init__(self, *fails: bool) -> None:
        self._fails = list(fails)
        self.discarded = 0

    async def read(self, _request: object) -> object:
        """Fail, or find nothing."""
        if self._fails.pop(0):
            raise WorkerFailedError("page checksum mismatch")
        return {}

    async def discard(self) -> None:
        """Count."""
        self.discarded += 1


async def ask(shard: FailingShard, times: int) -> Sequence[bool]:
    """Search so often, and return which of the searches failed."""
    index = EdgeIndex(cast(LiveShard, shard))
    failed = []
    for _ in range(times):
        try:
            await index.search([NEED])
            failed.append(False)
        except WorkerFailedError:
            failed.append(True)
    return failed


@pytest.mark.parametrize(
    ("fails", "discarded"),
    [((True, True, True), 1), ((True, True, False, True, True), 0), ((True,) * 6, 2)],
    ids=["three in a row", "with an answer between", "again after that"],
)
async def test_a_store_that_fails_again_and_again_is_given_up(fails: tuple[bool, ...], discarded: int) -> None:
    """Three searches in a row that fail are a damaged store, which is begun anew; who asked is told each time."""
    shard = FailingShard(*fails)
    assert (await ask(shard, len(fails)), shard.discarded) == (list(fails), discarded)
