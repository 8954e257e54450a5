"""Who floods the NATS of a release: its gate keeps him out, and its operator lets him in again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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


@pytest.mark.parametrize(
    ("eve", "told", "named"),
    [
        (AgentId("calculator-3"), {}, "Flooding the server, and disconnected"),
        (AgentId("calculator-2"), {"TRACE": "yes"}, "Sending what nats-server does not count, and disconnected"),
    ],
    ids=["messages", "messages that are passed over"],
)
async def test_who_floods_is_kept_out_until_an_admin_lets_him_in(
    goals: Goals, eve: AgentId, told: Mapping[str, str], named: str
) -> None:
    """An agent that publishes without end and comes back at once is refused and named; goals go on; `readmit` lets it in again.

    It has a key and no pod, so that somebody else can use it. Of what the server passes over its gate knows by the pod's kernel.
    """
    await scale("calculator", 1)
    await without_ties("calculator")
    given = {
        "seed": Given(f"{FULL_NAME}-calculator-nats", f"{FULL_NAME}-{eve}"),
        "ca.crt": Given(f"{FULL_NAME}-nats-tls", "ca.crt"),
    }
    nats, subject = f"tls://{FULL_NAME}-nats:4222", subjects.say(CommId("c1"), eve)
    async with open_way("admin") as way, open_visitor("flood_server.py", given, NATS=nats, SUBJECT=subject, **told) as visitor:
        before = await eventually(visitor.said, lambda said: _let_in(said)[-2:] == [True, False], within=_PATIENCE)
        wanted = await goals.publish_sums(20)
        assert await goals.wrong_sums(wanted) == []
        found = json.loads(await ioa(way, "doctor", "--json"))["findings"]
        [quotas] = [one["message"] for one in found if one["check"] == "quotas"]
        assert eve in quotas.partition(named)[2], quotas
        lines = json.loads(await ioa(way, "audit", "--what", "slowed", "--json"))
        assert eve in {line["who"] for line in lines}
        await ioa(way, "credentials", "readmit", eve)
        await eventually(visitor.said, lambda said: len(said) > len(before), within=_PATIENCE)
        assert all(map(is_ready, await pods()))


def _let_in(said: Sequence[dict[str, Any]]) -> list[bool]:
    return [line["let_in"] for line in said]
