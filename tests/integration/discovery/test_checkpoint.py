"""Discovery's index survives a restart, and one that cannot be used is built again while searches are answered."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.discovery.town import Townsman, resident
from tests.rig.deadline import eventually
from tests.rig.processes import ServiceProcesses

NEED = "somebody who bakes bread near the market"
RESIDENTS = 30
WORDS = 50
"""Enough to make building the index take three seconds of CPU, several times of that where others use the cores."""
SOON = timedelta(seconds=300)


async def _whole(town: Townsman, cards: int) -> None:
    async def held() -> int:
        return (await town.status()).cards

    await eventually(held, lambda seen: seen == cards, within=SOON)


async def test_a_restart_begins_where_it_ended(town: Townsman, kept: ServiceProcesses) -> None:
    """After a crash discovery answers from what it had, and learns who came and went while it was away."""
    await kept.start("ioa_discovery", replicas=1)
    cards = [resident(number) for number in range(20)]
    await town.register(*cards)
    await _whole(town, len(cards))
    [replica] = kept.running("ioa_discovery")
    await replica.kill()
    newcomer = resident(20)
    await town.register(newcomer)
    await town.deregister(cards[0].agent_id)
    await kept.start("ioa_discovery", replicas=1)
    await _whole(town, 21)
    expected = {card.agent_id for card in (*cards[1:], newcomer)}
    found = await eventually(lambda: town.found(NEED, k=100), lambda found: set(found) == expected)
    assert len(found) == 20


def _lose(folder: Path) -> None:
    shutil.rmtree(folder)


def _spoil(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file.name not in ("lock", "index.json"):
            file.write_bytes(b"not what the engine wrote")


def _restamp(**changed: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        [stamp] = folder.rglob("index.json")
        stamp.write_text(json.dumps({**json.loads(stamp.read_text()), **changed}))

    return change


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": _lose,
    "corrupt": _spoil,
    "other model": _restamp(model_id="another-model@0123456789ab"),
    "other schema": _restamp(schema=-1),
}
VECTORS_GONE = ("missing", "corrupt")


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
async def test_what_cannot_be_used_is_built_again_while_searches_are_answered(
    town: Townsman, kept: ServiceProcesses, index_folder: Path, damage: str
) -> None:
    """With an index that cannot be used discovery answers from the start, with no fewer agents each time, until all are there."""
    await kept.start("ioa_discovery", replicas=1)
    words = WORDS if damage in VECTORS_GONE else 0
    await town.register(*(resident(number, words=words) for number in range(RESIDENTS)))
    await _whole(town, RESIDENTS)
    [replica] = kept.running("ioa_discovery")
    assert await replica.stop() == 0
    await asyncio.to_thread(DAMAGES[damage], index_folder)
    await kept.start("ioa_discovery", replicas=1)
    seen: list[int] = []

    async def answered() -> int:
        seen.append(len(await town.found(NEED, k=100)))
        return seen[-1]

    await eventually(answered, lambda found: found == RESIDENTS, within=SOON)
    # Only with the vectors gone too does it take long enough that a search must come before the end.
    assert (seen == sorted(seen), seen[0] < RESIDENTS or damage not in VECTORS_GONE) == (True, True), seen
