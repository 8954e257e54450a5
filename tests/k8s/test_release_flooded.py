"""Who floods the NATS of a release: its gate keeps him out, and its operator lets him in again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, CommId
from tests.k8s.goals import Goals
from tests.k8s.release import FULL_NAME, ioa, is_ready, open_way, pods, scale, without_ties
from tests.k8s.visitors import Given, open_visitor
from tests.rig.deadline import eventually

pytestmark = [
    pytest.mark.k8s,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"),
]

_PATIENCE = timedelta(minutes=2)
_EVE = AgentId("calculator-3")
"""An agent that has a key and no pod, so that somebody else can use it."""


async def test_who_floods_is_kept_out_until_an_admin_lets_him_in(goals: Goals) -> None:
    """An agent that publishes without end and comes back at once is refused and named; goals go on; `readmit` lets it in again."""
    await scale("calculator", 1)
    await without_ties("calculator")
    given = {
        "seed": Given(f"{FULL_NAME}-calculator-nats", f"{FULL_NAME}-{_EVE}"),
        "ca.crt": Given(f"{FULL_NAME}-nats-tls", "ca.crt"),
    }
    nats, subject = f"tls://{FULL_NAME}-nats:4222", subjects.say(CommId("c1"), _EVE)
    async with open_way("admin") as way, open_visitor("flood_server.py", given, NATS=nats, SUBJECT=subject) as eve:
        before = await eventually(eve.said, lambda said: _let_in(said)[-2:] == [True, False], within=_PATIENCE)
        wanted = await goals.publish_sums(20)
        assert await goals.wrong_sums(wanted) == []
        told = json.loads(await ioa(way, "doctor", "--json"))
        [quotas] = [one for one in told["findings"] if one["check"] == "quotas"]
        assert _EVE in quotas["message"], quotas
        lines = json.loads(await ioa(way, "audit", "--what", "slowed", "--json"))
        assert _EVE in {line["who"] for line in lines}
        await ioa(way, "credentials", "readmit", _EVE)
        await eventually(eve.said, lambda said: len(said) > len(before), within=_PATIENCE)
        assert all(map(is_ready, await pods()))


def _let_in(said: Sequence[dict[str, Any]]) -> list[bool]:
    return [line["let_in"] for line in said]
