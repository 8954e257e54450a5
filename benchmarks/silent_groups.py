"""Groups whose members say 200 bytes and nothing else: the load that measures what the system itself costs.

The members are on the wire only. They know beforehand what they will say; one speaks as soon as the push that gives it the
floor has arrived, so that what is measured is the path through router and server, and little else.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import msgpack
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.delivery.nats_delivery import NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats.stores.open_group_store import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.subscriptions import MessageSink
from ioa.adapters.system_clock import SystemClock
from ioa.concurrency import beside
from ioa.group.events import GroupLaunched
from ioa.protocol import subjects
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import encode
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, MessageId, PoolId, SessionId
from ioa.protocol.messages import Discussion, Header, Message, Phase
from ioa.protocol.policy import Casting, Policy
from ioa.protocol.registry import Claim, Session
from ioa.protocol.setup.charter import Charter, Limits
from ioa.protocol.setup.open_groups import OpenGroup
from ioa.runtime.ledger import GroupLedger

REPLY_BYTES = 200
NONCE = "silent"
"""That of every inbox."""
_SESSION = SessionId("silent")
_LAUNCHES_AT_ONCE = 16
_LONGEST_TALK_SECONDS = 600
_LOOK_SECONDS = 1.0
"""How often it is looked which groups hear nothing. Few do, and one that lasts so long is none of what is measured."""
_SYLLABLES = "am bir ced del em fjo gro her in jun kel lar map net osp pop qua ree sor tan".split()
_WORDS = tuple(map("".join, itertools.product(_SYLLABLES, repeat=3)))
_numbers = itertools.count()


def say_something(chance: random.Random) -> str:
    """Make 200 bytes of plain words that repeat nothing said before."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < REPLY_BYTES:
        words.append(chance.choice(_WORDS))
    return " ".join(words)[:REPLY_BYTES]


def create_charter(agent_ids: Sequence[AgentId], turns: int, policy: Policy | None = None) -> Charter:
    """Make the charter of a new group that has `turns` turns and all day to take them. Members hold a policy's roles in turn."""
    comm_id = f"bench-{next(_numbers)}-{time.time_ns()}"
    roles = [] if policy is None else policy.roles
    limits = Limits(max_turns=turns, deadline=SystemClock().now() + timedelta(hours=12), floor_timeout=timedelta(minutes=10))
    return Charter(
        comm_id=CommId(comm_id),
        goal_id=GoalId(comm_id),
        user=LOCAL,
        goal="Say something, in turns.",
        owner=agent_ids[0],
        team_members=tuple(AgentCard(agent_id=one, name=one, description="Says something.", pool=one) for one in agent_ids),
        team_up_depth=0,
        limits=limits,
        policy=policy,
        cast=tuple(Casting(role=role.name, members=tuple(agent_ids[number :: len(roles)])) for number, role in enumerate(roles)),
    )


async def launch(client: Client, charters: Sequence[Charter]) -> None:
    """Open groups as group setup does, without asking who is online."""
    clock, open_groups, memberships = SystemClock(), NatsOpenGroups(client), NatsMemberships(client)
    ledger = GroupLedger(
        NatsGroupLog(client), NatsTimers(client), NatsInboxes(client, lambda _: NONCE), NatsResults(client), open_groups, clock
    )
    sessions, held = NatsSessions(client), Session(session=_SESSION, host="bench", pid=0, since=clock.now())
    at_once = asyncio.Semaphore(_LAUNCHES_AT_ONCE)

    async def one(charter: Charter) -> None:
        async with at_once:
            for member in charter.team_members:
                await sessions.write(member.agent_id, Claim(session=held, card="", inbox=NONCE), revision=0)
            await open_groups.put(LOCAL, charter.comm_id, OpenGroup(goal_id=charter.goal_id, deadline=charter.limits.deadline))
            # Whoever misses the first push, being about to listen, learns of the group by this.
            await memberships.add([member.agent_id for member in charter.team_members], charter.comm_id)
            await ledger.record(charter.comm_id, GroupLaunched(at=clock.now(), charter=charter))

    async with asyncio.TaskGroup() as group:
        for charter in charters:
            group.create_task(one(charter))


class SilentGroup:
    """One group and all its members, who speak in turn."""

    def __init__(self, client: Client, members: int, turns: int, answers: str, policy: Policy | None) -> None:
        chance = random.Random(next(_numbers))
        self.agent_ids = [AgentId(f"silent-{next(_numbers)}") for _ in range(members)]
        self.charter = create_charter(self.agent_ids, turns + 1, policy)
        self.hops: list[float] = []
        """From saying something to the next speaker's seeing it, in seconds."""
        self._client = client
        self._answers = answers
        self._messages = [self._message(turn, say_something(chance)) for turn in range(1, turns + 1)]
        self._turn = 0
        self._seq = 0
        self._router = ""
        self._heard: asyncio.Future[float] | None = None

    async def talk(self, start: float, pause: float) -> None:
        """Take every turn: the first at `start` by the loop's clock, the others `pause` seconds apart or as soon as can be after.

        The times are fixed beforehand, for groups that wait after each answer end up speaking all at once.
        """
        loop = asyncio.get_running_loop()
        for turn, data in enumerate(self._messages, 1):
            await asyncio.sleep(max(0.0, start + (turn - 1) * pause - loop.time()))
            self._heard, self._turn = asyncio.get_running_loop().create_future(), turn
            said_at = time.perf_counter()
            await self._client.publish(self._where(self._speaker(turn)), data, reply=self._answers)
            self.hops.append(await self._heard - said_at)

    def hear(self, agent_id: str, push: bytes, router: str) -> None:
        """Take in a push to a member. Only the next speaker looks inside, for the entry before may still be on its way to it."""
        if self._heard is None or self._heard.done() or agent_id != self._speaker(self._turn + 1):
            return
        seq = _sequence_of(push)
        if seq > self._seq:
            self._seq, self._router = seq, router
            self._heard.set_result(time.perf_counter())

    @property
    def waits_in(self) -> int | None:
        """In which turn it waits to hear what was said, if it does."""
        return None if self._heard is None or self._heard.done() else self._turn

    def read(self, seq: int, turn: int) -> None:
        """Take in the last entry of the log. A router may not know the next speaker's inbox yet, and then pushes it to nobody."""
        if self._heard is not None and not self._heard.done() and turn > self._turn:
            self._seq = seq
            self._heard.set_result(time.perf_counter())

    def _where(self, speaker: AgentId) -> str:
        """Where to speak: to the router that pushed the last entry, as agents do."""
        comm_id = self.charter.comm_id
        return (
            subjects.say_to(PoolId(speaker), speaker, comm_id, self._router)
            if self._router
            else subjects.say(PoolId(speaker), speaker, comm_id)
        )

    def _message(self, turn: int, content: str) -> bytes:
        header = Header(
            message_id=MessageId(f"{self.charter.comm_id}-{turn}"),
            comm_id=self.charter.comm_id,
            sender=self._speaker(turn),
            state=Phase.DISCUSSING,
            turn=turn,
            after=0,
            sent_at=SystemClock().now(),
            session=_SESSION,
        )
        return encode(Message(header=header, payload=Discussion(content=content, next_speaker=self._speaker(turn + 1))))

    def _speaker(self, turn: int) -> AgentId:
        return self.agent_ids[(turn - 1) % len(self.agent_ids)]


class SilentGroups:
    """Many groups that talk at the same time, on one connection. Made by `open_silent_groups`."""

    def __init__(self, client: Client, groups: int, members: int, turns: int, policy: Policy | None) -> None:
        self._log = NatsGroupLog(client)
        self.answers = client.new_inbox()
        """Where the routers answer."""
        self._unanswered = groups * turns
        self._groups = [SilentGroup(client, members, turns, self.answers, policy) for _ in range(groups)]
        self._by_agent = {agent_id: group for group in self._groups for agent_id in group.agent_ids}
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def charters(self) -> list[Charter]:
        """What the groups are to be launched with."""
        return [group.charter for group in self._groups]

    @property
    def hops(self) -> list[float]:
        """From saying something to the next speaker's seeing it, in seconds, of all groups."""
        return [hop for group in self._groups for hop in group.hops]

    async def talk(self, *, per_second: float | None = None) -> None:
        """Take every turn of every group, as fast as can be or so many a second; return when all of it is acknowledged."""
        pause = len(self._groups) / per_second if per_second else 0.0
        async with asyncio.timeout(_LONGEST_TALK_SECONDS), beside(self._read_what_was_not_pushed()), asyncio.TaskGroup() as group:
            start = asyncio.get_running_loop().time()
            for number, one in enumerate(self._groups):
                group.create_task(one.talk(start + pause * number / len(self._groups), pause))
            await self._answered

    async def _read_what_was_not_pushed(self) -> None:
        """Read the logs of groups that hear nothing, as members do, for ever."""
        before: Mapping[CommId, int | None] = {}
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for one in self._groups:
                comm_id = one.charter.comm_id
                if one.waits_in is not None and before.get(comm_id) == one.waits_in:
                    last = await self._log.last(comm_id)
                    if last is not None:
                        one.read(last.seq, last.entry.state.turn)
            before = {one.charter.comm_id: one.waits_in for one in self._groups}

    def on_push(self, message: Msg) -> None:
        """Let a member hear a push."""
        agent_id = message.subject.rsplit(".", 2)[1]
        if group := self._by_agent.get(AgentId(agent_id)):
            group.hear(agent_id, message.data, message.reply)

    def on_answer(self, message: Msg) -> None:
        """Count what was accepted; anything else ends the talk."""
        if self._answered.done():
            return
        self._unanswered -= 1
        if message.headers or not _is_accepted(message.data):
            self._answered.set_exception(AssertionError(f"A message was not accepted: {message.headers or message.data!r}"))
        elif not self._unanswered:
            self._answered.set_result(None)


@asynccontextmanager
async def open_silent_groups(
    url: str, *, groups: int, members: int, turns: int, policy: Policy | None = None
) -> AsyncIterator[SilentGroups]:
    """Launch groups that are ready to talk, led by a policy that has each speaker name the next one, or free."""
    async with open_connection(NatsSettings(url, "silent")) as client:
        silent = SilentGroups(client, groups, members, turns, policy)
        await launch(client, silent.charters)
        await client.subscribe(subjects.ANY_INBOX, future=MessageSink(silent.on_push))
        await client.subscribe(silent.answers, future=MessageSink(silent.on_answer))
        await client.flush()
        yield silent


def _sequence_of(push: bytes) -> int:
    """Read a push's sequence, which stands first, and nothing else of it."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(push)
    unpacker.read_map_header()
    name, seq = unpacker.unpack(), unpacker.unpack()
    assert name == "seq"
    return int(seq)


def _is_accepted(reply: bytes) -> bool:
    """Read a reply's outcome, which stands first in its answer, and nothing else of it."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(reply)
    unpacker.read_map_header()
    assert unpacker.unpack() == "answer"
    unpacker.read_map_header()
    return [unpacker.unpack(), unpacker.unpack()] == ["outcome", "accepted"]
