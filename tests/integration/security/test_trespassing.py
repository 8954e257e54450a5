"""Whoever reaches for more than the subject table gives is refused by the server, by name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import nats.errors
import pytest
from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.connections import NatsConnections
from ioa.adapters.nats.delivery import NatsDeadLetters
from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.permissions import WHO_AM_I
from ioa.adapters.nats.topology import DEAD, LOG, WORK, Topology, ensure_pool_consumer
from ioa.adapters.nkey_seeds import create_seed, public_key_of, read_key
from ioa.cli.examination import Health, dead_letter_findings
from ioa.errors import UnavailableError
from ioa.ports.connections import ConnectionId, SentTotals
from ioa.ports.delivery import DeadReason
from ioa.protocol import subjects as names
from ioa.protocol.ids import PoolId, TenantId, UserId
from ioa.protocol.stream_reads import ReadStream
from ioa.protocol.subjects import inbox_prefix_of
from tests.integration.security.secured import Secured, open_intruder, open_processes, open_secured
from tests.rig.deadline import eventually

BY_ADA = {
    "another's say": "ioa.v1.comm.c1.say.bob",
    "another's say, to one router": "ioa.v1.comm.c1.say.bob.router-1",
    "a push into another's inbox": "ioa.v1.inbox.bob.n1",
    "a log": "ioa.v1.comm.c1.log",
    "a result": "ioa.v1.result.user.goal-1",
    "a timer": "ioa.v1.comm.c1.timer",
    "the schedule of a timer": "ioa.v1.comm.c1.timer.1",
    "registering as another": "ioa.v1.registry.register.bob.bob",
    "registering in another's pool": "ioa.v1.registry.register.bob.ada",
    "another's lease": "ioa.v1.registry.renew.bob.bob",
    "a lease in another's pool": "ioa.v1.registry.renew.bob.ada",
    "sending another offline": "ioa.v1.registry.deregister.bob",
    "launching as another": "ioa.v1.groups.launch.bob",
    "inviting as another": "ioa.v1.groups.invite.bob",
    "abandoning as another": "ioa.v1.groups.abandon.bob",
    "reading a log as another": "ioa.v1.groups.sync.bob",
    "cancelling": "ioa.v1.groups.cancel.user",
    "answering for a user": "ioa.v1.groups.answer.user",
    "a goal": "ioa.v1.goal.user",
    "a goal past intake": "ioa.v1.work.bob",
    "a dead letter": "ioa.v1.dead.unreadable",
    "another pool's queue": f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.pool-bob",
    "acknowledging what another took": f"$JS.ACK.{WORK}.any.1.1.1.1.0",
    "a card": "$KV.IOA_CARDS.bob",
    "a membership": "$KV.IOA_MEMBERS.bob.c1",
    "creating a stream": "$JS.API.STREAM.CREATE.MINE",
    "changing a stream": f"$JS.API.STREAM.UPDATE.{LOG}",
    "purging a stream": f"$JS.API.STREAM.PURGE.{LOG}",
    "deleting a stream": f"$JS.API.STREAM.DELETE.{LOG}",
    "deleting a message": f"$JS.API.STREAM.MSG.DELETE.{LOG}",
    "reading much of a stream": f"$JS.API.DIRECT.GET.{LOG}",
    "asking for what a stream holds": f"ioa.v1.read.{LOG}",
    "pruning": "ioa.v1.groups.prune",
    "forgetting another": "ioa.v1.registry.remove",
    "reading a stream": f"$JS.API.STREAM.MSG.GET.{LOG}",
    "a consumer": "$JS.API.CONSUMER.CREATE.OBJ_IOA_FILES",
    "a user's upload": "$O.IOA_ARTIFACTS.M.YQ==",
    "a file's bytes": "$O.IOA_FILES.C.agent-ada.1.1",
    "what is said of a file": "$O.IOA_FILES.M.YQ==",
    "reading files": "$JS.API.STREAM.MSG.GET.OBJ_IOA_FILES",
    "reading many files": "$JS.API.DIRECT.GET.OBJ_IOA_FILES",
    "listing files": "$JS.API.STREAM.INFO.OBJ_IOA_FILES",
    "reading what users put": "$JS.API.STREAM.MSG.GET.OBJ_IOA_ARTIFACTS",
    "reading a file as another": "ioa.v1.groups.file.bob",
    "putting a file as another": "ioa.v1.groups.put.bob",
    "reading as a user": "ioa.v1.uploads.get.user",
    "a consumer of work": f"$JS.API.CONSUMER.DURABLE.CREATE.{WORK}.mine",
    "what the account holds": "$JS.API.INFO",
    "the key of tickets": "$JS.API.STREAM.MSG.GET.KV_IOA_KEYS",
    "the server itself": "$SYS.REQ.SERVER.PING",
    "who is connected": "$SYS.REQ.SERVER.PING.CONNZ",
    "who is connected, as the control plane asks": "ioa.v1.server.connections",
    "ending a connection": "$SYS.REQ.SERVER.S1.KICK",
}

READ_BY_OBSERVER = {
    "goals": "ioa.v1.goal.*",
    "goals for somebody": "ioa.v1.goal.*.*",
    "dead letters": "ioa.v1.dead.*",
    "results": "ioa.v1.result.*.*",
    "logs": "ioa.v1.comm.*.log",
    "progress": "ioa.v1.comm.*.progress",
    "an inbox": "ioa.v1.inbox.ada.*",
    "everybody's answers": "_INBOX.>",
}

READ_BY_ADA = {
    "another's inbox": "ioa.v1.inbox.bob.n1",
    "all inboxes": "ioa.v1.inbox.*.*",
    "a log": "ioa.v1.comm.c1.log",
    "all results": "ioa.v1.result.*.*",
    "dead letters": "ioa.v1.dead.*",
    "everything of the system": "ioa.v1.>",
    "everything": ">",
    "everybody's answers": "_INBOX.>",
    "the server's events": "$SYS.>",
    "who comes": "$SYS.ACCOUNT.*.CONNECT",
    "requests to the registry": "ioa.v1.registry.register.*.*",
    "what is said to routers": "ioa.v1.comm.*.say.*",
}

BY_OTHERS = [
    *(("user", subject) for subject in ("ioa.v1.goal.eve", "ioa.v1.groups.cancel.eve", "ioa.v1.uploads.put.eve", "ioa.v1.goal")),
    ("user", "ioa.v1.comm.c1.log"),
    *((name, "ioa.v1.server.connections") for name in ("user", "observer", "router", "groups")),
    *((name, "$SYS.REQ.SERVER.S1.KICK") for name in ("user", "observer", "router", "groups")),
    ("user", "ioa.v1.comm.c1.say.ada"),
    ("user", "ioa.v1.inbox.ada.n1"),
    ("user", "ioa.v1.result.user.goal-1"),
    ("user", "ioa.v1.work"),
    ("user", "ioa.v1.registry.register.ada.ada"),
    ("user", f"$JS.API.CONSUMER.CREATE.{LOG}"),
    ("user", f"$JS.API.STREAM.PURGE.{LOG}"),
    ("user", "ioa.v1.groups.prune"),
    ("user", "ioa.v1.registry.remove"),
    ("user", "$KV.IOA_ENDED.g1"),
    *(
        (name, subject)
        for name in ("user", "observer")
        for subject in ("$O.IOA_FILES.M.YQ==", "$O.IOA_ARTIFACTS.M.YQ==", "$JS.API.STREAM.INFO.OBJ_IOA_FILES")
    ),
    ("user", "$JS.API.STREAM.MSG.GET.OBJ_IOA_FILES"),
    ("user", "ioa.v1.groups.put.ada"),
    ("user", "ioa.v1.uploads.put.anna"),
    ("user", "ioa.v1.uploads.get.anna"),
    *(("user", f"ioa.v1.groups.{request}.anna") for request in ("put_team", "team", "teams")),
    *((name, "$KV.IOA_TEAMS.debate.1.user") for name in ("user", "observer", "router", "registry")),
    *((name, f"$JS.API.{kind}.KV_IOA_TEAMS") for name in ("user", "observer") for kind in ("DIRECT.GET", "STREAM.MSG.GET")),
    ("observer", "ioa.v1.groups.teams.user"),
    ("observer", "ioa.v1.uploads.get.user"),
    ("router", "$JS.API.STREAM.MSG.GET.OBJ_IOA_FILES"),
    *((name, f"$JS.API.DIRECT.GET.{LOG}") for name in ("user", "observer")),
    ("observer", f"ioa.v1.read.{LOG}"),
    ("user", "ioa.v1.read.IOA_AUDIT"),
    ("user", "ioa.v1.read.KV_IOA_TEAMS"),
    ("registry", f"$JS.API.STREAM.PURGE.{LOG}"),
    ("groups", "$JS.API.STREAM.PURGE.KV_IOA_ENDED"),
    ("observer", "ioa.v1.goal.user"),
    ("observer", "ioa.v1.groups.cancel.user"),
    *((name, "ioa.v1.groups.answer.eve") for name in ("user", "observer", "router")),
    ("observer", f"$JS.API.STREAM.MSG.GET.{DEAD}"),
    ("observer", "$JS.API.STREAM.MSG.GET.IOA_RESULTS"),
    ("observer", "$JS.API.STREAM.MSG.GET.KV_IOA_GOAL_RECORDS"),
    ("observer", "ioa.v1.groups.get"),
    *(
        (name, f"$JS.API.{request}")
        for name in ("user", "observer", "auditor")
        for request in (
            *("INFO", "STREAM.NAMES", "STREAM.LIST", f"STREAM.INFO.{LOG}", f"STREAM.INFO.{DEAD}", f"STREAM.MSG.GET.{LOG}"),
            *(f"CONSUMER.NAMES.{WORK}", f"CONSUMER.LIST.{WORK}", f"CONSUMER.INFO.{WORK}.any"),
        )
    ),
    ("user", "ioa.v1.groups.standing._eve"),
    ("observer", "ioa.v1.groups.standing._user"),
    ("observer", "ioa.v1.discovery.search._user"),
    ("user", "ioa.v1.discovery.search._eve"),
    ("user", "ioa.v1.discovery.search.ada"),
    *((name, "$JS.API.STREAM.MSG.GET.KV_IOA_KEYS") for name in ("user", "observer", "registry", "router", "discovery")),
    ("registry", "$KV.IOA_KEYS.launch"),
    ("discovery", "ioa.v1.comm.c1.log"),
    ("discovery", "$KV.IOA_CARDS.ada"),
    ("discovery", f"$JS.API.STREAM.UPDATE.{LOG}"),
    ("registry", "ioa.v1.comm.c1.log"),
    ("registry", "ioa.v1.result.user.goal-1"),
    ("router", "ioa.v1.work"),
    ("router", "$KV.IOA_LEASES.ada"),
    ("router", f"$JS.API.STREAM.PURGE.{LOG}"),
    ("groups", f"$JS.API.STREAM.DELETE.{LOG}"),
    ("groups", "$KV.IOA_CARDS.ada"),
]

_SOON = timedelta(seconds=5)


@pytest.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Secured]:
    """A server with all streams, and credentials of the agents ada and bob, a user, an observer and an admin."""
    async with open_secured(tmp_path, ("ada", "bob")) as secured:
        async with open_connection(secured.settings("admin")) as admin:
            await Topology().ensure(admin.jetstream())
            await ensure_pool_consumer(admin.jetstream(), PoolId("bob"))
        yield secured


def _key_of(secured: Secured, name: str) -> str:
    path = secured.folder / name
    return public_key_of((path / ("seed" if (path / "seed").exists() else name)).read_text())


async def refusals(secured: Secured, name: str, count: int = 1) -> list[str]:
    """What the server refused to one credential, oldest first, by its subject; waits until it has refused so much."""
    key = _key_of(secured, name)

    def look() -> list[str]:
        lines = [line.partition("Violation - ")[2] for line in secured.log().splitlines() if "Violation" in line and key in line]
        return [line.partition(", SID")[0] for line in lines]

    found: list[str] = await eventually(look, lambda seen: len(seen) >= count, within=_SOON)
    return found


def _subjects(refused: Iterable[str]) -> list[str]:
    return [f'Subject "{subject}"' for subject in refused]


async def test_an_agent_publishes_only_as_itself(secured: Secured) -> None:
    """Another's voice, the control plane's subjects and JetStream's administration are not an agent's to publish."""
    async with open_intruder(secured, "ada", "ada") as ada:
        for subject in BY_ADA.values():
            await ada.publish(subject, b"{}")
        assert await refusals(secured, "ada", len(BY_ADA)) == _subjects(BY_ADA.values())


@pytest.mark.parametrize(("name", "key", "table"), [("ada", "ada", READ_BY_ADA), ("observer", "seed", READ_BY_OBSERVER)])
async def test_nobody_listens_to_what_is_not_for_him(secured: Secured, name: str, key: str, table: Mapping[str, str]) -> None:
    """An agent reads its own inbox alone, by no pattern that holds more; an observer hears nothing that anybody said."""
    async with open_intruder(secured, name, key) as client:
        for subject in table.values():
            await client.subscribe(subject)
        assert await refusals(secured, name, len(table)) == _subjects(table.values())


async def test_an_observer_counts_dead_letters(secured: Secured) -> None:
    """How many there are of each reason, and that it may not read them, is what doctor tells an observer."""
    async with open_connection(secured.settings("admin")) as admin:
        for _ in range(3):
            await NatsDeadLetters(admin.jetstream()).put(
                DeadReason.UNREADABLE, "no reason", subject="ioa.v1.goal", data=b"my secret plan"
            )
    async with (
        open_processes(secured, [secured.service("groups")]),
        open_intruder(secured, "observer") as observer,
    ):
        inspection = NatsInspection(observer)
        await eventually(lambda: inspection.answers("ioa-groups"), within=_SOON)
        found = dead_letter_findings(await inspection.dead_letter_kinds())
    assert [(finding.health, "3 messages" in finding.message, "secret" in str(finding)) for finding in found] == [
        (Health.WARNING, True, False)
    ]


async def test_nobody_reads_the_answers_to_another(secured: Secured) -> None:
    """The answers to bob's requests come to a place that only bob may read, whoever knows its name."""
    answers = f"{inbox_prefix_of(_key_of(secured, 'bob'))}.>"
    async with open_intruder(secured, "ada", "ada") as ada:
        await ada.subscribe(answers)
        assert await refusals(secured, "ada") == _subjects([answers])


async def test_everybody_else_keeps_to_its_part(secured: Secured) -> None:
    """Users cannot forge, observers only look, and no service does another's work or destroys anything."""
    for name in sorted({name for name, _ in BY_OTHERS}):
        forbidden = [subject for other, subject in BY_OTHERS if other == name]
        async with open_intruder(secured, name) as client:
            for subject in forbidden:
                await client.publish(subject, b"{}")
            assert await refusals(secured, name, len(forbidden)) == _subjects(forbidden)


async def test_nobody_else_has_an_answer_sent_into_a_log(secured: Secured) -> None:
    """Permissions do not cover reply subjects, so accounts must: an answer asked to a log never gets there."""
    forged = "ioa.v1.comm.c1.log"
    async with open_connection(secured.settings("admin")) as admin:
        async with open_intruder(secured, "ada", "ada") as ada, open_intruder(secured, "user") as user:
            await ada.publish(f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.any", b'{"batch":1,"no_wait":true}', reply=forged)
            await user.publish("ioa.v1.goal.user", b"Count to ten.", reply=forged)
            await user.publish(names.read(LOG), ReadStream(last_by_subj=">").model_dump_json().encode(), reply=forged)
            await _heard(ada, "ioa.v1.groups.file.ada")
            await _heard(user, WHO_AM_I)
        assert (await admin.jetstream().stream_info(LOG)).state.messages == 0


async def test_nobody_rolls_up_a_stream(secured: Secured) -> None:
    """A header that would delete every other message of the stream is refused by the stream; permissions do not cover headers."""
    async with open_intruder(secured, "user") as client:
        first = json.loads((await client.request("ioa.v1.goal.user", b"Count to ten.")).data)
        answer = json.loads((await client.request("ioa.v1.goal.user", b"Nothing.", headers={Header.ROLLUP.value: "all"})).data)
        assert (first["seq"], answer["error"]["description"]) == (1, "rollup not permitted")


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "ioa.v1.goal.eve"}, "message schedules is disabled"),
        ({"Nats-TTL": "1s"}, "per-message TTL is disabled"),
        ({"Nats-Batch-Id": "b1", "Nats-Batch-Sequence": "1"}, "atomic publish is disabled"),
        ({"Nats-Incr": "+1"}, "message counters is disabled"),
    ],
)
async def test_no_header_makes_a_stream_write_for_another(secured: Secured, headers: dict[str, str], why: str) -> None:
    """A schedule would publish another user's goals from within the stream, where no permission is asked."""
    async with open_intruder(secured, "user") as client:
        answer = json.loads((await client.request("ioa.v1.goal.user", b"Count to ten.", headers=headers)).data)
        assert answer["error"]["description"] == why


async def test_nobody_traces_a_message_to_another(secured: Secured) -> None:
    """What the server tells of a message's way is published as its sender: where he may not publish it does not go."""
    traced = "ioa.v1.comm.c1.log"
    async with open_intruder(secured, "user") as client:
        await client.publish("ioa.v1.goal.user", b"Count to ten.", headers={"Nats-Trace-Dest": traced})
        assert await refusals(secured, "user", 1) == _subjects([traced])


async def test_nobody_pulls_in_the_name_of_another(secured: Secured) -> None:
    """Who asks for goals the server says, whatever headers it sends, so that nobody else is kept out for it."""
    heard, pull = _Pullers(), b'{"batch":1,"expires":29,"idle_heartbeat":1}'
    async with open_connection(secured.settings("registry")) as registry, open_intruder(secured, "ada", "ada") as client:
        connections = NatsConnections(registry)
        async with connections.hearing(heard):
            await connections.count()
            await registry.flush()
            told = json.dumps({"acc": "IOA_AGENTS", "user": "UVICTIM"})
            own = public_key_of(read_key(str(secured.folder / "ada" / "ada")).seed)

            async def pulled() -> set[tuple[str, int]]:
                for header in ("Nats-Request-Info", "nats-request-info"):
                    await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.any", pull, headers={header: told})
                return set(heard.pulls)

            assert await eventually(pulled, lambda _: len(heard.pulls) > 1) == {(own, 29)}


class _Pullers:
    def __init__(self) -> None:
        self.pulls: list[tuple[str, int]] = []

    def opened(self, sent: SentTotals) -> None: ...

    def closed(self, sent: SentTotals) -> None: ...

    def counted(self, server: str, connections: Sequence[SentTotals]) -> None: ...

    def pulling(self, key: str, messages: int, told_by: TenantId | None = None) -> None:
        self.pulls.append((key, messages))

    def glanced(self, server: str, connections: Sequence[SentTotals], at_seconds: float) -> None:
        """Nothing is looked at."""

    def refused(self, user: UserId, goals: int, told_by: TenantId | None) -> None:
        """Nothing is refused."""

    def traced(self, connection: ConnectionId, told_by: TenantId | None = None) -> None: ...

    def uncounted(self, connection: ConnectionId, size: int, told_by: TenantId | None = None) -> None: ...

    def searched(self, user: UserId, messages: int, told_by: TenantId | None = None) -> None:
        """Nobody has anything searched."""

    def turned_away(self, host: str) -> None:
        """All are let in."""

    def gave_back(self, key: str) -> None: ...


async def test_a_stranger_is_not_let_in(secured: Secured) -> None:
    """Without a seed, and with one that the server does not know, there is no connection."""
    for seed in (None, create_seed()):
        settings = NatsSettings(secured.server.url, "stranger", seed=seed)
        with pytest.raises(UnavailableError, match="lets nobody in"):
            async with open_connection(settings, patience=timedelta(milliseconds=100)):
                pass


async def _heard(client: Client, subject: str) -> None:
    """Return once the server has answered a request, and so has taken all that was sent before."""
    for _ in range(2):
        try:
            await client.request(subject, timeout=2)
        except nats.errors.Error:
            await asyncio.sleep(0)
