"""Who floods the server is told from who only works, by what connections have sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from structlog.testing import capture_logs

from ioa.cli.examination import quotas_finding
from ioa.errors import ForbiddenError
from ioa.ports.connections import ConnectionHearer, ConnectionId, Connections, KeyHolders, SentTotals
from ioa.ports.inspection import FLOOD, RETURNED, TRACED, TURNED_AWAY, UNCOUNTED, SlowedCaller
from ioa.protocol.audit import AuditLine, Deed
from ioa.protocol.ids import TenantId, UserId
from ioa.protocol.kept_out import Readmit
from ioa.quotas import Rate
from ioa.runtime.audit import AuditLog
from ioa.runtime.process import background
from ioa.testing.manual_clock import ManualClock
from ioa_registry.floods import Excess, FloodJudge, FloodLimits, FloodWatch
from tests.rig.deadline import eventually

LIMITS = FloodLimits(
    Rate(100, 1_000),
    bytes=Rate(1_000_000, 4_000_000),
    pause=60.0,
    connections=50,
    subscriptions=1_000,
    uncounted=Rate(100_000, 8_000_000),
)


def sent(number: int, key: str, messages: int, size: int = 0) -> SentTotals:
    """What a connection of one server has sent."""
    return SentTotals(ConnectionId("S1", number), key, messages, size)


def test_who_stays_within_its_rate_is_never_put_off() -> None:
    """Whoever works for a day at the rate that is allowed, with a burst in each minute, is let be."""
    judge, total = FloodJudge(LIMITS), 0
    for second in range(86_400):
        total += 600 if second % 60 == 0 else 90
        assert judge.counted("S1", [sent(1, "worker", total)], float(second)) == frozenset()


def test_a_flood_is_put_off_at_once_and_for_a_while() -> None:
    """A key that sends more than its burst is put off, until the pause is over; another one beside it is not."""
    judge = FloodJudge(LIMITS)
    assert judge.counted("S1", [sent(1, "eve", 0), sent(2, "bob", 0)], 0.0) == frozenset()
    assert judge.counted("S1", [sent(1, "eve", 5_000), sent(2, "bob", 50)], 1.0) == {"eve"}
    assert [judge.is_put_off("eve", at) for at in (1.0, 60.9, 61.1)] == [True, True, False]
    assert not judge.is_put_off("bob", 1.0)
    assert judge.put_off(2.0) == {"eve": Excess(FLOOD, 5_000)}


def test_whoever_floods_again_is_kept_out_for_longer() -> None:
    """Each pause is twice the one before, up to an hour; who kept quiet for a day begins anew."""
    judge, now, pauses = FloodJudge(LIMITS), 0.0, list[float]()
    judge.counted("S1", [], now)
    for number in range(1, 10):
        judge.counted("S1", [sent(number, "eve", 5_000)], now)
        pause = next(seconds for seconds in range(4_000) if not judge.is_put_off("eve", now + seconds))
        pauses.append(pause)
        now += pause
    assert pauses == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]
    now += 90_000
    judge.counted("S1", [sent(100, "eve", 5_000)], now)
    assert (judge.kept_out(now + 59), judge.kept_out(now + 61)) == (["eve"], [])


def test_who_is_readmitted_is_as_one_who_never_flooded() -> None:
    """Nobody ends his connections, nobody names him, and his next flood is his first."""
    judge = FloodJudge(LIMITS)
    judge.counted("S1", [], 0.0)
    judge.counted("S1", [sent(1, "eve", 5_000)], 1.0)
    assert judge.readmit("eve")
    assert not judge.readmit("eve")
    assert (judge.is_put_off("eve", 1.0), judge.kept_out(1.0), judge.put_off(1.0)) == (False, [], {})
    judge.counted("S1", [sent(2, "eve", 5_000)], 2.0)
    assert [judge.is_put_off("eve", at) for at in (61.0, 63.0)] == [True, False]


def test_large_messages_flood_too() -> None:
    """Few messages of many bytes are a flood as well."""
    judge = FloodJudge(LIMITS)
    judge.counted("S1", [sent(1, "eve", 0)], 0.0)
    assert judge.counted("S1", [sent(1, "eve", 10, 9_000_000)], 1.0) == {"eve"}


def test_a_slow_flood_is_one_in_the_end() -> None:
    """Who sends half as much again as allowed, without pause, is put off when the burst is used up."""
    judge = FloodJudge(LIMITS)
    found = [second for second in range(60) if judge.counted("S1", [sent(1, "eve", 150 * second)], float(second))]
    assert found[0] == 19


def test_the_connections_of_a_key_count_together_and_those_that_ended_too() -> None:
    """Neither many connections at a time nor a new one after the other makes room for more."""
    side_by_side = FloodJudge(LIMITS)
    side_by_side.counted("S1", [sent(number, "eve", 0) for number in range(20)], 0.0)
    assert side_by_side.counted("S1", [sent(number, "eve", 60) for number in range(20)], 1.0) == {"eve"}
    in_turn = FloodJudge(LIMITS)
    in_turn.counted("S1", [], 0.0)
    judged = [in_turn.closed(sent(number, "eve", 400), 0.1 * number) for number in (1, 2, 3)]
    assert judged == [frozenset(), frozenset(), {"eve"}]


def test_what_servers_do_not_count_is_a_flood_too() -> None:
    """Of all connections of a key together; who subscribes at the rate that is allowed for a day, with bursts, is let be."""
    judge = FloodJudge(LIMITS)
    assert not any(judge.uncounted("bob", 3_000_000 if second % 60 == 0 else 40_000, float(second)) for second in range(86_400))
    told = [judge.uncounted("eve", 3_000_000, second / 2) for second in range(3)]
    assert told == [frozenset(), frozenset(), {"eve"}]
    assert judge.put_off(2.0) == {"eve": Excess(UNCOUNTED, 8)}
    assert not judge.uncounted("eve", 9_000_000, 3.0), "it is told once"
    assert not judge.uncounted("acme/service:router", 70_000_000, 4.0, is_service=True)
    assert judge.uncounted("acme/service:router", 70_000_000, 4.0, is_service=True)


async def test_gates_alone_tell_what_servers_do_not_count() -> None:
    """No tenant is believed, who acts for many is let be, and who is not known yet is told of again."""
    server, audit = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry")
    eve, gateway, of_acme = (ConnectionId("S1", number) for number in (1, 2, 3))

    async def roster() -> KeyHolders:
        return KeyHolders({"UEVE": "eve", "UBOB": "acme/bob"}, frozenset({"UGATEWAY"}))

    watch = FloodWatch(server, LIMITS, roster, audit, lambda: 1.0)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        watch.uncounted(eve, 10**9)
        watch.opened(sent(1, "UEVE", 0))
        watch.opened(sent(2, "UGATEWAY", 0))
        watch.opened(replace(sent(3, "UBOB", 0), tenant=TenantId("acme")))
        watch.uncounted(gateway, 10**9)
        watch.uncounted(of_acme, 10**9, TenantId("acme"))
        assert watch.slowed() == []
        watch.uncounted(eve, 9_000_000)
        await eventually(lambda: set(server.ended) == {1})
    assert watch.slowed() == [SlowedCaller("eve", UNCOUNTED, 9)]


def test_who_connects_again_and_again_floods() -> None:
    """Nothing has to be sent on a connection: letting somebody in costs the server more than that; once a second is no flood."""
    judge = FloodJudge(LIMITS)
    assert not any(judge.opened("bob", float(number)) for number in range(1, 500))
    judged = [bool(judge.opened("eve", 500.0)) for _ in range(150)]
    assert judged.index(True) == 100
    assert judge.put_off(500.0) == {"eve": Excess(FLOOD, 1_010)}


def test_nobody_holds_what_all_need() -> None:
    """Who has more connections at a server, or subscriptions, than anybody honest is put off, though nothing is sent on them."""
    for each, subscriptions, why in ((51, 0, Excess("connections", 51)), (5, 201, Excess("subscriptions", 1_005))):
        judge = FloodJudge(LIMITS)
        eves = [replace(sent(number, "eve", 0), subscriptions=subscriptions) for number in range(each)]
        bobs = [replace(sent(100 + number, "bob", 0), subscriptions=20) for number in range(50)]
        assert judge.counted("S1", [*eves, *bobs], 0.0) == {"eve"}
        assert judge.put_off(0.0) == {"eve": why}
        assert judge.counted("S1", [*eves, *bobs], 1.0) == frozenset(), "it is told once"
        assert [judge.is_put_off("eve", at) for at in (60.9, 61.1)] == [True, False]
        assert judge.counted("S1", eves, 70.0) == {"eve"}
        assert [judge.is_put_off("eve", at) for at in (189.9, 190.1)] == [True, False], "it comes back with as many"


def test_what_was_sent_before_anybody_looked_counts_for_nothing() -> None:
    """A replica that starts, and a connection that was not listed before, tell nothing of when their messages came."""
    judge = FloodJudge(LIMITS)
    assert judge.closed(sent(3, "old", 10**9), 0.0) == frozenset()
    assert judge.counted("S1", [sent(1, "old", 10**9), sent(7, "bob", 5)], 0.0) == frozenset()
    assert judge.counted("S1", [sent(1, "old", 10**9), sent(4, "older", 10**9)], 1.0) == frozenset()
    assert judge.counted("S1", [sent(8, "eve", 10**6)], 2.0) == {"eve"}


def test_what_was_sent_by_who_was_let_in_late_counts() -> None:
    """Who waits with it until others have come after him was seen meanwhile, with nothing sent."""
    judge = FloodJudge(LIMITS)
    judge.counted("S1", [sent(1, "", 0), sent(2, "eve", 0)], 0.0)
    assert judge.closed(sent(1, "eve", 5_000), 0.5) == {"eve"}


def _watching(connections: Connections) -> FloodWatch:
    """A watch that knows eve and bob."""

    async def roster() -> KeyHolders:
        return KeyHolders({"UEVE": "eve", "UBOB": "bob"}, frozenset())

    return FloodWatch(connections, LIMITS, roster, AuditLog(_Lines(), ManualClock(), "registry"), lambda: 1.0)


async def test_whose_a_connection_is_follows_from_how_it_began() -> None:
    """It ends under whichever name, is listed under none, or in its place by another's key; also after a list that is older."""
    server = _Connections([])
    watch = _watching(server)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        for number in range(1, 5):
            watch.opened(sent(number, "UEVE", 0))
            watch.closed(sent(number, ("", "UBOB", "bob", "user:bob")[number - 1], 241))
        assert watch.slowed() == [SlowedCaller("eve", FLOOD, 1_004)]
        await watch.readmit(Readmit(name="eve"))
        for number, key in ((20, ""), (21, "UBOB")):
            watch.opened(sent(number, "UEVE", 0))
            server.listed = [sent(10, "UBOB", 0)]
            await server.count()
            server.listed = [sent(10, "UBOB", 0), sent(number, key, 5_000)]
            await server.count()
            assert watch.slowed()[0].caller == "eve"
            await eventually(partial(server.has_ended, number))
            await watch.readmit(Readmit(name="eve"))
            watch.closed(sent(number, "UBOB", 5_000))
        assert watch.slowed() == []


async def test_whose_a_connection_is_that_nobody_heard_begin_follows_from_a_list() -> None:
    """Its end counts, whatever is said there; one that no list named is nobody's, since whoever it was may say anybody's name."""
    server = _Connections([sent(1, "UEVE", 0), sent(2, "", 0)])
    watch = _watching(server)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        watch.closed(sent(2, "UBOB", 5_000))
        watch.closed(sent(3, "UBOB", 5_000))
        assert watch.slowed() == []
        watch.closed(sent(1, "UBOB", 5_000))
        assert [one.caller for one in watch.slowed()] == ["eve"]


async def test_who_is_let_in_again_and_again_on_one_connection_floods() -> None:
    """It costs the server as much as on another one."""
    server = _Connections([])
    watch = _watching(server)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        for _ in range(100):
            watch.opened(sent(1, "UEVE", 0))
        assert watch.slowed() == []
        watch.opened(sent(1, "UEVE", 0))
        assert [one.caller for one in watch.slowed()] == ["eve"]


async def test_servers_that_are_gone_are_forgotten() -> None:
    """Each start of one has a name of its own: of the newest is known what was sent there, and who is there."""
    judge = FloodJudge(LIMITS)
    for number in range(65):
        judge.counted(f"S{number}", [SentTotals(ConnectionId(f"S{number}", 1), "eve", 0, 0)], float(number))
    found = [judge.counted(one, [SentTotals(ConnectionId(one, 1), "eve", 10**6, 0)], 70.0) for one in ("S0", "S64")]
    assert found == [frozenset(), {"eve"}]

    async def roster() -> KeyHolders:
        return KeyHolders({}, frozenset())

    watch = FloodWatch(_Connections([]), LIMITS, roster, AuditLog(_Lines(), ManualClock(), "registry"), lambda: 1.0)
    for number in range(65):
        watch.counted(f"S{number}", [SentTotals(ConnectionId(f"S{number}", 1), f"user:u{number}", 0, 0)])
    for user in ("u0", "u64"):
        watch.searched(UserId(user), 100_000)
    assert [one.caller for one in watch.slowed()] == ["user:u64"]


def test_who_connects_without_end_is_not_ended_without_end() -> None:
    """Connecting costs the server more than a short flood: beyond twenty at once, a new connection lives until it is counted."""
    judge = FloodJudge(LIMITS)
    judge.counted("S1", [], 0.0)
    assert not judge.ends_at_once("eve", 0.5)
    judge.counted("S1", [sent(1, "eve", 5_000)], 1.0)
    assert sum(judge.ends_at_once("eve", 1.0 + number / 1_000) for number in range(1_000)) in range(25, 35)
    assert [judge.ends_at_once("eve", at) for at in (5.0, 60.0, 62.0)] == [True, True, False]


class _Connections:
    """A server whose connections a test makes up; it is told which were ended."""

    def __init__(self, listed: Sequence[SentTotals]) -> None:
        self.listed = list(listed)
        self.ended: list[int] = []
        self.kept_out: list[Collection[str]] = []
        self.hearer: ConnectionHearer | None = None

    @asynccontextmanager
    async def hearing(self, hearer: ConnectionHearer) -> AsyncIterator[None]:
        self.hearer = hearer
        yield

    async def count(self) -> None:
        assert self.hearer is not None
        self.hearer.counted("S1", self.listed)

    async def keep_out(self, names: Collection[str]) -> None:
        self.kept_out.append(names)

    async def end(self, connection: ConnectionId) -> None:
        self.ended.append(connection.number)

    def has_ended(self, number: int) -> bool:
        return number in self.ended


class _Lines:
    def __init__(self) -> None:
        self.lines: list[AuditLine] = []

    async def put(self, line: AuditLine, *, key: str) -> None:
        self.lines.append(line)


async def test_who_floods_is_named_and_its_connections_are_ended_old_and_new() -> None:
    """The doctor and the audit log hear the name; a gateway, which acts for many, is let be whatever it sends."""
    server = _Connections([sent(1, "UEVE", 0), sent(2, "UGATEWAY", 0), sent(3, "UBOB", 0)])
    sink, clock = _Lines(), ManualClock()
    audit = AuditLog(sink, clock, "registry")

    async def roster() -> KeyHolders:
        return KeyHolders({"UEVE": "eve", "UBOB": "bob"}, frozenset({"UGATEWAY"}))

    now = [0.0]
    watch = FloodWatch(server, LIMITS, roster, audit, lambda: now[0])
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        now[0], server.listed = 1.0, [sent(1, "UEVE", 5_000), sent(2, "UGATEWAY", 10**9), sent(3, "UBOB", 9)]
        await server.count()
        watch.opened(sent(9, "UEVE", 0))
        watch.opened(sent(10, "UBOB", 0))
        await eventually(lambda: set(server.ended) == {1, 9})
        await eventually(lambda: server.kept_out[-1] == ["eve"])
        assert watch.slowed() == [SlowedCaller("eve", FLOOD, 5_000)]
        await watch.readmit(Readmit(name="eve"))
        await eventually(lambda: server.kept_out[-1] == [])
    await audit.flush()
    assert set(server.ended) == {1, 9}
    assert [(line.deed, line.who, line.target) for line in sink.lines] == [
        (Deed.SLOWED, "eve", FLOOD),
        (Deed.READMITTED, "_admin", "eve"),
    ]


class _Busy(_Connections):
    """One that lists its connections once: what it is asked then waits behind what else it has to say."""

    async def count(self) -> None:
        if self.listed:
            await super().count()
            self.listed = []


async def test_who_is_put_off_is_ended_where_the_next_list_is_long_in_coming() -> None:
    """By what is known of his connections, under whichever key: those that were listed, and those that were opened since."""
    server, audit = _Busy([sent(1, "UEVE", 0), sent(2, "UBOB", 0)]), AuditLog(_Lines(), ManualClock(), "registry")

    async def roster() -> KeyHolders:
        return KeyHolders({"UEVE": "eve", "UEVE2": "eve", "UBOB": "bob"}, frozenset())

    watch = FloodWatch(server, LIMITS, roster, audit, lambda: 1.0)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None and not server.listed)
        watch.opened(sent(3, "UEVE2", 0))
        watch.pulling("UEVE", 100_000)
        await eventually(lambda: set(server.ended) == {1, 3})


def test_who_has_much_sent_for_few_requests_floods_too() -> None:
    """Requests for a thousand messages count, though they are few; one who takes as many as a client decodes does not flood."""
    judge = FloodJudge(LIMITS)
    assert [judge.pulled("bob", 250, 0.25 * number) for number in range(400)] == [frozenset()] * 400
    assert [number for number in range(4) if judge.pulled("eve", 1_000, 0.01 * number)] == [2]


def test_who_has_the_server_send_without_end_floods_too() -> None:
    """One request may be answered by many messages, as a pull with a heartbeat of a millisecond is; what is pushed is no flood."""
    judge = FloodJudge(LIMITS)
    for second in range(60):
        bob, eve = SentTotals(ConnectionId("S1", 1), "bob", 1, 0, 500 * second), SentTotals(ConnectionId("S1", 2), "eve", 1, 0, 0)
        assert judge.counted("S1", [bob, eve], float(second)) == frozenset()
    assert judge.counted("S1", [replace(eve, received=50_000)], 60.0) == {"eve"}


def test_who_is_sent_what_another_asked_for_does_not_flood() -> None:
    """Nor when it is told later that he is answerable for what comes: what came before is not his."""
    judge, bob = FloodJudge(LIMITS), SentTotals(ConnectionId("S1", 1), "bob", 1, 0, 0, is_answerable=False)
    for received, answerable in ((0, False), (50_000, False), (50_010, True)):
        now = replace(bob, received=received, is_answerable=answerable)
        assert judge.counted("S1", [now], received / 10_000) == frozenset()


async def test_a_tenant_tells_of_its_own_agents_alone() -> None:
    """How much they ask for puts them off by their full names; of another tenant's it is not heeded, nor of who is not there."""
    server, audit = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry")

    async def roster() -> KeyHolders:
        return KeyHolders({"UBOB": "acme/bob", "UANNA": "umbra/anna", "UZOE": "zoe"}, frozenset())

    watch = FloodWatch(server, LIMITS, roster, audit, lambda: 1.0)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        watch.counted("S1", [sent(1, "acme/guest", 0), sent(2, "umbra/guest", 0)])
        for key in ("UBOB", "UANNA", "UZOE", "umbra/guest", "acme/guest", "acme/nobody"):
            watch.pulling(key, 100_000, TenantId("acme"))
    assert [one.caller for one in watch.slowed()] == ["acme/guest", "acme/bob"]


async def test_whose_messages_are_traced_is_put_off_and_no_tenant_names_anothers() -> None:
    """Also who has gone, and who is seen only after he was told of; a gateway is let be."""
    server, audit = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry")
    acme, umbra = TenantId("acme"), TenantId("umbra")

    async def roster() -> KeyHolders:
        return KeyHolders({"UEVE": "eve", "UBOB": "acme/bob", "UANNA": "umbra/anna"}, frozenset({"UGATEWAY"}))

    watch = FloodWatch(server, LIMITS, roster, audit, lambda: 1.0)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        watch.opened(sent(1, "UEVE", 0))
        watch.closed(sent(1, "", 1))
        watch.opened(sent(2, "UGATEWAY", 0))
        watch.opened(replace(sent(3, "UANNA", 0), tenant=umbra))
        for number, told_by in ((1, None), (2, None), (3, acme), (4, acme), (5, umbra)):
            watch.traced(ConnectionId("S1", number), told_by)
        for number in range(100, 5_100):  # what a tenant makes up pushes out nothing that others told
            watch.traced(ConnectionId("S1", number), umbra)
        server.listed = [replace(sent(number, key, 0), tenant=acme) for number, key in ((4, "UBOB"), (5, "UOBSERVER"))]
        await server.count()
        await eventually(lambda: set(server.ended) == {1, 4})
    assert set(watch.slowed()) == {SlowedCaller("eve", TRACED, 1), SlowedCaller("acme/bob", TRACED, 1)}


async def test_who_goes_on_with_goals_that_are_refused_floods_too() -> None:
    """Not by those that he had published before somebody noticed; each control plane tells of its own users, guests too."""
    server, audit = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry")

    async def roster() -> KeyHolders:
        names = {"UEVE": "eve", "UBOB": "bob", "UANNA": "acme/anna", "UGUS": "acme/gus"}
        return KeyHolders(names, frozenset(), frozenset(names.values()))

    watch, limits = FloodWatch(server, replace(LIMITS, messages=Rate(1_000, 20_000)), roster, audit, lambda: 1.0), (100, 50)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        watch.counted("S1", [sent(1, "user:guest", 0)])
        for goals in limits:
            watch.refused(UserId("eve"), goals, None)
            watch.refused(UserId("guest"), goals, None)
            watch.refused(UserId("nobody"), goals, None)
            watch.refused(UserId("anna"), goals, TenantId("acme"))
            watch.refused(UserId("bob"), goals, TenantId("acme"))
        watch.refused(UserId("bob"), 100, None)
        watch.refused(UserId("gus"), 1_000, TenantId("umbra"))
    assert {one.caller: one.refused for one in watch.slowed()} == {"eve": 45_000, "user:guest": 45_000, "acme/anna": 45_000}


async def test_what_a_user_does_puts_off_no_agent_that_is_called_like_him() -> None:
    """Who comes by HTTP, with a key of the gateway's, bears any name; guests bear their role with it."""
    server, audit = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry")

    async def roster() -> KeyHolders:
        return KeyHolders({"UEVE": "eve", "UBOB": "bob", "UANNA": "acme/anna"}, frozenset(), frozenset({"eve", "acme/anna"}))

    watch = FloodWatch(server, LIMITS, roster, audit, lambda: 1.0)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        watch.counted("S1", [sent(1, "user:guest", 0), sent(2, "agent:guest", 0), sent(3, "acme/user:guest", 0)])
        for user in map(UserId, ("bob", "guest", "eve")):
            watch.refused(user, 1_000, None)
            watch.searched(user, 100_000)
        for user in map(UserId, ("anna", "guest")):
            watch.searched(user, 100_000, TenantId("acme"))
    assert [one.caller for one in watch.slowed()] == ["acme/user:guest", "acme/anna", "eve", "user:guest"]


async def test_a_tenant_that_names_thousands_holds_nobody_up() -> None:
    """Each name is looked up once: of a message with as many as there is room for, none takes longer than the first."""
    server, audit, looked_at = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry"), list[float]()
    holders = {f"U{number}": f"acme/{number}" for number in range(2_000)}

    async def roster() -> KeyHolders:
        return KeyHolders(holders, frozenset())

    def now() -> float:
        looked_at.append(1.0)
        return 1.0

    watch = FloodWatch(server, LIMITS, roster, audit, now)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        with capture_logs():
            for number in range(40_000):
                watch.pulling(f"acme/invented-{number}", 100_000, TenantId("acme"))
            assert len(looked_at) < 10
            for key in holders:
                watch.pulling(key, 100_000, TenantId("acme"))
    assert len(watch.slowed()) == 2_000


async def test_whom_a_tenant_invents_is_looked_for_at_once_however_many_are_there() -> None:
    """A tenant names 180 at once, five times a second: beside 20,000 connections each of them took milliseconds."""

    async def roster() -> KeyHolders:
        return KeyHolders({}, frozenset())

    watch = FloodWatch(_Connections([]), LIMITS, roster, AuditLog(_Lines(), ManualClock(), "registry"), lambda: 1.0)
    for server in range(20):  # what each tells is read at once
        watch.counted(f"S{server}", [sent(number, f"acme/user:{1_000 * server + number}", 0) for number in range(1_000)])
        await asyncio.sleep(0)
    began = time.process_time()
    for number in range(900):
        watch.pulling(f"acme/user:invented-{number}", 100_000, TenantId("acme"))
    assert time.process_time() - began < 0.2
    watch.pulling("acme/user:7", 100_000, TenantId("acme"))
    assert [one.caller for one in watch.slowed()] == ["acme/user:7"]


async def test_who_gives_goals_back_again_and_again_is_named() -> None:
    """One that stops gives back what it does, and is not; nobody is kept out for being named."""
    server, now = _Connections([]), [1.0]

    async def roster() -> KeyHolders:
        return KeyHolders({"UEVE": "eve", "UBOB": "bob"}, frozenset())

    watch = FloodWatch(server, LIMITS, roster, AuditLog(_Lines(), ManualClock(), "registry"), lambda: now[0])
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        for _ in range(50):
            watch.gave_back("UBOB")
        with capture_logs() as logs:
            for _ in range(100):
                watch.gave_back("UEVE")
                now[0] += 0.1
        assert [line["event"] for line in logs] == ["caller_named"], "nobody is slowed down"
        assert watch.slowed() == [SlowedCaller("eve", RETURNED, 31)]


async def test_where_somebody_comes_from_in_vain_again_and_again_is_named() -> None:
    """By his address, or his network of IPv6; a process whose key was revoked asks again seldom. Nobody is kept out for it."""
    now = [1.0]

    async def roster() -> KeyHolders:
        return KeyHolders({}, frozenset())

    watch = FloodWatch(_Connections([]), LIMITS, roster, AuditLog(_Lines(), ManualClock(), "registry"), lambda: now[0])
    for _ in range(100):
        watch.turned_away("192.0.2.7")
        watch.turned_away("2001:db8::7")
        watch.turned_away("nowhere")
    for _ in range(100):
        watch.turned_away("192.0.2.9")
        now[0] += 5
    now[0] = 2.0
    named = watch.slowed()
    assert [(one.caller, one.family, one.refused) for one in named] == [
        ("192.0.2.7", TURNED_AWAY, 40),
        ("2001:db8::/64", TURNED_AWAY, 40),
    ]
    assert quotas_finding(named).message == (
        "Connecting again and again without a key that lets in: 192.0.2.7 (40 times), 2001:db8::/64 (40 times)."
    )


async def test_who_was_disconnected_last_is_told_first() -> None:
    """Where more are put off than the doctor names, an operator hears of who floods now."""
    now = [0.0]

    async def roster() -> KeyHolders:
        return KeyHolders({}, frozenset())

    watch = FloodWatch(_Connections([]), LIMITS, roster, AuditLog(_Lines(), ManualClock(), "registry"), lambda: now[0])
    for number in range(100):
        watch.pulling(f"eve-{number}", 1_000_000 - number)
    told = [one.caller for one in watch.slowed()]
    assert told == [f"eve-{number}" for number in range(99, -1, -1)]
    message = quotas_finding(watch.slowed()).message
    assert ("disconnected: eve-99 (" in message, message.count(" messages)")) == (True, 50)
    assert "eve-50 (999,950 messages) and 50 more." in message


def test_no_tenant_has_another_forgotten() -> None:
    """Where very many are put off, each tenant's are remembered, those that were put off last."""
    judge = FloodJudge(LIMITS)
    judge.pulled("umbra/eve", 100_000, 0.0)
    judge.pulled("mallory", 100_000, 0.0)
    for number in range(20_000):
        judge.pulled(f"acme/{number}", 100_000, 1.0)
    judge.counted("S1", [], 2.0)
    kept = judge.kept_out(2.0)
    assert (kept[0], {"mallory", "umbra/eve"} <= {*kept}, len(kept)) == ("acme/19999", True, 2 + 16_384 // 3)


def test_no_tenant_takes_anothers_place_among_those_who_are_told() -> None:
    """Of very many some are told to the gate: each tenant's newest, in turn."""
    judge = FloodJudge(LIMITS)
    judge.pulled("umbra/eve", 100_000, 0.0)
    judge.pulled("mallory", 100_000, 0.0)
    for number in range(2_000):
        judge.pulled(f"acme/{number}", 100_000, 1.0)
    assert judge.kept_out(2.0)[:4] == ["acme/1999", "mallory", "umbra/eve", "acme/1998"]
    assert len(judge.kept_out(2.0)) == 2_002


async def test_an_agent_that_drowns_is_let_in_again_at_once() -> None:
    """What another has sent to it ends its connection, so that the server forgets what there was to send; nobody is put off."""
    server, audit = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry")

    async def roster() -> KeyHolders:
        return KeyHolders({"UBOB": "bob"}, frozenset())

    watch = FloodWatch(server, LIMITS, roster, audit, lambda: 1.0)
    bob = SentTotals(ConnectionId("S1", 1), "UBOB", 1, 0, 0, is_answerable=False, is_agent=True)
    anna = replace(bob, connection=ConnectionId("S1", 2), is_agent=False)
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        for received in (0, 1_000, 60_000):
            watch.counted("S1", [replace(bob, received=received), replace(anna, received=received)])
        await eventually(lambda: server.ended == [1])
    assert (watch.slowed(), [one for one in server.kept_out if one]) == ([], [])


async def test_whose_keys_are_replaced_is_one_holder_under_both() -> None:
    """The old and the new key make no room for more; a guest by a token bears his name already."""
    server, audit = _Connections([]), AuditLog(_Lines(), ManualClock(), "registry")

    async def roster() -> KeyHolders:
        return KeyHolders({"UOLD": "bob", "UNEW": "bob"}, frozenset())

    now = [0.0]
    watch = FloodWatch(server, LIMITS, roster, audit, lambda: now[0])
    async with background(watch.follow()):
        await eventually(lambda: server.hearer is not None)
        now[0] = 1.0
        watch.opened(sent(10, "acme/guest", 0))
        watch.closed(sent(10, "", 5_000))
        watch.counted("S1", [sent(20, "UOLD", 600), sent(21, "UNEW", 600)])
        await eventually(lambda: server.kept_out[-1] == ["bob", "acme/guest"])


class _Older(_Connections):
    """A server whose authorization does not know what a registry asks."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked = 0

    async def keep_out(self, names: Collection[str]) -> None:
        raise ForbiddenError("The authorization is older.", hint="Upgrade it.")

    async def count(self) -> None:
        self.asked += 1

    def was_asked(self, times: int) -> bool:
        return self.asked >= times


async def test_an_authorization_that_is_older_is_told_of_once() -> None:
    """Not with each second: what may not be asked is tried again, and the log says it when it begins."""
    server, audit = _Older(), AuditLog(_Lines(), ManualClock(), "registry")

    async def roster() -> KeyHolders:
        return KeyHolders({}, frozenset())

    watch = FloodWatch(server, LIMITS, roster, audit, lambda: 1.0)
    with capture_logs() as logs:
        async with background(watch.follow()):
            for number in range(1, 5):
                await eventually(partial(server.was_asked, number))
                watch.closed(sent(number, f"U{number}", 0))
                watch.counted("S1", [])
                watch.counted("S1", [sent(10 + number, f"U{number}", 5_000)])
    assert [line["hint"] for line in logs if line["event"] == "floods_not_watched"] == ["Upgrade it."]


def test_a_service_of_a_tenant_may_send_ten_times_as_much() -> None:
    """Its operator has its key: beyond that it is put off as others are. How many connections it has is bounded by its account."""
    judge = FloodJudge(LIMITS)

    def service(messages: int) -> SentTotals:
        return replace(sent(1, "acme/service:router", messages), is_service=True, subscriptions=5_000)

    judge.counted("S1", [service(0)], 0.0)
    assert [judge.counted("S1", [service(900 * second)], float(second)) for second in range(1, 60)] == [frozenset()] * 59
    assert judge.counted("S1", [service(900 * 59 + 5_000)], 60.0) == {"acme/service:router"}
