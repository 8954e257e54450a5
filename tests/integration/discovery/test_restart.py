"""After a restart, discovery builds its index again from the registry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.discovery.town import Townsman, resident
from tests.rig.deadline import eventually
from tests.rig.processes import ServiceProcesses

NEED = "somebody who bakes bread near the market"
RESIDENTS = 30
SOON = timedelta(seconds=300)


async def _whole(town: Townsman, cards: int) -> None:
    async def held() -> int:
        return (await town.status()).cards

    await eventually(held, lambda seen: seen == cards, within=SOON)


def _leave(_file: Path) -> None:
    assert _file.is_file()


def _lose(file: Path) -> None:
    file.unlink()


def _damage(file: Path) -> None:
    file.write_bytes(b"no database" * 1_000)


@pytest.mark.parametrize("change", [_leave, *(pytest.param(one, marks=pytest.mark.nightly) for one in (_lose, _damage))])
async def test_restarted_discovery_finds_the_agents_of_the_registry(
    town: Townsman, kept: ServiceProcesses, vectors_folder: Path, change: Callable[[Path], None]
) -> None:
    """After a crash, all present agents are found again, whether the file of vectors is there, lost or damaged.

    Agents that came or went meanwhile are included. Searches are answered from the start, with no fewer agents each time.
    """
    await kept.start("ioa_discovery", replicas=1)
    cards = [resident(number) for number in range(RESIDENTS)]
    await town.register(*cards)
    await _whole(town, RESIDENTS)
    [replica] = kept.running("ioa_discovery")
    await replica.kill()
    newcomer = resident(RESIDENTS)
    await town.register(newcomer)
    await town.deregister(cards[0].agent_id)
    await asyncio.to_thread(change, vectors_folder / "vectors.sqlite")
    await kept.start("ioa_discovery", replicas=1)
    expected = {card.agent_id for card in (*cards[1:], newcomer)}
    seen: list[int] = []

    async def found() -> set[str]:
        present: set[str] = set(await town.found(NEED, k=100))
        seen.append(len(present))
        return present

    await eventually(found, lambda present: present == expected, within=SOON)
    await _whole(town, RESIDENTS + 1)
    assert seen == sorted(seen), seen
