"""What agents and users ask JetStream, or of everybody, which no service counts: heard as it comes, with who asks.

The server says who asks in place of whatever a client says. Where the authorization is older nobody is shown, and nothing is heard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import Header
from pydantic import BaseModel, Field, ValidationError

from ioa.adapters.nats.guests import Holder
from ioa.adapters.nats.headers import UNREAD
from ioa.adapters.nats.keys import LAST_OF
from ioa.adapters.nats.patience import PULLED_WITHIN
from ioa.adapters.nats.permissions import OVERHEARD, PULLS, SHOWN_ASKER, TAKEN, is_outside
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.traces import begins_like_one, hear_traced
from ioa.errors import InvalidInputError
from ioa.ports.connections import ConnectionId
from ioa.protocol import subjects
from ioa.protocol.ids import UserId

AT_ONCE = 20_000
"""How many messages somebody may send at once, if nobody says otherwise."""
_HEARD, _HEARD_AT_LEAST = 2.0, 1.5
"""Of how many pulls and acknowledgements is heard between two counts at most and at least, for each message that somebody may send
at once: who sends more is counted by what he sends. Of fewer, what costs the server much is hidden behind what costs it nothing."""
_PULL_BYTES = 4_096
"""How long a pull may be. A longer one is not read, and counts as a flood."""
_DEAREST, _OF_A_SECOND = 20_000, 20
"""As how many messages a pull counts at most, and for each second that it waits: so long the server keeps it, and where to answer.

It looks through all that it keeps of an account whenever anybody there ends a subscription with a wildcard. Ours wait five seconds:
so an agent pulls a hundred times a second, and 400 times at once. One with sixty slots that are idle does 13 times, and by a
thousand messages a second nobody leads more goals than a hundred."""
_SECOND_NS = 1_000_000_000
_LONGEST_WAIT_NS = 2 * _SECOND_NS * round(PULLED_WITHIN.total_seconds())
FLOOD = 100_000
"""More than anybody may have sent at once."""
_NEXT = b"+NXT"
"""How an acknowledgement begins that asks for the next message. No client of ours asks so, and it is worth a flood."""
_BACK, _BACK_COUNTS = b"-NAK", 300
"""How an acknowledgement begins that gives a goal back, and as how many messages it counts: 133 at once, and then 33 a second. Each
has the server give the goal out again, and another agent begin it; an honest agent gives back all that it does when it stops."""
_TAKEN_BYTES = 256
"""How long an acknowledgement may be. What says in more how long a goal is to wait the server cannot read: it writes all of it to
its log, each byte as four characters, and keeps what comes meanwhile."""
_OVERHEARD, _OF_ALL_SERVICES, _BYTES_COUNT = 100, 500, 100
"""As how many messages a request counts that the registry overhears, what all services are asked, and for how many bytes once more.

The server answers each, or several services do, and it keeps for some seconds what these may answer. A client asks once with each
connection: so it may have asked 400 times at once, and then asks 100 times a second. Whoever looks how everything stands asks all
services some times a minute: he may have 80 times at once, and 20 times a second."""
_SERVICES = "$SRV."
_LOOKED_AT = 20
"""At how many goals is looked between two counts, which may have 256 kB each: who floods is among them."""


class Asker(BaseModel):
    """Who asks, as the server shows it."""

    account: str = Field(alias="acc")
    key: Holder = Field(alias="user")


def messages_pulled(request: bytes) -> int:
    """Return as how many messages a pull counts: for how long it waits, or how often it has the server say that there is nothing.

    That is once in each `idle_heartbeat` until it expires. One that does not expire waits for as long as the server keeps it.
    """
    fields = _fields_of(request)
    if fields is None:
        return _DEAREST
    times = {
        name: [value for said, value in fields if said == name and type(value) is int] for name in ("expires", "idle_heartbeat")
    }
    beats = [value for value in times["idle_heartbeat"] if value > 0]
    told = max([1, *(longest // min(beats) for longest in times["expires"] if beats)])
    may_expire = min(times["expires"], default=0) > 0
    waits = min(max(times["expires"]), _LONGEST_WAIT_NS) if may_expire else _LONGEST_WAIT_NS
    return min(max(told, _OF_A_SECOND, waits * _OF_A_SECOND // _SECOND_NS), _DEAREST)


def _fields_of(request: bytes) -> Sequence[tuple[str, Any]] | None:
    """Read the fields of a request, none if it has none; None if it is nested too deep."""
    try:
        read = json.loads(request.decode("utf-8", "replace"), object_pairs_hook=tuple, parse_int=_whole)
    except ValueError:
        return ()
    except RecursionError:
        return None
    return [(name.casefold(), value) for name, value in read] if isinstance(read, tuple) else ()


def _whole(digits: str) -> int:
    """Read a number; of one that is longer than Go's, which it refuses where it means something, the beginning."""
    return int(digits[:20])


class PullHearer:
    """What agents ask of JetStream, and what else no service answers, of which so much is heard between two counts.

    Once a trace has come nothing is heard from the next count to the one after: more of them would have the connection ended.
    """

    def __init__(
        self,
        client: Client,
        at_once: int,
        hear: Callable[[Asker, int, bool], None],
        hear_traced: Callable[[ConnectionId], None],
        queue: str = "",
    ) -> None:
        self._client = client
        self._heard, self._at_least = int(_HEARD * at_once), int(_HEARD_AT_LEAST * at_once)
        self._queue = queue
        self._hear = hear
        self._hear_traced = hear_traced
        self._was_traced = False
        self._subscriptions: list[Subscription] = []
        self._left = 0

    async def listen(self) -> None:
        """Hear of more."""
        was_traced, self._was_traced = self._was_traced, False
        if was_traced or self._left < self._at_least:
            self._left = 0 if was_traced else self._heard
            while self._subscriptions:  # else each would be heard, and counted, by both
                await self._subscriptions.pop().unsubscribe()
            if was_traced:
                return
            heard = {f"{PULLS}*": self._take, TAKEN: self._take_next} | dict.fromkeys(OVERHEARD, self._overhear)
            for subject, take in heard.items():
                self._subscriptions.append(await self._client.subscribe(subject, self._queue, future=MessageSink(take)))
                await self._subscriptions[-1].unsubscribe(limit=self._heard)

    def _take(self, message: Msg) -> None:
        self._count(message, messages_pulled(message.data) if len(message.data) <= _PULL_BYTES else FLOOD)

    def _take_next(self, message: Msg) -> None:
        is_flood = message.data.startswith(_NEXT) or len(message.data) > _TAKEN_BYTES
        if is_flood or not message.data.startswith(_BACK):
            self._count(message, FLOOD if is_flood else 0)
        else:
            self._count(message, _BACK_COUNTS, gives_back=True)

    def _overhear(self, message: Msg) -> None:
        least = _OF_ALL_SERVICES if message.subject.startswith(_SERVICES) else _OVERHEARD
        self._count(message, least + len(message.data) // _BYTES_COUNT)

    def _count(self, message: Msg, messages: int, *, gives_back: bool = False) -> None:
        self._left -= 1
        if not messages:
            return
        if hear_traced(message, self._hear_traced):
            self._was_traced = True
            return
        if (asker := outside_asker(message)) is not None:
            self._hear(asker, messages, gives_back)


def outside_asker(message: Msg) -> Asker | None:
    """Return who asks, as the server shows it, if that is somebody outside."""
    with suppress(ValidationError):
        asker = Asker.model_validate_json((message.headers or {}).get(SHOWN_ASKER, ""))
        return asker if is_outside(asker.account) else None
    return None


class FewMessages:
    """Some of what comes on a subject: so many messages between two counts."""

    def __init__(self, client: Client, subject: str, most: int, take: Callable[[Msg], None]) -> None:
        self._client = client
        self._subject = subject
        self._most = most
        self._take = take
        self._left = 0

    async def listen(self) -> None:
        """Hear of more."""
        if not self._left:
            self._left = self._most
            subscription = await self._client.subscribe(self._subject, future=MessageSink(self._take_one))
            await subscription.unsubscribe(limit=self._most)

    def _take_one(self, message: Msg) -> None:
        self._left -= 1
        self._take(message)


class OrderHearer:
    """Goals as users publish them, of which a few are looked at between two counts.

    By its headers one has the server search the stream, with it locked, for the last message of a pattern: 6 ms where 40,000 wait.
    Without the pattern among them it is that of the subject, on which a client may publish as if it were none. And a trace may come
    instead of one, see `traces`: by whom says the subject, whoever has written it.
    """

    def __init__(self, client: Client, hear: Callable[[UserId], None]) -> None:
        self._hear = hear
        self._few = [
            FewMessages(client, subject, _LOOKED_AT, self._take) for subject in (subjects.ANY_GOAL, subjects.ANY_ADDRESSED_GOAL)
        ]

    async def listen(self) -> None:
        """Look at more."""
        for few in self._few:
            await few.listen()

    def _take(self, message: Msg) -> None:
        headers = message.headers or {}
        searched = headers.get(LAST_OF, message.subject if Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value in headers else "")
        costs_much = UNREAD in headers or not {"*", ">"}.isdisjoint(searched)
        if costs_much or (not message.reply and begins_like_one(message.data, headers)):
            with suppress(InvalidInputError):
                self._hear(subjects.parse_goal_subject(message.subject)[0])
