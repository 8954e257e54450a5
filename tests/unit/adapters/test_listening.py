"""Whoever listens to requests ends when it is to, whatever it does just then."""

from __future__ import annotations

import asyncio
from functools import partial
from operator import ne
from typing import cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats import listening
from ioa.adapters.nats.listening import Listener
from ioa.adapters.nats.sinks import MessageSink
from tests.rig.deadline import eventually

_AT_MOST = 10


class _Subscription:
    """Of which the server answers just as the task is cancelled that ends it, which nats-py then does not tell."""

    _received, _id = 0, 1

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining
        self._max_msgs = 0

    async def unsubscribe(self, limit: int = 0) -> None:
        """Be for so many messages."""
        self._max_msgs = limit

    async def drain(self) -> None:
        """Wait for the server."""
        self._draining.set()
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return


class _Client:
    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.sinks: list[MessageSink] = []
        self.made: list[_Subscription] = []
        self.subjects: list[str] = []

    @property
    def subscribed(self) -> int:
        return len(self.made)

    async def subscribe(self, subject: str, *_: object, future: MessageSink, **__: object) -> _Subscription:
        """Listen."""
        self.subjects.append(subject)
        self.sinks.append(future)
        self.made.append(_Subscription(self.draining))
        return self.made[-1]

    def _remove_sub(self, _sid: int) -> None:
        """Forget it."""


async def test_who_rests_ends_at_once() -> None:
    """Nor is anything listened to anew, which nobody would end."""
    client = _Client()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        listener = Listener(cast(Client, client), "echo", "q", None, tuple, group, _AT_MOST)
        await listener.open(lambda _: None)
        listener.rest()
        await client.draining.wait()
        await listener.aclose()
    assert client.subscribed == 1


async def test_others_are_heard_soon_where_so_many_are_wanted_that_a_flood_uses_up() -> None:
    """A few at a time, and of those that one may have at once a tenth in each twentieth of a second."""
    client = _Client()
    message = Msg(cast(Client, client), "echo")
    async with asyncio.TaskGroup() as group:
        listener = Listener(cast(Client, client), "echo", "q", None, tuple, group, 100)
        await listener.open(lambda _: None)
        for _ in range(100):
            client.sinks[-1].set_result(message)
        began = asyncio.get_running_loop().time()
        await eventually(lambda: client.subscribed, lambda made: made > 1)
        took = asyncio.get_running_loop().time() - began
        await listener.aclose()
    assert ([one._max_msgs for one in client.made[:2]], took < 0.4) == ([100, 10], True)


async def test_of_what_is_asked_now_and_then_few_are_wanted_and_go_on_being() -> None:
    """All replicas of all services hear each: thousands on their way to each of them kept goals waiting for two seconds."""
    client = _Client()
    message = Msg(cast(Client, client), "echo")
    async with asyncio.TaskGroup() as group:
        listener = Listener(cast(Client, client), "echo", "q", 0, tuple, group, is_rare=True)
        await listener.open(lambda _: None)
        for come in (300, 600, 600):
            before = client.subscribed
            for _ in range(come):
                client.sinks[-1].set_result(message)
            await eventually(lambda: client.subscribed, partial(ne, before))
        await listener.aclose()
    assert [one._max_msgs for one in client.made] == [600] * 4


async def test_after_a_rest_one_message_is_listened_to_first() -> None:
    """Of several that might end the connection no two come; once another message does all are listened to."""
    client, rests = _Client(), [True, True, False]
    message = Msg(cast(Client, client), "echo")
    async with asyncio.TaskGroup() as group:
        listener = Listener(cast(Client, client), "echo", "q", None, tuple, group)

        def take(_message: Msg) -> None:
            if rests.pop(0):
                listener.rest()

        await listener.open(take)
        while client.subscribed < 4:
            before = client.subscribed
            client.sinks[-1].set_result(message)
            await eventually(lambda: client.subscribed, partial(ne, before))
        await listener.aclose()
    wanted = [one._max_msgs for one in client.made]
    assert (wanted[1:3], wanted[0] == wanted[3] > 1) == ([1, 1], True)


@pytest.mark.parametrize("late", [False, True], ids=["while the first is looked at", "while all are listened to again"])
async def test_who_floods_while_it_is_looked_whether_another_one_does_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Two users in turn ended all services at once, within what each may send; and the second is closed out as the first was."""
    monkeypatch.setattr(listening, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(listening, "_CLOSED_SECONDS", (0.02,))
    client, floods = _Client(), list[str]()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        listener = Listener(cast(Client, client), "echo.*", "q", 1, lambda: ("ada", "bob"), group)
        await listener.open(lambda _: None)
        subscribe = client.subscribe

        async def subscribe_beside_a_flood(subject: str, *given: object, future: MessageSink, **named: object) -> _Subscription:
            if not floods and subject == ("echo.*" if late else "echo.ada"):
                floods.append(subject)
                listener.close_out("bob")
            return await subscribe(subject, *given, future=future, **named)

        client.subscribe = subscribe_beside_a_flood  # type: ignore[method-assign]
        listener.close_out("ada")
        await eventually(lambda: client.subjects, lambda subjects: subjects.count("echo.*") == (3 if late else 2))
        assert "echo.bob" in client.subjects  # it was looked whether he floods still
        await listener.aclose()


class _CountingSubscription(_Subscription):
    def __init__(self, number: int, live: dict[int, str]) -> None:
        super().__init__(asyncio.Event())
        self._id, self._live = number, live

    async def unsubscribe(self, limit: int = 0) -> None:
        """Be for so many messages, or for none."""
        await super().unsubscribe(limit)
        if not limit:
            self._live.pop(self._id, None)

    async def drain(self) -> None:
        """End at once."""
        self._live.pop(self._id, None)


class _CountingClient(_Client):
    """Knows by subject what is listened to."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, str] = {}
        self.most = 0

    async def subscribe(self, subject: str, *_: object, future: MessageSink, **__: object) -> _Subscription:
        """Listen."""
        self.subjects.append(subject)
        self.sinks.append(future)
        self.live[len(self.made)] = subject
        self.made.append(_CountingSubscription(len(self.made), self.live))
        self.most = max(self.most, len(self.live))
        return self.made[-1]


async def test_callers_on_several_flooded_subjects_do_not_take_more_subscriptions_than_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 300 callers on three subjects each had one: a tenant's service has 1,000. The others hear everybody, now and then."""
    monkeypatch.setattr(listening, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(listening, "_CLOSED_SECONDS", (0.5,))
    client, patterns = _CountingClient(), ("one.*", "two.*", "three.*")
    callers = [f"agent-{number}" for number in range(300)]
    heard = list[Msg]()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        listeners = [Listener(cast(Client, client), one, "q", 1, lambda: callers, group) for one in patterns]
        for listener in listeners:
            await listener.open(heard.append)
            listener.close_out("agent-7")
        await eventually(lambda: len(client.subjects), lambda made: made >= 3 + 299 + 2)
        single = [one for one in client.live.values() if one not in patterns]
        assert (len(single), client.subjects.count("two.*"), client.subjects.count("three.*")) == (299, 2, 2)
        index = client.subjects.index("two.*", len(patterns))
        for _ in range(501):  # half of what is wanted
            client.sinks[index].set_result(Msg(cast(Client, client), "two.agent-8"))
        await eventually(lambda: client.subjects.count("two.*"), partial(ne, 2))
        assert (len(heard), client.made[client.subjects.index("two.*", index + 1)]._max_msgs) == (501, 100)
        await eventually(lambda: {*client.live.values()}, lambda live: live == {*patterns})  # the floods are over
        listeners[2].close_out("agent-7")
        await eventually(
            lambda: [one for one in client.live.values() if one.startswith("three.agent")], lambda one: len(one) == 299
        )
        for listener in listeners:
            await listener.aclose()
    assert (client.most < 500, {*client.live.values()} - {*patterns}) == (True, set())
