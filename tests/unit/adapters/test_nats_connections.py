"""What a pull costs nats-server is told from its request as the server reads it, which is written in Go."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.connections import NatsConnections
from ioa.adapters.nats.flood_tellers import NatsPullTeller, take_most
from ioa.adapters.nats.guests import known_by
from ioa.adapters.nats.headers import read_headers
from ioa.adapters.nats.keys import LAST_OF
from ioa.adapters.nats.overheard import messages_pulled
from ioa.adapters.nats.permissions import CONNECTED, DISCONNECTED, OVERHEARD, PULLS, SHOWN_ASKER, TAKEN, TURNED_AWAY
from ioa.adapters.nats.sinks import MessageSink
from ioa.ports.connections import ConnectionId, SentTotals, ShownToken
from ioa.protocol import subjects
from ioa.protocol.ids import TenantId, UserId
from ioa.runtime.process import background
from tests.rig.deadline import eventually


@pytest.mark.parametrize(
    ("request_", "messages"),
    [
        (b'{"batch":1,"expires":4999900000}', 99),
        (b'{"batch":1,"expires":500000000}', 20),
        (b'{"batch":1,"expires":30000000000,"idle_heartbeat":5000000000}', 320),
        (b'{"batch":1,"expires":60000000000,"idle_heartbeat":100000000}', 600),
        (b'{"batch":1}', 320),
        (b'{"batch":1,"expires":1,"Expires":0}', 320),
        (b'{"Expires":60000000000,"IDLE_HEARTBEAT":1000000}', 20_000),
        (b'{"idle_heartbeat":9,"expires":30,"idle_heartbeat":1}', 30),
        (b'{"expires":30,"idle_heartbeat":0}', 20),
        (b'{"expires":-30,"idle_heartbeat":1}', 320),
        (b'{"expires":true,"idle_heartbeat":1.5}', 320),
        (b"5", 320),
        (b"", 320),
        (b"[" * 100_000, 20_000),
    ],
)
def test_a_pull_is_worth_all_that_it_has_the_server_send_and_keep(request_: bytes, messages: int) -> None:
    """Twenty for each second until it runs out, or once in each of its heartbeats, by whatever names Go reads.

    What means nothing never runs out: the server keeps it until its time is over.
    """
    assert messages_pulled(request_) == messages


class _Client:
    """A connection by which the test has a registry hear."""

    is_closed = True

    def __init__(self) -> None:
        self.heard: dict[str, MessageSink] = {}

    def new_inbox(self) -> str:
        return "_INBOX.registry"

    async def subscribe(self, subject: str, *, future: MessageSink) -> None:
        self.heard[subject] = future

    def tell(self, tenant: str, data: bytes) -> None:
        """Have a tenant tell of pulls."""
        subject = f"{subjects.PULLED}.{tenant}"
        self.heard[subjects.ANY_PULLED].set_result(Msg(cast(Client, self), subject=subject, data=data))


class _Hearer:
    """Notes of what it hears."""

    def __init__(self) -> None:
        self.pulled: list[tuple[str, int, TenantId | None]] = []
        self.returned: list[str] = []
        self.traced_ones: list[tuple[ConnectionId, TenantId | None]] = []
        self.uncounted_ones: list[tuple[ConnectionId, int, TenantId | None]] = []
        self.refused_goals: list[tuple[UserId, int, TenantId | None]] = []
        self.strangers: list[str] = []
        self.searching: list[tuple[UserId, int, TenantId | None]] = []
        self.counted_last: Sequence[SentTotals] = ()
        self.came: list[SentTotals] = []
        self.left: list[SentTotals] = []

    def opened(self, sent: SentTotals) -> None:
        """Note it."""
        self.came.append(sent)

    def closed(self, sent: SentTotals) -> None:
        """Note it."""
        self.left.append(sent)

    def counted(self, server: str, connections: Sequence[SentTotals]) -> None:
        """Note it."""
        self.counted_last = connections

    def pulling(self, key: str, messages: int, told_by: TenantId | None = None) -> None:
        """Note it."""
        self.pulled.append((key, messages, told_by))

    def glanced(self, server: str, connections: Sequence[SentTotals], at_seconds: float) -> None:
        """Nothing is looked at."""

    def refused(self, user: UserId, goals: int, told_by: TenantId | None) -> None:
        """Note it."""
        self.refused_goals.append((user, goals, told_by))

    def traced(self, connection: ConnectionId, told_by: TenantId | None = None) -> None:
        """Note it."""
        self.traced_ones.append((connection, told_by))

    def uncounted(self, connection: ConnectionId, size: int, told_by: TenantId | None = None) -> None:
        """Note it."""
        self.uncounted_ones.append((connection, size, told_by))

    def searched(self, user: UserId, messages: int, told_by: TenantId | None = None) -> None:
        """Note it."""
        self.searching.append((user, messages, told_by))

    def turned_away(self, host: str) -> None:
        """Note it."""
        self.strangers.append(host)

    def gave_back(self, key: str) -> None:
        """Note it."""
        self.returned.append(key)


async def test_a_tenant_tells_so_much_and_so_often() -> None:
    """What is longer is not read, nor what is wrong further than to its first mistake; another tenant is heard beside it."""
    client, hearer = _Client(), _Hearer()
    wrong = ('{"messages":{' + ",".join(f'"{number}":[]' for number in range(4_000)) + "}}").encode()
    async with NatsConnections(cast(Client, client)).hearing(hearer):
        client.tell("acme", b'{"messages":{"UBOB":7}}')
        client.tell("acme", ('{"messages":{' + ",".join(f'"{number}":1' for number in range(80_000)) + "}}").encode())
        client.tell("acme", wrong)
        for _ in range(1_000):
            client.tell("acme", b'{"messages":{"UANN":1}}' + b" " * 60_000)
        client.tell("umbra", b'{"messages":{"UEVE":2}}')
    assert (hearer.pulled[0], hearer.pulled[-1]) == (("UBOB", 7, "acme"), ("UEVE", 2, "umbra"))
    assert len(hearer.pulled) < 15


async def test_a_tenant_tells_whose_messages_are_traced() -> None:
    """So many at once as fit; what is no connection is not heard."""
    client, hearer = _Client(), _Hearer()
    async with NatsConnections(cast(Client, client)).hearing(hearer):
        client.tell("acme", b'{"traced":[{"server":"S1","number":7}]}')
        client.tell("acme", b'{"traced":[{"server":"S1","number":-7}]}')
        client.tell("acme", b'{"uncounted":[{"server":"S1","number":7,"bytes":9}]}')
        client.tell("acme", b'{"uncounted":[{"server":"S1","number":7,"bytes":-9}]}')
        client.tell("acme", json.dumps({"traced": [{"server": "S1", "number": 8}] * 1_000}).encode())
    assert hearer.traced_ones == [(ConnectionId("S1", 7), "acme")]
    assert hearer.uncounted_ones == [(ConnectionId("S1", 7), 9, "acme")]


def test_those_who_ask_most_are_told_first() -> None:
    """What is told is short enough to be heard, whoever asks; the others are told next."""
    asked = Counter({f"{number:0>320}": number for number in range(1, 1_001)})
    told = take_most(asked)
    assert len(told) <= 65_536
    assert (len(asked) < 1_000, f"{1_000:0>320}" in asked, asked[f"{1:0>320}"]) == (True, False, 1)


class _Pulled:
    """A connection over which the test has a registry hear what agents ask JetStream for."""

    is_connected = True

    is_closed = True

    def __init__(self) -> None:
        self.heard: dict[str, MessageSink] = {}
        self.published: list[tuple[str, bytes]] = []

    def new_inbox(self) -> str:
        return "_INBOX.registry"

    async def subscribe(self, subject: str, queue: str = "", *, future: MessageSink) -> _Pulled:
        self.heard[subject] = future
        return self

    async def unsubscribe(self, limit: int = 0) -> None:
        """Want no more than so many."""

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Ask who is connected, or tell."""
        self.published.append((subject, data))


async def test_what_the_server_writes_where_nobody_answers_names_whose_it_is() -> None:
    """No more is heard until the count after the next one, of which each message might end the connection."""
    client, hearer = _Pulled(), _Hearer()
    by_server, by_eve = (
        {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": "UEVE", "kind": kind})} for kind in ("Account", "Client")
    )
    text = b'{"server":{"id":"S1"},"request":{},"events":[{"type":"in","ts":"","kind":0,"cid":7,"acc":"IOA_USERS"}]}'
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        heard = client.heard[OVERHEARD[0]]
        for headers in (by_eve, by_server):
            heard.set_result(Msg(cast(Client, client), OVERHEARD[0], "", text, headers))
        await connections.count()
        rests = client.heard[OVERHEARD[0]] is heard
        await connections.count()
    assert (hearer.traced_ones, rests, client.heard[OVERHEARD[0]] is heard) == ([(ConnectionId("S1", 7), None)], True, False)
    assert hearer.pulled == [("UEVE", 100 + len(text) // 100, None)]


async def test_a_guest_is_the_same_whichever_key_let_him_in() -> None:
    """The server knows him by his key besides: a second token would make another of him, who has sent nothing yet."""
    client, hearer = _Pulled(), _Hearer()
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        for token in (ShownToken("k-1_", "T1"), ShownToken("k2", "T1")):
            shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": known_by("user:bob", token)})}
            client.heard[OVERHEARD[0]].set_result(Msg(cast(Client, client), OVERHEARD[0], "_R_.x", b"", shown))
            listed = [
                {"cid": 1, "account": "IOA_USERS", "authorized_user": known_by("user:bob", token), "in_msgs": 1, "in_bytes": 9}
            ]
            found = json.dumps({"server": {"id": "S1"}, "data": {"connections": listed}}).encode()
            client.heard["_INBOX.registry"].set_result(Msg(cast(Client, client), "_INBOX.registry", data=found))
            assert [one.key for one in hearer.counted_last] == ["user:bob"]
    assert hearer.pulled == [("user:bob", 100, None)] * 2


async def test_what_nobody_of_us_answers_counts_as_what_it_has_others_say() -> None:
    """However short it is: the server answers each, or several services do."""
    client, hearer = _Pulled(), _Hearer()
    shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": "UEVE", "kind": "Client"})}
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        for subject in OVERHEARD:
            client.heard[subject].set_result(Msg(cast(Client, client), subject, "_R_.x", b"", shown))
    assert hearer.pulled == [("UEVE", 500 if subject == "$SRV.>" else 100, None) for subject in OVERHEARD]


@pytest.mark.parametrize("said", ["UBOB", "bob", "acme/bob", known_by("user:bob", ShownToken("k", "T"))])
async def test_nobody_is_named_by_what_a_connection_says_of_itself(said: str) -> None:
    """Who was let in is named; at its end, and in a list while it asks to be let in anew, a server says what is said there."""
    client, hearer = _Client(), _Hearer()
    server = {"id": "S1"}
    events = {
        CONNECTED: {"server": server, "client": {"id": 1, "acc": "IOA_AGENTS", "user": "UEVE"}},
        DISCONNECTED: {"server": server, "client": {"id": 1, "acc": "$G", "user": said}, "sent": {"msgs": 7, "bytes": 9}},
        "_INBOX.registry": {
            "server": server,
            "data": {"connections": [{"cid": 1, "authorized_user": said, "in_msgs": 7, "in_bytes": 9}]},
        },
    }
    async with NatsConnections(cast(Client, client)).hearing(hearer):
        for subject, told in events.items():
            client.heard[subject].set_result(Msg(cast(Client, client), subject, data=json.dumps(told).encode()))
    assert [(one.key, one.is_agent, one.messages) for one in hearer.came] == [("UEVE", True, 0)]
    assert [(one.key, one.messages) for one in (*hearer.left, *hearer.counted_last)] == [("", 7), ("", 7)]


async def test_how_lately_each_was_active_is_told() -> None:
    """Nothing that is nearer than making the list took; an older server says nothing of it."""
    client, hearer = _Pulled(), _Hearer()
    listed = [
        {
            "cid": cid,
            "account": account,
            "authorized_user": "U",
            "in_msgs": 1,
            "in_bytes": 1,
            **({"last_activity": at} if at else {}),
        }
        for cid, account, at in (
            (1, "IOA_USERS", "2026-11-26T12:00:00.95Z"),
            (2, "IOA_AGENTS", "2026-11-26T12:00:00.999999999Z"),
            (3, "IOA", "2026-11-26T12:00:01.02Z"),
            (4, "IOA_AGENTS", ""),
        )
    ]
    async with NatsConnections(cast(Client, client)).hearing(hearer):
        told = json.dumps({"server": {"id": "S1"}, "data": {"now": "2026-11-26T12:00:01Z", "connections": listed}})
        client.heard["_INBOX.registry"].set_result(Msg(cast(Client, client), "_INBOX.registry", "", told.encode()))
    assert [round(one.active_ago, 3) for one in hearer.counted_last] == [0.05, 0.02, 0.02, math.inf]


async def test_acknowledgements_that_have_more_given_out_count() -> None:
    """By `+NXT` an agent asks as by a pull, with heartbeats, of which the server keeps what it cannot deliver.

    What is given back is given out again, and counts for who gives it back.
    """
    client, hearer = _Pulled(), _Hearer()
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        for data in (b"+ACK", b"+WPI", b'+NXT {"batch":1}', b"-NAK", b'-NAK {"delay": 1000000000}'):
            told = {SHOWN_ASKER: f'{{"acc":"IOA_AGENTS","user":"{data[:4].decode()}"}}'}
            client.heard[TAKEN].set_result(Msg(cast(Client, client), "$JS.ACK.IOA_WORK.any.1", "", data, told))
    assert hearer.pulled == [("+NXT", 100_000, None), ("-NAK", 300, None), ("-NAK", 300, None)]
    assert hearer.returned == ["-NAK", "-NAK"]


async def test_an_acknowledgement_that_nobody_can_read_is_worth_a_flood() -> None:
    """The server writes down what `-NAK` says instead of a time, up to a megabyte; what clients say fits into a few bytes."""
    client, hearer = _Pulled(), _Hearer()
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        for who, data in (("bob", b'-NAK {"delay": 3600000000000}'), ("mallory", b"-NAK " + b"\x00" * 300)):
            told = {SHOWN_ASKER: f'{{"acc":"IOA_AGENTS","user":"{who}"}}'}
            client.heard[TAKEN].set_result(Msg(cast(Client, client), "$JS.ACK.IOA_WORK.any.1", "", data, told))
    assert hearer.pulled == [("bob", 300, None), ("mallory", 100_000, None)]


@pytest.mark.parametrize(
    ("headers", "floods"),
    [
        ({}, False),
        ({LAST_OF: "ioa.v1.goal.eve.bob"}, False),
        ({LAST_OF: "ioa.v1.goal.>"}, True),
        ({LAST_OF: "ioa.v1.*.eve"}, True),
        (read_headers(b"NATS/1.0\r\n" + LAST_OF.encode() + b": >\r\n" + b"a: b\r\n" * 64 + b"\r\n"), True),
        (read_headers(b"NATS/1.0\r\n" + b"".join(LAST_OF.encode() + end for end in (b": t.>\r\n", b": t.x\r\n")) + b"\r\n"), True),
        (read_headers(b"NATS/1.0\r\n" + b"".join(LAST_OF.encode() + end for end in (b": t.x\r\n", b": t.>\r\n")) + b"\r\n"), True),
    ],
)
async def test_a_goal_for_which_a_stream_is_searched_is_worth_a_flood(headers: dict[str, str], floods: bool) -> None:
    """By a header one has the server look for the last message of a pattern, which no client of ours does of goals."""
    client, hearer = _Pulled(), _Hearer()
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        client.heard[subjects.ANY_ADDRESSED_GOAL].set_result(Msg(cast(Client, client), "ioa.v1.goal.eve.bob", "", b"", headers))
    assert hearer.searching == ([("eve", 100_000, None)] if floods else [])
    assert hearer.pulled == [], "he may be a guest by a token, or bear an agent's name"


@pytest.mark.parametrize(
    ("addressee", "headers", "floods"),
    [
        ("bob", {"Nats-Expected-Last-Subject-Sequence": "7"}, False),
        ("*", {}, False),
        ("*", {"Nats-Expected-Last-Subject-Sequence": "7"}, True),
        (">", {"Nats-Expected-Last-Subject-Sequence": "7"}, True),
    ],
)
async def test_a_goal_that_is_published_on_a_pattern_is_searched_for_likewise(
    addressee: str, headers: dict[str, str], floods: bool
) -> None:
    """Without that other header the server looks for the last message of the subject, which may be a pattern."""
    client, hearer = _Pulled(), _Hearer()
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        goal = Msg(cast(Client, client), f"ioa.v1.goal.eve.{addressee}", "", b"", headers)
        client.heard[subjects.ANY_ADDRESSED_GOAL].set_result(goal)
    assert hearer.searching == ([("eve", 100_000, None)] if floods else [])


async def test_goals_for_which_a_tenants_stream_is_searched_are_told_of() -> None:
    """Its control plane alone sees them; who looks after the whole server is told whose they are."""
    client, there, hearer = _Pulled(), _Client(), _Hearer()
    async with background(NatsPullTeller(cast(Client, client)).follow()):
        await eventually(lambda: subjects.ANY_GOAL in client.heard)
        goal = Msg(cast(Client, client), "ioa.v1.goal.eve", "", b"", {LAST_OF: "ioa.v1.goal.>"})
        client.heard[subjects.ANY_GOAL].set_result(goal)
        told = await eventually(lambda: [data for subject, data in client.published if subject == subjects.PULLED])
    async with NatsConnections(cast(Client, there)).hearing(hearer):
        there.tell("acme", told[0])
    assert hearer.searching == [("eve", 100_000, "acme")]


async def test_many_replicas_of_a_tenant_are_heard() -> None:
    """Registries tell of pulls, group setups of goals that are refused, once in a second each: what is short counts as little."""
    client, hearer = _Client(), _Hearer()
    async with NatsConnections(cast(Client, client)).hearing(hearer):
        for number in range(20):
            client.tell("acme", f'{{"messages":{{"U{number}":1}}}}'.encode())
            client.tell("acme", f'{{"refused":{{"u{number}":1}}}}'.encode())
    assert (len(hearer.pulled), len(hearer.refused_goals)) == (20, 20)


async def test_whom_the_server_does_not_let_in_is_told_by_the_address() -> None:
    """Of very many some are, and more when it is counted next; what says none is passed over."""
    client, hearer = _Pulled(), _Hearer()
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        for data in (b'{"client":{"host":"192.0.2.7","reason":"Authentication Failure"}}', b"{}", b"\x00"):
            client.heard[TURNED_AWAY].set_result(Msg(cast(Client, client), "$SYS.SERVER.S1.CLIENT.AUTH.ERR", "", data))
    assert hearer.strangers == ["192.0.2.7"]


async def test_who_has_the_server_tell_very_much_of_him_floods() -> None:
    """How a client is called it says itself, and each list of connections has it: a hundred such were more than can be sent."""
    client, hearer = _Pulled(), _Hearer()
    async with NatsConnections(cast(Client, client)).hearing(hearer):
        for key, name in (("UBOB", "ioa-agent"), ("UEVE", "<" * 3_000)):
            shown = {"id": 7, "acc": "IOA_USERS", "user": key, "name": name}
            told = json.dumps({"server": {"id": "S1"}, "client": shown}).replace("<", "\\u003c").encode()
            client.heard[CONNECTED].set_result(Msg(cast(Client, client), "$SYS.ACCOUNT.IOA_USERS.CONNECT", "", told))
    assert hearer.pulled == [("UEVE", 100_000, None)]


async def test_a_pull_counts_as_what_the_server_keeps_of_it() -> None:
    """Whatever it asks for: 900 pulls a second, each with another long reply subject, had the server grow to half a GB."""
    client, hearer = _Pulled(), _Hearer()
    connections = NatsConnections(cast(Client, client))
    async with connections.hearing(hearer):
        await connections.count()
        for data in (b'{"batch":1,"expires":4999900000}', b'{"batch":1}'):
            told = {SHOWN_ASKER: '{"acc":"IOA_AGENTS","user":"mallory"}'}
            client.heard[f"{PULLS}*"].set_result(Msg(cast(Client, client), f"{PULLS}any", "", data, told))
    assert hearer.pulled == [("mallory", 99, None), ("mallory", 320, None)]
