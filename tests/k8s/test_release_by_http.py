"""The gateway of a release: replicas are deleted while a goal is followed, and all is replaced while a person thinks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from tests.k8s.door import HOST, KEY, Door, make_key
from tests.k8s.release import GATEWAY, RELEASE, apply_chart, helm, is_ready, kubectl, name_of, open_nats, pods, uids_of
from tests.k8s.visitors import open_visitor
from tests.rig.deadline import eventually

pytestmark = [
    pytest.mark.k8s,
    pytest.mark.timeout(900),
    # nats-py drops the writer of a connection that was cut, as the tunnel is whenever the pod of NATS at its other end goes.
    pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"),
]

_DELETED = 4
_PATIENCE = timedelta(minutes=2)
_STREAMS = 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:9464/metrics").read().decode())'


def _desk(turns: int) -> dict[str, object]:
    """A team in which an agent asks anna, who has so many turns and then states the result."""
    return {
        "team": "desk",
        "leader": "boss",
        "roles": {"clerk": "load", "boss": {"human": "anna"}},
        "nodes": [
            {"name": "ask", "roles": ["clerk"], "opens": {"role": "clerk", "say": "What next?"}, "max": 1, "then": "answer"},
            {"name": "answer", "roles": ["boss"], "max": turns},
        ],
    }


async def test_gateways_come_with_an_upgrade() -> None:
    """With a key made before, `helm upgrade --wait` returns when two gateways are ready."""
    async with open_nats("admin") as admin:
        await make_key(admin)
    await apply_chart(beside=[GATEWAY])
    assert len(await pods("gateway")) == 2


async def test_its_own_test_passes_by_http() -> None:
    """`helm test` launches a goal by HTTP too, with a key that it makes and revokes."""
    told = await helm("test", RELEASE, "--timeout", "3m")
    suites = [line.split()[-1] for line in told.splitlines() if line.startswith(("TEST SUITE:", "Phase:"))]
    assert sorted(suites) == sorted([f"{RELEASE}-ioa-test", "Succeeded", f"{RELEASE}-ioa-test-http", "Succeeded"])


async def test_a_follower_misses_nothing_when_gateways_are_deleted(door: Door) -> None:
    """A client in the cluster follows a goal while each gateway it comes to is deleted; what it has seen is the log."""
    goal_id = await door.launch({"goal": "Say it all.", "team": _desk(_DELETED), "timeout": 900})
    async with open_visitor("follow_events.py", GATEWAY=f"http://{HOST}", KEY=KEY, GOAL=goal_id) as follower:
        victims = []
        for number in range(_DELETED):
            waits = await door.turn(goal_id)
            upto = (await door.log(goal_id))[-1].seq
            await eventually(lambda: follower.said(), lambda said, upto=upto: upto in _seen(said), within=_PATIENCE)  # type: ignore[misc]
            [victim] = await eventually(_followed_gateways, bool, within=_PATIENCE)
            victims.append(victim)
            # By turns told to end, and gone at once.
            await kubectl("delete", "pod", victim, *(("--grace-period=0", "--force") if number % 2 else ("--wait=false",)))
            await door.answer(waits, f"answer {number}")
        await door.answer(await door.turn(goal_id), "That is all.")
        said = await eventually(follower.said, lambda said: any(line.get("event") == "end" for line in said), within=_PATIENCE)
    log = await door.log(goal_id)
    assert _seen(said) == [stored.seq for stored in log]
    assert len(set(victims)) == _DELETED
    assert sum(line.get("opened") == 200 for line in said) > _DELETED
    assert _words(log) == [*(f"answer {number}" for number in range(_DELETED)), "That is all."]
    assert (await door.result(goal_id))["content"] == "That is all."


async def test_an_upgrade_keeps_the_turn_of_a_person(door: Door) -> None:
    """Every pod is replaced while a person thinks; then the same turn is taken by HTTP, once, and the goal ends with her words."""
    goal_id = await door.launch({"goal": "Decide.", "team": _desk(1), "timeout": 900})
    waits = await door.turn(goal_id)
    before = uids_of(await pods())
    await apply_chart("workloads.podAnnotations.turn=third", beside=[GATEWAY])
    after = uids_of(await pods())
    assert (len(after), before & after) == (len(before), set())
    again = await door.turn(goal_id)
    assert (again["item"], again["turn"]) == (waits["item"], waits["turn"])
    assert await door.answer(again, "Yes:\n three.") == await door.answer(again, "Yes:\n three.")
    await door.answer(await door.turn(goal_id), "Three it is.")
    result = await door.result(goal_id)
    assert (result["reason"], result["content"]) == ("concluded", "Three it is.")
    assert _words(await door.log(goal_id)) == ["Yes:\n three.", "Three it is."]


async def test_a_webhook_arrives_inside(door: Door) -> None:
    """A pod of the cluster is told of a goal's end, in a message that bears the webhook's signature."""
    async with open_visitor("take_webhooks.py") as taker:
        made = await door.ask("POST", "/webhooks", {"url": f"http://{taker.address}:8080/hook", "events": ["ended"]})
        assert made.status_code == 201, made.text
        goal_id = await door.launch({"goal": "15 / 100 * 240", "agent": "calculator"})
        [line] = await eventually(taker.said, within=_PATIENCE)
        Webhook(made.json()["secret"]).verify(line["body"], line["headers"])
        told = json.loads(line["body"])
        await door.ask("DELETE", f"/webhooks/{made.json()['webhook_id']}")
    assert (told["type"], told["data"]["goal_id"], "36" in told["data"]["result"]["content"]) == ("goal.ended", goal_id, True)


def _seen(said: Sequence[dict[str, Any]]) -> list[int]:
    """The sequences of the entries that a follower was shown."""
    return [line["seq"] for line in said if line.get("event") == "entry"]


async def _followed_gateways() -> list[str]:
    """The gateways that somebody follows something at."""
    found = []
    for pod in filter(is_ready, await pods("gateway")):
        metrics = (await kubectl("exec", name_of(pod), "--", "python3", "-c", _STREAMS)).splitlines()
        streams = [float(line.split()[1]) for line in metrics if line.startswith("ioa_gateway_streams ")]
        found += [name_of(pod)] if sum(streams) else []
    return found


def _words(log: Sequence[StoredEntry]) -> list[str]:
    """What anna has said."""
    said = [stored.entry.event for stored in log]
    mine = [event.message.payload for event in said if isinstance(event, Said) and event.message.header.sender == "human-anna"]
    return [str(getattr(payload, "content", "")) for payload in mine]
