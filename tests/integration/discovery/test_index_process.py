"""The process of the index dies, grows and ends, and nobody who asks gets a wrong answer."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.errors import UnavailableError
from ioa.ports.agent_index import AgentIndex, IndexEntry, IndexQuery, Signal, SparseVector
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.search import Filters
from ioa_discovery.index.edge_index import EdgeIndex, open_edge_index
from tests.rig.deadline import eventually
from tests.rig.loop_watch import watch_loops

DIMENSION = 16
SOON = timedelta(seconds=30)

_OWNER = """
import asyncio, sys
from ioa_discovery.index.edge_index import open_edge_index
from ioa_discovery.embedding.embedder import open_embedder

async def main():
    async with open_embedder() as embedder, open_edge_index(model_id="m", dimension=4) as index:
        print(embedder._workers[0].pid, index.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def unit(chance: random.Random) -> tuple[float, ...]:
    """Draw a direction."""
    drawn = [chance.gauss(0, 1) for _ in range(DIMENSION)]
    length = sum(value * value for value in drawn) ** 0.5
    return tuple(value / length for value in drawn)


def entries(count: int, *, first: int = 0) -> list[IndexEntry]:
    """Draw agents, the same for the same numbers."""
    return [_entry(number, random.Random(number)) for number in range(first, first + count)]


def _entry(number: int, chance: random.Random) -> IndexEntry:
    name = AgentId(f"a{number}")
    examples = tuple(unit(chance) for _ in range(chance.randrange(4)))
    card = AgentCard(
        agent_id=name, name=name, description="Does things", pool=PoolId(f"p{number % 7}"), examples=("x",) * len(examples)
    )
    return IndexEntry(card, chance.random() < 0.8, unit(chance), examples, SparseVector((number % 5,), (1.0,)), f"print-{number}")


def query(seed: int = 0, *, limit: int = 10) -> IndexQuery:
    """Draw a need."""
    return IndexQuery(unit(random.Random(-seed - 1)), SparseVector((1,), (1.0,)), Filters(), (), limit)


async def found(index: AgentIndex, asked: IndexQuery) -> dict[Signal, list[AgentId]]:
    """Return who each of the dense signals finds, best first."""
    [candidates] = await index.search([asked])
    return {signal: [candidate.agent_id for candidate in candidates[signal]] for signal in (Signal.TEXT, Signal.EXAMPLES)}


async def test_what_was_written_survives_a_kill(tmp_path: Path) -> None:
    """A killed index process is unavailable, not wrong; another one answers with all that was acknowledged, and this is told."""
    restarts = 0

    def restarted() -> None:
        nonlocal restarts
        restarts += 1

    async with open_edge_index(model_id="m", dimension=DIMENSION, folder=tmp_path, restarted=restarted) as index:
        await index.put(entries(50))
        before = await found(index, query())
        killed = index.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        with pytest.raises(UnavailableError):
            await found(index, query())
        await eventually(lambda: _answers(index), bool, within=SOON)
        assert (await found(index, query()), await index.count(), restarts, index.pid == killed) == (before, 50, 1, False)


async def _answers(index: EdgeIndex) -> bool:
    try:
        return await index.count() >= 0
    except UnavailableError:
        return False


async def test_a_killed_builder_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    """Without the process that builds the tree, searches are still answered from the shard that was there."""
    # It grows by so much only with the last of what is put: else one tree might be built and answer before the other is begun.
    async with open_edge_index(model_id="m", dimension=DIMENSION, folder=tmp_path, grow_by=700) as index:
        assert index.pid is not None
        answering = index.pid
        await index.put(entries(300))
        others = await eventually(lambda: _children_but(answering), bool, within=SOON)
        for builder in others:
            os.kill(builder, signal.SIGKILL)
        await eventually(lambda: _children_but(answering), lambda left: not left, within=SOON)
        assert (await index.count(), index.built_points, index.pid) == (300, 0, answering)


def _children_but(pid: int) -> Sequence[int]:
    listed = [_of_proc(path) for path in Path("/proc/self/task").glob("*/children")]
    return [child for text in listed for child in map(int, text.split()) if child != pid and _is_of_index(child)]


def _is_of_index(pid: int) -> bool:
    return b"ioa_discovery.index.edge_process" in _of_proc(Path(f"/proc/{pid}/cmdline"))


def _of_proc(path: Path) -> bytes:
    """Read what the kernel tells of a thread or a process; nothing of one that has ended since it was listed."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_nothing_is_left_when_the_owner_is_killed(tmp_path: Path) -> None:
    """The processes of the engine and of the model end with the one that started them, even if that had no time to end them."""
    (tmp_path / "owner.py").write_text(_OWNER)
    owner = await asyncio.create_subprocess_exec(
        sys.executable,
        str(tmp_path / "owner.py"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert owner.stdout is not None
    workers = [int(pid) for pid in (await owner.stdout.readline()).split()]
    owner.kill()
    await owner.wait()
    await eventually(lambda: _alive(workers), lambda alive: not alive, within=SOON)
    assert len(workers) == 2


def _alive(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


async def test_a_thousand_agents_leave_the_loop_free() -> None:
    """While a thousand agents are written and come and go, no callback holds the event loop for 50 ms."""
    async with open_edge_index(model_id="m", dimension=DIMENSION) as index:
        drawn = entries(1_000)
        names = [entry.card.agent_id for entry in drawn]
        with watch_loops(timedelta(milliseconds=50)) as watch:
            for start in range(0, len(drawn), 16):
                await index.put(drawn[start : start + 16])
                await index.search([query(start, limit=100)])
            for online in (False, True):
                await index.set_online(names, online)
        assert watch.blocks == []
