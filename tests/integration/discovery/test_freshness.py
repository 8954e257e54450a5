"""Discovery follows the registry: who comes is found, who goes is not, and all replicas say the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from tests.integration.discovery.town import Townsman, resident
from tests.rig.deadline import eventually
from tests.rig.processes import ServiceProcesses

BAKER, TAILOR = resident(0), resident(1)
NEED = "somebody who bakes bread near the market"


@pytest.fixture
def lease_seconds() -> float:
    """Short enough to see a lease run out."""
    return 2.0


async def test_who_falls_silent_is_not_found_and_comes_back_by_renewing(town: Townsman, services: ServiceProcesses) -> None:
    """An agent whose lease ran out is out of the results within the lease, others stay, and a renewal alone brings it back."""
    await services.start("ioa_discovery", replicas=1)
    clock = asyncio.get_running_loop().time
    await town.register(BAKER, TAILOR)
    registered = clock()

    async def found_while_the_tailor_stays() -> set[str]:
        await town.renew(TAILOR.agent_id)
        return set(await town.found(NEED))

    await eventually(found_while_the_tailor_stays, lambda found: found == {BAKER.agent_id, TAILOR.agent_id})
    await eventually(found_while_the_tailor_stays, lambda found: found == {TAILOR.agent_id})
    silent_for = timedelta(seconds=clock() - registered)
    await town.renew(BAKER.agent_id)
    await eventually(lambda: town.found(NEED), lambda found: found[:1] == [BAKER.agent_id], within=timedelta(seconds=1))
    # The server looks for what has run out about once a second.
    assert silent_for < timedelta(seconds=2 + 1.5), silent_for


async def test_who_says_goodbye_is_out_at_once(town: Townsman, services: ServiceProcesses) -> None:
    """An agent that deregisters is out of the results before its lease would have run out, and its card stays."""
    await services.start("ioa_discovery", replicas=1)
    await town.register(BAKER)
    await eventually(lambda: town.found(NEED), lambda found: BAKER.agent_id in found)
    await town.renew(BAKER.agent_id)
    await town.deregister(BAKER.agent_id)
    gone = await eventually(lambda: town.found(NEED), lambda found: BAKER.agent_id not in found, within=timedelta(seconds=1))
    assert (gone, (await town.status()).cards) == ([], 1)


class TestReplicas:
    """Two replicas of discovery, each with an index of its own."""

    @pytest.fixture
    def lease_seconds(self) -> float:
        """Long enough that nobody has to renew."""
        return 60.0

    async def test_replicas_agree(self, town: Townsman, services: ServiceProcesses) -> None:
        """Two replicas that saw agents register in another order and at other times give the same answers, scores included."""
        await services.start("ioa_discovery", replicas=1)
        cards = [resident(number) for number in range(40)]
        await town.register(*cards[:20])
        await services.start("ioa_discovery", replicas=1)
        await town.register(*reversed(cards[20:]))
        await town.deregister(cards[5].agent_id)
        texts = (NEED, "mend my saddle by the castle", "a barrel")

        async def sizes() -> set[tuple[int, int]]:
            statuses = [await town.status() for _ in range(8)]
            offline_too = [len(await town.found(*texts, k=100)) for _ in range(8)]
            return {(status.cards, found) for status in statuses for found in offline_too}

        await eventually(sizes, lambda seen: seen == {(40, 39)})
        before = await town.answered(replicas=2)
        answers: Counter[str] = Counter()

        async def asked_often_enough() -> int:
            answers[(await town.search(*texts, k=100)).model_dump_json()] += 1
            return min(((await town.answered(replicas=2)) - before).values())

        await eventually(asked_often_enough, lambda fewest: fewest >= 5)
        assert (len(answers), len(before)) == (1, 2)
